//! Replacing one text by another, and what may stand in the way.

mod loose;

use cofferdam_sdk::ToolError;

use crate::endings::{self, Endings};
use crate::exact::Found;
use crate::{exact, lines, missing, source};

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'a> {
    /// For messages.
    pub(crate) path: &'a str,
    pub(crate) old: &'a str,
    pub(crate) new: &'a str,
    /// Wherever it is.
    pub(crate) all: bool,
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The file's new text.
    pub(crate) text: String,
    /// Where something was replaced, as line numbers of the old text.
    pub(crate) lines: Vec<usize>,
    /// Whether whitespace around lines was passed over.
    pub(crate) loosely: bool,
}

const BYTE_ORDER_MARK: &str = "\u{FEFF}";

/// Makes the change, which may be refused for reasons that the model can do something about.
pub(crate) fn apply(text: &str, change: &Change<'_>) -> Result<Edit, ToolError> {
    // It is not shown to models, so none of their texts begins with it.
    let (mark, body) = match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(body) => (BYTE_ORDER_MARK, body),
        None => ("", text),
    };
    if change.old == change.new {
        return Err(ToolError::invalid_input(
            "/new_text",
            "new_text is the same as old_text, so nothing would change",
        ));
    }
    if change.old.is_empty() && body.is_empty() {
        return fill(mark, change);
    }
    if change.old.is_empty() {
        let why = "old_text is empty, but the file is not. Pass the text to replace; to insert \
            text, pass an adjacent line";
        return Err(ToolError::invalid_input("/old_text", why));
    }
    let mut edit = match exact::find(body, change.old) {
        Some(found) => exactly(body, &found, change)?,
        None => match loose::apply(body, change)? {
            Some(edit) => edit,
            None => return Err(missing::explain(body, change)),
        },
    };
    keep_final_newline(body, &mut edit.text);
    if edit.text == body {
        return Err(ToolError::invalid_input(
            "/new_text",
            "apart from line endings and spaces, new_text is the same as old_text, so nothing \
                would change",
        ));
    }
    edit.text.insert_str(0, mark);
    Ok(edit)
}

/// An empty file has nothing to replace, and one place for everything.
fn fill(mark: &str, change: &Change<'_>) -> Result<Edit, ToolError> {
    if mark.len() + change.new.len() > source::MAX_BYTES {
        return Err(source::too_large(change.path));
    }
    Ok(Edit { text: format!("{mark}{}", change.new), lines: vec![1], loosely: false })
}

fn exactly(text: &str, found: &Found<'_>, change: &Change<'_>) -> Result<Edit, ToolError> {
    let numbers = lines::numbers_of(text, found.places.iter().map(|place| place.start));
    if !change.all && (numbers.len() > 1 || found.overlaps) {
        return Err(ambiguous(change, &numbers, found.overlaps));
    }
    // The file's own kind of line endings wins, but what fits as it stands is left as it stands.
    let as_it_stands =
        if found.spelling == change.old { change.new.into() } else { endings::to_lf(change.new) };
    let with_crlf = endings::to_crlf(change.new);
    let longest = as_it_stands.len().max(with_crlf.len()).saturating_mul(found.places.len());
    let shortest = text.len() - found.spelling.len() * found.places.len();
    if shortest.saturating_add(longest) > source::MAX_BYTES {
        return Err(source::too_large(change.path));
    }
    let mut endings = Endings::new(text);
    let mut edited = String::with_capacity(shortest + longest);
    let mut copied = 0;
    for place in &found.places {
        edited.push_str(&text[copied..place.start]);
        edited.push_str(if endings.is_crlf(place.start) { &with_crlf } else { &as_it_stands });
        copied = place.end;
    }
    edited.push_str(&text[copied..]);
    Ok(Edit { text: edited, lines: numbers, loosely: false })
}

fn ambiguous(change: &Change<'_>, numbers: &[usize], overlaps: bool) -> ToolError {
    let (path, count) = (change.path, numbers.len());
    ToolError::invalid_input(
        "/old_text",
        if overlaps {
            format!(
                "old_text is ambiguous in `{path}`: two matches overlap, the first at line {}. \
                    Nothing was changed. Add enough surrounding lines to make it unique",
                numbers[0]
            )
        } else {
            format!(
                "old_text occurs in `{path}` {count} times, at {} {}. Nothing was changed. Add \
                    enough surrounding lines to make it unique, or set `replace_all`",
                if numbers.first() == numbers.last() { "line" } else { "lines" },
                lines::numbers(numbers)
            )
        },
    )
}

/// A text that ended its last line goes on to do so: to lose that is an oversight far more often
/// than a wish.
fn keep_final_newline(before: &str, after: &mut String) {
    if before.ends_with('\n') && !after.is_empty() && !after.ends_with('\n') {
        after.push_str(if before.ends_with("\r\n") { "\r\n" } else { "\n" });
    }
}

#[cfg(test)]
mod tests;
