//! Admission of plugins: those accepted before, and those that the user accepts now at the
//! terminal.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::args::CommonArgs;
use super::confirm;
use super::error::CliError;
use super::print::eprint_line;
use cofferdam::config::{PluginLockFile, resolve_links};
use cofferdam::host::PluginReview;
use cofferdam::sandbox::LoadedPlugin;
use cofferdam::terminal_escape;
use cofferdam::tools::{AcceptanceStatus, AcceptedPlugins, AuthorityChange};

/// What happens to plugins that are not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnacceptedPolicy {
    /// They are loaded for inspection, and none of their tools is called.
    Allow,
    /// The user is asked; without a terminal they are refused.
    Ask,
    /// Nothing runs if there is one (`--locked`).
    Locked,
}

/// Checks plugins against the lock file before their tools are offered.
pub(super) struct PluginGate<'a> {
    unaccepted_policy: UnacceptedPolicy,
    record_acceptance: RecordAcceptance<'a>,
    lock_file: PluginLockFile,
    accepted: AcceptedPlugins,
    /// The command-line options, for the hint with the accepting command.
    common: &'a CommonArgs,
}

/// Records the acceptance of a plugin before it takes effect.
pub(super) type RecordAcceptance<'a> = &'a dyn Fn(&AuthorityChange<'_>) -> Result<(), CliError>;

impl<'a> PluginGate<'a> {
    pub(super) fn new(
        unaccepted_policy: UnacceptedPolicy,
        file: PluginLockFile,
        record: RecordAcceptance<'a>,
        common: &'a CommonArgs,
    ) -> Result<Self, CliError> {
        let lock = match (unaccepted_policy, file.read()) {
            (_, Ok(lock)) => lock,
            // A broken lock file does not prevent inspection.
            (UnacceptedPolicy::Allow, Err(problem)) => {
                eprint_line(&terminal_escape::escape_line(
                    &format!("warning: cannot show the added plugins: {problem}"),
                    1000,
                ));
                AcceptedPlugins::new()
            }
            (UnacceptedPolicy::Ask | UnacceptedPolicy::Locked, Err(problem)) => {
                return Err(problem.into());
            }
        };
        Ok(Self {
            unaccepted_policy,
            record_acceptance: record,
            lock_file: file,
            accepted: lock,
            common,
        })
    }

    /// Returns the paths of the added plugins.
    pub(super) fn added_paths(&self) -> Vec<PathBuf> {
        let directory = self.lock_file.plugin_dir();
        self.accepted.added_plugins().map(|(_, added)| directory.join(&added.file)).collect()
    }

    /// Checks whether a plugin may be used, and asks the user if necessary.
    ///
    /// # Errors
    ///
    /// The reason for the refusal.
    fn check_plugin(&mut self, path: &Path, plugin: &LoadedPlugin) -> Result<(), String> {
        let status = self.accepted.status(path, plugin);
        match (self.unaccepted_policy, &status) {
            (UnacceptedPolicy::Allow, _) | (_, AcceptanceStatus::Accepted) => return Ok(()),
            (
                UnacceptedPolicy::Locked,
                AcceptanceStatus::New | AcceptanceStatus::Changed { .. },
            ) => {
                return Err(format!("{}; `--locked` never asks", describe_status(&status)));
            }
            (UnacceptedPolicy::Ask, AcceptanceStatus::New | AcceptanceStatus::Changed { .. }) => {}
        }
        let text = acceptance_text(
            path,
            plugin,
            &status,
            self.accepted.similarity_notice(path, plugin).as_deref(),
        );
        match confirm::confirm(&text, "Accept this plugin?") {
            Some(true) => {
                let (name, new_permissions) =
                    (path.display().to_string(), self.accepted.new_permissions(path, plugin));
                let change = AuthorityChange::PluginAccepted {
                    path: &name,
                    digest: plugin.digest(),
                    new_permissions: &new_permissions,
                };
                (self.record_acceptance)(&change).map_err(|error| error.message().to_owned())?;
                self.accepted.accept_plugin(path, plugin);
                self.lock_file
                    .update(|lock| lock.accept_plugin(path, plugin))
                    .map_err(|error| error.to_string())
            }
            Some(false) => Err("you rejected it".into()),
            None => {
                let command = acceptance_command(self.common, path);
                Err(format!(
                    "{}, and there is no terminal for confirmation; review it, and accept it with \
                        `{command}`",
                    describe_status(&status)
                ))
            }
        }
    }

    /// With `--locked`, fails if any plugin was refused.
    pub(super) fn check_locked(
        &self,
        refused: &[cofferdam::tools::RefusedPlugin],
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

impl PluginReview for PluginGate<'_> {
    /// Returns the path of the file with links resolved, and the source of an added plugin.
    fn origins(&self, path: &Path) -> Vec<String> {
        let directory = self.lock_file.plugin_dir();
        let sources = self
            .accepted
            .added_plugins()
            .filter(|(_, added)| directory.join(&added.file) == path)
            .map(|(_, added)| added.source.clone());
        std::iter::once(resolve_links(path).display().to_string()).chain(sources).collect()
    }

    fn compilation_started(&self, name: &str) {
        eprint_line(&terminal_escape::escape_line(
            &format!("compiling tool `{name}` for this machine (once) …"),
            200,
        ));
    }

    fn review(&mut self, path: &Path, plugin: &LoadedPlugin) -> Result<(), String> {
        self.check_plugin(path, plugin)
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

/// Describes the acceptance status, as the beginning of a sentence.
pub(super) fn describe_status(status: &AcceptanceStatus) -> String {
    match status {
        AcceptanceStatus::Accepted => "accepted".into(),
        AcceptanceStatus::New => "it is not accepted yet".into(),
        AcceptanceStatus::Changed { new_permissions } if new_permissions.is_empty() => {
            "its content changed since you accepted it, and it requests no new permissions".into()
        }
        AcceptanceStatus::Changed { new_permissions } => {
            format!("it changed since you accepted it: {}", new_permissions.join("; "))
        }
    }
}

/// Formats a plugin for the decision: status, tools with their permissions, and digest.
pub(super) fn acceptance_text(
    path: &Path,
    plugin: &LoadedPlugin,
    status: &AcceptanceStatus,
    remark: Option<&str>,
) -> String {
    let mut text = format!(
        "\n? The plugin {}: {}.\n",
        terminal_escape::escape_name(&path.display().to_string(), usize::MAX),
        terminal_escape::escape_name(&describe_status(status), usize::MAX)
    );
    if let Some(remark) = remark {
        let _ = writeln!(text, "  Note: {}.", terminal_escape::escape_name(remark, usize::MAX));
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
