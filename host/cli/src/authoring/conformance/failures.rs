//! Evaluation of calls: whether a report passes a conformance check, or why it fails.

use super::case::{ConformanceCase, FailureKind};
use cofferdam::sandbox::{CallFailure, CallOutput, CallReport, OutputPiece};

/// The reason why a check failed; `None` if it passed.
pub(super) type CheckFailure = Option<String>;

/// Compares the report of a call with the expected result of its case.
pub(super) fn case_failure(case: &ConformanceCase, report: &CallReport) -> CheckFailure {
    let (kind, text) = match &report.result {
        Ok(output) => (None, output_text(output)),
        Err(failure) => (Some(failure_kind(failure)), failure.to_string()),
    };
    let wrong = match (case.fails, kind) {
        (None, Some(_)) => Some(format!("the call failed: {text}")),
        (Some(_), None) => Some(format!("the result is {text:?}")),
        (Some(expected), Some(got)) if got != Some(expected) => {
            Some(format!("the call failed with another kind of error: {text}"))
        }
        (None, None) | (Some(_), Some(_)) => None,
    };
    let inexact = || {
        case.answers
            .as_ref()
            .filter(|expected| **expected != text)
            .map(|_| format!("the result is {text:?}"))
    };
    let lacking = || {
        case.with
            .iter()
            .find(|part| !text.contains(*part))
            .map(|part| format!("the result does not contain {part:?}: {text:?}"))
    };
    wrong.or_else(inexact).or_else(lacking)
}

/// Returns the kind of failure that the tool reported, or `None` if the host ended the call.
fn failure_kind(failure: &CallFailure) -> Option<FailureKind> {
    match failure {
        CallFailure::InvalidInput { .. } => Some(FailureKind::InvalidInput),
        CallFailure::NotFound(_) => Some(FailureKind::NotFound),
        CallFailure::Denied { .. } => Some(FailureKind::Denied),
        CallFailure::ToolTimedOut(_) => Some(FailureKind::TimedOut),
        CallFailure::ToolFailed(_) => Some(FailureKind::Failed),
        CallFailure::LimitExceeded(_)
        | CallFailure::Trapped(_)
        | CallFailure::NotChanged(_)
        | CallFailure::PartlyChanged(_)
        | CallFailure::InvalidResult(_)
        | CallFailure::Cancelled
        | CallFailure::Unavailable(_)
        | CallFailure::Host(_) => None,
    }
}

/// Fails unless the tool succeeded or reported a failure itself.
pub(super) fn crash_failure(report: Result<CallReport, String>) -> CheckFailure {
    match report {
        Err(problem) => Some(problem),
        Ok(report) => match report.result {
            Err(failure) if failure_kind(&failure).is_none() => Some(failure.to_string()),
            Ok(_) | Err(_) => None,
        },
    }
}

/// Fails unless the call was cancelled, succeeded, or reported a failure itself. A tool may finish
/// before it notices the cancellation.
pub(super) fn cancellation_failure(result: Result<CallOutput, CallFailure>) -> CheckFailure {
    match result {
        Ok(_) | Err(CallFailure::Cancelled) => None,
        Err(failure) => failure_kind(&failure).is_none().then(|| failure.to_string()),
    }
}

/// Fails unless the tool reported a failure itself.
pub(super) fn missing_refusal(report: Result<CallReport, String>) -> CheckFailure {
    match report {
        Ok(CallReport { result: Ok(output), .. }) => {
            Some(format!("the result is {:?}", output_text(&output)))
        }
        other => crash_failure(other),
    }
}

fn output_text(output: &CallOutput) -> String {
    let piece = |piece: &OutputPiece| match piece {
        OutputPiece::Text(text) => text.clone(),
        OutputPiece::Image { media_type, .. } => format!("[{media_type}]"),
    };
    output.content.iter().map(piece).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_call_may_report_its_own_failure_but_must_not_crash() {
        let table = [
            (CallFailure::Cancelled, true),
            (CallFailure::ToolFailed("there is no file".into()), true),
            (CallFailure::NotFound("a.txt".into()), true),
            (CallFailure::InvalidInput { pointer: "/path".into(), message: "empty".into() }, true),
            (CallFailure::Trapped("unreachable".into()), false),
            (
                CallFailure::LimitExceeded("the call exceeded its time limit of 60 seconds".into()),
                false,
            ),
            (CallFailure::InvalidResult("no text".into()), false),
        ];
        for (failure, is_fine) in table {
            assert_eq!(cancellation_failure(Err(failure.clone())).is_none(), is_fine, "{failure}");
        }
    }
}
