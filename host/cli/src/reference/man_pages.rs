//! `cofferdam man`: man pages of the program and its commands.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::help_text::{HelpParagraph, help_paragraphs};
use crate::error::{CliError, CommandResult};
use crate::print;

/// Prints the page of the program, or writes the pages of all commands to a directory.
pub(crate) fn run(directory: Option<&Path>) -> CommandResult {
    let command = super::built_command();
    let Some(directory) = directory else {
        print::print_text(&page_text(&command)?);
        return Ok(ExitCode::SUCCESS);
    };
    let write_error = |path: &Path, error: &io::Error| {
        CliError::new(format!("cannot write {}: {error}", path.display()))
    };
    fs::create_dir_all(directory).map_err(|error| write_error(directory, &error))?;
    let mut commands = Vec::new();
    collect_commands(&command, &mut commands);
    for command in &commands {
        let path = directory.join(format!("{}.1", page_name(command)));
        fs::write(&path, page_text(command)?).map_err(|error| write_error(&path, &error))?;
    }
    let count = commands.len();
    print::print_line(&format!("wrote {count} man pages to {}", directory.display()));
    Ok(ExitCode::SUCCESS)
}

fn collect_commands<'a>(command: &'a Command, commands: &mut Vec<&'a Command>) {
    commands.push(command);
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        collect_commands(command, commands);
    }
}

/// Returns the name of the page, such as `cofferdam-sessions-list`.
fn page_name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn page_text(command: &Command) -> io::Result<String> {
    let man = Man::new(command.clone())
        .source(concat!("cofferdam ", env!("CARGO_PKG_VERSION")))
        .manual("User Commands");
    let mut page = ManPageText::default();
    page.push_section(|out| man.render_title(out))?;
    page.push_section(|out| man.render_name_section(out))?;
    page.push_section(|out| man.render_synopsis_section(out))?;
    page.push_section(|out| man.render_description_section(out))?;
    page.push_section(|out| man.render_options_section(out))?;
    if command.has_subcommands() {
        page.push_section(|out| man.render_subcommands_section(out))?;
    }
    let (examples, notes) = extra_sections(command);
    for section in [notes, examples].into_iter().flatten() {
        page.push_section(|out| section.to_writer(out))?;
    }
    Ok(page.text)
}

/// Returns the sections with the examples and with the prose below the options.
fn extra_sections(command: &Command) -> (Option<Roff>, Option<Roff>) {
    let (mut examples, mut notes) = (None, None);
    for paragraph in help_paragraphs(command) {
        match paragraph {
            HelpParagraph::Examples(lines) => {
                let section = examples.get_or_insert_with(|| new_section("EXAMPLES"));
                section.control("nf", []);
                for line in lines {
                    section.text([roman(line)]);
                }
                section.control("fi", []);
            }
            HelpParagraph::Prose(text) => {
                let section = notes.get_or_insert_with(|| new_section("NOTES"));
                section.control("PP", []);
                section.text([roman(text)]);
            }
        }
    }
    (examples, notes)
}

fn new_section(title: &str) -> Roff {
    let mut section = Roff::new();
    section.control("SH", [title]);
    section
}

/// A page whose sections are rendered one after the other.
#[derive(Default)]
struct ManPageText {
    text: String,
}

impl ManPageText {
    /// Adds the title or a section. Each rendered text begins with the same definitions, which the
    /// page keeps once.
    fn push_section(
        &mut self,
        render: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut section = Vec::new();
        render(&mut section)?;
        let section = String::from_utf8_lossy(&section);
        if self.text.is_empty() {
            // The page has no date, and an empty argument needs quotation marks.
            self.text = section.replacen(" 1  \"", " 1 \"\" \"", 1);
        } else {
            let start = section.find("\n.SH ").map_or(0, |start| start + 1);
            self.text.push_str(section.get(start..).unwrap_or_default());
        }
        Ok(())
    }
}
