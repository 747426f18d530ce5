//! The dialog in which the user accepts plugins at the terminal.

use std::fmt::Write as _;
use std::path::Path;

use super::args::CommonArgs;
use super::error::CliError;
use super::print::eprint_line;
use super::{confirm, context};
use cofferdam::plugins::{AcceptanceDialog, PluginCandidate};
use cofferdam::terminal_escape;
use cofferdam::tools::AuthorityChange;

/// Asks at the terminal whether to accept a plugin.
pub(super) struct TerminalAcceptance<'a> {
    /// The command-line options, for the hint with the accepting command.
    pub(super) common: &'a CommonArgs,
    /// Whether the user of the terminal may be asked. A server of another program must not ask:
    /// the terminal belongs to that program.
    pub(super) may_ask: bool,
    /// Records the acceptance of a plugin before it takes effect.
    pub(super) record: &'a dyn Fn(&AuthorityChange<'_>) -> Result<(), CliError>,
}

impl AcceptanceDialog for TerminalAcceptance<'_> {
    fn ask(&self, candidate: &PluginCandidate<'_>) -> Result<(), String> {
        let answer = if self.may_ask {
            confirm::confirm(&acceptance_text(candidate), "Accept this plugin?")
        } else {
            None
        };
        match answer {
            Some(true) => Ok(()),
            Some(false) => Err("you rejected it".into()),
            None => Err(format!(
                "{}, and there is no terminal for confirmation; review it, and accept it with `{}`",
                candidate.status.describe(),
                acceptance_command(self.common, candidate.path)
            )),
        }
    }

    fn record(&self, change: &AuthorityChange<'_>) -> Result<(), String> {
        (self.record)(change).map_err(|error| error.message().to_owned())
    }

    fn compilation_started(&self, name: &str) {
        eprint_line(&terminal_escape::escape_line(
            &format!("compiling tool `{name}` for this machine (once) …"),
            200,
        ));
    }

    fn warn(&self, problem: &str) {
        context::warn(problem);
    }
}

/// Returns the command that accepts a plugin without a terminal. It repeats `--plugin` for a plugin
/// that is only on the command line.
fn acceptance_command(common: &CommonArgs, path: &Path) -> String {
    let mut command = "cofferdam lock --yes".to_owned();
    if let Some(config) = &common.config {
        let _ = write!(command, " --config {}", shell_quote(config));
    }
    if common.plugins.iter().any(|named| named == path) {
        let _ = write!(command, " --plugin {}", shell_quote(path));
    }
    command
}

/// Quotes a path for a shell.
fn shell_quote(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// Formats a plugin for the decision: status, tools with their permissions, and digest.
pub(super) fn acceptance_text(candidate: &PluginCandidate<'_>) -> String {
    let PluginCandidate { path, plugin, status, similarity_notice } = candidate;
    let mut text = format!(
        "\n? The plugin {}: {}.\n",
        terminal_escape::escape_name(&path.display().to_string(), usize::MAX),
        terminal_escape::escape_name(&status.describe(), usize::MAX)
    );
    if let Some(notice) = similarity_notice {
        let _ = writeln!(text, "  Note: {}.", terminal_escape::escape_name(notice, usize::MAX));
    }
    for tool in &plugin.declaration().tools {
        let asks: Vec<String> = tool.asks.iter().map(ToString::to_string).collect();
        let asks = if asks.is_empty() {
            "requests no permissions".to_owned()
        } else {
            format!("requests permission to {}", asks.join("; "))
        };
        let _ = writeln!(
            text,
            "    {:20} {}",
            terminal_escape::escape_line(&tool.name, 64),
            terminal_escape::escape_name(&asks, usize::MAX)
        );
    }
    let _ = write!(text, "  sha256:{}", plugin.digest());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_for_a_shell() {
        let words = ["/home/me/a_b.wasm", "a b.wasm", "it's.wasm", "$(x)"]
            .map(|path| shell_quote(Path::new(path)));
        assert_eq!(words, ["/home/me/a_b.wasm", "'a b.wasm'", "'it'\\''s.wasm'", "'$(x)'"]);
    }
}
