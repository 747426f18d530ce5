//! Matching of a subcommand after the options of its program.
//!
//! `git -C x push` is a `git push`. If the program's options are known, there is one way to read
//! such a line. Otherwise every possible reading is tried, and a match of one of them is a *maybe*.

use std::collections::BTreeSet;

use super::command::clean_path;
use super::spelling::is_given;
use super::{MatchBudget, PatternMatch, glob_matches};
use crate::programs::{
    ProgramOptionKind, ProgramQuirk, ProgramSyntax, option_kind, option_spellings,
};

/// The number of words in which a subcommand is searched. With more words before it, the result is
/// [`PatternMatch::Maybe`].
const MAX_WORDS: usize = 64;
/// The steps for one reading of one word, without the comparison.
const READING: u64 = 24;

/// A program in a line, with the words after it.
pub(super) struct ProgramWords<'a> {
    /// The program as called, without its path.
    pub(super) called: &'a str,
    pub(super) theirs: &'a [&'a str],
    pub(super) program: Option<&'static ProgramSyntax>,
}

/// The state of one possible reading of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LineReading {
    /// The number of words read so far.
    position: usize,
    /// The number of operands of the pattern matched so far.
    matched: usize,
    /// Whether the line has other possible readings.
    is_ambiguous: bool,
}

/// Returns how far the words after a program match `ours`, the words of a pattern after its
/// program.
///
/// Options can occur before and between the operands. An option of the pattern can occur anywhere,
/// in any of its spellings. A pattern without a final `*` also covers options after its last
/// operand, but no further operand.
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
    // A setting can have the same effect as an option.
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
    // Each step extends a reading, so no reading occurs twice.
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
        // A star can match several words or none.
        if wanted == Some("*") {
            readings.extend([LineReading { matched: found + 1, is_ambiguous: true, ..reading }]);
        }
        let Some(word) = theirs.get(at) else { continue };
        let one_more = LineReading { position: at + 1, ..reading };
        let guess = |reading: LineReading| LineReading { is_ambiguous: true, ..reading };
        if is_option(word) || found == 0 && is_toolchain(word, program) {
            let with_next = LineReading { position: (at + 2).min(theirs.len()), ..reading };
            // Options after a subcommand belong to the subcommand, and the table does not describe
            // them.
            match option_kind(program.filter(|_| found == 0), word) {
                ProgramOptionKind::Flag if wanted.is_some() => readings.extend([one_more]),
                ProgramOptionKind::Flag => readings.extend([guess(one_more)]),
                ProgramOptionKind::Unknown if is_toolchain(word, program) => {
                    readings.extend([one_more])
                }
                ProgramOptionKind::TakesValue => readings.extend([with_next]),
                ProgramOptionKind::Unknown => readings.extend([one_more, with_next].map(guess)),
            }
            // `-mpip` means `-m pip`.
            if wanted.is_some_and(|wanted| has_value(word, wanted, budget)) {
                readings.extend([guess(LineReading { matched: found + 1, ..one_more })]);
            }
            continue;
        }
        let Some(wanted) = wanted else { continue };
        // `yarn deploy` means `yarn run deploy`.
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

/// Returns whether a word contains an option and its value, and the value is the wanted operand.
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

/// Returns how far a word of a line is the wanted operand. `of_program` is present if the operand
/// can be a subcommand. Some programs have synonyms of subcommands, and most accept abbreviations.
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
        // The word can also be longer than an abbreviated pattern.
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

/// Returns whether a word can be another path to the wanted file. `./manage.py` is `manage.py`, and
/// the beginning of a longer path might be the working directory.
fn is_same_path(wanted: &str, word: &str, budget: &MatchBudget) -> bool {
    if !can_be_paths(wanted, word) || !budget.spend((wanted.len() + word.len()) as u64) {
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

/// Returns whether two different words can be paths to one file: without a slash or with a star,
/// only the text itself counts.
fn can_be_paths(wanted: &str, word: &str) -> bool {
    !wanted.contains('*') && (wanted.contains('/') || word.contains('/'))
}

/// Returns a subcommand without the project before it.
fn behind_project(word: &str) -> &str {
    word.rsplit(':').next().unwrap_or(word)
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

fn is_toolchain(word: &str, program: Option<&ProgramSyntax>) -> bool {
    word.starts_with('+') && program.is_some_and(|program| program.quirk == ProgramQuirk::Toolchain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::pattern::CommandPattern;

    #[track_caller]
    fn is(pattern: &str, line: &str, expected: PatternMatch) {
        let pattern = CommandPattern::parse(pattern).expect(pattern);
        assert_eq!(pattern.matches(line, Verdict::Deny), expected, "{pattern:?} on {line}");
    }

    #[test]
    fn a_star_between_the_operands_stands_for_any_number_of_words() {
        is("gcloud * deploy *", "gcloud run deploy", PatternMatch::Yes);
        is("gcloud * deploy *", "gcloud deploy x", PatternMatch::Maybe);
        is("gcloud * deploy *", "gcloud run services deploy", PatternMatch::Maybe);
        is("gcloud run * deploy *", "gcloud run deploy x", PatternMatch::Maybe);
        is("gcloud run * deploy *", "gcloud --project p run a deploy", PatternMatch::Yes);
        is("gcloud * deploy *", "gcloud run services list", PatternMatch::No);
    }

    #[test]
    fn an_option_behind_the_last_operand_is_a_maybe() {
        is("git", "git", PatternMatch::Yes);
        is("git", "git --no-pager", PatternMatch::Maybe);
        is("npm publish", "npm publish --access=public", PatternMatch::Maybe);
        is("npm publish", "npm publish --access=public x", PatternMatch::No);
        is("npm publish *", "npm --access=public publish", PatternMatch::Yes);
    }

    #[test]
    fn only_a_search_for_operands_ends_after_64_words() {
        let options = |count: usize| " --a=b".repeat(count);
        let line = |before, after| {
            let (before, after) = (options(before), options(after));
            move |end: &str| format!("npm{before} publish{after}{end}")
        };
        is("npm publish", &line(0, 70)(""), PatternMatch::Maybe);
        is("npm publish", &line(0, 70)(" x"), PatternMatch::No);
        is("npm publish *", &line(63, 0)(" x"), PatternMatch::Yes);
        is("npm publish *", &line(64, 0)(" x"), PatternMatch::Maybe);
        is("npm deploy *", &line(64, 0)(" x"), PatternMatch::Maybe);
    }

    #[test]
    fn an_abbreviation_might_be_the_subcommand_of_any_program() {
        is("mytool deploy *", "mytool dep", PatternMatch::Maybe);
        is("mytool deploy *", "mytool deployed", PatternMatch::No);
        // Only a subcommand is abbreviated, and not the words behind it.
        is("mytool deploy all *", "mytool deploy a", PatternMatch::No);
        is("ip link delete *", "ip link d", PatternMatch::Maybe);
    }

    #[test]
    fn only_a_word_with_a_plus_selects_a_toolchain() {
        is("cargo publish *", "cargo +nightly publish", PatternMatch::Yes);
        is("cargo publish *", "cargo test publish", PatternMatch::No);
        is("cargo publish *", "cargo publish +nightly", PatternMatch::Yes);
        is("rustup update *", "rustup show update", PatternMatch::No);
        is("npm publish *", "npm +nightly publish", PatternMatch::No);
    }

    #[test]
    fn a_lone_hyphen_is_an_operand() {
        is("git checkout -", "git -C x checkout -", PatternMatch::Yes);
        is("git checkout -", "git -C x checkout", PatternMatch::No);
        is("mytool deploy *", "mytool - deploy", PatternMatch::No);
    }

    #[test]
    fn the_value_of_an_option_in_the_same_word_might_be_the_operand() {
        let table = [
            ("--module=pip", "pip", true),
            ("--module=pip3", "pip", false),
            ("--module=pip", "p*", true),
            ("-mpip", "pip", true),
            ("-Impip", "pip", true),
            ("-mpip", "p*", true),
            ("-mpip", "x*", false),
            ("-mpip", "twine", false),
            // The first letter is an option, and not a part of its value.
            ("-pip", "pip", false),
            ("-pip", "p*p", false),
            // A long option has its value behind `=`.
            ("--mpip", "pip", false),
            ("--mpip", "*pip", false),
            // A star is about words of their own.
            ("-mpip", "*", false),
        ];
        for (word, wanted, expected) in table {
            let budget = MatchBudget::for_decision();
            assert_eq!(has_value(word, wanted, &budget), expected, "{word} {wanted}");
        }
    }

    #[test]
    fn a_word_might_be_another_path_to_a_file() {
        let table = [
            ("manage.py", "./manage.py", true),
            ("./manage.py", "manage.py", true),
            ("manage.py", "a/../manage.py", true),
            ("manage.py", "/w/manage.py", true),
            ("/w/manage.py", "manage.py", true),
            ("../w/manage.py", "manage.py", true),
            ("manage.py", "../w/manage.py", true),
            ("w/manage.py", "manage.py", false),
            ("manage.py", "w/manage.py", false),
            ("manage.py", "/w/xmanage.py", false),
            ("manage.py", "/w/manage.py/x", false),
            ("a/manage.py", "b/manage.py", false),
            ("/", ".", false),
            ("./", "/w", false),
        ];
        for (wanted, word, expected) in table {
            let budget = MatchBudget::for_decision();
            assert_eq!(is_same_path(wanted, word, &budget), expected, "{wanted} {word}");
        }
        let spent = MatchBudget::for_decision();
        while spent.spend(1_000) {}
        assert!(!is_same_path("manage.py", "./manage.py", &spent), "with no steps left");
    }
}
