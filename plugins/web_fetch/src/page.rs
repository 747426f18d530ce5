//! What the model gets to see of a page.

use cofferdam_sdk::{Output, ToolError};

use crate::get::{Got, MOST_BYTES};
use crate::kind::Kind;
use crate::{charset, html};

/// Of text, in bytes. The host shows a little more of a result, so that the lines around the text
/// fit in.
const MOST_TEXT: usize = 100_000;
/// Of what a server says beside an error.
const EXCERPT: usize = 1_000;

/// The page from an offset on, with what it is and where it is from.
pub(crate) fn page(got: &Got, offset: usize) -> Result<Output, ToolError> {
    let is = got.content_type.as_deref().unwrap_or("no content type");
    if got.kind == Kind::Other {
        return Err(ToolError::failed(format!(
            "{} is `{is}`, which this tool cannot convert to text. Look for the content in another \
                format.",
            got.url
        )));
    }
    let (title, text) = text(got);
    if offset > 0 && offset >= text.len() {
        return Err(ToolError::invalid_input(
            "/offset",
            format!("the text has {} bytes; `offset` has to be smaller", text.len()),
        ));
    }
    let start = text.floor_char_boundary(offset);
    let end = text.floor_char_boundary(start.saturating_add(MOST_TEXT));
    let mut head = got.url.to_string();
    if let Some(asked) = &got.asked {
        head.push_str(&format!(" (redirected from {asked})"));
    }
    head.push_str(&format!("\n{is}"));
    if let Some(title) = title {
        head.push_str(&format!("\ntitle: {title}"));
    }
    let part = if text.trim().is_empty() { "(no text)" } else { &text[start..end] };
    let mut tail = String::new();
    if end < text.len() {
        tail.push_str(&format!(
            "\n\n[{} of {} bytes of text remain; continue with offset {end}]",
            text.len() - end,
            text.len()
        ));
    }
    if !got.complete {
        tail.push_str(&format!("\n\n[only the first {MOST_BYTES} bytes were read]"));
    }
    let output = Output::text(format!("{head}\n\n{part}{tail}"));
    Ok(if tail.is_empty() { output } else { output.truncated() })
}

/// The first words of a response that is no page.
pub(crate) fn excerpt(got: &Got) -> String {
    if got.kind == Kind::Other {
        return String::new();
    }
    let text = text(got).1;
    text.trim()[..text.trim().floor_char_boundary(EXCERPT)].to_owned()
}

fn text(got: &Got) -> (Option<String>, String) {
    let decoded = charset::decode(&got.bytes, got.content_type.as_deref(), got.kind);
    match got.kind {
        Kind::Html => html::to_text(&decoded, &got.url),
        Kind::Text | Kind::Other | Kind::Unknown => (None, decoded),
    }
}
