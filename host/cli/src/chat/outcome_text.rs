//! Texts about requests and their outcomes in a chat.

use cofferdam::agent::RequestOutcome;
use cofferdam::conversation::Transcript;

/// Returns a hint that follows the error text of an outcome.
pub(super) fn outcome_hint(outcome: &RequestOutcome) -> &'static str {
    match outcome {
        RequestOutcome::Limit { .. } => ". Say `go on` to let it go on.",
        RequestOutcome::Empty => ". Say it in other words, or choose another /model.",
        RequestOutcome::Rejected => ". Say what to do instead.",
        RequestOutcome::Aborted => ". What was done until then is remembered.",
        RequestOutcome::TimedOut { .. } => ".",
        RequestOutcome::Answered { .. }
        | RequestOutcome::ProviderError { .. }
        | RequestOutcome::Overflow { .. }
        | RequestOutcome::InternalError { .. } => "",
    }
}

/// Formats the number of requests of a session.
pub(super) fn format_request_count(transcript: &Transcript) -> String {
    match transcript.exchanges().len() {
        1 => "1 request".to_owned(),
        many => format!("{many} requests"),
    }
}
