//! A subcommand behind the options of its program.
//!
//! `git -C x push` is a `git push`. Where it is known which options in front of the subcommand take a value, there is one way to
//! read such a line; where it is not, each way counts, and what one of them covers *might* be covered.

use std::collections::BTreeSet;

use super::command::cleaned;
use super::spelling::is_given;
use super::{Match, MatchBudget, is};
use crate::policy::programs::{OptionKind, Program, Quirk, option_kind, option_spellings};

/// Words of a line in which a subcommand is looked for. With more words in front of it, nobody can tell.
const MOST_WORDS: usize = 64;
/// Steps that one reading of one word takes, apart from what it compares.
const READING: u64 = 24;

/// A program of a line, and the words behind it.
pub(super) struct Behind<'a> {
    /// The program without its path.
    pub(super) called: &'a str,
    pub(super) theirs: &'a [&'a str],
    pub(super) program: Option<&'static Program>,
}

/// One way to read a line so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reading {
    /// The words that are read.
    at: usize,
    /// The operands of the pattern that they are.
    found: usize,
    /// Whether there are other ways.
    is_a_guess: bool,
}

/// How far the words behind a program are covered by `ours`, the words of a pattern behind its own, with options before and between
/// them. An option that the pattern names may stand anywhere, in any of its spellings. A pattern that is not open covers options
/// behind its last operand, and no further operand.
pub(super) fn covers_behind_options(ours: &[String], open: bool, line: &Behind<'_>, budget: &MatchBudget) -> Match {
    let Behind { called, theirs, program } = *line;
    let (named, operands): (Vec<&str>, Vec<&str>) = ours.iter().map(String::as_str).partition(|word| is_option(word));
    let spellings = option_spellings(called, operands.first().copied());
    // A setting may stand for an option.
    let by_setting = || program.is_some_and(|program| theirs.iter().take(MOST_WORDS).any(|word| program.is_setting(word)));
    if ours.is_empty() && open || !named.iter().all(|option| is_given(option, theirs, &spellings, budget)) && !by_setting() {
        return Match::No;
    }
    let mut covered = Match::No;
    let mut readings = BTreeSet::from([Reading { at: 0, found: 0, is_a_guess: !named.is_empty() }]);
    // Each step reads on, so that no reading comes twice.
    while let Some(reading) = readings.pop_first() {
        let Reading { at, found, is_a_guess } = reading;
        if at >= MOST_WORDS && found < operands.len() || !budget.spend(READING) {
            return covered.max(Match::Perhaps);
        }
        let wanted = operands.get(found).copied();
        if wanted.is_none() && (open || at == theirs.len()) {
            covered = covered.max(if is_a_guess { Match::Perhaps } else { Match::Yes });
            continue;
        }
        // A star may be meant for several words, or for none.
        if wanted == Some("*") {
            readings.extend([Reading { found: found + 1, is_a_guess: true, ..reading }]);
        }
        let Some(word) = theirs.get(at) else { continue };
        let one_more = Reading { at: at + 1, ..reading };
        let guess = |reading: Reading| Reading { is_a_guess: true, ..reading };
        if is_option(word) || found == 0 && is_toolchain(word, program) {
            let with_next = Reading { at: (at + 2).min(theirs.len()), ..reading };
            // Behind a subcommand options are its own, of which nothing is known.
            match option_kind(program.filter(|_| found == 0), word) {
                OptionKind::Alone if wanted.is_some() => readings.extend([one_more]),
                OptionKind::Alone => readings.extend([guess(one_more)]),
                OptionKind::Unknown if is_toolchain(word, program) => readings.extend([one_more]),
                OptionKind::WithNext => readings.extend([with_next]),
                OptionKind::Unknown => readings.extend([one_more, with_next].map(guess)),
            }
            // `-mpip` is `-m pip`.
            if wanted.is_some_and(|wanted| has_value(word, wanted, budget)) {
                readings.extend([guess(Reading { found: found + 1, ..one_more })]);
            }
            continue;
        }
        let Some(wanted) = wanted else { continue };
        // `yarn deploy` is `yarn run deploy`.
        if found == 0 && program.is_some_and(|program| program.may_leave_out(wanted, word)) {
            readings.extend([guess(Reading { found: 1, ..reading })]);
        }
        let is_behind_left_out = || program.is_some_and(|program| operands[..found].iter().all(|word| program.may_leave_out(word, "")));
        let is_any = || program.is_some_and(|program| matches!(program.quirk, Quirk::Abbreviated | Quirk::SeveralOfProjects));
        let is_subcommand = found == 0 || is_any() || is_behind_left_out();
        match names(wanted, word, is_subcommand.then_some(program), budget) {
            Match::Yes => readings.extend([Reading { found: found + 1, ..one_more }]),
            Match::Perhaps => readings.extend([guess(Reading { found: found + 1, ..one_more })]),
            Match::No => {}
        }
        if wanted == "*" || program.is_some_and(|program| program.takes_several() || program.is_group(word)) {
            readings.extend([guess(one_more)]);
        }
        let has_settings = || program.is_some_and(|program| theirs[..at].iter().any(|word| program.is_setting(word)));
        if found == 0 && program.is_some_and(|program| program.may_be_alias(word, has_settings())) {
            covered = covered.max(Match::Perhaps);
        }
    }
    covered
}

/// Whether the value of an option, written in one word with it, is the operand that is wanted.
fn has_value(word: &str, wanted: &str, budget: &MatchBudget) -> bool {
    if let Some((_, value)) = word.split_once('=') {
        return is(wanted, value, budget);
    }
    if word.starts_with("--") || wanted == "*" {
        return false;
    }
    if !wanted.contains('*') {
        return word.len() >= wanted.len() + 2 && word.ends_with(wanted);
    }
    (2..word.len().min(MOST_WORDS)).any(|at| word.get(at..).is_some_and(|value| is(wanted, value, budget)))
}

/// How far a word of a line is the operand that is wanted. For a subcommand, which `of_program` tells, some programs know other words
/// and most know abbreviations.
fn names(wanted: &str, word: &str, of_program: Option<Option<&Program>>, budget: &MatchBudget) -> Match {
    if is(wanted, word, budget) {
        return Match::Yes;
    }
    if is_same_path(wanted, word, budget) {
        return Match::Perhaps;
    }
    let Some(program) = of_program else { return Match::No };
    let is_synonym = program.is_some_and(|program| program.is_synonym(wanted, word));
    let is_other_form = || match program.map_or(Quirk::None, |program| program.quirk) {
        // The pattern can be shortened as well.
        Quirk::Abbreviated => word.starts_with(wanted),
        Quirk::SeveralOfProjects => is(behind_project(wanted), behind_project(word), budget),
        Quirk::None | Quirk::Joined | Quirk::Toolchain | Quirk::Several => false,
    };
    Match::certain(is_synonym || wanted.starts_with(word) || is_other_form()).min(Match::Perhaps)
}

/// Whether a word can be another path to the file that is wanted: `./manage.py` is `manage.py`, and what a longer path begins with
/// might be the working directory.
fn is_same_path(wanted: &str, word: &str, budget: &MatchBudget) -> bool {
    if wanted.contains('*') || !(wanted.contains('/') || word.contains('/')) || !budget.spend((wanted.len() + word.len()) as u64) {
        return false;
    }
    let (wanted, word) = (cleaned(wanted), cleaned(word));
    let ends_so = |long: &str, short: &str| {
        let is_elsewhere = long.starts_with('/') || long.starts_with("../");
        is_elsewhere && !short.is_empty() && long.strip_suffix(short).is_some_and(|rest| rest.ends_with('/'))
    };
    wanted == word || ends_so(&word, &wanted) || ends_so(&wanted, &word)
}

/// A subcommand without the project that it is for.
fn behind_project(word: &str) -> &str {
    word.rsplit(':').next().unwrap_or(word)
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

fn is_toolchain(word: &str, program: Option<&Program>) -> bool {
    word.starts_with('+') && program.is_some_and(|program| program.quirk == Quirk::Toolchain)
}
