//! The patterns of rules. Each kind has a small grammar, and any text outside the grammar is an
//! error.

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

/// The degree to which an action matches a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PatternMatch {
    /// The pattern does not cover the action.
    No,
    /// The pattern might cover the action, which cannot be determined without running it. An action
    /// with a possible match needs approval and is never allowed by it.
    Maybe,
    /// The pattern covers the action.
    Yes,
}

impl PatternMatch {
    fn from_bool(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

/// The error for an invalid pattern, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatternError(pub(super) String);

/// Returns whether an ambiguous pattern covers as little as possible. This holds for `allow`; `ask`
/// and `deny` cover as much as possible.
fn matches_strictly(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Allow => true,
        Verdict::Ask | Verdict::Deny => false,
    }
}

/// Returns the match for an action that was not compared with a pattern completely, in a rule with
/// this verdict.
pub(crate) fn unknown(verdict: Verdict) -> PatternMatch {
    if matches_strictly(verdict) { PatternMatch::No } else { PatternMatch::Maybe }
}

/// Matches a path component or a name against a pattern. `*` matches any number of characters, and
/// `?` matches one.
pub(super) fn glob(pattern: &[char], text: &[char]) -> bool {
    glob_within(pattern, text, &MatchBudget::unlimited())
}

/// Matches like [`glob`] within a work budget. Without remaining steps, nothing matches.
fn glob_within<T: Copy + PartialEq + From<u8>>(
    pattern: &[T],
    text: &[T],
    budget: &MatchBudget,
) -> bool {
    // The usual algorithm with two indices. It backtracks only to the last star, so the work is at
    // most the length of the text times the longest part between two stars.
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

/// Matches a word of a command, which is ASCII, like [`glob_within`].
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
