//! The size of a compiled pattern, computed without compiling it.
//!
//! A short pattern can have many states: `(\w{50}){50}` has thousands. Matching takes time of at
//! most states × bytes of the text, and memory for the states.

use regex_syntax::hir::{Class, Hir, HirKind};
use regex_syntax::utf8::Utf8Sequences;

/// The longest pattern, in bytes. Parsing takes time quadratic in the length if there are many
/// escapes.
const MAX_PATTERN_LEN: usize = 4 << 10;
/// The number of ranges of a character class that are counted individually. A class with more
/// counts as [`LARGE_CLASS_STATES`].
const MAX_COUNTED_RANGES: usize = 64;
/// The states of a class such as `\w`, rounded up.
const LARGE_CLASS_STATES: u64 = 2_000;

/// Returns an upper bound of the states of the compiled pattern, or what is wrong with the pattern.
///
/// A pattern that cannot be parsed has no states: its schema is refused when it is compiled.
pub(super) fn count_states(pattern: &str) -> Result<u64, String> {
    if pattern.len() > MAX_PATTERN_LEN {
        return Err(format!("has a pattern of more than {MAX_PATTERN_LEN} bytes"));
    }
    let Ok(pattern) = jsonschema_regex::to_rust_regex(pattern) else { return Ok(0) };
    Ok(regex_syntax::parse(&pattern).map_or(0, |hir| count_hir_states(&hir)))
}

/// Counts the states of a parsed pattern. Recursion is bounded: the parser stops at 250 levels.
fn count_hir_states(hir: &Hir) -> u64 {
    let all = |parts: &[Hir]| {
        parts.iter().fold(1, |sum: u64, part| sum.saturating_add(count_hir_states(part)))
    };
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(Class::Bytes(_)) => 1,
        HirKind::Class(Class::Unicode(class)) if class.ranges().len() > MAX_COUNTED_RANGES => {
            LARGE_CLASS_STATES
        }
        HirKind::Class(Class::Unicode(class)) => {
            let sequences = class
                .ranges()
                .iter()
                .flat_map(|range| Utf8Sequences::new(range.start(), range.end()));
            1 + sequences.map(|sequence| sequence.len() as u64).sum::<u64>()
        }
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min).max(repetition.min).max(1);
            count_hir_states(&repetition.sub).saturating_mul(u64::from(times)).saturating_add(1)
        }
        HirKind::Capture(capture) => count_hir_states(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => all(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_count_their_copies() {
        let of = |pattern: &str| count_states(pattern).expect(pattern);
        assert!((5..40).contains(&of("^[a-z0-9-]+$")), "{}", of("^[a-z0-9-]+$"));
        assert!((64..400).contains(&of(r"^\w{1,64}$")), "{}", of(r"^\w{1,64}$"));
        assert!(of("(((a{10}){10}){10}){10}") >= 10_000);
        assert!(of(r"\p{L}{100}") >= 100_000);
        assert_eq!(of("(?=a)b"), 0, "it cannot be used, and is refused for that");
        assert!(count_states(&"a".repeat(5_000)).is_err());
    }

    #[test]
    fn the_count_is_an_upper_bound() {
        // A state of the engine has about 24 bytes or more, so the count is never far below the
        // real size.
        for pattern in [
            "[01]*1[01]{500}",
            r"^\w{1,64}$",
            r"(\d{3}-){40}",
            "(?i)straße{90}",
            r"[^\x00-\x1f]{1,200}",
            r"\p{Lu}{40}",
            "(a|b|[^c]){300}",
        ] {
            let states = count_states(pattern).expect(pattern);
            let translated = jsonschema_regex::to_rust_regex(pattern).expect(pattern);
            let limit = usize::try_from(states).expect("it is small") * 64 + 1024;
            regex::RegexBuilder::new(&translated).size_limit(limit).build().expect(pattern);
        }
    }
}
