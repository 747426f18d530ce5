//! A part of a text with line numbers, within limits.

use std::fmt::Write;
use std::io::{self, Read};

use cofferdam_sdk::{Output, ToolError};

use crate::lines::{Line, Lines, Rest};

/// The largest number of lines.
pub(crate) const MAX_LINES: u32 = 2_000;
/// The longest line, in characters.
const MAX_CHARACTERS: usize = 2_000;
/// The largest text with line numbers, in bytes.
const MAX_BYTES: usize = 256 << 10;
/// The number of bytes after the part in which the rest of the lines is counted.
const MAX_COUNTED: usize = 16 << 20;

const BOM: &[u8] = b"\xEF\xBB\xBF";
const UTF_16: [&[u8]; 2] = [b"\xFF\xFE", b"\xFE\xFF"];

/// Reads the lines of `reader` from number `offset`.
pub(crate) fn read(
    reader: impl Read,
    path: &str,
    offset: u64,
    limit: u32,
) -> Result<Output, ToolError> {
    let failed = |error: io::Error| ToolError::io("read", path)(error);
    let mut lines = Lines::new(reader);
    let head = lines.head().map_err(failed)?;
    if head.is_empty() {
        return Ok(Output::text(format!("`{path}` is empty.")));
    }
    refuse_binary(head, path)?;
    if head.starts_with(BOM) {
        lines.consume(BOM.len());
    }

    let before = offset.saturating_sub(1);
    let skipped = lines.skip(before).map_err(failed)?;
    let mut slice = Slice::default();
    let mut line = Line::default();
    let mut left_over = 0;
    while slice.lines < u64::from(limit.clamp(1, MAX_LINES))
        && lines.next_line(&mut line).map_err(failed)?
    {
        if !slice.push(offset.saturating_add(slice.lines), &line) {
            left_over = 1;
            break;
        }
    }
    if slice.lines == 0 {
        return Err(ToolError::invalid_input(
            "/offset",
            format!("`{path}` has {skipped} {}", plural(skipped)),
        ));
    }

    let last_line = before + slice.lines;
    let total = match lines.rest(MAX_COUNTED).map_err(failed)? {
        Rest::Lines(rest) if rest + left_over == 0 => return Ok(Output::text(slice.text)),
        Rest::Lines(rest) => format!(" of {}", last_line + rest + left_over),
        Rest::Unknown => String::new(),
    };
    let note = format!(
        "[lines {} to {last_line}{total}; continue with offset {}]\n",
        before + 1,
        last_line + 1
    );
    Ok(Output::text(slice.text + &note).truncated())
}

fn refuse_binary(head: &[u8], path: &str) -> Result<(), ToolError> {
    if UTF_16.iter().any(|bom| head.starts_with(bom)) {
        return Err(ToolError::failed(format!(
            "`{path}` is UTF-16 text, and this tool reads only UTF-8. Use `grep` to search it."
        )));
    }
    if head.contains(&0) {
        return Err(ToolError::failed(format!(
            "`{path}` is a binary file, and this tool reads text only."
        )));
    }
    Ok(())
}

fn plural(lines: u64) -> &'static str {
    if lines == 1 { "line" } else { "lines" }
}

#[derive(Debug, Default)]
struct Slice {
    text: String,
    lines: u64,
}

impl Slice {
    /// Appends a line and returns `true`, unless the text would become too large.
    fn push(&mut self, number: u64, line: &Line) -> bool {
        let before = self.text.len();
        let text = String::from_utf8_lossy(&line.bytes);
        let shown = match text.char_indices().nth(MAX_CHARACTERS) {
            Some((end, _)) => &text[..end],
            None => &text,
        };
        let note = if shown.len() < text.len() || line.bytes.len() == crate::lines::KEPT {
            format!(" [cut: the line has {} characters]", line.characters)
        } else {
            String::new()
        };
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{number:>6}\t{shown}{note}");
        if self.text.len() > MAX_BYTES {
            self.text.truncate(before);
            return false;
        }
        self.lines += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8], offset: u64, limit: u32) -> String {
        match read(bytes, "f", offset, limit) {
            Ok(output) => {
                let text = output.to_text();
                assert_eq!(output.truncated, text.contains("continue with offset"), "{text}");
                text
            }
            Err(error) => panic!("{error:?}"),
        }
    }

    #[test]
    fn r116_lines_are_numbered() {
        assert_eq!(text(b"a\n\nb", 1, 2000), "     1\ta\n     2\t\n     3\tb\n");
    }

    #[test]
    fn r116_the_next_offset_is_told() {
        let four = b"a\nb\nc\nd\n";
        assert_eq!(
            text(four, 2, 2),
            "     2\tb\n     3\tc\n[lines 2 to 3 of 4; continue with offset 4]\n"
        );
        assert_eq!(text(four, 3, 2), "     3\tc\n     4\td\n");
    }

    #[test]
    fn r116_at_most_2000_lines_come_back() {
        let text = text("x\n".repeat(2001).as_bytes(), 1, 9999);
        assert!(
            text.ends_with("  2000\tx\n[lines 1 to 2000 of 2001; continue with offset 2001]\n")
        );
    }

    #[test]
    fn r116_a_long_line_is_cut_and_says_so() {
        let long = "é".repeat(2001);
        assert_eq!(
            text(long.as_bytes(), 1, 1),
            format!("     1\t{} [cut: the line has 2001 characters]\n", "é".repeat(2000))
        );
        let enough = "é".repeat(2000);
        assert_eq!(text(enough.as_bytes(), 1, 1), format!("     1\t{enough}\n"));
        let wide = "🦀".repeat(3000);
        assert!(text(wide.as_bytes(), 1, 1).ends_with("🦀 [cut: the line has 3000 characters]\n"));
    }

    #[test]
    fn r116_the_cap_counts_for_the_slice() {
        let all = format!("{}\n", "x".repeat(1000)).repeat(2000);
        let first = text(all.as_bytes(), 1, 2000);
        assert!(first.len() <= MAX_BYTES + 100);
        assert!(
            first.ends_with("[lines 1 to 260 of 2000; continue with offset 261]\n"),
            "{}",
            &first[first.len() - 60..]
        );
        assert!(text(all.as_bytes(), 1999, 2000).starts_with("  1999\tx"));
    }

    #[test]
    fn r116_a_slice_of_a_huge_file_works() {
        // 64 GiB of lines would be too slow for a test; what counts is that neither slice nor
        // memory depend on what follows.
        let huge = io::repeat(b'\n').take(1 << 30);
        match read(huge, "f", 100_000_000, 1) {
            Ok(output) => {
                assert_eq!(
                    output,
                    Output::text(
                        "100000000\t\n[lines 100000000 to 100000000; continue with offset \
                            100000001]\n"
                    )
                    .truncated()
                )
            }
            Err(error) => panic!("{error:?}"),
        }
    }

    #[test]
    fn r116_binary_is_an_error() {
        for bytes in [&b"\x7fELF\0\0"[..], &[&b"x".repeat(8191)[..], b"\0"].concat()] {
            assert!(matches!(
                read(bytes, "f", 1, 1),
                Err(ToolError::Failed(why)) if why.contains("binary")
            ));
        }
        assert!(matches!(
            read(&b"\xFF\xFEa\0"[..], "f", 1, 1),
            Err(ToolError::Failed(why)) if why.contains("UTF-16")
        ));
    }

    #[test]
    fn an_offset_behind_the_end_says_where_the_end_is() {
        for (offset, bytes, lines) in
            [(3, &b"a\nb"[..], "2 lines"), (9, b"a\nb\n", "2 lines"), (2, b"a", "1 line")]
        {
            assert_eq!(
                read(bytes, "f", offset, 1),
                Err(ToolError::invalid_input("/offset", format!("`f` has {lines}")))
            );
        }
    }

    #[test]
    fn an_empty_file_is_said_to_be_empty() {
        assert_eq!(read(&b""[..], "f", 1, 1), Ok(Output::text("`f` is empty.")));
    }

    #[test]
    fn a_byte_order_mark_and_wrong_bytes_are_no_trouble() {
        assert_eq!(text(b"\xEF\xBB\xBFa\r\nb\xFFc\r\n", 1, 9), "     1\ta\n     2\tb\u{FFFD}c\n");
    }
}
