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
//! A pattern of an `ask` or `deny` rule with the path of a program covers other spellings of that
//! path. Any other path to a program of the same name *might* match. A subcommand is found after
//! the options of its program: under `deny`, `git push *` covers `git -C x push`. The match is a
//! *maybe* if the options with values are unknown.
//!
//! Patterns are simple commands, as [`SimpleCommand`] parses them. An `allow` rule covers only
//! simple commands, so `*` allows no pipe and no `;`. An `ask` or `deny` rule covers any other line
//! if it covers a command in that line. Otherwise the line *might* run the program of the pattern,
//! so it needs approval.
//!
//! A simple command *might* match if the name of the program occurs anywhere in it: after other
//! words (`env git push`), after `=` (`--pager=git`), or after the letters of an option
//! (`-Sgit push`). A program that reads commands from elsewhere, or that takes code from an option
//! (`perl -e`), might run anything.

mod line;

use super::options::{ProgramWords, match_with_options};
use super::{MatchBudget, PatternError, PatternMatch, glob_matches, matches_strictly};
use crate::programs::{self, ProgramQuirk, ProgramSyntax};
use crate::{SimpleCommand, Verdict};

pub(super) use line::SEARCHED;
pub(crate) use line::{CommandLine, flatten};
use line::{CommandStart, keys};

/// The maximum number of words after a program that is one word with its subcommand, or whose
/// options have no hyphen.
const MAX_JOINED_ARGUMENTS: usize = 128;

/// A pattern for command lines.
///
/// ```
/// use cofferdam_policy::{CommandPattern, PatternMatch, Verdict};
///
/// let pattern = CommandPattern::parse("git status *")?;
/// assert_eq!(pattern.matches("git status --short", Verdict::Allow), PatternMatch::Yes);
/// assert_eq!(pattern.matches("git status; rm x", Verdict::Allow), PatternMatch::No);
/// # Ok::<(), cofferdam_policy::PatternError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandPattern {
    words: Vec<String>,
    /// Whether any further words may follow.
    is_prefix: bool,
    /// An equivalent pattern: `git push` for `git-push`, and `tar -xf` for `tar xf`.
    in_other_words: Option<Box<CommandPattern>>,
    /// The keys that find the program in a line; empty if the name of the program contains a star.
    keys: Vec<String>,
}

impl CommandPattern {
    /// Parses a command pattern.
    ///
    /// # Errors
    ///
    /// Returns an error if the text, without its stars, is not a simple command, or if it contains
    /// `**`.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let unstarred = text.replace('*', "x");
        if text.trim().is_empty() {
            return Err(PatternError(
                "the pattern is empty; use `*` to cover every command".into(),
            ));
        }
        if SimpleCommand::parse(&unstarred).is_none() {
            let reason = match unstarred.chars().find(|c| !SimpleCommand::is_plain(*c)) {
                Some(c) => {
                    format!("{c:?} is not allowed; use unquoted words separated by spaces")
                }
                None => "it sets a variable before the program".to_owned(),
            };
            return Err(PatternError(format!("`{text}` is not a command pattern: {reason}")));
        }
        if let Some(word) = text.split(' ').find(|word| word.contains("**")) {
            let reason =
                "use `*` for any characters of a word or, at the end, for any further words";
            return Err(PatternError(format!(
                "`{text}` is not a command pattern: `{word}` is not \
                supported; {reason}"
            )));
        }
        let mut words: Vec<String> =
            text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        let open = words.last().is_some_and(|word| word == "*");
        if open {
            words.pop();
        }
        let joined = words.first().and_then(|first| ProgramSyntax::split_joined(file_name(first)));
        let in_two_words = joined.map(|(program, subcommand)| {
            let two = [program.name, subcommand].map(str::to_owned);
            two.into_iter().chain(words[1..].iter().cloned()).collect::<Vec<_>>()
        });
        let other_words = in_two_words.or_else(|| with_hyphens(&words));
        let in_other_words = other_words.map(|words| {
            Box::new(Self { keys: keys_of(&words), words, is_prefix: open, in_other_words: None })
        });
        Ok(Self { keys: keys_of(&words), words, is_prefix: open, in_other_words })
    }

    /// Returns how far a line matches this pattern, in a rule with this verdict.
    pub fn matches(&self, line: &str, verdict: Verdict) -> PatternMatch {
        let flat = flatten(line);
        self.matches_within(&CommandLine::parse(line, &flat), verdict, &MatchBudget::for_decision())
    }

    /// Matches a parsed line within the budget of a decision.
    pub(crate) fn matches_within(
        &self,
        line: &CommandLine<'_>,
        verdict: Verdict,
        budget: &MatchBudget,
    ) -> PatternMatch {
        if matches_strictly(verdict) {
            let covered = line.plain().and_then(<[&str]>::split_first);
            return PatternMatch::from_bool(covered.is_some_and(|(called, behind)| {
                self.match_words(called, behind, match_program_exact, budget) == PatternMatch::Yes
            }));
        }
        if self.words.is_empty() {
            return PatternMatch::Yes;
        }
        let own = if line.plain().is_some() {
            self.in_plain_words(line, budget)
        } else {
            self.in_pieces(line, budget)
        };
        let other = self
            .in_other_words
            .as_ref()
            .map_or(PatternMatch::No, |other| other.matches_within(line, verdict, budget));
        let found = own.max(other.min(PatternMatch::Maybe));
        if budget.is_spent() { found.max(PatternMatch::Maybe) } else { found }
    }

    /// Returns how far a simple command matches. The line itself can match with certainty, and a
    /// command inside it only possibly. The effect of the first word on the others is unknown:
    /// `env git push` and `echo git push` look alike.
    fn in_plain_words(&self, line: &CommandLine<'_>, budget: &MatchBudget) -> PatternMatch {
        let as_it_stands = line.first().map_or(PatternMatch::No, |start| {
            self.match_command(start.called, &line.behind(start), budget)
        });
        let mut found =
            if line.is_uncertain() { as_it_stands.max(PatternMatch::Maybe) } else { as_it_stands };
        for start in line.starts(&self.keys) {
            if found >= PatternMatch::Maybe {
                break;
            }
            let other_name = line.sets_alias && self.calls(start.called, budget) > PatternMatch::No;
            let within = if other_name {
                PatternMatch::Maybe
            } else {
                self.match_command(start.called, &line.behind(start), budget)
            };
            found = found.max(within.min(PatternMatch::Maybe));
        }
        found
    }

    /// Returns how far an opaque line matches: with certainty by a command in it, otherwise
    /// possibly.
    fn in_pieces(&self, line: &CommandLine<'_>, budget: &MatchBudget) -> PatternMatch {
        let covers = |start: &CommandStart<'_>| {
            self.match_words(start.called, &line.behind(start), match_program_certain, budget)
                == PatternMatch::Yes
        };
        let runs = |start: &CommandStart<'_>| {
            self.match_command(start.called, &line.behind(start), budget) == PatternMatch::Yes
        };
        let is_found =
            line.starts(&self.keys).any(covers) || line.starts(&self.keys).take(SEARCHED).any(runs);
        if is_found { PatternMatch::Yes } else { PatternMatch::Maybe }
    }

    /// Returns how far a program is the one of this pattern.
    fn calls(&self, called: &str, budget: &MatchBudget) -> PatternMatch {
        self.words
            .first()
            .map_or(PatternMatch::No, |ours| match_program_possible(ours, called, budget))
    }

    /// Returns how far a command matches, with options before and after its subcommand.
    fn match_command(&self, called: &str, theirs: &[&str], budget: &MatchBudget) -> PatternMatch {
        // The cost of looking up programs.
        if !budget.spend(64) {
            return PatternMatch::No;
        }
        let own = match self.calls(called, budget) {
            PatternMatch::No => PatternMatch::No,
            program @ (PatternMatch::Maybe | PatternMatch::Yes) => {
                let command = ProgramWords {
                    called: file_name(called),
                    theirs,
                    program: ProgramSyntax::find(file_name(called)),
                };
                let with_options = match_with_options(
                    self.words.get(1..).unwrap_or_default(),
                    self.is_prefix,
                    &command,
                    budget,
                );
                self.match_words(called, theirs, match_program_possible, budget)
                    .max(with_options.min(program))
            }
        };
        own.max(self.match_joined(called, theirs, budget))
            .max(self.runs_letters(called, theirs, budget))
    }

    /// Matches with option letters that have no hyphen: `tar xf a` might be `tar -x -f a`.
    fn runs_letters(&self, called: &str, theirs: &[&str], budget: &MatchBudget) -> PatternMatch {
        if self.calls(called, budget) == PatternMatch::No {
            return PatternMatch::No;
        }
        let theirs = &theirs[..theirs.len().min(MAX_JOINED_ARGUMENTS)];
        let Some(words) = programs::with_hyphens(file_name(called), theirs)
            .filter(|_| budget.spend(8 * theirs.len() as u64))
        else {
            return PatternMatch::No;
        };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let command = ProgramWords { called: file_name(called), theirs: &words, program: None };
        let with_options = match_with_options(
            self.words.get(1..).unwrap_or_default(),
            self.is_prefix,
            &command,
            budget,
        );
        self.match_words(called, &words, match_program_possible, budget)
            .max(with_options)
            .min(PatternMatch::Maybe)
    }

    /// Matches a program and its subcommand in one word: `git-push` is `git push`.
    fn match_joined(&self, called: &str, theirs: &[&str], budget: &MatchBudget) -> PatternMatch {
        let Some((program, subcommand)) = ProgramSyntax::split_joined(file_name(called)) else {
            return PatternMatch::No;
        };
        if self.calls(program.name, budget) == PatternMatch::No {
            return PatternMatch::No;
        }
        let words: Vec<&str> = [subcommand]
            .into_iter()
            .chain(theirs.iter().copied().take(MAX_JOINED_ARGUMENTS))
            .collect();
        let command = ProgramWords { called: program.name, theirs: &words, program: Some(program) };
        let with_options = match_with_options(
            self.words.get(1..).unwrap_or_default(),
            self.is_prefix,
            &command,
            budget,
        );
        let both = self
            .match_words(program.name, &words, match_program_possible, budget)
            .max(with_options);
        both.min(if program.quirk == ProgramQuirk::Joined {
            PatternMatch::Yes
        } else {
            PatternMatch::Maybe
        })
    }

    /// Returns how far a command matches word by word; `program` compares the programs.
    fn match_words(
        &self,
        called: &str,
        behind: &[&str],
        program: ProgramMatch,
        budget: &MatchBudget,
    ) -> PatternMatch {
        let Some((first, ours)) = self.words.split_first() else { return PatternMatch::Yes };
        let enough =
            if self.is_prefix { behind.len() >= ours.len() } else { behind.len() == ours.len() };
        if enough
            && ours.iter().zip(behind).all(|(ours, theirs)| glob_matches(ours, theirs, budget))
        {
            program(first, called, budget)
        } else {
            PatternMatch::No
        }
    }
}

/// A comparison of the program of a pattern with a word.
type ProgramMatch = fn(&str, &str, &MatchBudget) -> PatternMatch;

/// Compares programs under `allow`: the name has to match exactly, character by character.
fn match_program_exact(pattern: &str, word: &str, budget: &MatchBudget) -> PatternMatch {
    PatternMatch::from_bool(glob_matches(pattern, word, budget))
}

/// Compares programs under `ask` and `deny`, where the path of a program does not matter. If the
/// pattern has a path, another path to a program of the same name might lead to the same file.
fn match_program_possible(pattern: &str, word: &str, budget: &MatchBudget) -> PatternMatch {
    if match_program_certain(pattern, word, budget) == PatternMatch::Yes {
        return PatternMatch::Yes;
    }
    let by_another_path =
        pattern.contains('/') && glob_matches(file_name(pattern), file_name(word), budget);
    if by_another_path || programs::is_same_program(file_name(pattern), file_name(word)) {
        PatternMatch::Maybe
    } else {
        PatternMatch::No
    }
}

/// Compares programs like [`match_program_possible`], without the uncertain matches.
fn match_program_certain(pattern: &str, word: &str, budget: &MatchBudget) -> PatternMatch {
    // The cost of copying a path to normalize it.
    if !budget.spend(16 + 2 * (pattern.len() + word.len()) as u64) {
        return PatternMatch::No;
    }
    let by_its_path = || word.contains('/') || pattern.contains('/');
    let cleaned = || by_its_path() && glob_matches(&clean_path(pattern), &clean_path(word), budget);
    PatternMatch::from_bool(
        glob_matches(pattern, word, budget)
            || glob_matches(pattern, file_name(word), budget)
            || cleaned(),
    )
}

/// Returns the words of a pattern with hyphens added to letters of options; `None` if there are
/// none.
fn with_hyphens(words: &[String]) -> Option<Vec<String>> {
    let (program, behind) = words.split_first()?;
    let behind: Vec<&str> = behind.iter().map(String::as_str).collect();
    let behind = programs::with_hyphens(file_name(program), &behind)?;
    Some(std::iter::once(program.clone()).chain(behind).collect())
}

/// Returns the keys that find the first of these words.
fn keys_of(words: &[String]) -> Vec<String> {
    words
        .first()
        .filter(|program| !program.contains('*'))
        .map_or_else(Vec::new, |program| keys(program))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Normalizes a path by removing `./`, `//` and `x/..`.
pub(super) fn clean_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match parts.last() {
            Some(last) if part == ".." && *last != ".." => {
                parts.pop();
            }
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
