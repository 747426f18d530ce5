//! Replacing whole lines that are equal to what was asked for but for the whitespace around them.

use cofferdam_sdk::ToolError;

use super::{Change, Edit};
use crate::endings::{self, Endings};
use crate::lines::{self, Line};
use crate::{indent, source};

/// Makes the change if there is one place for it, and nothing if there is none.
pub(super) fn apply(text: &str, change: &Change<'_>) -> Result<Option<Edit>, ToolError> {
    let old = endings::to_lf(change.old);
    let new = endings::to_lf(change.new);
    let ends_line = old.ends_with('\n');
    let wanted: Vec<&str> = old.strip_suffix('\n').unwrap_or(&old).split('\n').collect();
    let all = lines::collect(text);
    let found = windows(&all, &wanted);
    let start = match found.as_slice() {
        [] => return Ok(None),
        [start] => *start,
        several => return Err(ambiguous(change, several)),
    };
    let taken = &all[start..start + wanted.len()];
    let pairs = wanted.iter().zip(taken).map(|(old, line)| (*old, line.body));
    // Without their last line break, if both have one: then the file's own stays, or stays away.
    let (new, through_ending) = match (ends_line, new.strip_suffix('\n')) {
        (true, Some(new)) => (new, false),
        (true, None) => (new.as_ref(), true),
        (false, _) => (new.as_ref(), false),
    };
    let Some(new) = indent::between(pairs).apply(new) else {
        return Err(differently_indented(change, start, wanted.len()));
    };
    let from = taken.first().map_or(0, |line| line.start);
    let to =
        taken.last().map_or(0, |line| if through_ending { line.next } else { line.range().end });
    let new =
        if Endings::new(text).is_crlf(from) { endings::to_crlf(&new).into_owned() } else { new };
    if text.len() - (to - from) + new.len() > source::MAX_BYTES {
        return Err(source::too_large(change.path));
    }
    let text = [&text[..from], &new, &text[to..]].concat();
    Ok(Some(Edit { text, lines: vec![start + 1], loosely: true }))
}

/// Where in `all` the wanted lines stand, as indices.
fn windows(all: &[Line<'_>], wanted: &[&str]) -> Vec<usize> {
    let wanted: Vec<&str> = wanted.iter().map(|line| line.trim()).collect();
    // Lines without letters are everywhere.
    if wanted.iter().all(|line| line.is_empty()) {
        return Vec::new();
    }
    let fits = |window: &[Line<'_>]| {
        window.iter().zip(&wanted).all(|(line, wanted)| line.body.trim() == *wanted)
    };
    all.windows(wanted.len())
        .enumerate()
        .filter(|(_, window)| fits(window))
        .map(|(index, _)| index)
        .collect()
}

fn ambiguous(change: &Change<'_>, found: &[usize]) -> ToolError {
    let numbers: Vec<usize> = found.iter().map(|index| index + 1).collect();
    ToolError::invalid_input(
        "/old_text",
        format!(
            "`{}` has no exact match for old_text, but {} passages differ from it only in leading \
                or trailing whitespace (starting at lines {}). Nothing was changed. Copy one of \
                these passages exactly, with enough surrounding lines to make it unique",
            change.path,
            numbers.len(),
            lines::numbers(&numbers)
        ),
    )
}

fn differently_indented(change: &Change<'_>, start: usize, count: usize) -> ToolError {
    ToolError::invalid_input(
        "/old_text",
        format!(
            "`{}` has no exact match for old_text. Lines {} to {} differ from it only in their \
                indentation, but the differences do not determine the indentation of new_text. \
                Nothing was changed. Read these lines and copy them exactly",
            change.path,
            start + 1,
            start + count
        ),
    )
}
