//! Patterns for command lines.
//!
//! | pattern | covers | does not cover |
//! |---|---|---|
//! | `git status` | `git status` | `git status --short` |
//! | `git status *` | `git status` with any further words | `git statusx`, `git status; x` |
//! | `cargo t*` | `cargo test`, `cargo tree` | `cargo test --lib` |
//! | `git * --stat` | one word in the middle | `git log -p --stat` |
//! | `*` | every line | – |
//!
//! A program that a pattern under `ask` or `deny` calls by a path is found by other spellings of that path, and asked about by
//! any other path to a program of that name. Its subcommand is found behind its options: `git -C x push` is covered by
//! `git push *` under `deny`, and asked about where it is not known which options take a value.
//!
//! Patterns are plain words, as [`SimpleCommand`] understands them. Under an `allow` a line has to be plain words too, so
//! that `*` allows no pipe and no `;`. Under `ask` and `deny` a line that is more than words is searched: a command in it
//! that the pattern covers counts, and anything else *might* run what the pattern names, which is enough to ask.

use super::options::covers_behind_options;
use super::{Match, PatternProblem, is, leans_strict};
use crate::policy::programs::{self, Program, Quirk};
use crate::policy::{SimpleCommand, Verdict};

/// Words of a line at each of which a command is looked for behind options. In a longer line nobody can tell.
pub(super) const SEARCHED: usize = 1024;
/// Words behind a program that is one word with its subcommand.
const BEHIND_JOINED: usize = 128;

/// A pattern for command lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandPattern {
    words: Vec<String>,
    /// Whether any further words may follow.
    open: bool,
    /// `git push` where it says `git-push`.
    in_two_words: Option<Box<CommandPattern>>,
}

impl CommandPattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Self, PatternProblem> {
        let unstarred = text.replace('*', "x");
        if text.trim().is_empty() {
            return Err(PatternProblem("an empty pattern covers nothing; `*` covers every command".into()));
        }
        if SimpleCommand::parse(&unstarred).is_none() {
            let reason = match unstarred.chars().find(|c| !SimpleCommand::is_plain(*c)) {
                Some(c) => format!("{c:?} is more than plain words, which is all that patterns for commands are made of"),
                None => "a word that sets a variable comes before the program".to_owned(),
            };
            return Err(PatternProblem(format!("no command is covered by `{text}`: {reason}")));
        }
        if let Some(word) = text.split(' ').find(|word| word.contains("**")) {
            let reason = "`*` stands for any characters of a word, and at the end for any further words";
            return Err(PatternProblem(format!("`{word}` in `{text}` has no meaning: {reason}")));
        }
        let mut words: Vec<String> = text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        let open = words.last().is_some_and(|word| word == "*");
        if open {
            words.pop();
        }
        let joined = words.first().and_then(|first| Program::joined(name(first)));
        let in_two_words = joined.map(|(program, subcommand)| {
            let two = [program.name, subcommand].map(str::to_owned);
            Box::new(Self { words: two.into_iter().chain(words[1..].iter().cloned()).collect(), open, in_two_words: None })
        });
        Ok(Self { words, open, in_two_words })
    }

    /// How far a line falls under this pattern, in a rule with this verdict.
    pub fn matches(&self, line: &str, verdict: Verdict) -> Match {
        let simple = SimpleCommand::parse(line);
        if leans_strict(verdict) {
            return Match::certain(simple.is_some_and(|command| self.covers(command.words(), program_is) == Match::Yes));
        }
        if self.words.is_empty() {
            return Match::Yes;
        }
        match simple {
            Some(command) => {
                let words = command.words();
                // `env git push`, and also `echo git push`: who knows what the first word does with the rest.
                let later = || words.len() > SEARCHED || (1..words.len()).any(|at| self.runs(&words[at..]) >= Match::Perhaps);
                match self.runs(words) {
                    Match::Yes => Match::Yes,
                    Match::No | Match::Perhaps if later() => Match::Perhaps,
                    other @ (Match::No | Match::Perhaps) => other,
                }
            }
            None => {
                // To a shell a tab parts words, and so does nothing at the end of a line that goes on.
                let line = line.replace("\\\n", " ").replace('\t', " ");
                let mut pieces = line.split(|c| !SimpleCommand::is_plain(c));
                let mut searched = 0;
                let found = pieces.any(|piece| {
                    let words: Vec<&str> = piece.split(' ').filter(|word| !word.is_empty()).collect();
                    (0..words.len()).any(|at| {
                        searched += 1;
                        let covered = self.covers(&words[at..], program_is_surely);
                        covered == Match::Yes || searched <= SEARCHED && self.runs(&words[at..]) == Match::Yes
                    })
                });
                if found { Match::Yes } else { Match::Perhaps }
            }
        }
    }

    /// How far a command is covered, in front of and behind whose subcommand there may be options.
    fn runs(&self, words: &[&str]) -> Match {
        let (Some((ours, behind)), Some((called, theirs))) = (self.words.split_first(), words.split_first()) else { return Match::No };
        let program = program_might_be(ours, called);
        let own = match program {
            Match::No => Match::No,
            Match::Perhaps | Match::Yes => {
                let with_options = covers_behind_options(behind, self.open, theirs, Program::named(name(called)));
                self.covers(words, program_might_be).max(with_options.min(program))
            }
        };
        own.max(self.runs_joined(called, theirs))
            .max(self.in_two_words.as_ref().map_or(Match::No, |two| two.runs(words).min(Match::Perhaps)))
    }

    /// The same where program and subcommand are one word: `git-push` is `git push`.
    fn runs_joined(&self, called: &str, theirs: &[&str]) -> Match {
        let Some((program, subcommand)) = Program::joined(name(called)) else { return Match::No };
        let words: Vec<&str> = [program.name, subcommand].into_iter().chain(theirs.iter().copied().take(BEHIND_JOINED)).collect();
        let surely = if program.quirk == Quirk::Joined { Match::Yes } else { Match::Perhaps };
        let both = self.covers(&words, program_might_be);
        let with_options = match self.words.split_first() {
            Some((ours, behind)) if program_might_be(ours, program.name) > Match::No => {
                covers_behind_options(behind, self.open, &words[1..], Some(program))
            }
            Some(_) | None => Match::No,
        };
        both.max(with_options).min(surely)
    }

    /// How far these words are covered, the first of them by `program`.
    fn covers(&self, words: &[&str], program: fn(&str, &str) -> Match) -> Match {
        let enough = if self.open { words.len() >= self.words.len() } else { words.len() == self.words.len() };
        let mut pairs = self.words.iter().zip(words);
        let first = pairs.next().map_or(Match::Yes, |(ours, theirs)| program(ours, theirs));
        if enough && pairs.all(|(ours, theirs)| is(ours, theirs)) { first } else { Match::No }
    }
}

/// Under an `allow` a program is what it is called, letter by letter.
fn program_is(pattern: &str, word: &str) -> Match {
    Match::certain(is(pattern, word))
}

/// Under `ask` and `deny` a program is the same by whatever path it is called. Where the pattern has a path, another one to a
/// program of the same name might lead to the same file.
fn program_might_be(pattern: &str, word: &str) -> Match {
    if program_is_surely(pattern, word) == Match::Yes {
        return Match::Yes;
    }
    let by_another_path = pattern.contains('/') && is(name(pattern), name(word));
    if by_another_path || programs::is_same(name(pattern), name(word)) { Match::Perhaps } else { Match::No }
}

/// The same without what nobody can tell.
fn program_is_surely(pattern: &str, word: &str) -> Match {
    Match::certain(is(pattern, word) || is(pattern, name(word)) || is(&cleaned(pattern), &cleaned(word)))
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A path without what leads nowhere: `./`, `//` and `x/..`.
fn cleaned(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match parts.last() {
            Some(last) if part == ".." && *last != ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    format!("{}{}", if path.starts_with('/') { "/" } else { "" }, parts.join("/"))
}

#[cfg(test)]
mod tests;
