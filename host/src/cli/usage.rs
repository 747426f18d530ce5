//! A command line that is not understood.

use std::ffi::OsString;
use std::process::ExitCode;

use super::print::{eprint_line, print_line};
use super::{render, tools};

/// Tells what is wrong with the command line. `--help` and `--version` come this way too. A program
/// that asked for JSON gets it in this case as well.
pub(super) fn report(error: &clap::Error) -> ExitCode {
    match escaped(error) {
        Some(text) => eprint_line(&text),
        // Standard error may be gone; there is nobody to tell then.
        None => drop(error.print()),
    }
    if error.kind() == clap::error::ErrorKind::InvalidSubcommand {
        eprint_line("A task in your own words: cofferdam run \"…\"");
    }
    let code = u8::try_from(error.exit_code()).unwrap_or(2);
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match JsonOutputShape::of(&arguments).filter(|_| code != 0) {
        Some(JsonOutputShape::Request) => {
            print_line(&render::not_started(code, &problem(error)));
        }
        Some(JsonOutputShape::Call) => {
            print_line(&tools::not_made(None, &problem(error)));
        }
        None => {}
    }
    ExitCode::from(code)
}

/// An error that repeats characters of an argument which a terminal would obey, with these written
/// out.
fn escaped(error: &clap::Error) -> Option<String> {
    let plain = error.render().to_string();
    let text = crate::terminal_escape::escape_text(plain.trim_end());
    (error.use_stderr() && text != plain.trim_end()).then_some(text)
}

/// What is wrong, without how it would be right.
fn problem(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.split("\n\nUsage:").next().unwrap_or_default().trim();
    text.strip_prefix("error: ").unwrap_or(text).to_owned()
}

/// The object that a program asked for, on a command line that is not understood as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsonOutputShape {
    /// That of `run --output json`.
    Request,
    /// That of `tools call --json`.
    Call,
}

impl JsonOutputShape {
    fn of(arguments: &[OsString]) -> Option<Self> {
        let words: Vec<&str> = arguments
            .iter()
            .map(|word| word.to_str().unwrap_or_default())
            .take_while(|word| *word != "--")
            .collect();
        let has = |word: &str| words.contains(&word);
        let is_json = |value: &str| matches!(value, "json" | "stream-json");
        let asks = |pair: &[&str]| pair[0] == "--output" && is_json(pair[1]);
        if words.windows(2).any(asks)
            || words.iter().any(|word| word.strip_prefix("--output=").is_some_and(is_json))
        {
            return has("run").then_some(Self::Request);
        }
        (has("tools") && has("call") && has("--json")).then_some(Self::Call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_repeated_without_what_a_terminal_obeys() {
        use clap::Parser as _;
        let report = |argument: &str| {
            let parsed = crate::cli::args::CliArgs::try_parse_from(["cofferdam", argument]);
            escaped(&parsed.err().expect("there is no such option"))
        };
        let text = report("--no-such\u{1b}]0;x\u{7}").expect("it is escaped");
        assert!(text.contains("--no-such") && !text.contains('\u{1b}'), "{text:?}");
        assert_eq!(report("--no-such"), None);
    }

    #[test]
    fn r132_json_is_asked_for_in_so_many_ways() {
        let table: [(&[&str], Option<JsonOutputShape>); 8] = [
            (&["run", "x", "--output", "json", "--no-such"], Some(JsonOutputShape::Request)),
            (&["-C", "x", "run", "--output=stream-json"], Some(JsonOutputShape::Request)),
            (&["run", "x", "--output", "text"], None),
            (&["run", "--", "--output", "json"], None),
            (&["chat", "--output", "json"], None),
            (&["tools", "call", "grep", "--json", "--no-such"], Some(JsonOutputShape::Call)),
            (&["tools", "list", "--json", "--no-such"], None),
            (&[], None),
        ];
        for (words, expected) in table {
            let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(JsonOutputShape::of(&arguments), expected, "{words:?}");
        }
    }
}
