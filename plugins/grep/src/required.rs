//! What every match must contain, so that the host can pass over files without it before they cross
//! into the plugin.
//!
//! Found in the regular expression that the matcher is built from, after its flags were applied:
//! what is said here is what the engine does. A part of the expression is either *exact*, if it
//! matches nothing but a few strings, or it has at most a *best* set of strings of which each of
//! its matches contains one.

use std::cmp::Reverse;

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::Input;

/// The host takes 64 strings. More than a few select badly and cost a slower search.
const MAX_STRINGS: usize = 16;
/// In bytes. A longer string selects no better.
const MAX_LENGTH: usize = 32;
/// In bytes. A shorter string is in nearly every file.
const MIN_LENGTH: usize = 2;
/// How many characters of a class are taken for alternatives.
const MAX_CLASS: u32 = 4;

/// One of these strings is in every match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Required {
    pub(crate) strings: Vec<Vec<u8>>,
    /// Ignoring the case of ASCII letters.
    pub(crate) ignore_case: bool,
}

impl Required {
    /// Nothing if there is no such set, or none that is worth it.
    pub(crate) fn of(input: &Input) -> Option<Self> {
        let escaped = input.fixed_strings.then(|| regex_syntax::escape(&input.pattern));
        let hir = ParserBuilder::new()
            .utf8(false)
            .case_insensitive(input.ignore_case)
            .multi_line(true)
            .dot_matches_new_line(input.multiline)
            .build()
            .parse(escaped.as_deref().unwrap_or(&input.pattern))
            .ok()?;
        let mut found = analyse(&hir).best()?;
        for string in &mut found.strings {
            string.truncate(MAX_LENGTH);
        }
        found.strings.sort();
        found.strings.dedup();
        (found.shortest() >= MIN_LENGTH).then_some(found)
    }

    fn one(string: &[u8]) -> Self {
        Self { strings: vec![string.to_vec()], ignore_case: false }
    }

    fn shortest(&self) -> usize {
        self.strings.iter().map(Vec::len).min().unwrap_or_default()
    }

    /// Each of these strings followed by each of those.
    fn then(&self, next: &Self) -> Option<Self> {
        if self.strings.len() * next.strings.len() > MAX_STRINGS {
            return None;
        }
        let strings = self
            .strings
            .iter()
            .flat_map(|a| next.strings.iter().map(|b| [a.as_slice(), b].concat()));
        Some(Self { strings: strings.collect(), ignore_case: self.ignore_case || next.ignore_case })
    }

    /// All of these strings and all of those. Ignoring case where it was not asked for lets more
    /// files pass, and none less.
    fn or(mut self, other: Self) -> Option<Self> {
        self.strings.extend(other.strings);
        self.ignore_case |= other.ignore_case;
        (self.strings.len() <= MAX_STRINGS).then_some(self)
    }

    /// Length counts as long as it still selects; then fewer strings are searched for faster.
    fn worth(&self) -> (usize, Reverse<usize>) {
        (self.shortest().min(8), Reverse(self.strings.len()))
    }
}

/// What is known about a part of the expression.
#[derive(Debug, Default)]
struct Part {
    exact: Option<Required>,
    best: Option<Required>,
}

impl Part {
    fn exact(exact: Required) -> Self {
        Self { exact: Some(exact), best: None }
    }

    fn best(self) -> Option<Required> {
        better(self.exact, self.best)
    }
}

fn better(a: Option<Required>, b: Option<Required>) -> Option<Required> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.worth() > a.worth() { b } else { a }),
        (a, b) => a.or(b),
    }
}

fn analyse(hir: &Hir) -> Part {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Part::exact(Required::one(b"")),
        HirKind::Literal(literal) => Part::exact(Required::one(&literal.0)),
        HirKind::Class(class) => Part { exact: members(class), best: None },
        HirKind::Capture(capture) => analyse(&capture.sub),
        // What need not occur says nothing; what occurs several times occurs at least once.
        HirKind::Repetition(repetition) if repetition.min == 0 => Part::default(),
        HirKind::Repetition(repetition) => {
            Part { exact: None, best: analyse(&repetition.sub).best() }
        }
        HirKind::Concat(parts) => sequence(parts),
        HirKind::Alternation(parts) => alternatives(parts),
    }
}

/// Parts that are exact grow together into one longer run; any other ends the run.
fn sequence(parts: &[Hir]) -> Part {
    let mut run = Required::one(b"");
    let mut best = None;
    let mut is_whole = true;
    for part in parts.iter().map(analyse) {
        match part.exact.as_ref().and_then(|exact| run.then(exact)) {
            Some(longer) => run = longer,
            None => {
                is_whole = false;
                best = better(best, better(Some(run), part.best));
                run = part.exact.unwrap_or_else(|| Required::one(b""));
            }
        }
    }
    if is_whole { Part::exact(run) } else { Part { exact: None, best: better(best, Some(run)) } }
}

/// Each alternative must have its strings.
fn alternatives(parts: &[Hir]) -> Part {
    let parts: Vec<Part> = parts.iter().map(analyse).collect();
    let exact = union(parts.iter().map(|part| part.exact.clone()));
    if exact.is_some() {
        Part { exact, best: None }
    } else {
        Part { exact, best: union(parts.into_iter().map(Part::best)) }
    }
}

fn union(mut sets: impl Iterator<Item = Option<Required>>) -> Option<Required> {
    let first = sets.next()??;
    sets.try_fold(first, |all, set| all.or(set?))
}

/// The members of a small class. An ASCII letter in both cases is one string without case.
///
/// Where a letter's cases are not only ASCII, as with `k` and the Kelvin sign, the host's way to
/// ignore case would miss one: such a class is not taken.
fn members(class: &Class) -> Option<Required> {
    let members: Vec<char> = match class {
        Class::Unicode(class) => {
            let size: u32 = class
                .ranges()
                .iter()
                .map(|range| u32::from(range.end()) - u32::from(range.start()) + 1)
                .sum();
            (size <= MAX_CLASS).then(|| {
                class.ranges().iter().flat_map(|range| range.start()..=range.end()).collect()
            })
        }
        Class::Bytes(class) => {
            let size: u32 =
                class.ranges().iter().map(|range| u32::from(range.end() - range.start()) + 1).sum();
            let bytes = || class.ranges().iter().flat_map(|range| range.start()..=range.end());
            (size <= MAX_CLASS && bytes().all(|byte| byte.is_ascii()))
                .then(|| bytes().map(char::from).collect())
        }
    }?;
    match members.as_slice() {
        [] => None,
        [upper, lower] if upper.is_ascii_uppercase() && upper.to_ascii_lowercase() == *lower => {
            Some(Required { strings: vec![lower.to_string().into_bytes()], ignore_case: true })
        }
        _ if members.iter().all(char::is_ascii) => Some(Required {
            strings: members.iter().map(|c| c.to_string().into_bytes()).collect(),
            ignore_case: false,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use grep_matcher::Matcher;

    use super::*;
    use crate::pattern;

    fn required(pattern: &str, ignore_case: bool) -> Option<(Vec<String>, bool)> {
        let input = Input { ignore_case, ..Input::of(pattern) };
        Required::of(&input).map(|required| {
            let strings = required
                .strings
                .into_iter()
                .map(|string| String::from_utf8_lossy(&string).into_owned());
            (strings.collect(), required.ignore_case)
        })
    }

    fn strings(pattern: &str) -> Vec<String> {
        required(pattern, false).map(|(strings, _)| strings).unwrap_or_default()
    }

    #[test]
    fn what_must_be_there_is_found() {
        assert_eq!(strings("needle"), ["needle"]);
        assert_eq!(strings(r"\w+Error\("), ["Error("]);
        assert_eq!(strings(r"^\s*fn (\w+)_test"), ["_test"]);
        assert_eq!(strings("foo|bar"), ["bar", "foo"]);
        assert_eq!(strings("(foo|bar)_baz"), ["bar_baz", "foo_baz"]);
        assert_eq!(strings("gr[ae]y"), ["gray", "grey"]);
        assert_eq!(strings("(abc)+"), ["abc"]);
        assert_eq!(strings("(?:abc){2,}x"), ["abc"]);
        assert_eq!(strings("über"), ["über"]);
        assert_eq!(strings("x.*yes.*no"), ["yes"]);
    }

    #[test]
    fn what_need_not_be_there_is_not() {
        for pattern in ["", ".*", r"\w+", "a|b", "foo|.", "(foo)?", "(foo)*b", "[a-z]oo?", "x"] {
            assert_eq!(required(pattern, false), None, "{pattern}");
        }
    }

    #[test]
    fn letters_without_case_are_ascii_and_no_others() {
        let found = |string: &str| Some((vec![string.to_owned()], true));
        assert_eq!(required("Neddle.", true), found("neddle"));
        assert_eq!(required("TokenStream", true), found("tream"));
        assert_eq!(required("ünder", true), found("nder"));
        assert_eq!(required("(?i:foo)Bar", false), found("fooBar"));
        assert_eq!(required("kk", true), None);
        assert_eq!(required("12", true), Some((vec!["12".to_owned()], false)));
    }

    #[test]
    fn plain_text_is_not_an_expression() {
        let input = Input { fixed_strings: true, ..Input::of("a.*b") };
        assert_eq!(Required::of(&input), Some(Required::one(b"a.*b")));
    }

    /// Every text that matches holds what its pattern requires, for all short patterns and texts
    /// out of a few parts.
    #[test]
    fn nothing_that_matches_is_passed_over() {
        let parts =
            ["ab", "K", "s", "[xy]", "(?:ab|Ks)", "b?", "(?:xs)+", ".", r"\b", "(?i:x)", "ſ", "$"];
        let pieces = ["a", "ab", "k", "S", "x", "Y", "\u{212A}", "ſ", "AB"];
        let mut texts = vec![String::new()];
        for _ in 0..4 {
            let longer: Vec<String> = texts
                .iter()
                .flat_map(|text| pieces.iter().map(move |piece| format!("{text}{piece}")))
                .collect();
            texts.extend(longer.into_iter().step_by(2));
        }
        let mut checked = 0;
        let parts = parts.as_slice();
        let pairs = parts.iter().flat_map(|a| parts.iter().map(move |b| format!("{a}{b}")));
        let patterns = pairs.flat_map(|pair| {
            parts.iter().flat_map(move |c| [format!("{pair}{c}"), format!("{pair}|{c}b")])
        });
        for (pattern, ignore_case) in
            patterns.flat_map(|pattern| [(pattern.clone(), false), (pattern, true)])
        {
            let input = Input { ignore_case, ..Input::of(&pattern) };
            let Some(required) = Required::of(&input) else {
                continue;
            };
            let Ok(matcher) = pattern::matcher(&input) else { panic!("{pattern}") };
            for text in
                texts.iter().filter(|text| matcher.is_match(text.as_bytes()).unwrap_or_default())
            {
                assert!(is_in(&required, text.as_bytes()), "{pattern} {required:?} {text}");
                checked += 1;
            }
        }
        assert!(checked > 10_000, "{checked}");
    }

    /// As the host looks for it.
    fn is_in(required: &Required, text: &[u8]) -> bool {
        required.strings.iter().any(|string| {
            text.windows(string.len()).any(|window| {
                if required.ignore_case {
                    window.eq_ignore_ascii_case(string)
                } else {
                    window == string.as_slice()
                }
            })
        })
    }
}
