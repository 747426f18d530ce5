//! The error for a text that is not in a file: it shows the most similar part.

use std::collections::HashMap;
use std::fmt::Write as _;

use cofferdam_sdk::ToolError;

use crate::edit::Change;
use crate::lines::{self, Line};

/// Of the file, in the message.
const SHOWN: usize = 12;
/// In characters.
const MAX_LINE: usize = 200;
/// Of a line that is wanted several times, so that one that is wanted a thousand times does not
/// cost a thousandfold.
const MAX_REPEATS: usize = 8;
/// In bytes: what is longer is no line that a person wrote.
const MAX_COMPARED: usize = 1000;
/// Of the letter pairs of two lines: how many must be the same to call the lines similar.
const SIMILAR: f64 = 0.5;

pub(crate) fn explain(text: &str, change: &Change<'_>) -> ToolError {
    let mut message = format!("old_text is not in `{}`, so nothing was changed", change.path);
    if has_line_numbers(change.old) {
        message.push_str(
            ". It begins with line numbers, which are not part of the file: remove \
            them and the tabs after them",
        );
        return ToolError::invalid_input("/old_text", message);
    }
    let all = lines::collect(text);
    let wanted: Vec<&str> = change.old.lines().map(str::trim).collect();
    match by_equal_lines(&all, &wanted).or_else(|| by_similar_line(&all, &wanted)) {
        Some(start) => {
            let count = wanted.len().min(SHOWN);
            message.push_str(". The most similar part of the file, with line numbers:\n");
            for (index, line) in all.iter().enumerate().skip(start).take(count) {
                let body = line.body;
                let end = body.char_indices().nth(MAX_LINE).map_or(body.len(), |(end, _)| end);
                let cut = if end < body.len() { "…" } else { "" };
                // Writing to a string cannot fail.
                let _ = writeln!(message, "{:>6}\t{}{cut}", index + 1, &body[..end]);
            }
            message.push_str("Read that part of the file and copy the text exactly");
        }
        None => message.push_str(
            ", and nothing in it is similar. Search for a part of the text, or read the file again",
        ),
    }
    ToolError::invalid_input("/old_text", message)
}

/// As `read_file` shows them.
fn has_line_numbers(old: &str) -> bool {
    old.lines().all(|line| {
        let after = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
        after.len() < line.trim_start().len() && after.starts_with('\t')
    })
}

/// The place with the most letters in lines that are equal to the wanted ones.
fn by_equal_lines(all: &[Line<'_>], wanted: &[&str]) -> Option<usize> {
    let mut indices: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, line) in
        wanted.iter().enumerate().filter(|(_, line)| line.chars().any(char::is_alphanumeric))
    {
        let indices = indices.entry(line).or_default();
        if indices.len() < MAX_REPEATS {
            indices.push(index);
        }
    }
    let mut letters: HashMap<usize, usize> = HashMap::new();
    for (number, line) in all.iter().enumerate() {
        for index in indices.get(line.body.trim()).into_iter().flatten() {
            *letters.entry(number.saturating_sub(*index)).or_default() += line.body.trim().len();
        }
    }
    // Of several, the first one.
    letters
        .into_iter()
        .max_by_key(|(start, letters)| (*letters, std::cmp::Reverse(*start)))
        .map(|(start, _)| start)
}

/// The place of the line that is most like the longest wanted one.
fn by_similar_line(all: &[Line<'_>], wanted: &[&str]) -> Option<usize> {
    let (index, longest) = wanted
        .iter()
        .enumerate()
        .max_by_key(|(index, line)| (line.len(), std::cmp::Reverse(*index)))?;
    let mut likeness = Likeness::to(longest);
    let mut best = (SIMILAR, None);
    for (number, line) in all.iter().enumerate() {
        let alike = likeness.of(line.body.trim());
        if alike > best.0 {
            best = (alike, Some(number.saturating_sub(index)));
        }
    }
    best.1
}

/// Compares lines with one line by their pairs of bytes.
struct Likeness {
    pairs: Vec<u16>,
    compared: Vec<u16>,
    total: usize,
}

impl Likeness {
    fn to(line: &str) -> Self {
        let mut pairs = vec![0; 1 << 16];
        let mut total = 0;
        for pair in pairs_of(line) {
            pairs[pair] += 1;
            total += 1;
        }
        Self { compared: pairs.clone(), pairs, total }
    }

    /// From 0 for nothing in common to 1 for the same.
    fn of(&mut self, line: &str) -> f64 {
        let mut common = 0_u32;
        let mut count = 0;
        for pair in pairs_of(line) {
            count += 1;
            if let Some(left) = self.compared[pair].checked_sub(1) {
                self.compared[pair] = left;
                common += 1;
            }
        }
        for pair in pairs_of(line) {
            self.compared[pair] = self.pairs[pair];
        }
        #[expect(clippy::cast_precision_loss, reason = "a line has few pairs")]
        let both = (self.total + count).max(1) as f64;
        2.0 * f64::from(common) / both
    }
}

fn pairs_of(line: &str) -> impl Iterator<Item = usize> + '_ {
    let bytes = &line.as_bytes()[..line.len().min(MAX_COMPARED)];
    bytes.windows(2).map(|pair| usize::from(pair[0]) << 8 | usize::from(pair[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "use std::fs;\n\nfn first(x: u32) -> u32 {\n    x + 1\n}\n\nfn second(x: \
        u32) -> u32 {\n    x + 2\n}\n";

    fn message(old: &str) -> String {
        match explain(TEXT, &Change { path: "f", old, new: "", all: false }) {
            ToolError::InvalidInput(problem) => problem.message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn r118_the_nearest_place_is_shown() {
        let nearest =
            |first: &str| format!("most similar part of the file, with line numbers:\n{first}");
        assert!(message("fn second(x: u32) -> u32 {\n    x + 3\n}").contains(&nearest(
            "     7\tfn second(x: u32) -> u32 {\n     8\t    x + 2\n     9\t}\n"
        )));
        assert!(message("fn secnd(x: u32) -> u32 {").contains(&nearest("     7\tfn second")));
        assert!(message("fn zeroth() {\n    x + 1\n}").contains(&nearest("     3\tfn first")));
    }

    #[test]
    fn nothing_similar_is_said_too() {
        assert!(message("import qqq").contains("nothing in it is similar"));
        assert!(message("}}").contains("nothing in it is similar"));
    }

    #[test]
    fn line_numbers_are_recognised() {
        assert!(
            message("     3\tfn first(x: u32) -> u32 {\n     4\t    x + 1")
                .contains("begins with line numbers")
        );
        assert!(!message("3 fn").contains("line numbers, which"));
    }
}
