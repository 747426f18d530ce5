//! Searching files as they come.

use std::io::{self, Read};

use cofferdam_sdk::ToolError;
use cofferdam_sdk::workspace::{Batch, File, Files, WorkspaceError};
use grep_searcher::Searcher;

use crate::binary;
use crate::report::Report;

/// Searches until there are no more files or the report wants no more.
pub(crate) fn search<F>(
    files: &mut Files<F>,
    searcher: &mut Searcher,
    report: &mut Report<'_>,
) -> Result<(), ToolError>
where
    F: FnMut() -> Result<Batch, WorkspaceError>,
{
    while let Some(file) = files.next_file()? {
        report.begin(file.path());
        if let Err(error) = search_file(file, searcher, report) {
            report.problem_in_file(&error);
        }
        report.end();
        if report.is_full() {
            break;
        }
    }
    Ok(())
}

/// A file that came in one piece is searched where it lies, any other as a stream.
fn search_file<F>(
    mut file: File<'_, F>,
    searcher: &mut Searcher,
    report: &mut Report<'_>,
) -> io::Result<()>
where
    F: FnMut() -> Result<Batch, WorkspaceError>,
{
    let matcher = report.matcher();
    if let Some(bytes) = file.whole() {
        return match binary::first_nul(bytes) {
            Some(nul) if nul < binary::HEAD => Ok(()),
            Some(nul) => {
                searcher.search_slice(matcher, &bytes[..nul], &mut *report)?;
                report.binary_from(nul as u64);
                Ok(())
            }
            None => searcher.search_slice(matcher, bytes, report),
        };
    }
    let mut head = Vec::new();
    file.by_ref().take(binary::HEAD as u64).read_to_end(&mut head)?;
    if binary::first_nul(&head).is_some() {
        return Ok(());
    }
    if binary::is_utf16(&head) {
        return searcher.search_reader(matcher, head.chain(file), report);
    }
    let mut text = binary::UntilNul::new(head.chain(file));
    searcher.search_reader(matcher, &mut text, &mut *report)?;
    if let Some(nul) = text.nul() {
        report.binary_from(nul);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use cofferdam_sdk::workspace::FilePiece;

    use super::*;
    use crate::{Input, OutputMode, pattern};

    /// Searches files that arrive in pieces of at most `piece` bytes, and returns the text and
    /// whether it is truncated.
    fn grep_pieces(input: &Input, files: &[(&str, &[u8])], piece: usize) -> (String, bool) {
        let mut batches = Vec::new();
        for (path, bytes) in files {
            let mut chunks: Vec<&[u8]> = bytes.chunks(piece).collect();
            let last = chunks.pop().unwrap_or_default();
            for (chunk, more) in
                chunks.into_iter().map(|chunk| (chunk, true)).chain([(last, false)])
            {
                let length = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
                let piece = FilePiece { path: (*path).to_owned(), length, more };
                batches.push(Batch { pieces: vec![piece], data: chunk.to_vec() });
            }
        }
        let mut batches = batches.into_iter();
        let end = || Batch { pieces: Vec::new(), data: Vec::new() };
        let mut files = Files::new(move || Ok(batches.next().unwrap_or_else(end)));
        let matcher = match pattern::matcher(input) {
            Ok(matcher) => matcher,
            Err(error) => panic!("{error:?}"),
        };
        let mut report = Report::new(input, &matcher);
        assert!(search(&mut files, &mut pattern::searcher(input), &mut report).is_ok());
        let output = report.output();
        (output.to_text(), output.truncated)
    }

    /// Each file in one piece and in many must give the same.
    fn grep(input: &Input, files: &[(&str, &[u8])]) -> (String, bool) {
        let whole = grep_pieces(input, files, usize::MAX);
        assert_eq!(grep_pieces(input, files, 3), whole);
        whole
    }

    fn text(input: &Input, files: &[(&str, &[u8])]) -> String {
        let (text, truncated) = grep(input, files);
        assert!(!truncated, "{text}");
        text
    }

    const FILES: [(&str, &[u8]); 3] =
        [("a", b"one\ntwo\nthree\nfour\nfive\nsix\n"), ("b/c", b"two\r\n"), ("d", b"nothing")];

    #[test]
    fn matches_have_path_and_line() {
        assert_eq!(text(&Input::of("two|six"), &FILES), "a:2:two\na:6:six\nb/c:1:two\n");
    }

    #[test]
    fn a_name_cannot_pass_for_two_lines_nor_give_orders_to_a_terminal() {
        let files: [(&str, &[u8]); 1] = [("a\u{1b}[2J\nb", b"one\ntwo\n")];
        assert_eq!(text(&Input::of("two"), &files), "a\\u{1b}[2J\\nb:2:two\n");
        for (output_mode, expected) in
            [(OutputMode::Files, "a\\u{1b}[2J\\nb\n"), (OutputMode::Count, "a\\u{1b}[2J\\nb:1\n")]
        {
            assert_eq!(text(&Input { output_mode, ..Input::of("two") }, &files), expected);
        }
    }

    #[test]
    fn context_stands_apart_and_groups_have_breaks_between_them() {
        let input = Input { context: 1, ..Input::of("two|six") };
        assert_eq!(
            text(&input, &FILES),
            "a-1-one\na:2:two\na-3-three\n--\na-5-five\na:6:six\n--\nb/c:1:two\n"
        );
        let input = Input { after: 1, ..Input::of("two|three") };
        assert_eq!(text(&input, &FILES), "a:2:two\na:3:three\na-4-four\n--\nb/c:1:two\n");
    }

    #[test]
    fn files_and_counts() {
        let files = Input { output_mode: OutputMode::Files, ..Input::of("o") };
        assert_eq!(text(&files, &FILES), "a\nb/c\nd\n");
        let count = Input { output_mode: OutputMode::Count, ..Input::of("o") };
        assert_eq!(text(&count, &FILES), "a:3\nb/c:1\nd:1\n");
    }

    #[test]
    fn r121_results_are_capped_and_can_be_paged_through() {
        for (mode, pages) in [
            (OutputMode::Content, ["a:1:one\na:2:two\n", "a:4:four\nb/c:1:two\n", "d:1:nothing\n"]),
            (OutputMode::Files, ["a\nb/c\n", "d\n", ""]),
            (OutputMode::Count, ["a:3\nb/c:1\n", "d:1\n", ""]),
        ] {
            for (page, expected) in pages.into_iter().enumerate() {
                let offset = u32::try_from(page * 2).unwrap_or_default();
                let input = Input { output_mode: mode, limit: 2, offset, ..Input::of("o") };
                let (text, truncated) = grep(&input, &FILES);
                assert_eq!(
                    truncated,
                    pages.get(page + 1).is_some_and(|next| !next.is_empty()),
                    "{text}"
                );
                if truncated {
                    assert!(text.starts_with(expected), "{text}");
                    assert!(
                        text.contains(&format!("continue with offset {}", offset + 2)),
                        "{text}"
                    );
                } else if !expected.is_empty() {
                    assert_eq!(text, expected);
                }
            }
        }
    }

    #[test]
    fn context_of_matches_that_are_not_shown_is_not_shown() {
        let one = Input { context: 1, limit: 1, ..Input::of("two|six") };
        assert!(grep(&one, &FILES).0.starts_with("a-1-one\na:2:two\na-3-three\n[match 1;"));
        let next = Input { offset: 1, ..one };
        assert!(
            grep(&next, &FILES).0.starts_with("a-5-five\na:6:six\n[match 2;"),
            "{:?}",
            grep(&next, &FILES)
        );
    }

    #[test]
    fn no_matches_are_said_plainly() {
        assert_eq!(text(&Input::of("seven"), &FILES), "No matches.");
        let past = Input { offset: 9, ..Input::of("two") };
        assert_eq!(text(&past, &FILES), "No more matches; there are 2 in total.");
    }

    #[test]
    fn multiline_matches_span_lines() {
        let input = Input { multiline: true, ..Input::of("two.three") };
        assert_eq!(text(&input, &FILES), "a:2:two\na:3:three\n");
    }

    #[test]
    fn binary_files_are_left_out_or_searched_up_to_their_first_nul() {
        let mut late = b"one\n".repeat(20_000);
        late.extend(b"two\n\0one\n");
        let files: [(&str, &[u8]); 3] = [("a", b"\0one\n"), ("b", b"one\nx\0one\n"), ("c", &late)];
        // A file that was searched in part has a match, and no number of matches.
        for (output_mode, expected) in
            [(OutputMode::Files, "c\n"), (OutputMode::Count, "No matches.")]
        {
            assert_eq!(text(&Input { output_mode, ..Input::of("one") }, &files), expected);
        }
        assert_eq!(
            text(&Input::of("two"), &files),
            "c:20001:two\n[c: binary data at byte 80004; the rest was not searched]\n"
        );
    }

    #[test]
    fn a_nul_in_decoded_text_leaves_no_count_either() {
        let wide = |text: &str| -> Vec<u8> {
            "\u{FEFF}".chars().chain(text.chars()).flat_map(|c| (c as u16).to_le_bytes()).collect()
        };
        let late = wide(&("one\n".repeat(40_000) + "\0\n"));
        let count = |files: &[(&str, &[u8])]| {
            text(&Input { output_mode: OutputMode::Count, ..Input::of("one") }, files)
        };
        assert_eq!(count(&[("a", &late), ("b", &wide("one\none\n"))]), "b:2\n");
    }

    #[test]
    fn byte_order_marks_are_understood() {
        let wide = |text: &str| -> Vec<u8> {
            "\u{FEFF}".chars().chain(text.chars()).flat_map(|c| (c as u16).to_le_bytes()).collect()
        };
        let (utf8, utf16) = ("\u{FEFF}one\n", wide("zero\none\n"));
        let files = [("a", utf8.as_bytes()), ("b", &utf16)];
        assert_eq!(text(&Input::of("^one"), &files), "a:1:one\nb:2:one\n");
    }

    #[test]
    fn a_long_line_is_cut_around_its_match() {
        let line = format!("{}needle{}", "x".repeat(9000), "y".repeat(9000));
        let text = text(&Input::of("needle"), &[("a", line.as_bytes())]);
        assert!(text.len() < 600 && text.contains("xneedley"), "{text}");
    }

    #[test]
    fn the_output_is_capped_in_bytes_too() {
        let lines = format!("{}\n", "x".repeat(400)).repeat(2000);
        let input = Input { limit: 2000, ..Input::of("x") };
        let (text, truncated) = grep_pieces(&input, &[("a", lines.as_bytes())], usize::MAX);
        assert!(truncated && text.len() < (256 << 10) + 1000, "{}", text.len());
    }
}
