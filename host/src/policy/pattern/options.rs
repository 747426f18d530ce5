//! A subcommand behind the options of its program.
//!
//! `git -C x push` is a `git push`. Where it is known which options in front of the subcommand take a value, there is one way to
//! read such a line; where it is not, each way counts, and what one of them covers *might* be covered.

use std::collections::BTreeSet;

use super::{Match, is};
use crate::policy::programs::{OptionKind, Program, Quirk, option_kind};

/// Words of a line in which a subcommand is looked for. With more words in front of it, nobody can tell.
const MOST_WORDS: usize = 64;

/// Words of a line in which an option is looked for that a pattern names: as many as are looked through for the command.
const MOST_SEARCHED: usize = super::command::SEARCHED;

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

/// How far `theirs`, the words behind a program, are covered by `ours`, the words of a pattern behind its own, with options
/// before and between them. An option that the pattern names may stand anywhere.
pub(super) fn covers_behind_options(ours: &[String], open: bool, theirs: &[&str], program: Option<&Program>) -> Match {
    let (named, operands): (Vec<&str>, Vec<&str>) = ours.iter().map(String::as_str).partition(|word| is_option(word));
    if ours.is_empty() || !named.iter().all(|option| is_given(option, theirs)) {
        return Match::No;
    }
    let mut covered = Match::No;
    let mut readings = BTreeSet::from([Reading { at: 0, found: 0, is_a_guess: !named.is_empty() }]);
    // Each step reads on, so that no reading comes twice.
    while let Some(reading) = readings.pop_first() {
        let Reading { at, found, is_a_guess } = reading;
        let Some(wanted) = operands.get(found) else {
            let rest = || theirs[at..].iter().all(|word| named.iter().any(|option| is(option, word)));
            if open || rest() {
                covered = covered.max(if is_a_guess { Match::Perhaps } else { Match::Yes });
            }
            continue;
        };
        let Some(word) = theirs.get(at) else { continue };
        if at >= MOST_WORDS {
            return covered.max(Match::Perhaps);
        }
        let one_more = Reading { at: at + 1, ..reading };
        if is_option(word) || found == 0 && is_toolchain(word, program) {
            let with_next = Reading { at: (at + 2).min(theirs.len()), ..reading };
            // Behind a subcommand options are its own, of which nothing is known.
            match option_kind(program.filter(|_| found == 0), word) {
                OptionKind::Alone => readings.extend([one_more]),
                OptionKind::Unknown if is_toolchain(word, program) => readings.extend([one_more]),
                OptionKind::WithNext => readings.extend([with_next]),
                OptionKind::Unknown => readings.extend([one_more, with_next].map(|reading| Reading { is_a_guess: true, ..reading })),
            }
            continue;
        }
        match names(wanted, word, (found == 0).then_some(program)) {
            Match::Yes => readings.extend([Reading { found: found + 1, ..one_more }]),
            Match::Perhaps => readings.extend([Reading { found: found + 1, is_a_guess: true, ..one_more }]),
            Match::No => {}
        }
        if program.is_some_and(|program| program.quirk == Quirk::Several || program.is_group(word)) {
            readings.extend([Reading { is_a_guess: true, ..one_more }]);
        }
        if found == 0 && program.is_some_and(|program| program.may_be_alias(word)) {
            covered = covered.max(Match::Perhaps);
        }
    }
    covered
}

/// How far a word of a line is the operand that is wanted. For a subcommand, which `of_program` tells, some programs know other words
/// and most know abbreviations.
fn names(wanted: &str, word: &str, of_program: Option<Option<&Program>>) -> Match {
    if is(wanted, word) {
        return Match::Yes;
    }
    let Some(program) = of_program else { return Match::No };
    let is_synonym = program.is_some_and(|program| program.is_synonym(wanted, word));
    if is_synonym || wanted.starts_with(word) { Match::Perhaps } else { Match::No }
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

fn is_toolchain(word: &str, program: Option<&Program>) -> bool {
    word.starts_with('+') && program.is_some_and(|program| program.quirk == Quirk::Toolchain)
}

/// Whether an option is among these words: as it is written, with a value, shortened, or as a letter among others.
fn is_given(option: &str, words: &[&str]) -> bool {
    let options = || words.iter().take(MOST_SEARCHED).filter(|word| is_option(word));
    let name = |word: &str| word.split_once('=').map_or(word, |(name, _)| name).to_owned();
    let is_it = |word: &&&str| {
        let name = name(word);
        is(option, word) || is(option, &name) || name.starts_with("--") && name.len() > 2 && option.starts_with(&name)
    };
    if options().any(|word| is_it(&word)) {
        return true;
    }
    let letters = option.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    letters.is_some_and(|letters| letters.chars().all(|letter| options().any(|word| !word.starts_with("--") && word[1..].contains(letter))))
}
