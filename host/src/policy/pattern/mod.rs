//! Patterns of rules, each a small grammar of its own. What a grammar does not have is an error and never a guess.

mod base_url;
mod command;
mod host;
mod options;
mod path;
mod request;

pub use base_url::{BaseUrl, BaseUrlProblem};
pub use command::CommandPattern;
pub use host::{HostAddress, HostPattern};
pub use path::PathPattern;
pub(super) use path::{Reach, walk};
pub use request::RequestPattern;

use super::Verdict;

/// How far something falls under a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    /// Not at all.
    No,
    /// Nobody can tell without doing it. That is enough to ask, and never enough to allow.
    Perhaps,
    /// Yes.
    Yes,
}

impl Match {
    fn certain(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

/// A text is no pattern, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatternProblem(pub(super) String);

/// Which way a rule leans when a pattern can be read in two ways: an `allow` covers the least, the others the most.
fn leans_strict(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Allow => true,
        Verdict::Ask | Verdict::Deny => false,
    }
}

/// A part of a path, of a command or of a name against a pattern in which `*` stands for any characters and `?` for one.
pub(super) fn glob(pattern: &[char], text: &[char]) -> bool {
    // The usual two-pointer walk: linear but for the last star, so that no pattern of a stranger takes for ever.
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == '?' || c == text[t] => {
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
    pattern[p..].iter().all(|&c| c == '*')
}

/// The same for texts.
fn is(pattern: &str, word: &str) -> bool {
    glob(&chars(pattern), &chars(word))
}

fn chars(text: &str) -> Vec<char> {
    text.chars().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_within_a_word() {
        let table =
            [("", "", true), ("*", "", true), ("a*c", "abbc", true), ("a*c", "ab", false), ("a?c", "abc", true), ("*a*a", "aba", true)];
        for (pattern, text, expected) in table {
            assert_eq!(glob(&chars(pattern), &chars(text)), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn a_glob_of_many_stars_ends() {
        let (pattern, text) = ("*a".repeat(200), "a".repeat(20_000) + "b");
        assert!(!glob(&chars(&pattern), &chars(&text)));
    }
}
