//! Comparing what a command printed with what a page says.

/// Stands for any text in a line, and for any lines when it is alone.
const ANYTHING: char = '…';

/// Whether an output is as expected. Blanks at the ends of lines do not count.
pub(crate) fn matches(expected: &[String], output: &str) -> bool {
    let expected: Vec<&str> = expected.iter().map(|line| line.trim_end()).collect();
    let output: Vec<&str> = output.trim_end().lines().map(str::trim_end).collect();
    lines_match(&expected, &output)
}

fn lines_match(expected: &[&str], output: &[&str]) -> bool {
    let Some((first, rest)) = expected.split_first() else { return output.is_empty() };
    if first.trim() == ANYTHING.to_string() {
        return (0..=output.len()).any(|skipped| lines_match(rest, &output[skipped..]));
    }
    let Some((line, more)) = output.split_first() else { return false };
    line_matches(first, line) && lines_match(rest, more)
}

fn line_matches(expected: &str, line: &str) -> bool {
    let mut pieces = expected.split(ANYTHING);
    let Some(mut rest) = pieces.next().and_then(|first| line.strip_prefix(first)) else {
        return false;
    };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return rest.is_empty() };
    for piece in middle {
        let Some((_, behind)) = rest.split_once(piece) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

#[test]
fn an_ellipsis_stands_for_anything() {
    let is = |expected: &str, output: &str| {
        let lines: Vec<String> = expected.lines().map(str::to_owned).collect();
        matches(&lines, output)
    };
    assert!(is("a\nb", "a  \nb\n"));
    assert!(is("a … c", "a b c") && is("…", "a\nb\n") && is("…", ""));
    assert!(is("a\n…\nd", "a\nb\nc\nd\n") && is("…b…", "abc"));
    assert!(!is("a", "b") && !is("a\nb", "a") && !is("a", "a\nb") && !is("a…c", "ab"));
    assert!(!is("ab…bc", "abc"));
}
