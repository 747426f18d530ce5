//! The files that were found, as text and within limits.

use cofferdam_sdk::listing::{Listing, one_line};
use cofferdam_sdk::{Output, WorkspacePath};

use crate::{Input, pattern};

#[derive(Debug)]
pub(crate) struct Found<'i> {
    input: &'i Input,
    files: Listing,
}

impl<'i> Found<'i> {
    pub(crate) fn new(input: &'i Input) -> Self {
        Self { input, files: Listing::new(input.limit) }
    }

    /// Takes the next file; false if it wants no more.
    pub(crate) fn push(&mut self, path: &str) -> bool {
        self.files.push(|| one_line(path))
    }

    pub(crate) fn output(mut self, problems: &[String]) -> Output {
        let nothing = if self.files.is_empty() { self.nothing() } else { String::new() };
        self.files.add_problems("could not be looked at", problems);
        let mut ways = vec!["narrow the pattern or give a directory as `path`".to_owned()];
        if self.files.is_limited() && self.input.limit < 2000 {
            ways.push("raise `limit` (at most 2000)".to_owned());
        }
        let (text, truncated) = self.files.into_text("files", &ways);
        let output = Output::text(nothing + &text);
        if truncated { output.truncated() } else { output }
    }

    fn nothing(&self) -> String {
        let mut text = format!("no files match `{}`", one_line(&self.input.pattern));
        if let Some(path) =
            self.input.path.as_ref().map(WorkspacePath::below_root).filter(|path| !path.is_empty())
        {
            text.push_str(&format!(" in `{}`", one_line(path)));
        }
        if let Some(hint) = pattern::hint(&self.input.pattern) {
            text.push_str(&format!("; {hint}"));
        } else if !(self.input.hidden && self.input.no_ignore) {
            text.push_str(
                "; hidden and ignored directories were left out, `hidden` and \
                `no_ignore` look into them too",
            );
        }
        text.push('\n');
        text
    }
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
        assert_eq!(
            find(&input(2), &["a.rs", "b/c\nd.rs"]),
            ("a.rs\nb/c\\nd.rs\n".to_owned(), false)
        );
    }

    #[test]
    fn r121_what_is_left_out_is_told_with_a_way_to_it() {
        let expected = "a\n[the first 1 of 3 files; to see the rest, narrow the pattern or give a \
            directory as `path`, or raise `limit` (at most 2000)]\n";
        assert_eq!(find(&input(1), &["a", "b", "c"]), (expected.to_owned(), true));
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
