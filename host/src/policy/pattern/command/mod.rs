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
//! that the pattern covers counts, and anything else *might* run what the pattern names, which is enough to ask. So might plain
//! words in which the name of the program stands anywhere: behind other words (`env git push`), behind `=` (`--pager=git`), or
//! behind the letters of an option (`-Sgit push`). A program that reads commands from elsewhere, or code of its own from an
//! option (`perl -e`), might run anything.

mod line;

use super::options::{Behind, covers_behind_options};
use super::{Match, MatchBudget, PatternProblem, is, leans_strict};
use crate::policy::programs::{self, Program, Quirk};
use crate::policy::{SimpleCommand, Verdict};

pub(super) use line::SEARCHED;
pub(in crate::policy) use line::{CommandLine, flatten};
use line::{Start, keys};

/// Words behind a program that is one word with its subcommand, or whose options have no hyphen.
const BEHIND_JOINED: usize = 128;

/// A pattern for command lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandPattern {
    words: Vec<String>,
    /// Whether any further words may follow.
    open: bool,
    /// The same in other words: `git push` where it says `git-push`, and `tar -xf` where it says `tar xf`.
    in_other_words: Option<Box<CommandPattern>>,
    /// Under which the program is found in a line; none if the program is a pattern of its own.
    keys: Vec<String>,
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
            two.into_iter().chain(words[1..].iter().cloned()).collect::<Vec<_>>()
        });
        let other_words = in_two_words.or_else(|| with_hyphens(&words));
        let in_other_words = other_words.map(|words| Box::new(Self { keys: keys_of(&words), words, open, in_other_words: None }));
        Ok(Self { keys: keys_of(&words), words, open, in_other_words })
    }

    /// How far a line falls under this pattern, in a rule with this verdict.
    pub fn matches(&self, line: &str, verdict: Verdict) -> Match {
        let flat = flatten(line);
        self.matches_within(&CommandLine::parse(line, &flat), verdict, &MatchBudget::for_decision())
    }

    /// The same as a part of a decision.
    pub(in crate::policy) fn matches_within(&self, line: &CommandLine<'_>, verdict: Verdict, budget: &MatchBudget) -> Match {
        if leans_strict(verdict) {
            let covered = line.plain().and_then(<[&str]>::split_first);
            return Match::certain(covered.is_some_and(|(called, behind)| self.covers(called, behind, program_is, budget) == Match::Yes));
        }
        if self.words.is_empty() {
            return Match::Yes;
        }
        let own = if line.plain().is_some() { self.in_plain_words(line, budget) } else { self.in_pieces(line, budget) };
        let other = self.in_other_words.as_ref().map_or(Match::No, |other| other.matches_within(line, verdict, budget));
        let found = own.max(other.min(Match::Perhaps));
        if budget.is_spent() { found.max(Match::Perhaps) } else { found }
    }

    /// How far plain words are covered: surely as they stand, and perhaps by a command within them. Nobody can tell what the first
    /// word does with the others: `env git push` and `echo git push` look alike.
    fn in_plain_words(&self, line: &CommandLine<'_>, budget: &MatchBudget) -> Match {
        let as_it_stands = line.first().map_or(Match::No, |start| self.runs(start.called, &line.behind(start), budget));
        let mut found = if line.is_uncertain() { as_it_stands.max(Match::Perhaps) } else { as_it_stands };
        for start in line.starts(&self.keys) {
            if found >= Match::Perhaps {
                break;
            }
            let other_name = line.sets_alias && self.calls(start.called, budget) > Match::No;
            let within = if other_name { Match::Perhaps } else { self.runs(start.called, &line.behind(start), budget) };
            found = found.max(within.min(Match::Perhaps));
        }
        found
    }

    /// How far a line is covered that is more than plain words: surely by a command in it, and otherwise perhaps.
    fn in_pieces(&self, line: &CommandLine<'_>, budget: &MatchBudget) -> Match {
        let covers = |start: &Start<'_>| self.covers(start.called, &line.behind(start), program_is_surely, budget) == Match::Yes;
        let runs = |start: &Start<'_>| self.runs(start.called, &line.behind(start), budget) == Match::Yes;
        let is_found = line.starts(&self.keys).any(covers) || line.starts(&self.keys).take(SEARCHED).any(runs);
        if is_found { Match::Yes } else { Match::Perhaps }
    }

    /// How far a program is the one of this pattern.
    fn calls(&self, called: &str, budget: &MatchBudget) -> Match {
        self.words.first().map_or(Match::No, |ours| program_might_be(ours, called, budget))
    }

    /// How far a command is covered, in front of and behind whose subcommand there may be options.
    fn runs(&self, called: &str, theirs: &[&str], budget: &MatchBudget) -> Match {
        // Programs are looked up.
        if !budget.spend(64) {
            return Match::No;
        }
        let own = match self.calls(called, budget) {
            Match::No => Match::No,
            program @ (Match::Perhaps | Match::Yes) => {
                let command = Behind { called: name(called), theirs, program: Program::named(name(called)) };
                let with_options = covers_behind_options(self.words.get(1..).unwrap_or_default(), self.open, &command, budget);
                self.covers(called, theirs, program_might_be, budget).max(with_options.min(program))
            }
        };
        own.max(self.runs_joined(called, theirs, budget)).max(self.runs_letters(called, theirs, budget))
    }

    /// The same where letters of options have no hyphen: `tar xf a` might be `tar -x -f a`.
    fn runs_letters(&self, called: &str, theirs: &[&str], budget: &MatchBudget) -> Match {
        if self.calls(called, budget) == Match::No {
            return Match::No;
        }
        let theirs = &theirs[..theirs.len().min(BEHIND_JOINED)];
        let Some(words) = programs::with_hyphens(name(called), theirs).filter(|_| budget.spend(8 * theirs.len() as u64)) else {
            return Match::No;
        };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let command = Behind { called: name(called), theirs: &words, program: None };
        let with_options = covers_behind_options(self.words.get(1..).unwrap_or_default(), self.open, &command, budget);
        self.covers(called, &words, program_might_be, budget).max(with_options).min(Match::Perhaps)
    }

    /// The same where program and subcommand are one word: `git-push` is `git push`.
    fn runs_joined(&self, called: &str, theirs: &[&str], budget: &MatchBudget) -> Match {
        let Some((program, subcommand)) = Program::joined(name(called)) else { return Match::No };
        if self.calls(program.name, budget) == Match::No {
            return Match::No;
        }
        let words: Vec<&str> = [subcommand].into_iter().chain(theirs.iter().copied().take(BEHIND_JOINED)).collect();
        let command = Behind { called: program.name, theirs: &words, program: Some(program) };
        let with_options = covers_behind_options(self.words.get(1..).unwrap_or_default(), self.open, &command, budget);
        let both = self.covers(program.name, &words, program_might_be, budget).max(with_options);
        both.min(if program.quirk == Quirk::Joined { Match::Yes } else { Match::Perhaps })
    }

    /// How far these words are covered, the first of them by `program`.
    fn covers(&self, called: &str, behind: &[&str], program: ProgramMatch, budget: &MatchBudget) -> Match {
        let Some((first, ours)) = self.words.split_first() else { return Match::Yes };
        let enough = if self.open { behind.len() >= ours.len() } else { behind.len() == ours.len() };
        if enough && ours.iter().zip(behind).all(|(ours, theirs)| is(ours, theirs, budget)) {
            program(first, called, budget)
        } else {
            Match::No
        }
    }
}

/// How far a program is the one of a pattern.
type ProgramMatch = fn(&str, &str, &MatchBudget) -> Match;

/// Under an `allow` a program is what it is called, letter by letter.
fn program_is(pattern: &str, word: &str, budget: &MatchBudget) -> Match {
    Match::certain(is(pattern, word, budget))
}

/// Under `ask` and `deny` a program is the same by whatever path it is called. Where the pattern has a path, another one to a
/// program of the same name might lead to the same file.
fn program_might_be(pattern: &str, word: &str, budget: &MatchBudget) -> Match {
    if program_is_surely(pattern, word, budget) == Match::Yes {
        return Match::Yes;
    }
    let by_another_path = pattern.contains('/') && is(name(pattern), name(word), budget);
    if by_another_path || programs::is_same(name(pattern), name(word)) { Match::Perhaps } else { Match::No }
}

/// The same without what nobody can tell.
fn program_is_surely(pattern: &str, word: &str, budget: &MatchBudget) -> Match {
    // A path is copied to be cleaned.
    if !budget.spend(16 + 2 * (pattern.len() + word.len()) as u64) {
        return Match::No;
    }
    let by_its_path = || word.contains('/') || pattern.contains('/');
    let cleaned = || by_its_path() && is(&cleaned(pattern), &cleaned(word), budget);
    Match::certain(is(pattern, word, budget) || is(pattern, name(word), budget) || cleaned())
}

/// The words of a pattern with a hyphen in front of letters of options.
fn with_hyphens(words: &[String]) -> Option<Vec<String>> {
    let (program, behind) = words.split_first()?;
    let behind: Vec<&str> = behind.iter().map(String::as_str).collect();
    let behind = programs::with_hyphens(name(program), &behind)?;
    Some(std::iter::once(program.clone()).chain(behind).collect())
}

/// Under which the first of these words is found.
fn keys_of(words: &[String]) -> Vec<String> {
    words.first().filter(|program| !program.contains('*')).map_or_else(Vec::new, |program| keys(program))
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A path without what leads nowhere: `./`, `//` and `x/..`.
pub(super) fn cleaned(path: &str) -> String {
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
mod name_tests;
#[cfg(test)]
mod spelling_tests;
#[cfg(test)]
mod tests;
