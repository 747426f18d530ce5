//! The entries of a directory, as text and within limits.

use cofferdam_sdk::Output;
use cofferdam_sdk::listing::{Listing, one_line};
use cofferdam_sdk::workspace::{Entry, EntryKind};

use crate::{Input, size};

#[derive(Debug)]
pub(crate) struct Entries<'i> {
    input: &'i Input,
    lines: Listing,
}

impl<'i> Entries<'i> {
    pub(crate) fn new(input: &'i Input) -> Self {
        Self { input, lines: Listing::new(input.limit) }
    }

    /// Adds an entry. Returns `false` if the list needs no more entries.
    pub(crate) fn push(
        &mut self,
        entry: &Entry,
        link_target: impl FnOnce(&str) -> Option<String>,
    ) -> bool {
        self.lines.push(|| {
            let path = one_line(&entry.path);
            match entry.kind {
                EntryKind::Directory => format!("{path}/"),
                EntryKind::File => format!("{path}  {}", size::human(entry.size)),
                EntryKind::Symlink => match link_target(&entry.path) {
                    Some(target) => format!("{path} -> {}", one_line(&target)),
                    None => format!("{path} -> (an absolute path, which tools cannot follow)"),
                },
                EntryKind::Other => format!("{path}  (neither file nor directory)"),
            }
        })
    }

    pub(crate) fn output(mut self, problems: &[String]) -> Output {
        let nothing = match (self.lines.is_empty(), self.input.hidden && self.input.no_ignore) {
            (false, _) => "",
            (true, true) => "The directory is empty.\n",
            (true, false) => {
                "The directory has no visible entries. Set `hidden` and `no_ignore` to include \
                    hidden and ignored ones.\n"
            }
        };
        self.lines.add_problems("could not be listed", problems);
        let ways = self.ways();
        let (text, truncated) = self.lines.into_text("entries", &ways);
        let output = Output::text(nothing.to_owned() + &text);
        if truncated { output.truncated() } else { output }
    }

    /// Returns the ways to see the rest.
    fn ways(&self) -> Vec<String> {
        let raise = self.lines.is_limited() && self.input.limit < 2000;
        let ways = [
            (raise, "raise `limit` (at most 2000)"),
            (self.input.depth > 1, "lower `depth`"),
            (true, "list a subdirectory"),
            (true, "find files by name with `glob`"),
        ];
        ways.into_iter().filter(|(is_one, _)| *is_one).map(|(_, way)| way.to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(limit: u32) -> Input {
        Input { path: None, depth: 1, hidden: false, no_ignore: false, limit }
    }

    fn entry(path: &str, kind: EntryKind) -> Entry {
        Entry { path: path.to_owned(), kind, size: 1536, modified: None }
    }

    fn list(input: &Input, entries: &[Entry]) -> (String, bool) {
        let mut listing = Entries::new(input);
        for entry in entries {
            listing.push(entry, |link| (link != "out").then(|| "a/b".to_owned()));
        }
        let output = listing.output(&[]);
        (output.to_text(), output.truncated)
    }

    #[test]
    fn each_kind_looks_different() {
        let entries = [
            entry("dir", EntryKind::Directory),
            entry("dir/file", EntryKind::File),
            entry("in", EntryKind::Symlink),
            entry("out", EntryKind::Symlink),
            entry("pipe", EntryKind::Other),
        ];
        let expected = "dir/\ndir/file  1.5K\nin -> a/b\nout -> (an absolute path, which tools \
            cannot follow)\npipe  (neither file nor directory)\n";
        assert_eq!(list(&input(5), &entries), (expected.to_owned(), false));
    }

    #[test]
    fn r121_omitted_entries_are_counted_and_the_ways_to_see_them_are_named() {
        let entries: Vec<_> = (0..7).map(|n| entry(&format!("f{n}"), EntryKind::File)).collect();
        let (text, truncated) = list(&input(2), &entries);
        assert!(truncated);
        assert_eq!(
            text,
            "f0  1.5K\nf1  1.5K\n[the first 2 of 7 entries; to see the rest, raise `limit` (at \
                most 2000), or list a subdirectory, \
             or find files by name with `glob`]\n"
        );
        let deep = Input { depth: 3, ..input(2) };
        assert!(list(&deep, &entries).0.contains("or lower `depth`"));
    }

    #[test]
    fn an_empty_directory_is_reported() {
        assert!(list(&input(1), &[]).0.contains("`hidden`"));
        let all = Input { hidden: true, no_ignore: true, ..input(1) };
        assert_eq!(list(&all, &[]).0, "The directory is empty.\n");
    }

    #[test]
    fn a_line_break_in_a_name_is_escaped() {
        assert_eq!(list(&input(9), &[entry("a\nb", EntryKind::Directory)]).0, "a\\nb/\n");
    }
}
