//! What the wire formats have in common.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::failure::{AttemptFailure, ServerEndpoint};
use super::sse::SseEvent;
use crate::agent::ports::ResponseDelta;
use crate::conversation::{ModelResponse, ResultContent, RollingSummary, ToolResult};

/// One response in one provider's format, assembled event by event.
pub(super) trait StreamDecoder: Send {
    /// Takes the next event and hands over what is new in it.
    fn decode(
        &mut self,
        event: &SseEvent,
        hand: &mut DeltaSink<'_>,
    ) -> Result<DecodeProgress, AttemptFailure>;

    /// Whether the response is whole, even if the stream ends here without saying so.
    fn is_complete(&self) -> bool;

    /// The response; an error if it is not whole (R-83).
    fn finish_reason(self) -> Result<ModelResponse, AttemptFailure>;
}

/// Whether more is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecodeProgress {
    /// The stream goes on.
    More,
    /// The stream said that it is over.
    Done,
}

/// How much of one response is kept, in bytes: its text, thinking and arguments, and
/// [`PART_OVERHEAD`] for each part. A million tokens are about this much, and no model writes as
/// many at once.
const MAX_RESPONSE: usize = 4 << 20;

/// What a block, a call or the like counts beside its content: it takes memory even if it is empty,
/// and work, since parts are looked for among each other. A response has no more than four thousand
/// of them.
pub(super) const PART_OVERHEAD: usize = 1 << 10;

/// How much is kept of text that broke off, in bytes. It goes into the conversation, which has to
/// remain of use.
const MAX_PARTIAL: usize = 256 << 10;

/// The longest reason to stop that is repeated, in characters.
const MAX_REASON: usize = 64;

/// A provider's own word for why the model stopped.
pub(super) fn truncate_reason(word: &str) -> String {
    word.chars().take(MAX_REASON).collect()
}

/// The hand that passes deltas on. It remembers what cannot be taken back: text. Thinking is shown
/// by nobody but to programs, which are told when a response begins anew.
pub(super) struct DeltaSink<'a> {
    on_delta: &'a mut (dyn FnMut(ResponseDelta<'_>) + Send),
    text: String,
    /// Whether what is passed on is seen, and so cannot be taken back.
    is_live: bool,
    has_shown_text: bool,
    /// How much of the response was kept by now.
    byte_count: usize,
}

impl<'a> DeltaSink<'a> {
    pub(super) fn new(
        on_delta: &'a mut (dyn FnMut(ResponseDelta<'_>) + Send),
        is_live: bool,
    ) -> Self {
        Self { on_delta, text: String::new(), is_live, has_shown_text: false, byte_count: 0 }
    }

    /// Passes on a piece of the response; empty ones are none.
    pub(super) fn send(&mut self, delta: ResponseDelta<'_>) {
        match delta {
            ResponseDelta::Text("") | ResponseDelta::Reasoning("") => return,
            ResponseDelta::Text(text) => {
                self.text.push_str(text);
                self.has_shown_text = self.is_live;
            }
            // Nobody who watches holds on to these.
            ResponseDelta::Reasoning(_) | ResponseDelta::ToolCallStart(_) => {}
            // The response begins anew.
            ResponseDelta::Retry { .. } => {
                self.text.clear();
                self.byte_count = 0;
            }
        }
        (self.on_delta)(delta);
    }

    /// Counts bytes of a response before they are kept; an error if it is endless.
    pub(super) fn count_bytes(
        &mut self,
        bytes: usize,
        place: &ServerEndpoint,
    ) -> Result<(), AttemptFailure> {
        self.byte_count = self.byte_count.saturating_add(bytes);
        if self.byte_count > MAX_RESPONSE {
            return Err(
                place.malformed(&format!("the response is longer than {} MiB", MAX_RESPONSE >> 20))
            );
        }
        Ok(())
    }

    /// Sets a block of text that begins apart from the text before it, for whoever watches and for
    /// what is kept (R-130). Returns what stands between them.
    pub(super) fn separate(&mut self, begins: &str) -> &'static str {
        const APART: &str = "\n\n";
        if self.text.is_empty()
            || self.text.ends_with('\n')
            || begins.is_empty()
            || begins.starts_with('\n')
        {
            return "";
        }
        self.send(ResponseDelta::Text(APART));
        APART
    }

    /// Whether text of the response was shown, after which it cannot begin anew (R-85).
    pub(super) fn has_shown_text(&self) -> bool {
        self.has_shown_text
    }

    /// The text that was passed on, of the last attempt; of an endless one its beginning.
    pub(super) fn into_text(self) -> String {
        if self.text.len() <= MAX_PARTIAL {
            return self.text;
        }
        let kept = &self.text[..self.text.floor_char_boundary(MAX_PARTIAL)];
        format!("{kept}\n\n[{} more bytes were left out.]", self.text.len() - kept.len())
    }
}

/// A tool's name in the form both providers accept. A model may have called a tool by a name that
/// no tool can have; the call was answered with an error, but it is part of the history, which must
/// remain acceptable.
pub(super) fn wire_name(name: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= 64 && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let fitted: String = name.chars().map(|c| if fits(c) { c } else { '_' }).take(64).collect();
    Cow::Owned(if fitted.is_empty() { "unnamed".to_owned() } else { fitted })
}

/// The schema of a tool's input. One without `properties` says the same as one with none, and is
/// refused by OpenAI.
pub(super) fn wire_schema(schema: &Value) -> Cow<'_, Value> {
    match schema.as_object() {
        Some(fields) if !fields.contains_key("properties") => {
            let mut fields = fields.clone();
            fields.insert("properties".to_owned(), Value::Object(Map::new()));
            Cow::Owned(Value::Object(fields))
        }
        Some(_) | None => Cow::Borrowed(schema),
    }
}

/// The arguments of a call as a JSON object, which is all that a provider accepts in what was said
/// before. A model may have written something else, or been cut off in the midst of it; the call
/// was answered with an error, and stays in the history.
pub(super) fn wire_input(arguments: &str) -> Value {
    const UNPARSED: &str = "unparsed_arguments";
    if arguments.trim().is_empty() {
        return Value::Object(Map::new());
    }
    match serde_json::from_str(arguments) {
        Ok(object @ Value::Object(_)) => object,
        Ok(_) | Err(_) => json!({UNPARSED: arguments}),
    }
}

/// The same as text: the model's own, if that is an object.
pub(super) fn wire_arguments(arguments: &str) -> Cow<'_, str> {
    match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(_) => Cow::Borrowed(arguments),
        Err(_) => Cow::Owned(wire_input(arguments).to_string()),
    }
}

/// A summary as it is sent: on the user's side, and plainly not the user's words (R-70).
pub(super) fn wire_summary(summary: &RollingSummary) -> String {
    let under_way = if summary.until.turn > 0 {
        " The user's message after it is older than its end: the summary covers part of the work \
            on it."
    } else {
        ""
    };
    format!(
        "[Context from the host, not a message of the user: what was said and done before this, \
            in summary.{under_way}]\n\n{}\n\n[End of the summary.]",
        summary.text
    )
}

/// Stands where a provider demands text and there is none.
pub(super) const NO_OUTPUT: &str = "(no output)";

/// A result as text, for formats without a mark for an error: the text of one begins with `Error:`.
/// `picture` is handed the type and the base64 of each picture, and returns a line to stand for it,
/// if one has to.
pub(super) fn wire_text(
    result: &ToolResult,
    mut picture: impl FnMut(&str, &str) -> Option<String>,
) -> String {
    let mut text = result.text();
    for piece in &result.content {
        let ResultContent::Image { media_type, base64 } = piece else { continue };
        let Some(remark) = picture(media_type, base64) else { continue };
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&remark);
    }
    if text.trim().is_empty() {
        NO_OUTPUT.clone_into(&mut text);
    }
    if result.status.is_error() && !text.starts_with("Error:") {
        text.insert_str(0, "Error: ");
    }
    text
}

/// Stands for a picture where the model cannot be shown any.
pub(super) fn image_unsupported(media_type: &str) -> String {
    format!("[a picture, {media_type}: this model cannot be shown pictures]")
}

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

    #[test]
    fn a_schema_has_properties_on_the_wire() {
        assert_eq!(
            wire_schema(&json!({"type": "object"})).into_owned(),
            json!({"type": "object", "properties": {}})
        );
        let whole = json!({"type": "object", "properties": {"a": {}}});
        assert_eq!(wire_schema(&whole).into_owned(), whole);
    }

    #[test]
    fn r063_arguments_are_an_object_on_the_wire_whatever_the_model_wrote() {
        let table = [
            ("", "{}"),
            (" \n", "{}"),
            ("{\"b\": 1.0, \"a\": 2}", "{\"b\": 1.0, \"a\": 2}"),
            ("{\"path\": \"a", r#"{"unparsed_arguments":"{\"path\": \"a"}"#),
            ("{\"a\":1}{\"b\":2}", r#"{"unparsed_arguments":"{\"a\":1}{\"b\":2}"}"#),
            ("null", r#"{"unparsed_arguments":"null"}"#),
            ("[1]", r#"{"unparsed_arguments":"[1]"}"#),
        ];
        for (written, sent) in table {
            assert_eq!(wire_arguments(written), sent);
            assert_eq!(
                wire_input(written).to_string(),
                serde_json::from_str::<Value>(sent).expect("JSON").to_string()
            );
        }
    }
}
