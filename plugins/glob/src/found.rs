//! The files that were found, as text and within limits.

use std::fmt::Write as _;

use cofferdam_sdk::{Output, WorkspacePath};

use crate::{Input, pattern};

/// Of text.
const MAX_BYTES: usize = 256 << 10;
/// How many files to walk past, only to say how many there are.
const COUNTED: u32 = 100_000;
/// What could not be looked at, in lines.
const MAX_PROBLEMS: usize = 10;

#[derive(Debug)]
pub(crate) struct Found<'i> {
    input: &'i Input,
    text: String,
    listed: u32,
    left_out: u32,
}

impl<'i> Found<'i> {
    pub(crate) fn new(input: &'i Input) -> Self {
        Self { input, text: String::new(), listed: 0, left_out: 0 }
    }

    /// Takes the next file; false if it wants no more.
    pub(crate) fn push(&mut self, path: &str) -> bool {
        if self.left_out > 0 || self.listed >= self.input.limit || self.text.len() >= MAX_BYTES {
            self.left_out += 1;
            return self.left_out < COUNTED;
        }
        self.listed += 1;
        self.text.push_str(&one_line(path));
        self.text.push('\n');
        true
    }

    pub(crate) fn output(mut self, problems: &[String]) -> Output {
        if self.listed == 0 {
            self.nothing();
        }
        // Writing to a string cannot fail.
        for problem in problems.iter().take(MAX_PROBLEMS) {
            let _ = writeln!(self.text, "[could not be looked at: {}]", one_line(problem));
        }
        if let Some(more) = problems.len().checked_sub(MAX_PROBLEMS).filter(|&more| more > 0) {
            let _ = writeln!(self.text, "[{more} more could not be looked at]");
        }
        if self.left_out == 0 {
            return Output::text(self.text);
        }
        let total = self.listed + self.left_out;
        let total = if self.left_out >= COUNTED { format!("more than {total}") } else { total.to_string() };
        let raise = if self.listed == self.input.limit && self.input.limit < 2000 { ", or raise `limit` (at most 2000)" } else { "" };
        let _ = writeln!(
            self.text,
            "[the first {} of {total} files; to see the rest, narrow the pattern or give a directory as `path`{raise}]",
            self.listed
        );
        Output::text(self.text).truncated()
    }

    fn nothing(&mut self) {
        let _ = write!(self.text, "no files match `{}`", one_line(&self.input.pattern));
        if let Some(path) = self.input.path.as_ref().map(WorkspacePath::below_root).filter(|path| !path.is_empty()) {
            let _ = write!(self.text, " in `{}`", one_line(path));
        }
        if let Some(hint) = pattern::hint(&self.input.pattern) {
            let _ = write!(self.text, "; {hint}");
        } else if !(self.input.hidden && self.input.no_ignore) {
            self.text.push_str("; hidden and ignored directories were left out, `hidden` and `no_ignore` look into them too");
        }
        self.text.push('\n');
    }
}

/// A name may hold line breaks, and each file has one line.
fn one_line(name: &str) -> String {
    name.chars().flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests {
    use cofferdam_sdk::Content;

    use super::*;

    fn input(limit: u32) -> Input {
        Input { pattern: "*.rs".to_owned(), path: None, hidden: false, no_ignore: false, limit }
    }

    fn find(input: &Input, paths: &[&str]) -> (String, bool) {
        let mut found = Found::new(input);
        for path in paths {
            found.push(path);
        }
        let output = found.output(&[]);
        match output.content.as_slice() {
            [Content::Text(text)] => (text.clone(), output.truncated),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn files_stand_one_a_line() {
        assert_eq!(find(&input(2), &["a.rs", "b/c\nd.rs"]), ("a.rs\nb/c\\nd.rs\n".to_owned(), false));
    }

    #[test]
    fn r121_what_is_left_out_is_told_with_a_way_to_it() {
        let expected = "a\n[the first 1 of 3 files; to see the rest, narrow the pattern or give a directory as `path`, or raise `limit` (at most 2000)]\n";
        assert_eq!(find(&input(1), &["a", "b", "c"]), (expected.to_owned(), true));
    }

    #[test]
    fn r121_the_text_is_capped_whatever_the_names_are_like() {
        let long = "x".repeat(4000);
        let (text, truncated) = find(&input(2000), &vec![long.as_str(); 2000]);
        assert!(truncated && text.len() < MAX_BYTES + 5000, "{}", text.len());
        assert!(text.contains(" of 2000 files") && !text.contains("raise"));
    }

    #[test]
    fn nothing_found_says_what_may_be_the_matter() {
        let (text, _) = find(&Input { path: Some("src/".into()), ..input(1) }, &[]);
        assert!(text.starts_with("no files match `*.rs` in `src/`; hidden and ignored"), "{text}");
        let (text, _) = find(&Input { pattern: "src/".to_owned(), ..input(1) }, &[]);
        assert!(text.contains("try `src/**`"), "{text}");
        let (text, _) = find(&Input { hidden: true, no_ignore: true, ..input(1) }, &[]);
        assert_eq!(text, "no files match `*.rs`\n");
    }
}
