//! Settles the staged writes of a call: shows them, decides on them, and commits or discards them.

use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;

use super::approval::{CallDecisions, SessionApprovals};
use super::audit_sink::{CallIdentity, TouchedPaths};
use super::catalog::CatalogTool;
use super::confirmation::ConfirmationRule;
use super::session_state::SessionState;
use crate::conversation::{ResultContent, ResultStatus, ToolResult};
use crate::policy::{ChangeSet, Denial, Effect};
use crate::sandbox::{
    AppliedChange, CallFailure, CallReport, CommitError, GateRuling, Staged, UndoHistory,
};

/// Commits the staged changes of calls.
#[derive(Default)]
pub(super) struct ChangeSettler {
    /// The history that backs up files before a change.
    pub(super) history: Option<Arc<UndoHistory>>,
}

/// The changes that a call really made.
pub(super) struct SettledChanges {
    /// The changes as they were shown to the user.
    pub(super) changes: ChangeSet,
    /// The resulting versions of the files.
    pub(super) applied: Vec<AppliedChange>,
}

impl ChangeSettler {
    /// Decides on the changes of a successful call and commits them. Sets the result of the report
    /// on failure. A call without changes needs no approval.
    pub(super) async fn settle(
        &self,
        report: &mut CallReport,
        (tool, subject): (&CatalogTool, &CallIdentity),
        memory: &SessionState,
        approvals: &SessionApprovals,
        (cancel, verdicts): (&CancellationToken, &Mutex<CallDecisions>),
    ) -> Option<SettledChanges> {
        let Some(staged) = report.staged.take() else {
            // A tool with confirmation is confirmed even if it changed nothing, before the model
            // sees its result.
            if tool.confirmation_rule() == ConfirmationRule::AtEnd
                && report.result.is_ok()
                && let GateRuling::Denied(denial) =
                    approvals.authorize(subject, Effect::Confirmed, cancel, verdicts).await
            {
                report.result = Err(denied_failure(denial));
            }
            return None;
        };
        // Checked before the user is asked. From here to the change itself, the commit checks that
        // the files stay the same.
        if let Some(place) = memory.find_outdated(&staged) {
            report.result = Err(CallFailure::NotChanged(format!(
                "`{place}` has changed on disk since it was last read; nothing was changed. Read \
                    it again, then repeat the call for its new content."
            )));
            return None;
        }
        let changes = staged.changes().clone();
        let (staged, planted) = match find_planted_repository(staged).await {
            Ok(looked) => looked,
            Err(error) => {
                report.result = Err(CallFailure::NotChanged(format!(
                    "cannot check the changes: {error}; nothing was changed"
                )));
                return None;
            }
        };
        if let Some(denial) = planted {
            approvals.record_denied_changes((subject, verdicts), changes, denial.clone());
            report.result = Err(denied_failure(denial));
            return None;
        }
        let effect = Effect::Write { changes: changes.clone(), confirm: tool.confirm };
        let permit = match approvals.authorize(subject, effect, cancel, verdicts).await {
            GateRuling::Permitted(permit) => permit,
            GateRuling::Denied(denial) => {
                report.result = Err(denied_failure(denial));
                return None;
            }
        };
        let (history, tool) = (self.history.clone(), subject.tool.clone());
        let committed =
            tokio::task::spawn_blocking(move || staged.commit(permit, &tool, history.as_deref()))
                .await;
        match committed {
            Ok(Ok(made)) => Some(SettledChanges { changes, applied: made }),
            Ok(Err(error)) => {
                report.result = Err(commit_failure(&error));
                None
            }
            Err(error) => {
                report.result = Err(CallFailure::PartlyChanged(format!(
                    "cannot apply all changes: {error}; some files may have changed. The next \
                        change or `cofferdam undo` reverts them"
                )));
                None
            }
        }
    }
}

/// Looks on another thread for a repository that the changes would create or configure.
async fn find_planted_repository(
    staged: Staged,
) -> Result<(Staged, Option<Denial>), tokio::task::JoinError> {
    if !staged.has_repository_parts() {
        return Ok((staged, None));
    }
    tokio::task::spawn_blocking(move || {
        let denial = staged.find_planted_repository();
        (staged, denial)
    })
    .await
}

/// Adds notices that the tool cannot know to the result for the model: denials during the call, and
/// that a failed call changed nothing.
pub(super) fn add_host_notices(
    result: &mut ToolResult,
    report_denials: &[Denial],
    has_discarded_writes: bool,
) {
    let mut notes: Vec<String> = report_denials.iter().map(ToString::to_string).collect();
    if has_discarded_writes && result.status == ResultStatus::Error {
        notes.push("Nothing was changed: the writes of a failed call are discarded.".to_owned());
    }
    // The tool may have reported a denial in its own error.
    let said = result.text();
    result.content.extend(
        notes
            .into_iter()
            .filter(|note| !said.contains(note.as_str()))
            .map(|note| ResultContent::Text(format!("[host: {note}]"))),
    );
}

/// Removes the written paths of a call whose changes were not made from those that it touched.
/// Returns whether there were any.
pub(super) fn discard_unmade_writes(
    touched: &mut TouchedPaths,
    is_committed: bool,
    failure: Option<&str>,
) -> bool {
    if is_committed || !is_fully_undone(failure) {
        return false;
    }
    !std::mem::take(&mut touched.written).is_empty()
}

/// Returns whether a call changed nothing after this kind of failure.
fn is_fully_undone(failure: Option<&str>) -> bool {
    failure != Some(CallFailure::PARTLY_CHANGED)
}

pub(super) fn denied_failure(denial: Denial) -> CallFailure {
    CallFailure::Denied {
        code: denial.code.name().to_owned(),
        reason: denial.reason,
        remedy: denial.remedy.map(|remedy| format!(" {remedy}")).unwrap_or_default(),
    }
}

fn commit_failure(error: &CommitError) -> CallFailure {
    match error {
        CommitError::Partial { .. } => CallFailure::PartlyChanged(error.to_string()),
        CommitError::NotPermitted
        | CommitError::Changed(_)
        | CommitError::Interrupted(_)
        | CommitError::ContentMismatch(_)
        | CommitError::Io { .. }
        | CommitError::History(_) => CallFailure::NotChanged(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_change_is_never_reported_as_no_change() {
        let error = || std::io::Error::other("full");
        let half = commit_failure(&CommitError::Partial {
            path: "a".into(),
            source: error(),
            undo_error: error(),
            backup: "/kept".into(),
        });
        let whole = commit_failure(&CommitError::Io { path: "a".into(), source: error() });
        assert!(!is_fully_undone(Some(half.kind())));
        assert!(is_fully_undone(Some(whole.kind())) && is_fully_undone(None));
    }
}
