//! Errors of the command line.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use super::print::{eprint_line, note_written, print_line};
use super::{render, tools};

/// Reports an error of the command line, or prints `--help` and `--version`. Programs that request
/// JSON get it for this error too.
pub(super) fn report(error: &clap::Error) -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if error.use_stderr() && arguments.iter().any(|argument| has_control_characters(argument)) {
        eprint_line(&escaped(error));
    } else {
        // If standard error is closed, the message is lost.
        let printed = error.print();
        if !error.use_stderr() {
            note_written(printed);
        }
    }
    if error.kind() == clap::error::ErrorKind::InvalidSubcommand {
        eprint_line("hint: to send a prompt, use `cofferdam run \"…\"`");
    }
    let code = u8::try_from(error.exit_code()).unwrap_or(2);
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

fn has_control_characters(argument: &OsStr) -> bool {
    let text = argument.to_string_lossy();
    cofferdam::terminal_escape::escape_text(&text) != text
}

/// Returns the message with the control characters of quoted arguments escaped.
fn escaped(error: &clap::Error) -> String {
    let text = error.render().to_string();
    cofferdam::terminal_escape::escape_text(text.trim_end())
}

/// The error without the hint.
fn problem(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.split("\n\nUsage:").next().unwrap_or_default().trim();
    text.strip_prefix("error: ").unwrap_or(text).to_owned()
}

/// The JSON output that an invalid command line requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsonOutputShape {
    /// The result object of `run --output json`.
    Request,
    /// The result object of `tools call --json`.
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
        let requests_json = |pair: &[&str]| pair[0] == "--output" && is_json(pair[1]);
        if words.windows(2).any(requests_json)
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
    fn control_characters_of_arguments_are_escaped() {
        use clap::Parser as _;
        let argument = "--no-such\u{1b}]0;x\u{7}";
        let parsed = crate::args::CliArgs::try_parse_from(["cofferdam", argument]);
        let Err(error) = parsed else { panic!("there is no such option") };
        let text = escaped(&error);
        assert!(text.contains("--no-such") && !text.contains(['\u{1b}', '\u{7}']), "{text:?}");
        assert!(has_control_characters(OsStr::new(argument)));
        assert!(!has_control_characters(OsStr::new("--no-such")));
    }

    #[test]
    fn r132_every_json_option_is_recognized() {
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
