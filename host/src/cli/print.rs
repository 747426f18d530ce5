//! Writing to standard output and standard error. A reader that went away is no reason to panic.

use std::borrow::Cow;
use std::io::{IsTerminal as _, Write as _};

use super::wrap;

/// Whether standard error is a terminal whose cursor can be moved: `TERM=dumb` says that it cannot,
/// and where nothing is said, nothing is known of it.
pub(super) fn supports_cursor() -> bool {
    let is_able = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    is_able && std::io::stderr().is_terminal()
}

/// A line on standard output; whether anybody took it.
pub(super) fn print_line(text: &str) -> bool {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).is_ok()
}

/// A piece of a line on standard output.
pub(super) fn print_text(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}

/// A line on standard error; at a terminal its rows end between words.
pub(super) fn eprint_line(text: &str) {
    let text = if std::io::stderr().is_terminal() {
        Cow::from(wrap::wrap_text(text, wrap::terminal_size().0))
    } else {
        text.into()
    };
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// A piece of a line on standard error.
pub(super) fn eprint_text(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = write!(err, "{text}").and_then(|()| err.flush());
}
