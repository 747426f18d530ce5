//! From the input to ripgrep's matcher and searcher.

use cofferdam_sdk::ToolError;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use regex_syntax::ast::parse::Parser;

use crate::Input;

/// In bytes. A call has 256 MiB: a pattern and its caches get a part of that, the longest line (or,
/// if matches may span lines, the largest file that does not come in one batch) another.
const MAX_PATTERN: usize = 16 << 20;
const MAX_CACHE: usize = 16 << 20;
const MAX_LINE: usize = 64 << 20;

/// A pattern that does not compile is the model's mistake, and it is told why.
pub(crate) fn matcher(input: &Input) -> Result<RegexMatcher, ToolError> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(input.ignore_case)
        .fixed_strings(input.fixed_strings)
        .word(input.word)
        .multi_line(true)
        .dot_matches_new_line(input.multiline)
        .size_limit(MAX_PATTERN)
        .dfa_size_limit(MAX_CACHE);
    // What the matcher compiles has groups around the pattern. Errors about these would puzzle the
    // model.
    if !input.fixed_strings {
        Parser::new()
            .parse(&input.pattern)
            .map_err(|error| ToolError::invalid_input("/pattern", error.to_string()))?;
    }
    if !input.multiline {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(&input.pattern).map_err(|error| {
        let hint = match error.kind() {
            grep_regex::ErrorKind::NotAllowed(_) => ". Set `multiline` to match across lines",
            _ => "",
        };
        ToolError::invalid_input("/pattern", format!("{error}{hint}"))
    })
}

pub(crate) fn searcher(input: &Input) -> Searcher {
    let (before, after) = input.context_lines();
    SearcherBuilder::new()
        .multi_line(input.multiline)
        .before_context(before)
        .after_context(after)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(MAX_LINE))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(pattern: &str) -> (String, String) {
        match matcher(&Input::of(pattern)) {
            Err(ToolError::InvalidInput(problem)) => (problem.pointer, problem.message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn r121_a_pattern_that_does_not_compile_is_an_error_result() {
        let (pointer, message) = problem("a(b");
        assert_eq!(pointer, "/pattern");
        assert_eq!(message, "regex parse error:\n    a(b\n     ^\nerror: unclosed group");
    }

    #[test]
    fn a_line_break_in_a_pattern_asks_for_multiline() {
        assert!(problem(r"a\nb").1.ends_with("Set `multiline` to match across lines"));
    }

    #[test]
    fn a_pattern_that_is_too_large_is_an_error_and_not_a_trap() {
        assert!(problem(r"(\w{1000}){1000}").1.contains("size limit"));
    }
}
