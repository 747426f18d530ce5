//! The words that begin with a slash: what there is, and what a line means.

use std::path::PathBuf;

use crate::policy::Mode;

/// What the user wants of the chat itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    /// Show the mode, or choose one.
    Mode(Option<Mode>),
    /// Show the model, or go on with another one.
    Model(Option<String>),
    Tools,
    Context,
    Cost,
    Compact,
    /// List sessions, or go on with the one whose name begins so.
    Resume(Option<String>),
    Clear,
    Export(Option<PathBuf>),
    Quit,
}

/// What a line means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Nothing,
    /// For the model.
    Prompt(String),
    /// For the chat.
    Command(Command),
    /// A command that is none, with what is wrong. It is never sent to the model.
    Mistake(String),
}

/// Name, arguments, and what it does.
const COMMANDS: [(&str, &str, &str); 11] = [
    ("/help", "", "this list"),
    ("/mode", "[ask|plan|auto-edit|auto]", "what is allowed without asking; Shift-Tab changes it too, but never to auto"),
    ("/model", "[SPEC]", "which model answers, such as openai:NAME"),
    ("/tools", "", "the tools and what they may touch"),
    ("/context", "", "what the conversation takes of the model's window"),
    ("/cost", "", "tokens and money of this chat"),
    ("/compact", "", "put a summary in place of what was said, to make room"),
    ("/resume", "[ID]", "go on with another session of this project; without a name, list them"),
    ("/clear", "", "begin a new session; the old one is kept"),
    ("/export", "[FILE]", "write the conversation to a file as JSON"),
    ("/quit", "", "leave; so does Ctrl-D"),
];

/// Understands a line. One that begins with a space is for the model, whatever follows.
pub(super) fn meaning(line: &str) -> Meaning {
    if line.trim().is_empty() {
        return Meaning::Nothing;
    }
    if !line.starts_with('/') {
        return Meaning::Prompt(line.to_owned());
    }
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let command = match (name, rest) {
        ("/help", "") => Command::Help,
        ("/mode", "") => Command::Mode(None),
        ("/mode", word) => match word.parse() {
            Ok(mode) => Command::Mode(Some(mode)),
            Err(unknown) => return Meaning::Mistake(unknown.to_string()),
        },
        ("/model", "") => Command::Model(None),
        ("/model", spec) => Command::Model(Some(spec.to_owned())),
        ("/tools", "") => Command::Tools,
        ("/context", "") => Command::Context,
        ("/cost", "") => Command::Cost,
        ("/compact", "") => Command::Compact,
        ("/resume", "") => Command::Resume(None),
        ("/resume", id) => Command::Resume(Some(id.to_owned())),
        ("/clear", "") => Command::Clear,
        ("/export", "") => Command::Export(None),
        ("/export", path) => Command::Export(Some(path.into())),
        ("/quit", "") => Command::Quit,
        (known, surplus) if COMMANDS.iter().any(|(name, _, _)| *name == known) => {
            return Meaning::Mistake(format!("{known} takes nothing behind it, and there is '{surplus}'"));
        }
        (unknown, _) => return Meaning::Mistake(not_there(unknown)),
    };
    Meaning::Command(command)
}

/// What to do instead of a command that loosens what was said at the start, or that reaches beyond it. It is for somebody at a
/// terminal: the lines of a pipe may be anybody's.
pub(super) fn out_of_place(command: &Command, start: Mode) -> Option<String> {
    let strictness = |mode: Mode| Mode::FROM_STRICT.iter().position(|known| *known == mode);
    let (name, instead) = match command {
        Command::Mode(Some(mode)) if strictness(*mode) > strictness(start) => ("/mode", format!("start with --mode {mode}")),
        Command::Model(Some(_)) => ("/model", "start with --model SPEC".to_owned()),
        Command::Resume(Some(_)) => ("/resume", "start with --resume ID".to_owned()),
        Command::Export(_) => ("/export", "`cofferdam sessions export ID` prints a session".to_owned()),
        Command::Help
        | Command::Mode(_)
        | Command::Model(None)
        | Command::Tools
        | Command::Context
        | Command::Cost
        | Command::Compact
        | Command::Resume(None)
        | Command::Clear
        | Command::Quit => return None,
    };
    let looser = if name == "/mode" { " to a looser mode" } else { "" };
    Some(format!("{name}{looser} is for somebody at a terminal, and this line comes from a pipe; {instead}."))
}

fn not_there(name: &str) -> String {
    let near = COMMANDS.iter().find(|(known, _, _)| name.len() > 1 && known.starts_with(name)).map(|(known, _, _)| *known);
    let near = near.map(|known| format!(" Is it {known}?")).unwrap_or_default();
    format!("there is no command {name}.{near} /help lists them; for the model, put a space before the slash. Nothing was sent.")
}

/// What can stand in place of the last word of what is typed, each with a description.
pub(super) fn completions(typed: &str) -> Vec<(String, String)> {
    let begins = |values: Vec<(String, String)>, word: &str| values.into_iter().filter(|(value, _)| value.starts_with(word)).collect();
    match typed.split_once(' ') {
        None if typed.starts_with('/') => {
            begins(COMMANDS.iter().map(|(name, _, about)| ((*name).to_owned(), (*about).to_owned())).collect(), typed)
        }
        Some(("/mode", word)) => begins(Mode::ALL.iter().map(|mode| (mode.name().to_owned(), String::new())).collect(), word),
        Some(("/model", word)) => {
            begins(["anthropic:", "openai:", "ollama:", "replay:"].map(|provider| (provider.to_owned(), String::new())).to_vec(), word)
        }
        None | Some(_) => Vec::new(),
    }
}

/// All commands and keys, for people.
pub(super) fn help() -> String {
    let left = |name: &str, arguments: &str| format!("{name} {arguments}");
    let width = COMMANDS.iter().map(|(name, arguments, _)| left(name, arguments).len()).max().unwrap_or_default();
    let commands: String =
        COMMANDS.iter().map(|(name, arguments, about)| format!("  {:width$}  {about}\n", left(name, arguments))).collect();
    format!(
        "{commands}\n  \
        Enter sends. Alt-Enter, or a backslash at the end and Enter, begins a new line. Tab completes commands.\n  \
        Esc or Ctrl-C: rejects what a dialog asks, else stops the request, else clears the line; twice on an empty line leaves.\n  \
        What you type while a request runs is sent when it is over."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r133_a_line_with_a_slash_is_a_command_or_a_mistake() {
        let mistakes = ["/halp", "/", "/mode yolo", "/quit now", "/etc/passwd is wrong", "/HELP"];
        for line in mistakes {
            assert!(matches!(meaning(line), Meaning::Mistake(_)), "{line}");
        }
        assert_eq!(meaning("/mode  plan "), Meaning::Command(Command::Mode(Some(Mode::Plan))));
        assert_eq!(meaning("/export a b.json"), Meaning::Command(Command::Export(Some("a b.json".into()))));
        assert_eq!(meaning(" /etc/passwd"), Meaning::Prompt(" /etc/passwd".into()));
        assert_eq!(meaning(" \n"), Meaning::Nothing);
    }

    #[test]
    fn r041_no_line_of_a_pipe_loosens_what_was_said_at_the_start() {
        let refused = |line: &str, start| match meaning(line) {
            Meaning::Command(command) => out_of_place(&command, start),
            other => panic!("{line}: {other:?}"),
        };
        for line in ["/mode auto", "/mode auto-edit", "/model openai:m", "/resume 5f0c", "/export", "/export a.json"] {
            assert!(refused(line, Mode::Ask).is_some_and(|says| says.contains(&line[..6]) && says.contains("; ")), "{line}");
        }
        assert!(refused("/mode auto", Mode::Ask).is_some_and(|says| says.contains("start with --mode auto")));
        assert!(refused("/mode ask", Mode::Plan).is_some());
        for line in ["/mode plan", "/mode ask", "/mode", "/model", "/resume", "/clear", "/compact", "/tools"] {
            assert_eq!(refused(line, Mode::Ask), None, "{line}");
        }
        for mode in Mode::ALL {
            assert_eq!(refused(&format!("/mode {mode}"), Mode::Auto), None, "{mode}");
        }
    }

    #[test]
    fn every_command_of_the_list_is_understood() {
        for (name, _, _) in COMMANDS {
            assert!(matches!(meaning(name), Meaning::Command(_)), "{name}");
            assert!(completions(&name[..3]).iter().any(|(value, _)| value == name), "{name}");
        }
        assert_eq!(completions("/mode pl"), [("plan".to_owned(), String::new())]);
        assert_eq!(completions("say /he"), []);
    }
}
