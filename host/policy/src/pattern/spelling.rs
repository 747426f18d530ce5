//! The spellings of an option in a pattern.
//!
//! | pattern | line |
//! |---|---|
//! | `--force` | `--force`, `--force=yes`, `--forc` |
//! | `-rf` | `-rf`, `-fr`, `-r -f`, `-r --force`, `-Rf` |
//! | `--force` of `git push` | `-f`, `--force-with-lease`, `+main` |
//!
//! The table of programs lists options with the same meaning. For a program outside the table, a
//! letter may stand for each long option that begins with it.

use super::command::SEARCHED;
use super::{MatchBudget, glob_matches};
use crate::programs::OptionSpellings;

/// Returns whether an option is among these words, in any of its spellings.
pub(super) fn is_given(
    option: &str,
    words: &[&str],
    spellings: &OptionSpellings,
    budget: &MatchBudget,
) -> bool {
    let words = &words[..words.len().min(SEARCHED)];
    if is_spelled(option, words, spellings, budget) {
        return true;
    }
    // The letters of one word can also be spread over several words.
    let letters =
        option.strip_prefix('-').filter(|letters| letters.len() > 1 && !letters.starts_with('-'));
    letters.is_some_and(|letters| {
        letters.chars().all(|letter| is_spelled(&format!("-{letter}"), words, spellings, budget))
    })
}

fn is_spelled(
    option: &str,
    words: &[&str],
    spellings: &OptionSpellings,
    budget: &MatchBudget,
) -> bool {
    let written = |spelling: &str| words.iter().any(|word| is_written(spelling, word, budget));
    if written(option) {
        return true;
    }
    match spellings {
        OptionSpellings::Known(groups) => groups.others(option).any(written),
        OptionSpellings::Unknown => {
            words.iter().any(|word| budget.spend(2) && begins_alike(option, word))
        }
    }
}

/// Returns whether a word is this option: as written, with a value, shortened, or as a letter among
/// others.
fn is_written(option: &str, word: &str, budget: &MatchBudget) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    if glob_matches(option, word, budget) || glob_matches(option, name, budget) {
        return true;
    }
    let is_shortened = name.starts_with("--") && name.len() > 2 && option.starts_with(name);
    // Some programs accept `-chdir` and `--chdir` as the same option.
    let without_hyphens = (option.trim_start_matches('-'), name.trim_start_matches('-'));
    let is_long = name.starts_with('-')
        && without_hyphens.0.len() > 1
        && without_hyphens.0 == without_hyphens.1;
    is_shortened
        || is_long
        || letter(option).is_some_and(|letter| {
            is_cluster(word) && budget.spend(word.len() as u64) && word[1..].contains(letter)
        })
}

/// Returns whether one text is a single letter and the other a long option that begins with it.
fn begins_alike(option: &str, word: &str) -> bool {
    let first = |long: &str| long.strip_prefix("--").and_then(|long| long.chars().next());
    match (letter(option), first(option)) {
        (Some(letter), _) => first(word).is_some_and(|first| first.eq_ignore_ascii_case(&letter)),
        (None, Some(first)) => {
            is_cluster(word)
                && word[1..].contains([first.to_ascii_lowercase(), first.to_ascii_uppercase()])
        }
        (None, None) => false,
    }
}

/// Returns the letter of an option such as `-x`; `None` for any other text.
fn letter(option: &str) -> Option<char> {
    let mut letters = option.strip_prefix('-')?.chars();
    letters.next().filter(|letter| *letter != '-' && letters.next().is_none())
}

fn is_cluster(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && !word.starts_with("--")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::option_spellings;

    fn is_in(option: &str, line: &str) -> bool {
        let (program, words) = line.split_once(' ').unwrap();
        let words: Vec<&str> = words.split(' ').collect();
        let subcommand = words.first().copied();
        let spellings = option_spellings(program, subcommand);
        is_given(option, &words, &spellings, &MatchBudget::for_decision())
    }

    #[test]
    fn an_option_is_given_by_the_words_that_spell_it() {
        let table = [
            ("-rf", "rm -rf x", true),
            ("-rf", "rm -r -f x", true),
            ("-rf", "rm -r x", false),
            ("-f", "rm x", false),
            ("--all", "git push --all", true),
            ("--all", "git push --branches", true),
            ("--all", "git push -- -a -l", false),
            ("--force", "mytool -f", true),
            ("--force", "mytool -xF", true),
            ("--force", "mytool x", false),
            ("--force", "mytool xf", false),
            ("--force", "mytool -x", false),
            ("-f", "mytool --Force", true),
            ("-f", "mytool --no-force", false),
            ("-f", "mytool force", false),
            ("-xy", "mytool --force", false),
            // The table knows the options of this subcommand, so a letter is no other option.
            ("--mirror", "git push -m", false),
        ];
        for (option, line, expected) in table {
            assert_eq!(is_in(option, line), expected, "{option} in {line}");
        }
    }

    #[test]
    fn an_option_is_one_word_with_hyphens() {
        let table = [
            ("--force", "--force", true),
            ("--force", "--force=yes", true),
            ("--force", "--forc", true),
            ("--force", "--f", true),
            ("--force", "--forced", false),
            ("--*ce", "--force=yes", true),
            ("-x=y", "-x=y", true),
            ("-x=y", "-x=z", false),
            ("--force", "-force", true),
            ("-force", "--force", true),
            ("-force", "-forc", false),
            // The end of the options, the standard input, and operands.
            ("--force", "--", false),
            ("--force", "-", false),
            ("--force", "force", false),
            ("--force", "", false),
            ("-f", "-xf", true),
            ("-f", "-xf=y", true),
            ("-f", "-x", false),
            ("-f", "--f", false),
            ("-f", "--off", false),
            ("-f", "af", false),
            ("-f", "f", false),
            ("-f", "-", false),
            ("--", "-a-b", false),
        ];
        for (option, word, expected) in table {
            let budget = MatchBudget::for_decision();
            assert_eq!(is_written(option, word, &budget), expected, "{option} {word}");
        }
    }

    #[test]
    fn letters_stand_behind_one_hyphen() {
        for (word, expected) in
            [("-x", true), ("-xf", true), ("-", false), ("--", false), ("--x", false), ("x", false)]
        {
            assert_eq!(is_cluster(word), expected, "{word}");
        }
        for (option, expected) in [
            ("-x", Some('x')),
            ("-xf", None),
            ("-", None),
            ("--", None),
            ("--x", None),
            ("x", None),
        ] {
            assert_eq!(letter(option), expected, "{option}");
        }
    }
}
