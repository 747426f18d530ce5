//! A subcommand behind the options of its program.
//!
//! `git -C x push` is a `git push`. Where it is known which options in front of the subcommand take
//! a value, there is one way to read such a line; where it is not, each way counts, and what one of
//! them covers *might* be covered.

use std::collections::BTreeSet;

use super::command::clean_path;
use super::spelling::is_given;
use super::{MatchBudget, PatternMatch, glob_matches};
use crate::policy::programs::{
    ProgramOptionKind, ProgramQuirk, ProgramSyntax, option_kind, option_spellings,
};

/// Words of a line in which a subcommand is looked for. With more words in front of it, nobody can
/// tell.
const MAX_WORDS: usize = 64;
/// Steps that one reading of one word takes, apart from what it compares.
const READING: u64 = 24;

/// A program of a line, and the words behind it.
pub(super) struct ProgramWords<'a> {
    /// The program without its path.
    pub(super) called: &'a str,
    pub(super) theirs: &'a [&'a str],
    pub(super) program: Option<&'static ProgramSyntax>,
}

/// One way to read a line so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LineReading {
    /// The words that are read.
    position: usize,
    /// The operands of the pattern that they are.
    matched: usize,
    /// Whether there are other ways.
    is_ambiguous: bool,
}

/// How far the words behind a program are covered by `ours`, the words of a pattern behind its own,
/// with options before and between them. An option that the pattern names may stand anywhere, in
/// any of its spellings. A pattern that is not open covers options behind its last operand, and no
/// further operand.
pub(super) fn match_with_options(
    ours: &[String],
    open: bool,
    line: &ProgramWords<'_>,
    budget: &MatchBudget,
) -> PatternMatch {
    let ProgramWords { called, theirs, program } = *line;
    let (named, operands): (Vec<&str>, Vec<&str>) =
        ours.iter().map(String::as_str).partition(|word| is_option(word));
    let spellings = option_spellings(called, operands.first().copied());
    // A setting may stand for an option.
    let by_setting = || {
        program.is_some_and(|program| {
            theirs.iter().take(MAX_WORDS).any(|word| program.is_setting(word))
        })
    };
    if ours.is_empty() && open
        || !named.iter().all(|option| is_given(option, theirs, &spellings, budget)) && !by_setting()
    {
        return PatternMatch::No;
    }
    let mut covered = PatternMatch::No;
    let mut readings =
        BTreeSet::from([LineReading { position: 0, matched: 0, is_ambiguous: !named.is_empty() }]);
    // Each step reads on, so that no reading comes twice.
    while let Some(reading) = readings.pop_first() {
        let LineReading { position: at, matched: found, is_ambiguous: is_a_guess } = reading;
        if at >= MAX_WORDS && found < operands.len() || !budget.spend(READING) {
            return covered.max(PatternMatch::Maybe);
        }
        let wanted = operands.get(found).copied();
        if wanted.is_none() && (open || at == theirs.len()) {
            covered = covered.max(if is_a_guess { PatternMatch::Maybe } else { PatternMatch::Yes });
            continue;
        }
        // A star may be meant for several words, or for none.
        if wanted == Some("*") {
            readings.extend([LineReading { matched: found + 1, is_ambiguous: true, ..reading }]);
        }
        let Some(word) = theirs.get(at) else { continue };
        let one_more = LineReading { position: at + 1, ..reading };
        let guess = |reading: LineReading| LineReading { is_ambiguous: true, ..reading };
        if is_option(word) || found == 0 && is_toolchain(word, program) {
            let with_next = LineReading { position: (at + 2).min(theirs.len()), ..reading };
            // Behind a subcommand options are its own, of which nothing is known.
            match option_kind(program.filter(|_| found == 0), word) {
                ProgramOptionKind::Flag if wanted.is_some() => readings.extend([one_more]),
                ProgramOptionKind::Flag => readings.extend([guess(one_more)]),
                ProgramOptionKind::Unknown if is_toolchain(word, program) => {
                    readings.extend([one_more])
                }
                ProgramOptionKind::TakesValue => readings.extend([with_next]),
                ProgramOptionKind::Unknown => readings.extend([one_more, with_next].map(guess)),
            }
            // `-mpip` is `-m pip`.
            if wanted.is_some_and(|wanted| has_value(word, wanted, budget)) {
                readings.extend([guess(LineReading { matched: found + 1, ..one_more })]);
            }
            continue;
        }
        let Some(wanted) = wanted else { continue };
        // `yarn deploy` is `yarn run deploy`.
        if found == 0 && program.is_some_and(|program| program.may_leave_out(wanted, word)) {
            readings.extend([guess(LineReading { matched: 1, ..reading })]);
        }
        let is_behind_left_out = || {
            program.is_some_and(|program| {
                operands[..found].iter().all(|word| program.may_leave_out(word, ""))
            })
        };
        let is_any = || {
            program.is_some_and(|program| {
                matches!(program.quirk, ProgramQuirk::Abbreviated | ProgramQuirk::SeveralOfProjects)
            })
        };
        let is_subcommand = found == 0 || is_any() || is_behind_left_out();
        match match_operand(wanted, word, is_subcommand.then_some(program), budget) {
            PatternMatch::Yes => readings.extend([LineReading { matched: found + 1, ..one_more }]),
            PatternMatch::Maybe => {
                readings.extend([guess(LineReading { matched: found + 1, ..one_more })])
            }
            PatternMatch::No => {}
        }
        if wanted == "*"
            || program.is_some_and(|program| program.takes_several() || program.is_group(word))
        {
            readings.extend([guess(one_more)]);
        }
        let has_settings = || {
            program.is_some_and(|program| theirs[..at].iter().any(|word| program.is_setting(word)))
        };
        if found == 0 && program.is_some_and(|program| program.may_be_alias(word, has_settings())) {
            covered = covered.max(PatternMatch::Maybe);
        }
    }
    covered
}

/// Whether the value of an option, written in one word with it, is the operand that is wanted.
fn has_value(word: &str, wanted: &str, budget: &MatchBudget) -> bool {
    if let Some((_, value)) = word.split_once('=') {
        return glob_matches(wanted, value, budget);
    }
    if word.starts_with("--") || wanted == "*" {
        return false;
    }
    if !wanted.contains('*') {
        return word.len() >= wanted.len() + 2 && word.ends_with(wanted);
    }
    (2..word.len().min(MAX_WORDS))
        .any(|at| word.get(at..).is_some_and(|value| glob_matches(wanted, value, budget)))
}

/// How far a word of a line is the operand that is wanted. For a subcommand, which `of_program`
/// tells, some programs know other words and most know abbreviations.
fn match_operand(
    wanted: &str,
    word: &str,
    of_program: Option<Option<&ProgramSyntax>>,
    budget: &MatchBudget,
) -> PatternMatch {
    if glob_matches(wanted, word, budget) {
        return PatternMatch::Yes;
    }
    if is_same_path(wanted, word, budget) {
        return PatternMatch::Maybe;
    }
    let Some(program) = of_program else { return PatternMatch::No };
    let is_synonym = program.is_some_and(|program| program.is_synonym(wanted, word));
    let is_other_form = || match program.map_or(ProgramQuirk::None, |program| program.quirk) {
        // The pattern can be shortened as well.
        ProgramQuirk::Abbreviated => word.starts_with(wanted),
        ProgramQuirk::SeveralOfProjects => {
            glob_matches(behind_project(wanted), behind_project(word), budget)
        }
        ProgramQuirk::None
        | ProgramQuirk::Joined
        | ProgramQuirk::Toolchain
        | ProgramQuirk::MultipleSubcommands => false,
    };
    PatternMatch::from_bool(is_synonym || wanted.starts_with(word) || is_other_form())
        .min(PatternMatch::Maybe)
}

/// Whether a word can be another path to the file that is wanted: `./manage.py` is `manage.py`, and
/// what a longer path begins with might be the working directory.
fn is_same_path(wanted: &str, word: &str, budget: &MatchBudget) -> bool {
    if wanted.contains('*')
        || !(wanted.contains('/') || word.contains('/'))
        || !budget.spend((wanted.len() + word.len()) as u64)
    {
        return false;
    }
    let (wanted, word) = (clean_path(wanted), clean_path(word));
    let ends_so = |long: &str, short: &str| {
        let is_elsewhere = long.starts_with('/') || long.starts_with("../");
        is_elsewhere
            && !short.is_empty()
            && long.strip_suffix(short).is_some_and(|rest| rest.ends_with('/'))
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

fn is_toolchain(word: &str, program: Option<&ProgramSyntax>) -> bool {
    word.starts_with('+') && program.is_some_and(|program| program.quirk == ProgramQuirk::Toolchain)
}
