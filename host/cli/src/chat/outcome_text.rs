//! Texts about requests and their outcomes in a chat.

use cofferdam::agent::RequestOutcome;
use cofferdam::conversation::Transcript;

/// Returns a hint that follows the error text of an outcome.
pub(super) fn outcome_hint(outcome: &RequestOutcome) -> &'static str {
    match outcome {
        RequestOutcome::Limit { .. } => ". To continue, send another prompt.",
        RequestOutcome::Empty => ". Rephrase the prompt, or choose another /model.",
        RequestOutcome::Rejected => ". Say what to do instead.",
        RequestOutcome::Aborted => ". The completed work is kept.",
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
