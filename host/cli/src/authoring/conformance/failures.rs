//! Evaluation of calls: whether a report passes a conformance check, or why it fails.

use std::collections::BTreeMap;

use serde_json::Value;

use super::case::{ConformanceCase, ErrorKind, ExpectedView};
use cofferdam::sandbox::{
    CallFailure, CallOutput, CallReport, OutputPiece, StateChange, UserOutputView,
};

/// The reason why a check failed; `None` if it passed.
pub(super) type CheckFailure = Option<String>;

/// Compares the report of a call with the expected result of its case.
pub(super) fn case_failure(case: &ConformanceCase, report: &CallReport) -> CheckFailure {
    let (kind, text) = match &report.result {
        Ok(output) => (None, output_text(output)),
        Err(failure) => (Some(error_kind(failure)), failure.to_string()),
    };
    let wrong = match (case.error, kind) {
        (None, Some(_)) => Some(format!("the call failed: {text}")),
        (Some(_), None) => Some(format!("the result is {text:?}")),
        (Some(expected), Some(got)) if got != Some(expected) => {
            Some(format!("the call failed with another kind of error: {text}"))
        }
        (None, None) | (Some(_), Some(_)) => None,
    };
    let inexact = || {
        case.output
            .as_ref()
            .filter(|expected| **expected != text)
            .map(|_| format!("the result is {text:?}"))
    };
    let lacking = || {
        case.contains
            .iter()
            .find(|part| !text.contains(*part))
            .map(|part| format!("the result does not contain {part:?}: {text:?}"))
    };
    wrong.or_else(inexact).or_else(lacking).or_else(|| {
        let output = report.result.as_ref().ok()?;
        structured_failure(case, output).or_else(|| view_failure(case, output))
    })
}

fn structured_failure(case: &ConformanceCase, output: &CallOutput) -> CheckFailure {
    let expected = case.structured.as_ref()?;
    let Some(text) = output.structured.as_deref() else {
        return Some("it has no structured result".to_owned());
    };
    let actual = serde_json::from_str::<Value>(text);
    (actual.ok().as_ref() != Some(expected)).then(|| format!("its structured result is {text}"))
}

fn view_failure(case: &ConformanceCase, output: &CallOutput) -> CheckFailure {
    let actual = match &output.user_view {
        None => None,
        Some(UserOutputView::Text(text)) => Some(ExpectedView::Text(text.clone())),
        Some(UserOutputView::Diff(diff)) => Some(ExpectedView::Diff(diff.clone())),
        Some(UserOutputView::Table { header, rows }) => {
            let rows = std::iter::once(header).chain(rows).cloned().collect();
            Some(ExpectedView::Table(rows))
        }
    };
    let expected = case.view.as_ref()?;
    (actual.as_ref() != Some(expected)).then(|| match actual {
        Some(actual) => format!("its view is {actual:?}"),
        None => "it has no view".to_owned(),
    })
}

/// Compares the state of a tool after a call with the expected state. `changes` are the changes of
/// the call.
pub(super) fn state_failure(case: &ConformanceCase, changes: Vec<StateChange>) -> CheckFailure {
    let before = case.state.iter();
    let before = before.map(|(key, value)| (key.clone(), value.bytes().ok()));
    let actual: BTreeMap<String, Option<Vec<u8>>> = before.chain(changes).collect();
    case.state_after.iter().find_map(|(key, expected)| {
        let actual = actual.get(key).cloned().flatten();
        let expected = expected.as_ref().and_then(|expected| expected.bytes().ok());
        (actual != expected).then(|| match actual {
            Some(actual) => {
                format!("the state {key} is {:?} afterwards", String::from_utf8_lossy(&actual))
            }
            None => format!("there is no state {key} afterwards"),
        })
    })
}

/// Returns the kind of error that the tool returned, or `None` if the host ended the call.
fn error_kind(failure: &CallFailure) -> Option<ErrorKind> {
    match failure {
        CallFailure::InvalidInput { .. } => Some(ErrorKind::InvalidInput),
        CallFailure::NotFound(_) => Some(ErrorKind::NotFound),
        CallFailure::Denied { .. } => Some(ErrorKind::Denied),
        CallFailure::ToolTimedOut(_) => Some(ErrorKind::TimedOut),
        CallFailure::ToolFailed(_) => Some(ErrorKind::Failed),
        CallFailure::LimitExceeded(_)
        | CallFailure::Trapped(_)
        | CallFailure::NotChanged(_)
        | CallFailure::PartlyChanged(_)
        | CallFailure::InvalidResult(_)
        | CallFailure::Cancelled
        | CallFailure::Unavailable(_)
        | CallFailure::Host(_) => None,
        // Only errors that a tool returns have a kind.
        _ => None,
    }
}

/// Fails unless the tool succeeded or reported a failure itself.
pub(super) fn crash_failure(report: Result<CallReport, String>) -> CheckFailure {
    match report {
        Err(problem) => Some(problem),
        Ok(report) => match report.result {
            Err(failure) if error_kind(&failure).is_none() => Some(failure.to_string()),
            Ok(_) | Err(_) => None,
        },
    }
}

/// Fails unless the call was cancelled, succeeded, or reported a failure itself. A tool may finish
/// before it notices the cancellation.
pub(super) fn cancellation_failure(result: Result<CallOutput, CallFailure>) -> CheckFailure {
    match result {
        Ok(_) | Err(CallFailure::Cancelled) => None,
        Err(failure) => error_kind(&failure).is_none().then(|| failure.to_string()),
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
