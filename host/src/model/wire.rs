//! What the wire formats have in common.

use std::borrow::Cow;

use super::failure::Failure;
use super::sse::Event;
use crate::agent::ports::Delta;
use crate::conversation::{Response, Summary};

/// One response in one provider's format, assembled event by event.
pub(super) trait Wire: Send {
    /// Takes the next event and hands over what is new in it.
    fn event(&mut self, event: &Event, hand: &mut Hand<'_>) -> Result<Progress, Failure>;

    /// Whether the response is whole, even if the stream ends here without saying so.
    fn is_whole(&self) -> bool;

    /// The response; an error if it is not whole.
    fn finish(self) -> Result<Response, Failure>;
}

/// Whether more is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The stream goes on.
    More,
    /// The stream said that it is over.
    Over,
}

/// The hand that passes deltas on. It remembers what cannot be taken back.
pub(super) struct Hand<'a> {
    on_delta: &'a mut (dyn FnMut(Delta<'_>) + Send),
    text: String,
    /// Whether what is passed on is seen, and so cannot be taken back.
    shows: bool,
    used: bool,
}

impl<'a> Hand<'a> {
    pub(super) fn new(on_delta: &'a mut (dyn FnMut(Delta<'_>) + Send), shows: bool) -> Self {
        Self { on_delta, text: String::new(), shows, used: false }
    }

    /// Passes on a piece of the response; empty ones are none.
    pub(super) fn over(&mut self, delta: Delta<'_>) {
        match delta {
            Delta::Text("") | Delta::Reasoning("") => return,
            Delta::Text(text) => {
                self.text.push_str(text);
                self.used = self.shows;
            }
            Delta::Reasoning(_) | Delta::CallBegun(_) => self.used = self.shows,
            // The response begins anew.
            Delta::Retry { .. } => self.text.clear(),
        }
        (self.on_delta)(delta);
    }

    /// Whether anything of the response was shown, after which it cannot begin anew.
    pub(super) fn is_used(&self) -> bool {
        self.used
    }

    /// The text that was passed on, of the last attempt.
    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// A tool's name in the form both providers accept. A model may have called a tool by a name that no tool can have;
/// the call was answered with an error, but it is part of the history, which must remain acceptable.
pub(super) fn wire_name(name: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= 64 && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let fitted: String = name.chars().map(|c| if fits(c) { c } else { '_' }).take(64).collect();
    Cow::Owned(if fitted.is_empty() { "unnamed".to_owned() } else { fitted })
}

/// A summary as it is sent: on the user's side, and plainly not the user's words.
pub(super) fn wire_summary(summary: &Summary) -> String {
    let under_way = if summary.until.turn > 0 {
        " The user's message after it is older than its end: the summary covers part of the work on it."
    } else {
        ""
    };
    format!(
        "[Context from the host, not a message of the user: what was said and done before this, in summary.{under_way}]\n\n{}\n\n[End of the summary.]",
        summary.text
    )
}

/// Stands where a provider demands text and there is none.
pub(super) const NO_OUTPUT: &str = "(no output)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r024_names_are_acceptable_on_the_wire() {
        assert_eq!(wire_name("read_file"), "read_file");
        assert_eq!(wire_name("functions.read file"), "functions_read_file");
        assert_eq!(wire_name(""), "unnamed");
        assert_eq!(wire_name(&"ü".repeat(100)), "_".repeat(64));
    }
}
