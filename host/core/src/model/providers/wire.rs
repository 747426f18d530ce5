//! Shared parts of the wire formats.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::failure::{AttemptFailure, ServerEndpoint};
use super::sse::SseEvent;
use crate::agent::ports::ResponseDelta;
use crate::conversation::{ModelResponse, ResultContent, RollingSummary, ToolResult};

/// A decoder that assembles one response in a provider's format, event by event.
pub(super) trait StreamDecoder: Send {
    /// Processes the next event and sends the new parts to the sink.
    fn decode(
        &mut self,
        event: &SseEvent,
        sink: &mut DeltaSink<'_>,
    ) -> Result<DecodeProgress, AttemptFailure>;

    /// Returns whether the response is complete, even if the stream ends here without a closing
    /// event.
    fn is_complete(&self) -> bool;

    /// Returns the response.
    ///
    /// # Errors
    ///
    /// Returns an error if the response is not complete (R-83).
    fn finish_reason(self) -> Result<ModelResponse, AttemptFailure>;
}

/// Whether a stream continues after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecodeProgress {
    /// The stream continues.
    More,
    /// The stream said that it is over.
    Done,
}

/// The most bytes of a response that are kept: text, thinking and arguments, and [`PART_OVERHEAD`]
/// for each part.
///
/// This is about a million tokens, more than any model writes at once.
const MAX_RESPONSE: usize = 4 << 20;

/// The bytes that each block, call or similar part counts in addition to its content.
///
/// Even an empty part takes memory, and time in searches among the parts. Together with
/// [`MAX_RESPONSE`] this limits a response to about 4000 parts.
pub(super) const PART_OVERHEAD: usize = 1 << 10;

/// The most bytes that are kept of the text of a failed response.
///
/// The text goes into the conversation, which must stay usable.
const MAX_PARTIAL: usize = 256 << 10;

/// The longest stop reason that is repeated, in characters.
const MAX_REASON: usize = 64;

/// Truncates a provider's own stop reason to [`MAX_REASON`].
pub(super) fn truncate_reason(word: &str) -> String {
    word.chars().take(MAX_REASON).collect()
}

/// A sink that passes deltas on and remembers the text, which cannot be taken back once shown.
///
/// Thinking is shown only to programs, and they are told when a response restarts.
pub(super) struct DeltaSink<'a> {
    on_delta: &'a mut (dyn FnMut(ResponseDelta<'_>) + Send),
    text: String,
    /// Whether the user sees the deltas at once, so that they cannot be taken back.
    is_live: bool,
    has_shown_text: bool,
    /// The bytes of the response kept so far.
    byte_count: usize,
}

impl<'a> DeltaSink<'a> {
    pub(super) fn new(
        on_delta: &'a mut (dyn FnMut(ResponseDelta<'_>) + Send),
        is_live: bool,
    ) -> Self {
        Self { on_delta, text: String::new(), is_live, has_shown_text: false, byte_count: 0 }
    }

    /// Passes on a piece of the response. Empty pieces are dropped.
    pub(super) fn send(&mut self, delta: ResponseDelta<'_>) {
        match delta {
            ResponseDelta::Text("") | ResponseDelta::Reasoning("") => return,
            ResponseDelta::Text(text) => {
                self.text.push_str(text);
                self.has_shown_text = self.is_live;
            }
            // These can be taken back.
            ResponseDelta::Reasoning(_) | ResponseDelta::ToolCallStart(_) => {}
            // The response restarts from the beginning.
            ResponseDelta::Retry { .. } => {
                self.text.clear();
                self.byte_count = 0;
            }
        }
        (self.on_delta)(delta);
    }

    /// Counts bytes of a response before they are stored.
    ///
    /// # Errors
    ///
    /// Returns an error if the response is longer than [`MAX_RESPONSE`].
    pub(super) fn count_bytes(
        &mut self,
        bytes: usize,
        endpoint: &ServerEndpoint,
    ) -> Result<(), AttemptFailure> {
        self.byte_count = self.byte_count.saturating_add(bytes);
        if self.byte_count > MAX_RESPONSE {
            return Err(endpoint
                .malformed(&format!("the response is longer than {} MiB", MAX_RESPONSE >> 20)));
        }
        Ok(())
    }

    /// Separates a new text block from the text before it, on screen and in the stored response
    /// (R-130).
    ///
    /// Returns the separator, which is empty if none is needed.
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

    /// Returns whether text was shown, after which the response cannot restart (R-85).
    pub(super) fn has_shown_text(&self) -> bool {
        self.has_shown_text
    }

    /// Returns the text of the last attempt, truncated to [`MAX_PARTIAL`].
    pub(super) fn into_text(self) -> String {
        if self.text.len() <= MAX_PARTIAL {
            return self.text;
        }
        let kept = &self.text[..self.text.floor_char_boundary(MAX_PARTIAL)];
        format!("{kept}\n\n[{} more bytes omitted]", self.text.len() - kept.len())
    }
}

/// Returns a tool name in a form that all providers accept.
///
/// A model may call a tool by a name that no tool can have. The call was answered with an error,
/// but it stays in the history, which providers must accept.
pub(super) fn wire_name(name: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= 64 && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let fitted: String = name.chars().map(|c| if fits(c) { c } else { '_' }).take(64).collect();
    Cow::Owned(if fitted.is_empty() { "unnamed".to_owned() } else { fitted })
}

/// Returns the input schema of a tool, with `properties` added if they are missing.
///
/// Both forms mean the same, but OpenAI refuses the one without `properties`.
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

/// Returns the arguments of an earlier call as a JSON object.
///
/// Providers accept nothing else in the history. A model may have written something else, or been
/// cut off; that call was answered with an error and stays in the history.
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

/// Returns the arguments of an earlier call as text, unchanged if they are an object.
pub(super) fn wire_arguments(arguments: &str) -> Cow<'_, str> {
    match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(_) => Cow::Borrowed(arguments),
        Err(_) => Cow::Owned(wire_input(arguments).to_string()),
    }
}

/// Returns a summary as a text of the user's side that is clearly not the user's words (R-70).
pub(super) fn wire_summary(summary: &RollingSummary) -> String {
    let under_way = if summary.until.turn > 0 {
        " The summary already covers part of the work on the user message that follows it."
    } else {
        ""
    };
    format!(
        "[Context from the host, not a message from the user: a summary of the conversation and \
            the work so far.{under_way}]\n\n{}\n\n[End of the summary.]",
        summary.text
    )
}

/// The text that is sent where a provider requires text and there is none.
pub(super) const NO_OUTPUT: &str = "(no output)";

/// Returns a result as text, for formats that cannot mark errors.
///
/// The text of an error starts with `Error:`. `picture` gets the media type and the base64 data of
/// each picture, and may return a line that replaces the picture in the text.
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

/// Returns the text that replaces a picture for a model that cannot get pictures.
pub(super) fn image_unsupported(media_type: &str) -> String {
    format!("[image, {media_type}: this model does not accept images]")
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
