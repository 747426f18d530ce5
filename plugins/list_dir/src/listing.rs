//! The entries of a directory, as text and within limits.

use std::fmt::Write as _;

use cofferdam_sdk::Output;
use cofferdam_sdk::workspace::{Entry, EntryKind};

use crate::{Input, size};

/// Of text.
const MAX_BYTES: usize = 256 << 10;
/// How many entries to walk past, only to say how many there are.
const COUNTED: u32 = 100_000;
/// What could not be listed, in lines.
const MAX_PROBLEMS: usize = 10;

#[derive(Debug)]
pub(crate) struct Listing<'i> {
    input: &'i Input,
    text: String,
    listed: u32,
    left_out: u32,
}

impl<'i> Listing<'i> {
    pub(crate) fn new(input: &'i Input) -> Self {
        Self { input, text: String::new(), listed: 0, left_out: 0 }
    }

    /// Takes the next entry; false if it wants no more.
    pub(crate) fn push(&mut self, entry: &Entry, leads_to: impl FnOnce(&str) -> Option<String>) -> bool {
        if self.left_out > 0 || self.listed >= self.input.limit || self.text.len() >= MAX_BYTES {
            self.left_out += 1;
            return self.left_out < COUNTED;
        }
        self.listed += 1;
        let path = one_line(&entry.path);
        // Writing to a string cannot fail.
        let _ = match entry.kind {
            EntryKind::Directory => writeln!(self.text, "{path}/"),
            EntryKind::File => writeln!(self.text, "{path}  {}", size::human(entry.size)),
            EntryKind::Symlink => match leads_to(&entry.path) {
                Some(target) => writeln!(self.text, "{path} -> {}", one_line(&target)),
                None => writeln!(self.text, "{path} -> (an absolute path, which tools cannot follow)"),
            },
            EntryKind::Other => writeln!(self.text, "{path}  (neither file nor directory)"),
        };
        true
    }

    pub(crate) fn output(mut self, problems: &[String]) -> Output {
        if self.listed == 0 {
            self.text.push_str(match (self.input.hidden, self.input.no_ignore) {
                (true, true) => "The directory is empty.\n",
                _ => "The directory has no entries but, perhaps, hidden and ignored ones: `hidden` and `no_ignore` list these too.\n",
            });
        }
        for problem in problems.iter().take(MAX_PROBLEMS) {
            let _ = writeln!(self.text, "[could not be listed: {}]", one_line(problem));
        }
        if let Some(more) = problems.len().checked_sub(MAX_PROBLEMS).filter(|&more| more > 0) {
            let _ = writeln!(self.text, "[{more} more could not be listed]");
        }
        if self.left_out == 0 {
            return Output::text(self.text);
        }
        let note = self.note();
        Output::text(self.text + &note).truncated()
    }

    /// How to get at the rest.
    fn note(&self) -> String {
        let total = self.listed + self.left_out;
        let total = if self.left_out >= COUNTED { format!("more than {total}") } else { total.to_string() };
        let mut ways = Vec::new();
        if self.listed == self.input.limit && self.input.limit < 2000 {
            ways.push("raise `limit` (at most 2000)");
        }
        if self.input.depth > 1 {
            ways.push("lower `depth`");
        }
        ways.push("list a directory further down");
        ways.push("find files by name with `glob`");
        format!("[the first {} of {total} entries; to see the rest, {}]\n", self.listed, ways.join(", or "))
    }
}

/// A name may hold line breaks, and each entry has one line.
fn one_line(name: &str) -> String {
    name.chars().flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests {
    use cofferdam_sdk::Content;

    use super::*;

    fn input(limit: u32) -> Input {
        Input { path: None, depth: 1, hidden: false, no_ignore: false, limit }
    }

    fn entry(path: &str, kind: EntryKind) -> Entry {
        Entry { path: path.to_owned(), kind, size: 1536.0, modified: 0.0 }
    }

    fn list(input: &Input, entries: &[Entry]) -> (String, bool) {
        let mut listing = Listing::new(input);
        for entry in entries {
            listing.push(entry, |link| (link != "out").then(|| "a/b".to_owned()));
        }
        let output = listing.output(&[]);
        match output.content.as_slice() {
            [Content::Text(text)] => (text.clone(), output.truncated),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_kind_can_be_told_from_the_others() {
        let entries = [
            entry("dir", EntryKind::Directory),
            entry("dir/file", EntryKind::File),
            entry("in", EntryKind::Symlink),
            entry("out", EntryKind::Symlink),
            entry("pipe", EntryKind::Other),
        ];
        let expected =
            "dir/\ndir/file  1.5K\nin -> a/b\nout -> (an absolute path, which tools cannot follow)\npipe  (neither file nor directory)\n";
        assert_eq!(list(&input(5), &entries), (expected.to_owned(), false));
    }

    #[test]
    fn r121_what_is_left_out_is_told_with_a_way_to_it() {
        let entries: Vec<_> = (0..7).map(|n| entry(&format!("f{n}"), EntryKind::File)).collect();
        let (text, truncated) = list(&input(2), &entries);
        assert!(truncated);
        assert_eq!(
            text,
            "f0  1.5K\nf1  1.5K\n[the first 2 of 7 entries; to see the rest, raise `limit` (at most 2000), or list a directory further down, \
             or find files by name with `glob`]\n"
        );
        let deep = Input { depth: 3, ..input(2) };
        assert!(list(&deep, &entries).0.contains("or lower `depth`"));
    }

    #[test]
    fn r121_the_text_is_capped_whatever_the_names_are_like() {
        let entries: Vec<_> = (0..2000).map(|n| entry(&format!("{}{n}", "x".repeat(4000)), EntryKind::File)).collect();
        let (text, truncated) = list(&input(2000), &entries);
        assert!(truncated && text.len() < MAX_BYTES + 8000, "{}", text.len());
        assert!(text.contains(" of 2000 entries"));
    }

    #[test]
    fn counting_ends() {
        let input = input(1);
        let mut listing = Listing::new(&input);
        let one = entry("f", EntryKind::File);
        let taken = (0..2 * COUNTED).take_while(|_| listing.push(&one, |_| None)).count();
        assert_eq!(taken, COUNTED as usize);
    }

    #[test]
    fn nothing_to_list_is_said() {
        assert!(list(&input(1), &[]).0.contains("`hidden`"));
        let all = Input { hidden: true, no_ignore: true, ..input(1) };
        assert_eq!(list(&all, &[]).0, "The directory is empty.\n");
    }

    #[test]
    fn a_name_cannot_pass_for_two_entries() {
        assert_eq!(list(&input(9), &[entry("a\nb", EntryKind::Directory)]).0, "a\\nb/\n");
    }
}
