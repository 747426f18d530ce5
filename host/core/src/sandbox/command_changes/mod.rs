//! Decides on the changes that a command made in its private view of the workspace, and commits the
//! accepted ones.
//!
//! 1. [`judge`] asks the policy about each changed path, and about each path below a new directory.
//! 2. Changes that a rule denies are discarded. Changes that need an approval of their own, such as
//!    those of instruction files, are shown together ([`approval`]).
//!    With `review_changes`, all changes are shown instead ([`review`]).
//! 3. The rest is committed by renames: all of it, or nothing.

mod approval;
mod direct;
mod judge;
mod record;
mod review;

use std::sync::Arc;

use super::gate::{CommandChangeJudge, Gate, GateRuling, ModeSource};
use super::listed_files::ListedChange;
use super::stage::{
    CommitError, CommitUndo, MoveAction, MovePlan, PlannedMove, UndoHistory, commit_moves,
};
use super::workspace::Workspace;
use crate::policy::{
    CommandChangeVerdict, Denial, DenialCode, Effect, PathProtection, PatternAuthor,
};
use crate::terminal_escape::escape_name;
use cofferdam_confine::view::{CommandChanges, LayerAction, LayerChange};
use judge::{JudgedChanges, RestrictedPath};
pub(super) use record::is_zero;
pub use record::{CommandChange, CommandChangeAction};

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
    /// Returns the judge, which also discards the files of this program that do not exist yet.
    /// Existing ones are masked.
    fn judge_with_own_paths(&self) -> CommandChangeJudge {
        let (judge, workspace) = (Arc::clone(&self.judge), Arc::clone(&self.workspace));
        Arc::new(move |change| {
            match workspace.guard().paths().find(change.path.as_str().split('/')) {
                Some((PathProtection::Hidden, PatternAuthor::Program)) => {
                    CommandChangeVerdict::Discard(Denial::without_remedy(
                        DenialCode::Protected,
                        "it is the place of a file of Cofferdam itself.",
                    ))
                }
                Some(_) | None => judge(change),
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
        let (judge, workspace) = (self.judge_with_own_paths(), Arc::clone(&self.workspace));
        let (changes, judged) = tokio::task::spawn_blocking(move || {
            let judged = JudgedChanges::judge(&changes, workspace.root(), &*judge);
            (changes, judged)
        })
        .await?;
        let JudgedChanges { asked, discarded, mut notices } = judged?;
        let (changes, approved, rejected) = if self.is_reviewing() {
            // The review shows the changes that need an approval of their own, too.
            (self.review(changes, &discarded).await?, asked, Vec::new())
        } else {
            let (approved, rejected) = self.approve(&changes, asked).await?;
            (changes, approved, rejected)
        };
        let refused: Vec<RestrictedPath> = discarded.into_iter().chain(rejected).collect();
        notices.extend(describe_refused(time, &refused));
        let context = self.clone();
        let settled = tokio::task::spawn_blocking(move || {
            context.commit(changes, &refused, &approved, notices)
        });
        settled.await?
    }

    /// Asks for the approval of these changes. Returns the approved and the rejected ones.
    async fn approve(
        &self,
        changes: &CommandChanges,
        asked: Vec<RestrictedPath>,
    ) -> Result<(Vec<RestrictedPath>, Vec<RestrictedPath>), SettleError> {
        if asked.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let shown = approval::describe_changes(&self.workspace, changes, &asked)?;
        if shown.is_empty() {
            return Ok((asked, Vec::new()));
        }
        let ruling = (self.gate)(Effect::Write { changes: shown, confirm: false }).await;
        Ok(match ruling {
            GateRuling::Permitted(_permit) => (asked, Vec::new()),
            // A part of what the command did may be worse than nothing.
            GateRuling::Denied(denial) if is_rejection(&denial) => {
                return Err(SettleError::Rejected(denial));
            }
            GateRuling::Denied(denial) => {
                let rejected = asked.into_iter();
                let reject = |path| RestrictedPath { reason: Some(denial.clone()), ..path };
                (Vec::new(), rejected.map(reject).collect())
            }
        })
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
        for (number, change) in all.into_iter().enumerate() {
            let of_this = || refused.iter().filter(|path| path.change == number);
            if of_this().any(|path| path.below.is_none()) {
                continue;
            }
            for path in of_this() {
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
fn describe_refused(time: CommitTime, refused: &[RestrictedPath]) -> Vec<String> {
    let outcome = time.describe_refusal();
    let mut by_reason: Vec<(String, Vec<&str>)> = Vec::new();
    for path in refused {
        let reason = path.reason.as_ref().map(ToString::to_string).unwrap_or_default();
        if let Some((_, paths)) = by_reason.iter_mut().find(|(known, _)| *known == reason) {
            paths.push(&path.path);
        } else if by_reason.len() < MAX_REASONS {
            by_reason.push((reason, vec![&path.path]));
        }
    }
    let named: usize = by_reason.iter().map(|(_, paths)| paths.len()).sum();
    let mut lines: Vec<String> = by_reason
        .iter()
        .map(|(reason, paths)| {
            let shown = paths.iter().take(MAX_NAMED_PATHS);
            let mut names: Vec<String> =
                shown.map(|path| escape_name(path, MAX_SHOWN_PATH_LEN)).collect();
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
        insta::assert_snapshot!(describe_refused(CommitTime::End, &all).join("\n"), @r"
        the changes of a, d were discarded: denied (protected): first.
        the change of b\u{a}c was discarded: denied (protected): second.
        ");
        let crowd: Vec<_> = (0..50).map(|n| refused(&format!("f{n}"), "no.")).collect();
        assert!(
            describe_refused(CommitTime::Checkpoint, &crowd)[0]
                .contains("f39, 10 more were not committed")
        );
        let reasons: Vec<_> = (0..50).map(|n| refused("f", &format!("{n}."))).collect();
        let lines = describe_refused(CommitTime::End, &reasons);
        assert_eq!(lines.len(), MAX_REASONS + 1);
        assert_eq!(lines[MAX_REASONS], "40 more changes were discarded");
    }
}
