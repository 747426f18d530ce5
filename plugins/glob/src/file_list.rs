//! The list of found files, as text and within limits.

use cofferdam_sdk::listing::{Listing, one_line};
use cofferdam_sdk::{Output, WorkspacePath};

use crate::{Input, pattern};

#[derive(Debug)]
pub(crate) struct FileList<'i> {
    input: &'i Input,
    files: Listing,
}

impl<'i> FileList<'i> {
    pub(crate) fn new(input: &'i Input) -> Self {
        Self { input, files: Listing::new(input.limit) }
    }

    /// Adds a file. Returns `false` if the list needs no more files.
    pub(crate) fn push(&mut self, path: &str) -> bool {
        self.files.push(|| one_line(path))
    }

    pub(crate) fn output(mut self, problems: &[String]) -> Output {
        let explanation = if self.files.is_empty() { self.explain_empty() } else { String::new() };
        self.files.add_problems("could not be read", problems);
        let mut ways = vec!["narrow the pattern or give a directory as `path`".to_owned()];
        if self.files.is_limited() && self.input.limit < 2000 {
            ways.push("raise `limit` (at most 2000)".to_owned());
        }
        let (text, truncated) = self.files.into_text("files", &ways);
        let output = Output::text(explanation + &text);
        if truncated { output.truncated() } else { output }
    }

    fn explain_empty(&self) -> String {
        let mut text = format!("no files match `{}`", one_line(&self.input.pattern));
        if let Some(path) = self
            .input
            .path
            .as_ref()
            .map(WorkspacePath::relative_to_root)
            .filter(|path| !path.is_empty())
        {
            text.push_str(&format!(" in `{}`", one_line(path)));
        }
        if let Some(hint) = pattern::hint(&self.input.pattern) {
            text.push_str(&format!("; {hint}"));
        } else if !(self.input.hidden && self.input.no_ignore) {
            text.push_str(
                "; hidden and ignored directories were skipped, `hidden` and `no_ignore` include \
                them",
            );
        }
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(limit: u32) -> Input {
        Input { pattern: "*.rs".to_owned(), path: None, hidden: false, no_ignore: false, limit }
    }

    fn find(input: &Input, paths: &[&str]) -> (String, bool) {
        let mut list = FileList::new(input);
        for path in paths {
            list.push(path);
        }
        let output = list.output(&[]);
        (output.to_text(), output.truncated)
    }

    #[test]
    fn files_are_listed_one_per_line() {
        assert_eq!(
            find(&input(2), &["a.rs", "b/c\nd.rs"]),
            ("a.rs\nb/c\\nd.rs\n".to_owned(), false)
        );
    }

    #[test]
    fn r121_omitted_files_are_counted_and_the_ways_to_see_them_are_named() {
        let expected = "a\n[the first 1 of 3 files; to see the rest, narrow the pattern or give a \
            directory as `path`, or raise `limit` (at most 2000)]\n";
        assert_eq!(find(&input(1), &["a", "b", "c"]), (expected.to_owned(), true));
    }

    #[test]
    fn an_empty_list_explains_the_likely_cause() {
        let (text, _) = find(&Input { path: Some("src/".into()), ..input(1) }, &[]);
        assert!(text.starts_with("no files match `*.rs` in `src/`; hidden and ignored"), "{text}");
        let (text, _) = find(&Input { pattern: "src/".to_owned(), ..input(1) }, &[]);
        assert!(text.contains("try `src/**`"), "{text}");
        let (text, _) = find(&Input { hidden: true, no_ignore: true, ..input(1) }, &[]);
        assert_eq!(text, "no files match `*.rs`\n");
    }
}
