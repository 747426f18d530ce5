//! What becomes of that which a call has written aside: shown, decided on, and made real or dropped.

use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;

use super::approval::{Approvals, Verdicts};
use super::catalog::Tool;
use super::ledger::{Ended, Subject};
use super::memory::Memory;
use crate::conversation::{Content, ResultStatus, ToolResult};
use crate::policy::{Changes, Denial, Effect, FileGrant};
use crate::sandbox::{CallReport, CommitError, Failure, History, Made, Ruling};

/// Makes changes real.
#[derive(Default)]
pub(super) struct Settling {
    /// Where what was there before is kept.
    pub(super) history: Option<Arc<History>>,
}

/// What a call has really changed.
pub(super) struct Changed {
    /// As it was shown.
    pub(super) changes: Changes,
    /// What is there now.
    pub(super) made: Vec<Made>,
}

impl Settling {
    /// Decides on the changes of a call that ended well, and makes them; the report says what came of it. A call that
    /// changes nothing needs no leave.
    pub(super) async fn settle(
        &self,
        report: &mut CallReport,
        (tool, subject): (&Tool, &Subject),
        memory: &Memory,
        approvals: &Approvals,
        (cancel, verdicts): (&CancellationToken, &Mutex<Verdicts>),
    ) -> Option<Changed> {
        let Some(staged) = report.staged.take() else {
            // A tool that wants to be confirmed is, even if it turns out to change nothing: before anybody hears of it.
            let unconfirmed = tool.confirm && tool.grants.files == FileGrant::ReadWrite && report.result.is_ok();
            if unconfirmed && let Ruling::Denied(denial) = approvals.rule(subject, Effect::Confirmed, cancel, verdicts).await {
                report.result = Err(denied(denial));
            }
            return None;
        };
        // Before anybody is asked. From here to the change itself the commit sees to it that nothing changes.
        if let Some(place) = memory.outdated(&staged) {
            report.result = Err(Failure::NotChanged(format!(
                "'{place}' has changed on disk since it was last read, so nothing was changed. Read it again, and repeat the call with what is there now."
            )));
            return None;
        }
        let changes = staged.changes().clone();
        let effect = Effect::Write { changes: changes.clone(), confirm: tool.confirm };
        let permit = match approvals.rule(subject, effect, cancel, verdicts).await {
            Ruling::Permitted(permit) => permit,
            Ruling::Denied(denial) => {
                report.result = Err(denied(denial));
                return None;
            }
        };
        let (history, tool) = (self.history.clone(), subject.tool.clone());
        let committed = tokio::task::spawn_blocking(move || staged.commit(permit, &tool, history.as_deref())).await;
        match committed {
            Ok(Ok(made)) => Some(Changed { changes, made }),
            Ok(Err(error)) => {
                report.result = Err(not_changed(&error));
                None
            }
            Err(error) => {
                report.result = Err(Failure::HalfChanged(format!(
                    "the host failed while it made the changes ({error}), so that some of them may have been made; they are taken back with \
                     the next change, or with `cofferdam undo`"
                )));
                None
            }
        }
    }
}

/// What a tool cannot know, for the model: what was refused on the way, and that an error has changed nothing.
pub(super) fn remark(result: &mut ToolResult, report_denials: &[Denial], ended: &Ended) {
    let mut notes: Vec<String> = report_denials.iter().map(ToString::to_string).collect();
    if !ended.touched.written.is_empty() && leaves_all_as_it_was(ended.failure) && result.status == ResultStatus::Error {
        notes.push("Nothing was changed: what a call writes counts only if it ends well.".to_owned());
    }
    // The tool may have passed a denial on in its own words.
    let said = result.text();
    result
        .content
        .extend(notes.into_iter().filter(|note| !said.contains(note.as_str())).map(|note| Content::Text(format!("[host: {note}]"))));
}

/// Whether all that a call wrote has come to nothing, after this kind of failure.
fn leaves_all_as_it_was(failure: Option<&str>) -> bool {
    failure != Some(Failure::HALF_CHANGED)
}

pub(super) fn denied(denial: Denial) -> Failure {
    Failure::Denied {
        code: denial.code.name().to_owned(),
        reason: denial.reason,
        remedy: denial.remedy.map(|remedy| format!(" {remedy}")).unwrap_or_default(),
    }
}

fn not_changed(error: &CommitError) -> Failure {
    match error {
        CommitError::HalfDone { .. } => Failure::HalfChanged(error.to_string()),
        CommitError::NotPermitted
        | CommitError::Changed(_)
        | CommitError::Interrupted(_)
        | CommitError::NotWhatWasShown(_)
        | CommitError::Io { .. }
        | CommitError::History(_) => Failure::NotChanged(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_says_that_nothing_was_changed_after_a_change_by_halves() {
        let error = || std::io::Error::other("full");
        let half = not_changed(&CommitError::HalfDone { place: "a".into(), source: error(), undo: error(), kept: "/kept".into() });
        let whole = not_changed(&CommitError::Io { place: "a".into(), source: error() });
        assert!(!leaves_all_as_it_was(Some(half.kind())));
        assert!(leaves_all_as_it_was(Some(whole.kind())) && leaves_all_as_it_was(None));
    }
}
