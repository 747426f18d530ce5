//! The decision about a change that a command made in its private view of the workspace.

use super::{Authorizer, DecisionExplanation, DecisionOutcome};
use crate::{ApprovalMode, ChangeSet, Denial, Effect, FileChange, ToolId, Verdict};

/// The decision about one change of an approved command. Nothing of it is in the workspace yet.
///
/// This enum is closed: code that commits changes has to treat each answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandChangeVerdict {
    /// The approval of the command covers the change.
    Accept,
    /// The change needs an approval of its own, as an [`Effect::Write`].
    Ask,
    /// A rule denies the change.
    Discard(Denial),
}

impl Authorizer {
    /// Decides about one change of a command that was approved and has ended.
    ///
    /// The approval of a command covers every change that only the mode would ask about. The rules
    /// and the built-in lists of instruction files and of files that run code apply as they do to
    /// the changes of tools.
    ///
    /// ```
    /// use cofferdam_policy::{
    ///     ApprovalMode, Authorizer, ChangeKind, CommandChangeVerdict, FileChange, ToolId,
    ///     WorkspacePath,
    /// };
    ///
    /// let authorizer = Authorizer::new(ApprovalMode::Ask, true);
    /// let judge = |path| {
    ///     let path = WorkspacePath::parse(path, None).expect("a path");
    ///     let kind = ChangeKind::Delete { before: 1 };
    ///     let change = FileChange { path, kind, diff: None };
    ///     authorizer.judge_command_change(ToolId::new("bash", ""), &change)
    /// };
    /// assert_eq!(judge("src/main.rs"), CommandChangeVerdict::Accept);
    /// assert_eq!(judge("AGENTS.md"), CommandChangeVerdict::Ask);
    /// ```
    pub fn judge_command_change<'t>(
        &self,
        tool: impl Into<ToolId<'t>>,
        change: &FileChange,
    ) -> CommandChangeVerdict {
        let tool = tool.into();
        let changes = ChangeSet::new(vec![change.clone()]);
        let effect = Effect::Write { changes, confirm: false };
        // In this mode, only rules and lists ask.
        let evaluations = self.policy.evaluate_effect(ApprovalMode::Auto, tool, &effect);
        let explanation = DecisionExplanation { outcome: self.plan_outcome(), evaluations };
        let Some(decisive) = explanation.decisive() else { return CommandChangeVerdict::Ask };
        match decisive.finding.verdict {
            Verdict::Allow => CommandChangeVerdict::Accept,
            Verdict::Ask => CommandChangeVerdict::Ask,
            Verdict::Deny => match self.outcome(tool, &effect, decisive) {
                DecisionOutcome::Deny(denial) => CommandChangeVerdict::Discard(denial),
                DecisionOutcome::Allow(_) | DecisionOutcome::Ask { .. } => {
                    CommandChangeVerdict::Ask
                }
            },
        }
    }
}
