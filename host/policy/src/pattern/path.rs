//! Patterns for workspace paths, matched component by component.
//!
//! | pattern | covers | does not cover |
//! |---|---|---|
//! | `Cargo.lock` | that file | `sub/Cargo.lock` |
//! | `src/*.rs` | `src/main.rs` | `src/bin/x.rs`, `src-old/a.rs` |
//! | `src/**` | `src` and all below it | `src2/a` |
//! | `**/*.pem` | such a file at any depth | `a.pem/b` |
//!
//! `*` and `?` match within a component. `**` is a complete component and matches any number of
//! components. Under `ask` and `deny`, a pattern also covers everything below a match and ignores
//! case, as some file systems do. Under `allow`, a pattern covers only the match itself and
//! respects case.

use serde::{Deserialize, Serialize};

use super::{MatchBudget, PatternError, PatternMatch, glob_within, matches_strictly, unknown};
use crate::protected::fold_name;
use crate::{Verdict, WorkspacePath};

/// A pattern for workspace paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathPattern {
    components: Vec<String>,
}

impl PathPattern {
    /// Parses a path pattern.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is outside the grammar of this module.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let bad =
            |reason: &str| Err(PatternError(format!("`{text}` is not a path pattern: {reason}")));
        let trimmed = text.strip_prefix("./").unwrap_or(text);
        if trimmed.is_empty() {
            return bad("it is empty; use `**` to cover everything");
        }
        if trimmed.starts_with('/') {
            return bad("it is absolute; patterns are relative to the workspace, such as `src/**`");
        }
        if trimmed.ends_with('/') {
            return bad(
                "it ends with `/`; for a directory and everything below it, end with `/**`",
            );
        }
        if let Some(c) = trimmed.chars().find(|c| "[]{}!\\\0".contains(*c)) {
            return bad(&format!("{c:?} is not supported; the wildcards are `*`, `?` and `**`"));
        }
        let components: Vec<String> = trimmed.split('/').map(str::to_owned).collect();
        for component in &components {
            match component.as_str() {
                "" | "." => return bad("a component is empty"),
                ".." => return bad("`..` is not allowed"),
                "**" => {}
                mixed if mixed.contains("**") => {
                    return bad("`**` must be a whole component, as in `a/**/b`");
                }
                _ => {}
            }
        }
        Ok(Self { components })
    }

    /// Returns how far a path matches this pattern, in a rule with this verdict.
    pub fn matches(&self, path: &WorkspacePath, verdict: Verdict) -> PatternMatch {
        self.matches_within(path, verdict, &MatchBudget::for_decision())
    }

    /// Matches like [`matches`](Self::matches) within the budget of a decision.
    pub(crate) fn matches_within(
        &self,
        path: &WorkspacePath,
        verdict: Verdict,
        budget: &MatchBudget,
    ) -> PatternMatch {
        let fold = !matches_strictly(verdict);
        // Both texts are converted to characters first.
        let length: usize =
            self.components.iter().map(String::len).sum::<usize>() + path.as_str().len();
        if !budget.spend(4 * length as u64) {
            return unknown(verdict);
        }
        let form = |part: &str| {
            if fold { fold_name(part).chars().collect() } else { part.chars().collect() }
        };
        let parts: Vec<Vec<char>> =
            path.as_str().split('/').filter(|part| !part.is_empty()).map(form).collect();
        let ours: Vec<Vec<char>> =
            self.components.iter().map(|component| form(component)).collect();
        // Everything below a denied path is denied as well.
        let reach = if fold { PatternReach::Subtree } else { PatternReach::Exact };
        let is_like =
            |pattern: &[char], part: &[char]| budget.spend(1) && glob_within(pattern, part, budget);
        if match_components(&ours, &parts, is_like, reach) {
            return PatternMatch::Yes;
        }
        if budget.is_spent() {
            return unknown(verdict);
        }
        // Moving or deleting a directory affects everything below it. That covers each directory
        // up to the first wildcard: `a` and `a/b` of `a/b/*`.
        let literal =
            ours.iter().take_while(|part| !part.iter().any(|c| "*?".contains(*c))).count();
        let above = fold
            && parts.len() <= literal
            && ours.iter().zip(&parts).all(|(ours, theirs)| ours == theirs);
        if above { PatternMatch::Maybe } else { PatternMatch::No }
    }
}

impl PathPattern {
    /// Returns the components, normalized like names on case-insensitive file systems.
    pub(crate) fn folded_components(&self) -> Vec<Vec<char>> {
        self.components.iter().map(|component| fold_name(component).chars().collect()).collect()
    }
}

/// The paths below a match that a pattern covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatternReach {
    /// Only the matching path itself.
    Exact,
    /// The matching path and everything below it.
    Subtree,
}

/// Matches components like `glob` matches characters; `is_like` compares two components. The number
/// of steps is at most the product of both lengths, because an attacker can create paths with
/// thousands of components.
pub(crate) fn match_components(
    pattern: &[Vec<char>],
    parts: &[Vec<char>],
    is_like: impl Fn(&[char], &[char]) -> bool,
    reach: PatternReach,
) -> bool {
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < parts.len() {
        // The next component lies below a match.
        if reach == PatternReach::Subtree && t > 0 && p == pattern.len() {
            return true;
        }
        match pattern.get(p) {
            Some(component) if component[..] == ['*', '*'] => {
                star = Some((p, t));
                p += 1;
            }
            Some(component) if is_like(component, &parts[t]) => {
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
    pattern[p..].iter().all(|component| component[..] == ['*', '*'])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pattern::glob;

    fn on(pattern: &str, path: &str, verdict: Verdict) -> PatternMatch {
        let path = WorkspacePath::parse(path, None).unwrap();
        PathPattern::parse(pattern).expect(pattern).matches(&path, verdict)
    }

    #[test]
    fn paths_match_by_components() {
        let table = [
            ("Cargo.lock", "Cargo.lock", true),
            ("Cargo.lock", "sub/Cargo.lock", false),
            ("src/*.rs", "src/main.rs", true),
            ("src/*.rs", "src/bin/x.rs", false),
            ("src/**", "src", true),
            ("src/**", "src/a/b", true),
            ("src/**", "src2/a", false),
            ("**/*.pem", "a.pem", true),
            ("**/*.pem", "a/b/c.pem", true),
            ("**/*.pem", "a.pem/b", false),
            ("a/**/b", "a/b", true),
            ("a/**/b", "a/x/y/b", true),
            ("**", "", true),
            ("*", "", false),
            ("./a", "a", true),
        ];
        for (pattern, path, expected) in table {
            assert_eq!(
                on(pattern, path, Verdict::Allow),
                PatternMatch::from_bool(expected),
                "{pattern} on {path}"
            );
        }
    }

    #[test]
    fn r123_case_counts_for_an_allow_and_not_for_a_deny() {
        assert_eq!(on("**/.git/hooks/**", "a/.GIT/Hooks/x", Verdict::Deny), PatternMatch::Yes);
        assert_eq!(on("**/.git/hooks/**", "a/.GIT/Hooks/x", Verdict::Allow), PatternMatch::No);
    }

    #[test]
    fn paths_below_a_denied_path_are_denied() {
        let table = [("vendor", "vendor/a/b"), ("**/*.pem", "a.pem/b"), ("src/*.rs", "src/x.rs/y")];
        for (pattern, path) in table {
            assert_eq!(on(pattern, path, Verdict::Deny), PatternMatch::Yes, "{pattern} on {path}");
            assert_eq!(on(pattern, path, Verdict::Ask), PatternMatch::Yes, "{pattern} on {path}");
            assert_eq!(on(pattern, path, Verdict::Allow), PatternMatch::No, "{pattern} on {path}");
        }
        assert_eq!(on("vendor", "vendor2/a", Verdict::Deny), PatternMatch::No);
    }

    #[test]
    fn a_directory_above_a_denied_path_might_match() {
        assert_eq!(on("a/b/c.txt", "a", Verdict::Deny), PatternMatch::Maybe);
        assert_eq!(on("a/b/c.txt", "a/b", Verdict::Ask), PatternMatch::Maybe);
        assert_eq!(on("a/b/c.txt", "a/x", Verdict::Deny), PatternMatch::No);
        assert_eq!(on("a/b/c.txt", "a", Verdict::Allow), PatternMatch::No);
        assert_eq!(on("**/c.txt", "a", Verdict::Deny), PatternMatch::No);
    }

    #[test]
    fn a_directory_directly_above_a_denied_wildcard_might_match() {
        use PatternMatch::{Maybe, No, Yes};
        let table = [
            ("a/b/*", "a", Maybe),
            ("a/b/*", "A/b", Maybe),
            ("a/b/*", "a/b", Maybe),
            ("a/b/*", "a/b/c", Yes),
            ("a/b/*", "a/c", No),
            ("a/b/?.txt", "a/b", Maybe),
            ("a/b/**/c.txt", "a/b", Maybe),
            ("a/b/*/c.txt", "a/b", Maybe),
            ("a/b/c*/d.txt", "a/b", Maybe),
            ("*", "", Maybe),
            ("a/b/*", "", Maybe),
            ("a/b", "a", Maybe),
            ("a/b", "a/c", No),
        ];
        for (pattern, path, expected) in table {
            for verdict in [Verdict::Ask, Verdict::Deny] {
                assert_eq!(on(pattern, path, verdict), expected, "{pattern} on {path}");
            }
            if expected == Maybe {
                assert_eq!(on(pattern, path, Verdict::Allow), No, "{pattern} on {path}");
            }
        }
    }

    #[test]
    fn r098_a_path_of_thousands_of_parts_is_matched_at_once() {
        let deep = vec!["a"; 2_000].join("/");
        let started = std::time::Instant::now();
        for _ in 0..20 {
            assert_eq!(on("**/a/**/a/**/a/**/a/b", &deep, Verdict::Deny), PatternMatch::No);
            assert_eq!(on("**/a/**/a/**/a/**/a/a", &deep, Verdict::Deny), PatternMatch::Yes);
        }
        assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
    }

    #[test]
    fn paths_below_a_match_are_covered() {
        let mut all: Vec<Vec<&str>> = vec![Vec::new()];
        for length in 0..4 {
            let longest: Vec<Vec<&str>> =
                all.iter().filter(|parts| parts.len() == length).cloned().collect();
            all.extend(longest.iter().flat_map(|parts| {
                ["a", "b", "**"].map(|part| [parts.as_slice(), &[part]].concat())
            }));
        }
        let chars = |parts: &[&str]| -> Vec<Vec<char>> {
            parts.iter().map(|part| part.chars().collect()).collect()
        };
        for pattern in all.iter().filter(|parts| !parts.is_empty()) {
            for path in all.iter().filter(|parts| !parts.is_empty() && !parts.contains(&"**")) {
                let (ours, theirs) = (chars(pattern), chars(path));
                let by_itself =
                    |to: usize| match_components(&ours, &theirs[..to], glob, PatternReach::Exact);
                assert_eq!(
                    match_components(&ours, &theirs, glob, PatternReach::Subtree),
                    (1..=theirs.len()).any(by_itself),
                    "{pattern:?} {path:?}"
                );
            }
        }
    }

    #[test]
    fn invalid_path_patterns_are_errors() {
        let table = [
            ("", "use `**` to cover everything"),
            ("/etc/*", "relative to the workspace"),
            ("a//b", "empty"),
            ("../a", "`..` is not allowed"),
            ("src/", "`/**`"),
            ("a**", "a whole component"),
            ("*.{rs,toml}", "'{'"),
            ("!a", "'!'"),
        ];
        for (pattern, expected) in table {
            let problem = PathPattern::parse(pattern).unwrap_err().to_string();
            assert!(problem.contains(expected), "{pattern}: {problem}");
        }
    }

    /// A component of a pattern, with a part of a path that it matches.
    const MATCHING_PARTS: [(&str, &str); 8] = [
        ("a", "a"),
        ("b", "B"),
        ("*", "ab"),
        ("?", "b"),
        ("*b", "cb"),
        ("**", "a/b"),
        ("**", "c"),
        ("**", ""),
    ];

    proptest! {
        // A change of a directory changes everything below it. A directory below the first wildcard
        // does not match: `**/c.txt` would ask about each one.
        #[test]
        fn a_directory_above_a_match_might_match(
            components in
                prop::collection::vec(prop::sample::select(MATCHING_PARTS.to_vec()), 1..6),
            below in "(/x){0,2}",
        ) {
            let (pattern, parts): (Vec<&str>, Vec<&str>) = components.into_iter().unzip();
            let literal = pattern.iter().take_while(|part| !part.contains(['*', '?'])).count();
            let pattern = pattern.join("/");
            let path = parts.join("/") + &below;
            let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
            let path = parts.join("/");
            prop_assert_eq!(on(&pattern, &path, Verdict::Deny), PatternMatch::Yes);
            for length in 0..=literal.min(parts.len()) {
                let above = parts[..length].join("/");
                for verdict in [Verdict::Ask, Verdict::Deny] {
                    prop_assert!(
                        on(&pattern, &above, verdict) > PatternMatch::No,
                        "{pattern} covers {path}, and not {above}"
                    );
                }
            }
        }
    }
}
