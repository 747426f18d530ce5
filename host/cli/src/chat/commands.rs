//! Slash commands: the list of commands, and parsing of input lines.

use std::path::PathBuf;

use super::jobs::JobsCommand;
use cofferdam::policy::ApprovalMode;

/// A command to the chat itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SlashCommand {
    Help,
    /// Shows the mode, or changes it.
    Mode(Option<ApprovalMode>),
    /// Shows the model, or switches to another one.
    Model(Option<String>),
    Tools,
    Context,
    Cost,
    Compact,
    /// Shows or stops background commands.
    Jobs(JobsCommand),
    /// Shows what tools and commands changed since the chat began.
    Diff,
    /// Lists sessions, or resumes the one whose ID begins with this prefix.
    Resume(Option<String>),
    Clear,
    Export(Option<PathBuf>),
    Quit,
}

/// The meaning of an input line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LineMeaning {
    Empty,
    /// A prompt for the model.
    Prompt(String),
    /// A command to the chat.
    Command(SlashCommand),
    /// An unknown or malformed command, with an error message. It is never sent to the model
    ///
    Invalid(String),
}

/// All commands: name, arguments, description.
const COMMANDS: [(&str, &str, &str); 13] = [
    ("/help", "", "show this list"),
    (
        "/mode",
        "[ask|plan|auto-edit|auto]",
        "show or change the approval mode; Shift-Tab changes it too, but never to auto",
    ),
    ("/model", "[SPEC]", "show or change the model, such as openai:NAME"),
    ("/tools", "", "list the tools with their tiers (scheduling classes) and permissions"),
    ("/context", "", "show how much of the context window is used"),
    ("/cost", "", "show the tokens and the cost of this chat"),
    ("/compact", "", "replace old messages by a summary"),
    (
        "/jobs",
        "[ID|commit ID|stop ID]",
        "list the background commands, show or stop one, or commit what it changed so far",
    ),
    ("/diff", "", "show what tools and commands changed in this chat"),
    ("/resume", "[ID]", "list the sessions of this project, or continue the one with this ID"),
    ("/clear", "", "start a new session; the old one is kept"),
    ("/export", "[FILE]", "write the conversation to a file as JSON"),
    ("/quit", "", "leave the chat, as Ctrl-D does"),
];

/// Parses an input line. A line that begins with a space is always a prompt.
pub(super) fn parse_line(line: &str) -> LineMeaning {
    if line.trim().is_empty() {
        return LineMeaning::Empty;
    }
    if !line.starts_with('/') {
        return LineMeaning::Prompt(line.to_owned());
    }
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let command = match (name, rest) {
        ("/help", "") => SlashCommand::Help,
        ("/mode", "") => SlashCommand::Mode(None),
        ("/mode", word) => match word.parse() {
            Ok(mode) => SlashCommand::Mode(Some(mode)),
            Err(unknown) => return LineMeaning::Invalid(unknown.to_string()),
        },
        ("/model", "") => SlashCommand::Model(None),
        ("/model", spec) => SlashCommand::Model(Some(spec.to_owned())),
        ("/tools", "") => SlashCommand::Tools,
        ("/context", "") => SlashCommand::Context,
        ("/cost", "") => SlashCommand::Cost,
        ("/compact", "") => SlashCommand::Compact,
        ("/jobs", argument) => match JobsCommand::parse(argument) {
            Ok(command) => SlashCommand::Jobs(command),
            Err(problem) => return LineMeaning::Invalid(problem),
        },
        ("/diff", "") => SlashCommand::Diff,
        ("/resume", "") => SlashCommand::Resume(None),
        ("/resume", id) => SlashCommand::Resume(Some(id.to_owned())),
        ("/clear", "") => SlashCommand::Clear,
        ("/export", "") => SlashCommand::Export(None),
        ("/export", path) => SlashCommand::Export(Some(path.into())),
        ("/quit", "") => SlashCommand::Quit,
        (known, surplus) if COMMANDS.iter().any(|(name, _, _)| *name == known) => {
            return LineMeaning::Invalid(format!(
                "{known} takes no argument, but `{surplus}` was given"
            ));
        }
        (unknown, _) => return LineMeaning::Invalid(unknown_command(unknown)),
    };
    LineMeaning::Command(command)
}

/// Returns why a command is refused on piped input, or `None` if it is allowed.
///
/// Refuses commands that loosen the options given at startup or affect more than the session,
/// because the author of the piped lines is unknown. `start` is the mode at startup.
pub(super) fn pipe_denial(command: &SlashCommand, start: ApprovalMode) -> Option<String> {
    let strictness =
        |mode: ApprovalMode| ApprovalMode::STRICTEST_FIRST.iter().position(|known| *known == mode);
    let (name, instead) = match command {
        SlashCommand::Mode(Some(mode)) if strictness(*mode) > strictness(start) => {
            ("/mode", format!("start with --mode {mode}"))
        }
        SlashCommand::Model(Some(_)) => ("/model", "start with --model SPEC".to_owned()),
        SlashCommand::Resume(Some(_)) => ("/resume", "start with --resume ID".to_owned()),
        SlashCommand::Export(_) => {
            ("/export", "`cofferdam sessions export ID` prints a session".to_owned())
        }
        SlashCommand::Help
        | SlashCommand::Mode(_)
        | SlashCommand::Model(None)
        | SlashCommand::Tools
        | SlashCommand::Context
        | SlashCommand::Cost
        | SlashCommand::Compact
        | SlashCommand::Jobs(_)
        | SlashCommand::Diff
        | SlashCommand::Resume(None)
        | SlashCommand::Clear
        | SlashCommand::Quit => return None,
    };
    let looser = if name == "/mode" { " to a looser mode" } else { "" };
    Some(format!("{name}{looser} is not allowed from a pipe; {instead}."))
}

fn unknown_command(name: &str) -> String {
    let near = COMMANDS
        .iter()
        .find(|(known, _, _)| name.len() > 1 && known.starts_with(name))
        .map(|(known, _, _)| *known);
    let near = near.map(|known| format!(" Did you mean {known}?")).unwrap_or_default();
    format!(
        "unknown command `{name}`: nothing was sent.{near} /help lists the commands. To send the \
            line to the model, put a space before the slash."
    )
}

/// Returns the completions of the last word of `typed`, each with a description.
pub(super) fn completions(typed: &str) -> Vec<(String, String)> {
    let begins = |values: Vec<(String, String)>, word: &str| {
        values.into_iter().filter(|(value, _)| value.starts_with(word)).collect()
    };
    match typed.split_once(' ') {
        None if typed.starts_with('/') => begins(
            COMMANDS
                .iter()
                .map(|(name, _, about)| ((*name).to_owned(), (*about).to_owned()))
                .collect(),
            typed,
        ),
        Some(("/mode", word)) => begins(
            ApprovalMode::ALL.iter().map(|mode| (mode.name().to_owned(), String::new())).collect(),
            word,
        ),
        Some(("/model", word)) => begins(
            ["anthropic:", "openai:", "ollama:", "replay:"]
                .map(|provider| (provider.to_owned(), String::new()))
                .to_vec(),
            word,
        ),
        Some(("/jobs", word)) => begins(
            [("commit", "commit what one changed so far"), ("stop", "stop one")]
                .map(|(name, about)| (name.to_owned(), about.to_owned()))
                .to_vec(),
            word,
        ),
        None | Some(_) => Vec::new(),
    }
}

/// Returns the text of `/help`: all commands and keys.
pub(super) fn help_text() -> String {
    let left = |name: &str, arguments: &str| format!("{name} {arguments}");
    let width = COMMANDS
        .iter()
        .map(|(name, arguments, _)| left(name, arguments).len())
        .max()
        .unwrap_or_default();
    let commands: String = COMMANDS
        .iter()
        .map(|(name, arguments, about)| format!("  {:width$}  {about}\n", left(name, arguments)))
        .collect();
    format!(
        "{commands}\n  \
            Enter sends the prompt. Alt-Enter, or a backslash at the end of the line, starts a new \
            line. Tab completes commands.\n  \
            Esc or Ctrl-C rejects the call in a dialog, otherwise stops the request, otherwise \
            clears the line. Ctrl-C twice on an empty line leaves the chat.\n  \
            Prompts that you type while a request runs are queued and sent when it ends."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r133_a_line_with_a_slash_is_a_command_or_an_error() {
        let invalid = ["/halp", "/", "/mode yolo", "/quit now", "/etc/passwd is wrong", "/HELP"];
        for line in invalid {
            assert!(matches!(parse_line(line), LineMeaning::Invalid(_)), "{line}");
        }
        assert_eq!(
            parse_line("/mode  plan "),
            LineMeaning::Command(SlashCommand::Mode(Some(ApprovalMode::Plan)))
        );
        assert_eq!(
            parse_line("/export a b.json"),
            LineMeaning::Command(SlashCommand::Export(Some("a b.json".into())))
        );
        assert_eq!(parse_line(" /etc/passwd"), LineMeaning::Prompt(" /etc/passwd".into()));
        assert_eq!(parse_line(" \n"), LineMeaning::Empty);
    }

    #[test]
    fn r041_piped_lines_cannot_loosen_the_settings_of_the_start() {
        let denial = |line: &str, start| match parse_line(line) {
            LineMeaning::Command(command) => pipe_denial(&command, start),
            other => panic!("{line}: {other:?}"),
        };
        for line in [
            "/mode auto",
            "/mode auto-edit",
            "/model openai:m",
            "/resume 5f0c",
            "/export",
            "/export a.json",
        ] {
            assert!(
                denial(line, ApprovalMode::Ask)
                    .is_some_and(|says| says.contains(&line[..6]) && says.contains("; ")),
                "{line}"
            );
        }
        assert!(
            denial("/mode auto", ApprovalMode::Ask)
                .is_some_and(|says| says.contains("start with --mode auto"))
        );
        assert!(denial("/mode ask", ApprovalMode::Plan).is_some());
        for line in [
            "/mode plan",
            "/mode ask",
            "/mode",
            "/model",
            "/resume",
            "/clear",
            "/compact",
            "/tools",
        ] {
            assert_eq!(denial(line, ApprovalMode::Ask), None, "{line}");
        }
        for mode in ApprovalMode::ALL {
            assert_eq!(denial(&format!("/mode {mode}"), ApprovalMode::Auto), None, "{mode}");
        }
    }

    #[test]
    fn every_listed_command_is_parsed_and_completed() {
        for (name, _, _) in COMMANDS {
            assert!(matches!(parse_line(name), LineMeaning::Command(_)), "{name}");
            assert!(completions(&name[..3]).iter().any(|(value, _)| value == name), "{name}");
        }
        assert_eq!(completions("/mode pl"), [("plan".to_owned(), String::new())]);
        let values = completions("/jobs ").into_iter().map(|(value, _)| value);
        assert_eq!(values.collect::<Vec<_>>(), ["commit", "stop"]);
        assert_eq!(completions("say /he"), []);
    }
}
