//! Decides on the changes that a command made in its private view of the workspace, and commits the
//! accepted ones.
//!
//! 1. [`judge`] asks the policy about each changed path, and about each path below a new directory.
//! 2. Changes that a rule denies are discarded and recorded. The change of a directory in which
//!    only some paths must not change is [`split`], so that the rest of it is accepted.
//!    Changes that need an approval of their own, such as those of instruction files, are shown
//!    together ([`approval`]).
//!    With `review_changes`, all changes are shown instead ([`review`]).
//! 3. The rest is committed by renames: all of it, or nothing.

mod approval;
mod denials;
mod direct;
mod judge;
mod record;
mod review;
mod split;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::gate::{CommandChangeJudge, DenialRecorder, Gate, GateRuling, ModeSource};
use super::listed_files::ListedChange;
use super::stage::{
    CommitError, CommitUndo, MoveAction, MovePlan, PlannedMove, UndoHistory, commit_moves,
};
use super::workspace::Workspace;
use crate::policy::{CommandChangeVerdict, Denial, DenialCode, Effect};
use crate::terminal_escape::escape_name;
use cofferdam_confine::view::{CommandChanges, LayerAction, LayerChange, SeenEntry};
use judge::{JudgedChanges, RestrictedPath};
pub(super) use record::is_zero;
pub use record::{CommandChange, CommandChangeAction};
use split::JudgmentScope;

/// The number of characters of a path that are shown.
const MAX_SHOWN_PATH_LEN: usize = 200;
/// The number of discarded paths that are named with one reason.
const MAX_NAMED_PATHS: usize = 40;
/// The number of reasons that are named in the result of a command.
const MAX_REASONS: usize = 10;

/// What deciding on the changes of a command takes.
#[derive(Clone)]
pub(super) struct CommandChangeContext {
    pub(super) workspace: Arc<Workspace>,
    pub(super) gate: Gate,
    pub(super) judge: CommandChangeJudge,
    /// The receiver of the denied changes, for the audit log.
    pub(super) denials: DenialRecorder,
    /// The approval mode in force.
    pub(super) mode: ModeSource,
    /// Whether the user reviews all changes in modes that ask.
    pub(super) review_changes: bool,
    /// The history that makes the changes undoable; `None` without undo.
    pub(super) history: Option<Arc<UndoHistory>>,
    /// The name of the tool that ran the command.
    pub(super) tool: String,
}

/// When the changes of a command are committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitTime {
    /// While the command runs. Refused changes stay in its private view.
    Checkpoint,
    /// After the command. Refused changes are gone.
    End,
}

impl CommitTime {
    /// Returns what happens to refused changes.
    fn describe_refusal(self) -> &'static str {
        match self {
            Self::Checkpoint => "not committed",
            Self::End => "discarded",
        }
    }
}

/// The outcome of the changes of a command.
#[derive(Debug, Default)]
pub(super) struct SettledCommand {
    /// Notices about changes that were discarded or deserve a review.
    pub(super) notices: Vec<String>,
    /// The committed changes, for the audit log.
    pub(super) committed: Vec<CommandChange>,
    /// The number of committed changes that are not recorded one by one.
    pub(super) more_committed: u64,
    /// The committed changes of instruction files and of files that run code.
    pub(super) listed: Vec<ListedChange>,
}

/// Why the changes of a command were not committed. The workspace is unchanged.
#[derive(Debug, thiserror::Error)]
pub(super) enum SettleError {
    /// The user rejected a change that needed an approval of its own.
    #[error("{0}")]
    Rejected(Denial),
    /// Nobody could review the changes.
    #[error("{0}")]
    NotReviewed(Denial),
    #[error(transparent)]
    Commit(#[from] CommitError),
    #[error("cannot read the changes of the command: {0}")]
    Read(#[from] std::io::Error),
    #[error("the check of the changes ended early: {0}")]
    Task(#[from] tokio::task::JoinError),
}

impl CommandChangeContext {
    /// Returns the judge, which also discards hidden paths that do not exist yet. Existing ones are
    /// masked.
    fn judge_with_hidden_paths(&self) -> CommandChangeJudge {
        let (judge, workspace) = (Arc::clone(&self.judge), Arc::clone(&self.workspace));
        Arc::new(move |change| {
            let path = change.path.as_str();
            // A branch may have the name of a key file, and packages contain keys for their tests.
            let has_secrets = !judge::may_contain_keys(path);
            match workspace.guard().check_command_change(path, has_secrets) {
                Err(denial) => CommandChangeVerdict::Discard(denial),
                Ok(()) => judge(change),
            }
        })
    }

    /// Decides on all changes of a command that has ended, asks the user where needed, and commits
    /// the accepted ones.
    pub(super) async fn settle(
        &self,
        changes: CommandChanges,
    ) -> Result<SettledCommand, SettleError> {
        self.settle_at(CommitTime::End, changes).await
    }

    /// Decides on all changes, asks the user where needed, and commits the accepted ones.
    pub(super) async fn settle_at(
        &self,
        time: CommitTime,
        changes: CommandChanges,
    ) -> Result<SettledCommand, SettleError> {
        if changes.changes.is_empty() {
            return Ok(SettledCommand::default());
        }
        let splits = time == CommitTime::End;
        let (changes, judged) = self.judge_parts(changes, None, splits).await?;
        check_lost(&changes, &judged)?;
        let (changes, approved, judged) = if self.is_reviewing() {
            // The review shows the changes that need an approval of their own, too.
            let changes = self.review(changes, &judged.discarded).await?;
            (changes, judged.asked, JudgedChanges { asked: Vec::new(), ..judged })
        } else {
            self.approve(changes, judged, splits).await?
        };
        let JudgedChanges { discarded: refused, kept, mut notices, .. } = judged;
        let all: Vec<&RestrictedPath> = refused.iter().chain(&kept).collect();
        notices.extend(describe_refused(time, &all));
        let context = self.clone();
        let settled = tokio::task::spawn_blocking(move || {
            context.commit(changes, &refused, &approved, notices)
        });
        settled.await?
    }

    /// Judges all changes, and records those that are denied without a question. Splits changes of
    /// directories if only a part of them is denied.
    async fn judge_parts(
        &self,
        mut changes: CommandChanges,
        refusal: Option<Denial>,
        splits: bool,
    ) -> Result<(CommandChanges, JudgedChanges), SettleError> {
        let (judge, workspace) = (self.judge_with_hidden_paths(), Arc::clone(&self.workspace));
        let denials = Arc::clone(&self.denials);
        let task = tokio::task::spawn_blocking(move || {
            let scope = JudgmentScope { refusal: refusal.as_ref(), splits };
            let root = workspace.root();
            let judged = JudgedChanges::judge_parts(&mut changes, root, &*judge, &scope)?;
            // With a refusal, the denied changes were judged and recorded before.
            if refusal.is_none() {
                judged.record_denials(&changes, root, &denials);
            }
            Ok((changes, judged))
        });
        task.await?
    }

    /// Asks for the approval of the changes that need one. Returns the approved ones; if nobody can
    /// approve them, they are discarded.
    async fn approve(
        &self,
        changes: CommandChanges,
        mut judged: JudgedChanges,
        splits: bool,
    ) -> Result<(CommandChanges, Vec<RestrictedPath>, JudgedChanges), SettleError> {
        let asked = std::mem::take(&mut judged.asked);
        if asked.is_empty() {
            return Ok((changes, Vec::new(), judged));
        }
        let shown = approval::describe_changes(&self.workspace, &changes, &asked)?;
        if shown.is_empty() {
            return Ok((changes, asked, judged));
        }
        let ruling = (self.gate)(Effect::Write { changes: shown, confirm: false }).await;
        match ruling {
            GateRuling::Permitted(_permit) => Ok((changes, asked, judged)),
            // A part of what the command did may be worse than nothing.
            GateRuling::Denied(denial) if is_rejection(&denial) => {
                Err(SettleError::Rejected(denial))
            }
            GateRuling::Denied(denial) => {
                let (changes, again) = self.judge_parts(changes, Some(denial), splits).await?;
                let kept = judged.kept.into_iter().chain(again.kept).collect();
                Ok((changes, Vec::new(), JudgedChanges { kept, ..again }))
            }
        }
    }

    fn commit(
        &self,
        changes: CommandChanges,
        refused: &[RestrictedPath],
        approved: &[RestrictedPath],
        mut notices: Vec<String>,
    ) -> Result<SettledCommand, SettleError> {
        let CommandChanges { layer, changes: all, .. } = changes;
        let mut accepted: Vec<LayerChange> = Vec::with_capacity(all.len());
        let mut by_change: BTreeMap<usize, Vec<&RestrictedPath>> = BTreeMap::new();
        for path in refused {
            by_change.entry(path.change).or_default().push(path);
        }
        for (number, change) in all.into_iter().enumerate() {
            let of_this = by_change.remove(&number).unwrap_or_default();
            if of_this.iter().any(|path| path.below.is_none()) {
                continue;
            }
            for path in of_this {
                path.remove_from(&layer, &change)?;
            }
            accepted.push(change);
        }
        if accepted.is_empty() {
            return Ok(SettledCommand { notices, ..SettledCommand::default() });
        }
        let listed = approval::listed_changes(&layer, &accepted, approved);
        let (committed, more_committed) = record::record_changes(&layer, &accepted);
        let moves = accepted.into_iter().map(|change| {
            let from = |number| layer.entry(number);
            let action = match change.action {
                LayerAction::Create(after) => MoveAction::Create { from: from(after.number) },
                LayerAction::Replace { after, .. } => {
                    MoveAction::Replace { from: from(after.number) }
                }
                LayerAction::Remove { .. } => MoveAction::Remove,
                LayerAction::SetMode { after, .. } => MoveAction::SetMode { mode: after },
            };
            PlannedMove { path: change.path, action, seen: change.seen }
        });
        let plan = MovePlan { moves: moves.collect(), since: layer.created() };
        let made = match &self.history {
            Some(history) => commit_moves(&self.workspace, plan, &self.tool, history),
            // The layer is on the file system of the workspace, as the commit needs it.
            None => {
                let history = UndoHistory::temporary(layer.path()).map_err(CommitError::from)?;
                commit_moves(&self.workspace, plan, &self.tool, &history)
            }
        };
        if let Err(CommitError::Partial { .. }) = &made
            && self.history.is_none()
        {
            // The error names the directory with the old files.
            layer.keep();
        }
        if let CommitUndo::TooLarge(bytes) = made? {
            notices.push(format!(
                "the command cannot be undone, because it replaced or removed more than undo keeps \
                    ({} MiB)",
                bytes >> 20
            ));
        }
        Ok(SettledCommand { notices, committed, more_committed, listed })
    }
}

/// Checks that somebody else has not removed what the command changed, before anybody is asked.
///
/// # Errors
/// An entry was removed whose change is not discarded.
fn check_lost(changes: &CommandChanges, judged: &JudgedChanges) -> Result<(), CommitError> {
    let whole = judged.discarded.iter().filter(|path| path.below.is_none());
    let discarded: BTreeSet<usize> = whole.map(|path| path.change).collect();
    let lost = changes
        .changes
        .iter()
        .enumerate()
        .find(|(number, change)| change.seen == SeenEntry::Lost && !discarded.contains(number));
    lost.map_or(Ok(()), |(_, change)| Err(CommitError::Changed(change.path.clone())))
}

/// Returns whether the user rejected or cancelled something.
fn is_rejection(denial: &Denial) -> bool {
    matches!(denial.code, DenialCode::RejectedByUser | DenialCode::Cancelled)
}

impl SettleError {
    /// Returns the error for changes whose review was denied.
    fn from_denial(denial: Denial) -> Self {
        if is_rejection(&denial) { Self::Rejected(denial) } else { Self::NotReviewed(denial) }
    }
}

/// Describes the refused changes, for the result of the command: one line for each reason.
fn describe_refused(time: CommitTime, refused: &[&RestrictedPath]) -> Vec<String> {
    let outcome = time.describe_refusal();
    let mut by_reason: Vec<Vec<&RestrictedPath>> = Vec::new();
    for path in refused {
        let is_same = |paths: &&mut Vec<&RestrictedPath>| {
            paths.first().is_some_and(|first| first.has_same_reason(path))
        };
        if let Some(paths) = by_reason.iter_mut().find(is_same) {
            paths.push(path);
        } else if by_reason.len() < MAX_REASONS {
            by_reason.push(vec![path]);
        }
    }
    let named: usize = by_reason.iter().map(Vec::len).sum();
    let mut lines: Vec<String> = by_reason
        .iter()
        .map(|paths| {
            let reason = paths.first().and_then(|first| first.reason.as_ref());
            let reason = reason.map(ToString::to_string).unwrap_or_default();
            let shown = paths.iter().take(MAX_NAMED_PATHS);
            let mut names: Vec<String> =
                shown.map(|path| escape_name(&path.path, MAX_SHOWN_PATH_LEN)).collect();
            if let Some(more @ 1..) = paths.len().checked_sub(MAX_NAMED_PATHS) {
                names.push(format!("{more} more"));
            }
            let names = names.join(", ");
            let (noun, verb) =
                if paths.len() == 1 { ("change", "was") } else { ("changes", "were") };
            format!("the {noun} of {names} {verb} {outcome}: {reason}")
        })
        .collect();
    if let Some(more @ 1..) = refused.len().checked_sub(named) {
        lines.push(format!("{more} more changes were {outcome}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discarded_changes_are_described_by_reason() {
        let refused = |path: &str, reason: &str| RestrictedPath {
            change: 0,
            path: path.into(),
            below: None,
            kind: None,
            reason: Some(Denial::without_remedy(DenialCode::Protected, reason)),
        };
        let all = [refused("a", "first."), refused("b\nc", "second."), refused("d", "first.")];
        let describe =
            |time, all: &[RestrictedPath]| describe_refused(time, &all.iter().collect::<Vec<_>>());
        insta::assert_snapshot!(describe(CommitTime::End, &all).join("\n"), @r"
        the changes of a, d were discarded: denied (protected): first.
        the change of b\u{a}c was discarded: denied (protected): second.
        ");
        let crowd: Vec<_> = (0..50).map(|n| refused(&format!("f{n}"), "no.")).collect();
        assert!(
            describe(CommitTime::Checkpoint, &crowd)[0].contains("f39, 10 more were not committed")
        );
        let reasons: Vec<_> = (0..50).map(|n| refused("f", &format!("{n}."))).collect();
        let lines = describe(CommitTime::End, &reasons);
        assert_eq!(lines.len(), MAX_REASONS + 1);
        assert_eq!(lines[MAX_REASONS], "40 more changes were discarded");
    }
}
