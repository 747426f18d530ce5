//! Reading text from standard input, up to a size limit.

use std::io::{self, BufRead, Read};

use super::error::CliError;

/// Maximum size of a text: 8 MiB, the limit for the arguments of a call, and more than any model
/// accepts.
const MAX_TEXT_BYTES: u64 = 8 << 20;

/// The error for a line beyond the limit.
pub(super) const LINE_TOO_LONG: &str = "cannot read a line of standard input: it is longer than 8 \
    MiB; this line and all later lines were ignored";

/// Reads all of standard input. Errors refer to the text as `what`, such as `the task`.
///
/// # Errors
///
/// If the text is longer than 8 MiB or not UTF-8.
pub(super) fn read_text(what: &str) -> Result<String, CliError> {
    read_text_from(io::stdin().lock(), what)
}

fn read_text_from(from: impl Read, what: &str) -> Result<String, CliError> {
    let failed =
        |why: &str| CliError::new(format!("cannot read {what} from standard input: {why}"));
    let mut bytes = Vec::new();
    from.take(MAX_TEXT_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| failed(&error.to_string()))?;
    if bytes.len() as u64 > MAX_TEXT_BYTES {
        return Err(failed(&format!("it is longer than {} MiB", MAX_TEXT_BYTES >> 20))
            .with_detail("hint: write it to a file in the workspace, and pass the path"));
    }
    String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8"))
}

/// Reads a line with its line break into `line`. Returns false at the end of input.
///
/// # Errors
///
/// [`LINE_TOO_LONG`] if the line is longer than 8 MiB.
pub(super) fn read_line(from: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let read = from.take(MAX_TEXT_BYTES + 1).read_until(b'\n', line)?;
    if read as u64 > MAX_TEXT_BYTES {
        return Err(io::Error::other(LINE_TOO_LONG));
    }
    Ok(read > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_text_is_rejected() {
        let read = |from: &mut dyn Read| {
            read_text_from(from, "the task").map_err(|error| error.message().to_owned())
        };
        assert_eq!(read(&mut &b"Gr\xc3\xbc\xc3\x9fe"[..]), Ok("Grüße".to_owned()));
        assert_eq!(
            read(&mut &b"\xff"[..]),
            Err("cannot read the task from standard input: it is not UTF-8".to_owned())
        );
        assert_eq!(
            read(&mut io::repeat(b'x').take(MAX_TEXT_BYTES)).map(|text| text.len() as u64),
            Ok(MAX_TEXT_BYTES)
        );
        let problem = read(&mut io::repeat(b'x')).expect_err("it has no end");
        assert!(
            problem.starts_with(
                "cannot read the task from standard input: it is longer than 8 MiB\nhint: "
            ),
            "{problem}"
        );
    }

    #[test]
    fn an_endless_line_is_rejected() {
        let mut line = Vec::new();
        let mut lines = &b"one\ntwo"[..];
        for expected in [(true, &b"one\n"[..]), (true, b"two"), (false, b"")] {
            assert_eq!(
                (read_line(&mut lines, &mut line).expect("read the line"), &line[..]),
                expected
            );
        }
        let endless = &mut io::BufReader::new(io::repeat(b'x'));
        assert_eq!(
            read_line(endless, &mut line).expect_err("it has no end").to_string(),
            LINE_TOO_LONG
        );
    }
}
