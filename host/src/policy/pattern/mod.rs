//! Patterns of rules, each a small grammar of its own. What a grammar does not have is an error and
//! never a guess.

mod base_url;
mod budget;
mod command;
mod host;
mod options;
mod path;
mod request;
mod spelling;

pub use base_url::{BaseUrl, BaseUrlError};
#[cfg(test)]
pub(super) use budget::MOST_STEPS;
pub(super) use budget::MatchBudget;
pub use command::CommandPattern;
pub(super) use command::{CommandLine, flatten};
pub use host::{HostAddress, HostPattern};
pub use path::PathPattern;
pub(super) use path::{PatternReach, match_components};
pub use request::RequestPattern;

use super::Verdict;

/// How far something falls under a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PatternMatch {
    /// Not at all.
    No,
    /// Nobody can tell without doing it. That is enough to ask, and never enough to allow.
    Maybe,
    /// Yes.
    Yes,
}

impl PatternMatch {
    fn from_bool(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

/// A text is no pattern, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatternError(pub(super) String);

/// Which way a rule leans when a pattern can be read in two ways: an `allow` covers the least, the
/// others the most.
fn matches_strictly(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Allow => true,
        Verdict::Ask | Verdict::Deny => false,
    }
}

/// What a rule with this verdict makes of an action that was not held against its pattern to the
/// end.
pub(in crate::policy) fn unknown(verdict: Verdict) -> PatternMatch {
    if matches_strictly(verdict) { PatternMatch::No } else { PatternMatch::Maybe }
}

/// A part of a path or of a name against a pattern in which `*` stands for any characters and `?`
/// for one.
pub(super) fn glob(pattern: &[char], text: &[char]) -> bool {
    glob_within(pattern, text, &MatchBudget::unlimited())
}

/// The same with a bound on the work. With no steps left nothing matches.
fn glob_within<T: Copy + PartialEq + From<u8>>(
    pattern: &[T],
    text: &[T],
    budget: &MatchBudget,
) -> bool {
    // The usual two-pointer walk. It goes back to the last star only, so that the work is at most
    // the length of the text times the longest part between two stars.
    let (many, one) = (T::from(b'*'), T::from(b'?'));
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        if !budget.spend(1) {
            return false;
        }
        match pattern.get(p) {
            Some(&c) if c == many => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == one || c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == many)
}

/// The same for words of commands, which are ASCII.
fn glob_matches(pattern: &str, word: &str, budget: &MatchBudget) -> bool {
    budget.spend(4) && glob_within(pattern.as_bytes(), word.as_bytes(), budget)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chars(text: &str) -> Vec<char> {
        text.chars().collect()
    }

    #[test]
    fn globs_within_a_word() {
        let table = [
            ("", "", true),
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "ab", false),
            ("a?c", "abc", true),
            ("*a*a", "aba", true),
        ];
        for (pattern, text, expected) in table {
            assert_eq!(glob(&chars(pattern), &chars(text)), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn a_glob_of_many_stars_ends() {
        let (pattern, text) = ("*a".repeat(200), "a".repeat(20_000) + "b");
        assert!(!glob(&chars(&pattern), &chars(&text)));
    }

    #[test]
    fn a_glob_stops_with_its_budget() {
        let budget = MatchBudget::for_decision();
        let (pattern, text) = ("*".to_owned() + &"a".repeat(2_000) + "b", "a".repeat(100_000));
        assert!(!glob_matches(&pattern, &text, &budget) && budget.is_spent());
        assert_eq!(budget.used(), MOST_STEPS);
        assert!(!glob_matches("a", "a", &budget), "with no steps left nothing matches");
    }
}
