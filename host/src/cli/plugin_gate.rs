//! Letting plugins of strangers in: those that were accepted, and those that somebody at the
//! terminal accepts now.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::args::CommonArgs;
use super::confirm;
use super::error::CliError;
use super::print::eprint_line;
use crate::config::{PluginLockFile, resolve_links};
use crate::sandbox::LoadedPlugin;
use crate::terminal_escape;
use crate::tools::{AcceptanceStatus, AcceptedPlugins, AuthorityChange};

/// Who decides on plugins that were not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnacceptedPolicy {
    /// Nobody: they are only looked at, and nothing of them is called.
    Allow,
    /// Somebody at the terminal; without one they stay outside.
    Ask,
    /// Nobody: nothing runs if there is one (`--locked`).
    Locked,
}

/// The door and who was let in before.
pub(super) struct PluginGate<'a> {
    unaccepted_policy: UnacceptedPolicy,
    record_acceptance: RecordAcceptance<'a>,
    lock_file: PluginLockFile,
    accepted: AcceptedPlugins,
    /// What was said on the command line, for the command that accepts a plugin.
    common: &'a CommonArgs,
}

/// Puts on record who is let in, before they are.
pub(super) type RecordAcceptance<'a> = &'a dyn Fn(&AuthorityChange<'_>) -> Result<(), CliError>;

impl<'a> PluginGate<'a> {
    pub(super) fn new(
        door: UnacceptedPolicy,
        file: PluginLockFile,
        record: RecordAcceptance<'a>,
        common: &'a CommonArgs,
    ) -> Result<Self, CliError> {
        let lock = match (door, file.read()) {
            (_, Ok(lock)) => lock,
            // Who only looks is not kept from it by a broken lock.
            (UnacceptedPolicy::Allow, Err(problem)) => {
                eprint_line(&terminal_escape::escape_line(
                    &format!("warning: plugins that were added are not shown: {problem}"),
                    1000,
                ));
                AcceptedPlugins::new()
            }
            (UnacceptedPolicy::Ask | UnacceptedPolicy::Locked, Err(problem)) => {
                return Err(problem.into());
            }
        };
        Ok(Self {
            unaccepted_policy: door,
            record_acceptance: record,
            lock_file: file,
            accepted: lock,
            common,
        })
    }

    /// The plugins that were added by name, where they are kept.
    pub(super) fn added_paths(&self) -> Vec<PathBuf> {
        let folder = self.lock_file.plugin_dir();
        self.accepted.added_plugins().map(|(_, added)| folder.join(&added.file)).collect()
    }

    /// Where a plugin comes from: the path of its file without links, and the source that it was
    /// added from.
    pub(super) fn plugin_origins(&self, path: &Path) -> Vec<String> {
        let folder = self.lock_file.plugin_dir();
        let sources = self
            .accepted
            .added_plugins()
            .filter(|(_, added)| folder.join(&added.file) == path)
            .map(|(_, added)| added.source.clone());
        std::iter::once(resolve_links(path).display().to_string()).chain(sources).collect()
    }

    /// Whether a plugin may be used, or why not.
    pub(super) fn check_plugin(
        &mut self,
        path: &Path,
        plugin: &LoadedPlugin,
    ) -> Result<(), String> {
        let standing = self.accepted.status(path, plugin);
        match (self.unaccepted_policy, &standing) {
            (UnacceptedPolicy::Allow, _) | (_, AcceptanceStatus::Accepted) => return Ok(()),
            (
                UnacceptedPolicy::Locked,
                AcceptanceStatus::New | AcceptanceStatus::Changed { .. },
            ) => {
                return Err(format!("{}. --locked asks nobody", describe_status(&standing)));
            }
            (UnacceptedPolicy::Ask, AcceptanceStatus::New | AcceptanceStatus::Changed { .. }) => {}
        }
        let text = acceptance_text(
            path,
            plugin,
            &standing,
            self.accepted.similarity_notice(path, plugin).as_deref(),
        );
        match confirm::confirm(&text, "Let it in, as it is?") {
            Some(true) => {
                let (name, wider) =
                    (path.display().to_string(), self.accepted.new_permissions(path, plugin));
                let change = AuthorityChange::PluginAccepted {
                    path: &name,
                    digest: plugin.digest(),
                    new_permissions: &wider,
                };
                (self.record_acceptance)(&change).map_err(|error| error.message().to_owned())?;
                self.accepted.accept_plugin(path, plugin);
                self.lock_file
                    .update(|lock| lock.accept_plugin(path, plugin))
                    .map_err(|error| error.to_string())
            }
            Some(false) => Err("you did not accept it".into()),
            None => {
                let command = acceptance_command(self.common, path);
                Err(format!(
                    "{}, and there is no terminal to ask at. Look at it, and accept it with \
                        `{command}`",
                    describe_status(&standing)
                ))
            }
        }
    }

    /// With `--locked`, a plugin that stays outside stops everything.
    pub(super) fn check_locked(
        &self,
        refused: &[crate::tools::RefusedPlugin],
    ) -> Result<(), CliError> {
        match (self.unaccepted_policy, refused.first()) {
            (UnacceptedPolicy::Locked, Some(refused)) => {
                let message = format!(
                    "{}: the plugin {} is refused: {}",
                    self.lock_file.path().display(),
                    refused.origin,
                    refused.reason
                );
                Err(CliError::configuration(message))
            }
            (UnacceptedPolicy::Locked | UnacceptedPolicy::Allow | UnacceptedPolicy::Ask, _) => {
                Ok(())
            }
        }
    }
}

/// The command that accepts a plugin as it is where nobody can be asked: what is only named on the
/// command line has to be named there again.
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

/// A path as a shell reads it.
fn shell_quote(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// How a plugin stands, as the beginning of a sentence.
pub(super) fn describe_status(standing: &AcceptanceStatus) -> String {
    match standing {
        AcceptanceStatus::Accepted => "it is what was accepted".into(),
        AcceptanceStatus::New => "it was never accepted".into(),
        AcceptanceStatus::Changed { new_permissions: wider } if wider.is_empty() => {
            "it has another content than what was accepted, and asks for nothing more".into()
        }
        AcceptanceStatus::Changed { new_permissions: wider } => {
            format!("it is not what was accepted: {}", wider.join("; "))
        }
    }
}

/// Everything to decide by.
pub(super) fn acceptance_text(
    path: &Path,
    plugin: &LoadedPlugin,
    standing: &AcceptanceStatus,
    remark: Option<&str>,
) -> String {
    let mut text = format!(
        "\n? The plugin {}: {}.\n",
        terminal_escape::escape_name(&path.display().to_string(), usize::MAX),
        terminal_escape::escape_name(&describe_status(standing), usize::MAX)
    );
    if let Some(remark) = remark {
        let _ = writeln!(text, "  Note: {}.", terminal_escape::escape_name(remark, usize::MAX));
    }
    for tool in &plugin.declaration().tools {
        let asks: Vec<String> = tool.asks.iter().map(ToString::to_string).collect();
        let asks = if asks.is_empty() {
            "asks for nothing".to_owned()
        } else {
            format!("asks to {}", asks.join("; "))
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
