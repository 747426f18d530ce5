//! Writing to standard output and standard error. A closed stream never causes a panic.

use std::borrow::Cow;
use std::io::{IsTerminal as _, Write as _};

use super::wrap;

/// Returns whether standard error is a terminal with cursor control. An empty or missing `TERM` and
/// `TERM=dumb` count as no control.
pub(super) fn supports_cursor() -> bool {
    let is_able = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    is_able && std::io::stderr().is_terminal()
}

/// Prints a line to standard output. Returns whether it was written.
pub(super) fn print_line(text: &str) -> bool {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).is_ok()
}

/// Prints text without a line break to standard output.
pub(super) fn print_text(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "{text}").and_then(|()| out.flush());
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
