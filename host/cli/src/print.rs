//! Writing to standard output and standard error. A closed stream never causes a panic.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::OnceLock;

use super::wrap;

/// Returns whether standard error is a terminal with cursor control. An empty or missing `TERM` and
/// `TERM=dumb` count as no control.
pub(super) fn supports_cursor() -> bool {
    let is_able = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    is_able && std::io::stderr().is_terminal()
}

/// The first error of standard output that a user should know about.
static OUTPUT_ERROR: OnceLock<io::Error> = OnceLock::new();

/// Returns why output was lost: the disk may be full. That a reader such as `head` has closed the
/// stream is no such error.
pub(super) fn output_error() -> Option<&'static io::Error> {
    OUTPUT_ERROR.get()
}

/// Notes the outcome of a write to standard output. Returns whether it was written.
pub(super) fn note_written(written: io::Result<()>) -> bool {
    let Err(error) = written else { return true };
    if error.kind() != io::ErrorKind::BrokenPipe {
        let _ = OUTPUT_ERROR.set(error);
    }
    false
}

/// Prints a line to standard output. Returns whether it was written.
pub(super) fn print_line(text: &str) -> bool {
    let mut out = std::io::stdout().lock();
    note_written(writeln!(out, "{text}").and_then(|()| out.flush()))
}

/// Prints text without a line break to standard output.
pub(super) fn print_text(text: &str) {
    let mut out = std::io::stdout().lock();
    note_written(write!(out, "{text}").and_then(|()| out.flush()));
}

/// Prints a line to standard error, wrapped between words at a terminal.
pub(super) fn eprint_line(text: &str) {
    let text = if std::io::stderr().is_terminal() {
        Cow::from(wrap::wrap_text(text, wrap::terminal_size().columns))
    } else {
        text.into()
    };
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Prints text without a line break to standard error.
pub(super) fn eprint_text(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = write!(err, "{text}").and_then(|()| err.flush());
}
