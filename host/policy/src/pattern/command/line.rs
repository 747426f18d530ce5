//! A command line, parsed once for all patterns, with every position at which a command may begin.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{clean_path, file_name};
use crate::SimpleCommand;
use crate::programs::{self, ProgramSyntax};

/// The number of words of a simple command that are searched for commands. A longer line is
/// uncertain.
pub(in crate::pattern) const SEARCHED: usize = 1024;
/// The separators inside a command that is one word, as in `gcc -wrapper git,push`.
const SEPARATORS: [char; 2] = [',', ':'];
/// The number of words of such a command that are considered.
const MAX_JOINED: usize = 64;
/// The number of parts of words that are searched for commands. A line with more of them is
/// uncertain.
const MOST_PARTS: usize = 4096;
/// The number of characters at the end of an option in which the name of a program is searched. A
/// longer name is a path, whose end counts.
const LONGEST_GLUED: usize = 64;
/// The maximum length of a file name on every file system, in bytes.
const LONGEST_NAME: usize = 255;

/// A command line, prepared for matching.
#[derive(Debug)]
pub(crate) struct CommandLine<'a> {
    /// Whether the line is a simple command.
    is_plain: bool,
    /// The words of the line, in pieces. A shell may interpret the text between two pieces in any
    /// way.
    pieces: Vec<Vec<&'a str>>,
    starts: Vec<CommandStart<'a>>,
    /// The indices of starts, by each key of the program called there.
    by_key: HashMap<String, Vec<usize>>,
    /// Whether the line may run a program that is not among its words.
    is_uncertain: bool,
    /// Whether the line may define an alias of a subcommand.
    pub(super) sets_alias: bool,
}

/// A position at which a command may begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandStart<'a> {
    /// The program as called.
    pub(super) called: &'a str,
    /// Options that apply without being written, separated by spaces.
    implied: &'static str,
    /// Further words in the same word, each after a comma or a colon: `push` in `git,push`.
    joined: &'a str,
    piece: usize,
    /// The index of the first word after the program.
    behind: usize,
}

/// Returns the text of a line as a shell splits it: a tab and a line continuation separate words.
pub(crate) fn flatten(line: &str) -> Cow<'_, str> {
    if line.contains(['\\', '\t']) {
        Cow::Owned(line.replace("\\\n", " ").replace('\t', " "))
    } else {
        Cow::Borrowed(line)
    }
}

impl<'a> CommandLine<'a> {
    /// Parses a line; `flat` is its [flattened](flatten) text.
    pub(crate) fn parse(line: &str, flat: &'a str) -> Self {
        let is_plain = SimpleCommand::parse(line).is_some();
        let words =
            |piece: &'a str| piece.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>();
        let pieces: Vec<_> = if is_plain {
            vec![words(flat)]
        } else {
            flat.split(|c| !SimpleCommand::is_plain(c)).map(words).collect()
        };
        let mut read = Self {
            is_plain,
            pieces,
            starts: Vec::new(),
            by_key: HashMap::new(),
            is_uncertain: false,
            sets_alias: false,
        };
        read.find_starts();
        read
    }

    /// Returns the words if the line is a simple command.
    pub(super) fn plain(&self) -> Option<&[&'a str]> {
        self.pieces.first().filter(|_| self.is_plain).map(Vec::as_slice)
    }

    /// Returns whether the line may run a program that is not among its words.
    pub(super) fn is_uncertain(&self) -> bool {
        self.is_uncertain
    }

    /// Returns the positions at which a program with one of these keys may be called. Without keys,
    /// returns every position.
    pub(super) fn starts<'s>(
        &'s self,
        keys: &'s [String],
    ) -> impl Iterator<Item = &'s CommandStart<'a>> {
        let all = if keys.is_empty() { &self.starts[..] } else { &[] };
        let listed = keys.iter().filter_map(|key| self.by_key.get(key)).flatten();
        all.iter().chain(listed.filter_map(|at| self.starts.get(*at)))
    }

    /// Returns the first position of the line.
    pub(super) fn first(&self) -> Option<&CommandStart<'a>> {
        self.starts.first()
    }

    /// Returns the words after a program.
    pub(super) fn behind(&self, start: &CommandStart<'a>) -> Cow<'_, [&'a str]> {
        let words = self
            .pieces
            .get(start.piece)
            .and_then(|words| words.get(start.behind..))
            .unwrap_or_default();
        let implied = start.implied.split(' ').filter(|word| !word.is_empty());
        let joined =
            start.joined.split(SEPARATORS).filter(|word| !word.is_empty()).take(MAX_JOINED);
        let before: Vec<&str> = implied.chain(joined).collect();
        if before.is_empty() {
            return Cow::Borrowed(words);
        }
        Cow::Owned(before.into_iter().chain(words.iter().copied()).collect())
    }

    fn find_starts(&mut self) {
        let pieces = std::mem::take(&mut self.pieces);
        let mut parts_left = MOST_PARTS;
        let most = if self.is_plain { SEARCHED } else { usize::MAX };
        for (piece, words) in pieces.iter().enumerate() {
            self.is_uncertain |= self.is_plain && words.len() > SEARCHED;
            let whole_options = words
                .first()
                .is_some_and(|program| programs::has_whole_word_options(file_name(program)));
            for (at, word) in words.iter().enumerate().take(most) {
                let start =
                    CommandStart { called: word, implied: "", joined: "", piece, behind: at + 1 };
                self.add(start);
                // An opaque line is uncertain anyway.
                if !self.is_plain {
                    continue;
                }
                self.sets_alias |=
                    word.contains('=') && word.to_ascii_lowercase().contains("alias");
                let behind = &words[at + 1..];
                self.is_uncertain |= programs::runs_code(file_name(word), behind)
                    || programs::sets_code_variable(word);
                if let Some((called, implied)) = programs::does_the_work_of(file_name(word), behind)
                {
                    self.add(CommandStart { called, implied, ..start });
                }
                if at > 0 {
                    for part in glued(word, !whole_options) {
                        self.add(CommandStart { called: part, ..start });
                        parts_left = parts_left.saturating_sub(1);
                    }
                    for (called, joined) in joined_commands(word, !whole_options) {
                        self.add(CommandStart { called, joined, ..start });
                        parts_left = parts_left.saturating_sub(1);
                    }
                }
                if parts_left == 0 {
                    self.is_uncertain = true;
                    break;
                }
            }
        }
        self.pieces = pieces;
    }

    fn add(&mut self, start: CommandStart<'a>) {
        let at = self.starts.len();
        for key in keys(start.called) {
            self.by_key.entry(key).or_default().push(at);
        }
        self.starts.push(start);
    }
}

/// Returns the keys of a program. Every two spellings of a program have a key in common.
pub(super) fn keys(called: &str) -> Vec<String> {
    let mut keys = vec![programs::canonical_name(file_name(called))];
    if called.contains('/') {
        keys.push(programs::canonical_name(file_name(&clean_path(called))));
    }
    keys.extend(
        ProgramSyntax::split_joined(file_name(called)).map(|(program, _)| program.name.to_owned()),
    );
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Returns the parts of a word that may be the name of a program: those after `=`, `:` and `,`, and
/// those after the letters of an option.
fn glued(word: &str, letters: bool) -> impl Iterator<Item = &str> {
    // For a long path, the file name is enough.
    let end = |value| if str::len(value) > LONGEST_NAME { file_name(value) } else { value };
    let values =
        word.split(['=', ':', ',']).skip(1).map(end).filter(|value| value.len() <= LONGEST_NAME);
    let is_short = letters && word.starts_with('-') && !word.starts_with("--");
    let longest = if is_short { word.len().saturating_sub(2).min(LONGEST_GLUED) } else { 0 };
    let ends = (1..=longest).filter_map(|length| word.get(word.len() - length..));
    values.chain(ends).filter(|part| !part.is_empty()).take(MOST_PARTS)
}

/// Returns the programs that begin a list of words within one word, such as `git,push` and
/// `-xgit:push`, each with the rest of the list.
fn joined_commands(word: &str, letters: bool) -> impl Iterator<Item = (&str, &str)> {
    let end = |value| if str::len(value) > LONGEST_NAME { file_name(value) } else { value };
    let ends = word.char_indices().filter(|(_, c)| SEPARATORS.contains(c)).map(|(at, _)| at);
    let is_short = letters && word.starts_with('-') && !word.starts_with("--");
    let mut begin = 0;
    ends.take(MAX_JOINED).flat_map(move |at| {
        let (part, rest) = (&word[begin..at], &word[at + 1..]);
        let is_first = begin == 0;
        begin = at + 1;
        let value = part.rsplit('=').next().unwrap_or(part);
        // The letters of an option, as in `-Sgit,push`.
        let glued =
            if is_first && is_short { part.len().saturating_sub(2).min(LONGEST_GLUED) } else { 0 };
        let glued = (1..=glued).filter_map(move |length| part.get(part.len() - length..));
        std::iter::once(end(value))
            .chain(glued)
            .filter(|part| !part.is_empty() && part.len() <= LONGEST_NAME)
            .map(move |part| (part, rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_of_a_list_within_a_word_has_the_rest_of_the_list() {
        let commands: Vec<(&str, &str)> = joined_commands("env,git:push", true).collect();
        assert_eq!(commands, [("env", "git:push"), ("git", "push")]);
    }
}
