//! The command reference as a Markdown page.

use clap::{Arg, ArgAction, Command, CommandFactory as _};

use super::help_text::{HelpParagraph, help_paragraphs};
use crate::args::CliArgs;

/// Maximum number of columns of a line.
const MAX_COLUMNS: usize = 120;

/// Returns `host/docs/reference/cli.md`, which depends only on the definition of the command line.
#[doc(hidden)]
pub fn cli_reference() -> String {
    // Only the definition before it is built tells which options a command inherits.
    let (own, built) = (CliArgs::command(), super::built_command());
    let mut page = PageText::default();
    page.push_line("# Command line");
    page.push_line("");
    page.push_paragraph(
        "A test generates this page from the definition of the command line. `cofferdam COMMAND \
         --help` shows the same text, and `cofferdam man DIR` writes it as man pages.",
    );
    page.push_command(&own, &built, 2);
    format!("{}\n", page.text.trim_end())
}

/// A page with lines of limited width.
#[derive(Default)]
struct PageText {
    text: String,
}

impl PageText {
    fn push_line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn push_paragraph(&mut self, text: &str) {
        self.push_wrapped(text, "", "");
        self.push_line("");
    }

    /// Adds a text that is wrapped between words, with a prefix for its first line and for the
    /// other lines.
    fn push_wrapped(&mut self, text: &str, first_prefix: &str, next_prefix: &str) {
        let mut line = first_prefix.to_owned();
        let mut has_word = false;
        for word in text.split_whitespace() {
            if has_word && line.chars().count() + 1 + word.chars().count() > MAX_COLUMNS {
                self.push_line(&line);
                line = next_prefix.to_owned();
                has_word = false;
            }
            if has_word {
                line.push(' ');
            }
            line.push_str(word);
            has_word = true;
        }
        self.push_line(&line);
    }

    fn push_command(&mut self, own: &Command, built: &Command, level: usize) {
        let name = full_name(built);
        self.push_line(&format!("{} `{name}`", "#".repeat(level.min(3))));
        self.push_line("");
        if let Some(about) = own.get_long_about().or_else(|| own.get_about()) {
            for paragraph in about.to_string().split("\n\n") {
                self.push_paragraph(&with_full_stop(paragraph));
            }
        }
        let usage = built.clone().render_usage().to_string();
        self.push_line(&format!("    {}", usage.trim().trim_start_matches("Usage: ")));
        self.push_line("");
        let is_root = level == 2 && own.get_name() == name;
        let is_listed = |arg: &&Arg| !(arg.is_hide_set() || is_root && arg.is_global_set());
        let args: Vec<&Arg> = own.get_arguments().filter(is_listed).collect();
        self.push_args(&args);
        self.push_subcommands(own, &name);
        self.push_help_text(own);
        if is_root {
            self.push_line("## Global options");
            self.push_line("");
            self.push_paragraph("Every command accepts these options and `-h`, `--help`.");
            let is_shown = |arg: &&Arg| arg.is_global_set() && !arg.is_hide_set();
            let args: Vec<&Arg> = own.get_arguments().filter(is_shown).collect();
            self.push_args(&args);
        }
        // The commands of the program have sections, and their subcommands have subsections.
        let level = if is_root { level } else { level + 1 };
        for command in own.get_subcommands().filter(|command| !command.is_hide_set()) {
            if let Some(built) = built.find_subcommand(command.get_name()) {
                self.push_command(command, built, level);
            }
        }
    }

    fn push_subcommands(&mut self, command: &Command, name: &str) {
        let commands: Vec<&Command> =
            command.get_subcommands().filter(|command| !command.is_hide_set()).collect();
        if commands.is_empty() {
            return;
        }
        self.push_line("Commands:");
        self.push_line("");
        for command in commands {
            let anchor = format!("{name} {}", command.get_name()).replace(' ', "-");
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let text = format!("[`{}`](#{anchor}): {about}", command.get_name());
            self.push_wrapped(&with_full_stop(&text), "- ", "  ");
        }
        self.push_line("");
    }

    fn push_args(&mut self, args: &[&Arg]) {
        for arg in args {
            let text = format!("{}: {}", arg_name(arg), arg_description(arg));
            self.push_wrapped(&text, "- ", "  ");
            for value in arg_values(arg) {
                if let Some(help) = value.get_help() {
                    let text = with_full_stop(&format!("`{}`: {help}", value.get_name()));
                    self.push_wrapped(&text, "  - ", "    ");
                }
            }
        }
        if !args.is_empty() {
            self.push_line("");
        }
    }

    fn push_help_text(&mut self, command: &Command) {
        for paragraph in help_paragraphs(command) {
            match paragraph {
                HelpParagraph::Prose(text) => self.push_paragraph(&text),
                HelpParagraph::Examples(lines) => {
                    self.push_paragraph(if lines.len() == 1 { "Example:" } else { "Examples:" });
                    for line in lines {
                        self.push_line(&format!("    {line}"));
                    }
                    self.push_line("");
                }
            }
        }
    }
}

/// Returns the name of a built command with the names of its parents.
fn full_name(command: &Command) -> String {
    command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned()
}

/// Returns the forms of an argument, such as `-C`, `--workspace <DIR>`.
fn arg_name(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let value = names.iter().map(|name| format!("<{name}>")).collect::<Vec<_>>().join(" ");
    if arg.is_positional() {
        let value = value.trim_start_matches('<').trim_end_matches('>').to_owned();
        return if arg.is_required_set() { format!("`<{value}>`") } else { format!("`[{value}]`") };
    }
    let long = arg.get_long().map(|long| match arg.get_action().takes_values() {
        true => format!("`--{long} {value}`"),
        false => format!("`--{long}`"),
    });
    let short = arg.get_short().map(|short| format!("`-{short}`"));
    short.into_iter().chain(long).collect::<Vec<_>>().join(", ")
}

fn arg_description(arg: &Arg) -> String {
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let mut text = describe_brackets(&help);
    if matches!(arg.get_action(), ArgAction::Count) {
        text.push_str(" Can be repeated.");
    }
    let values = arg_values(arg);
    if !values.is_empty() && values.iter().all(|value| value.get_help().is_none()) {
        let names: Vec<String> =
            values.iter().map(|value| format!("`{}`", value.get_name())).collect();
        text.push_str(&format!(" Values: {}.", names.join(", ")));
    }
    let defaults = arg.get_default_values();
    if arg.get_action().takes_values() && !defaults.is_empty() {
        let names: Vec<String> =
            defaults.iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
        text.push_str(&format!(" Default: {}.", names.join(", ")));
    }
    text
}

/// Replaces the notes at the end of a help text, such as `[default: 40]`, by sentences.
fn describe_brackets(help: &str) -> String {
    let mut notes = help.split(" [");
    let mut text = with_full_stop(notes.next().unwrap_or_default());
    for note in notes {
        let sentence = match note.trim_end_matches(']').split_once(": ") {
            Some(("default", value)) => format!("Default: {value}."),
            Some(("env", name)) => format!("Environment variable: `{}`.", name.trim()),
            Some(_) | None => format!("[{note}"),
        };
        text.push(' ');
        text.push_str(&sentence);
    }
    text
}

/// Returns the values that a user can choose from.
fn arg_values(arg: &Arg) -> Vec<clap::builder::PossibleValue> {
    if !arg.get_action().takes_values() {
        return Vec::new();
    }
    arg.get_possible_values().into_iter().filter(|value| !value.is_hide_set()).collect()
}

fn with_full_stop(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_in_brackets_become_sentences() {
        let text = describe_brackets("Number of calls [default: 4] [env: COUNT]");
        assert_eq!(text, "Number of calls. Default: 4. Environment variable: `COUNT`.");
        assert_eq!(describe_brackets("A text"), "A text.");
    }

    #[test]
    fn texts_are_wrapped_between_words() {
        let mut page = PageText::default();
        page.push_wrapped(&"word ".repeat(30), "- ", "  ");
        let lines: Vec<&str> = page.text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("- word") && lines[0].len() <= MAX_COLUMNS, "{lines:?}");
        assert!(lines[1].starts_with("  word"), "{lines:?}");
    }
}
