//! Letting plugins of strangers in: those that were accepted, and those that somebody at the terminal accepts now.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::args::Common;
use super::ask;
use super::error::CliError;
use super::print::stderr_line;
use crate::config::LockFile;
use crate::sandbox::Plugin;
use crate::shown;
use crate::tools::{Change, Lock, Standing};

/// Who decides on plugins that were not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    /// Nobody: they are only looked at, and nothing of them is called.
    Open,
    /// Somebody at the terminal; without one they stay outside.
    Asks,
    /// Nobody: nothing runs if there is one (`--locked`).
    Locked,
}

/// The door and who was let in before.
pub(super) struct Admission<'a> {
    door: Door,
    record: Recorder<'a>,
    file: LockFile,
    lock: Lock,
    /// What was said on the command line, for the command that accepts a plugin.
    common: &'a Common,
}

/// Puts on record who is let in, before they are.
pub(super) type Recorder<'a> = &'a dyn Fn(&Change<'_>) -> Result<(), CliError>;

impl<'a> Admission<'a> {
    pub(super) fn new(door: Door, file: LockFile, record: Recorder<'a>, common: &'a Common) -> Result<Self, CliError> {
        let lock = match (door, file.read()) {
            (_, Ok(lock)) => lock,
            // Who only looks is not kept from it by a broken lock.
            (Door::Open, Err(problem)) => {
                stderr_line(&shown::line(&format!("warning: plugins that were added are not shown: {problem}"), 1000));
                Lock::new()
            }
            (Door::Asks | Door::Locked, Err(problem)) => return Err(problem.into()),
        };
        Ok(Self { door, record, file, lock, common })
    }

    /// The plugins that were added by name, where they are kept.
    pub(super) fn added(&self) -> Vec<PathBuf> {
        let folder = self.file.added_plugins();
        self.lock.added().map(|(_, added)| folder.join(&added.file)).collect()
    }

    /// Whether a plugin may be used, or why not.
    pub(super) fn admits(&mut self, path: &Path, plugin: &Plugin) -> Result<(), String> {
        let standing = self.lock.standing(path, plugin);
        match (self.door, &standing) {
            (Door::Open, _) | (_, Standing::Accepted) => return Ok(()),
            (Door::Locked, Standing::New | Standing::Changed { .. }) => {
                return Err(format!("{}. --locked asks nobody", summary(&standing)));
            }
            (Door::Asks, Standing::New | Standing::Changed { .. }) => {}
        }
        let text = describe(path, plugin, &standing, self.lock.remark(path, plugin).as_deref());
        match ask::yes_or_no(&text, "Let it in, as it is?") {
            Some(true) => {
                let (name, wider) = (path.display().to_string(), self.lock.wider(path, plugin));
                let change = Change::PluginAccepted { path: &name, digest: plugin.digest(), wider: &wider };
                (self.record)(&change).map_err(|error| error.message().to_owned())?;
                self.lock.accept(path, plugin);
                self.file.change(|lock| lock.accept(path, plugin)).map_err(|error| error.to_string())
            }
            Some(false) => Err("you did not accept it".into()),
            None => {
                let command = accepting(self.common, path);
                Err(format!("{}, and there is no terminal to ask at. Look at it, and accept it with `{command}`", summary(&standing)))
            }
        }
    }

    /// With `--locked`, a plugin that stays outside stops everything.
    pub(super) fn check_refused(&self, refused: &[crate::tools::Refused]) -> Result<(), CliError> {
        match (self.door, refused.first()) {
            (Door::Locked, Some(refused)) => {
                let message = format!("{}: the plugin {} is refused: {}", self.file.path().display(), refused.origin, refused.reason);
                Err(CliError::configuration(message))
            }
            (Door::Locked | Door::Open | Door::Asks, _) => Ok(()),
        }
    }
}

/// The command that accepts a plugin as it is where nobody can be asked: what is only named on the command line has to be named there
/// again.
fn accepting(common: &Common, path: &Path) -> String {
    let mut command = "cofferdam lock --yes".to_owned();
    if let Some(config) = &common.config {
        let _ = write!(command, " --config {}", quoted(config));
    }
    if common.plugins.iter().any(|named| named == path) {
        let _ = write!(command, " --plugin {}", quoted(path));
    }
    command
}

/// A path as a shell reads it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// How a plugin stands, as the beginning of a sentence.
pub(super) fn summary(standing: &Standing) -> String {
    match standing {
        Standing::Accepted => "it is what was accepted".into(),
        Standing::New => "it was never accepted".into(),
        Standing::Changed { wider } if wider.is_empty() => {
            "it has another content than what was accepted, and asks for nothing more".into()
        }
        Standing::Changed { wider } => format!("it is not what was accepted: {}", wider.join("; ")),
    }
}

/// Everything to decide by.
pub(super) fn describe(path: &Path, plugin: &Plugin, standing: &Standing, remark: Option<&str>) -> String {
    let mut text = format!(
        "\n? The plugin {}: {}.\n",
        shown::name(&path.display().to_string(), usize::MAX),
        shown::name(&summary(standing), usize::MAX)
    );
    if let Some(remark) = remark {
        let _ = writeln!(text, "  Note: {}.", shown::name(remark, usize::MAX));
    }
    for tool in &plugin.declaration().tools {
        let asks: Vec<String> = tool.asks.iter().map(ToString::to_string).collect();
        let asks = if asks.is_empty() { "asks for nothing".to_owned() } else { format!("asks to {}", asks.join("; ")) };
        let _ = writeln!(text, "    {:20} {}", shown::line(&tool.name, 64), shown::name(&asks, usize::MAX));
    }
    let _ = write!(text, "  sha256:{}", plugin.digest());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_for_a_shell() {
        let words = ["/home/me/a_b.wasm", "a b.wasm", "it's.wasm", "$(x)"].map(|path| quoted(Path::new(path)));
        assert_eq!(words, ["/home/me/a_b.wasm", "'a b.wasm'", "'it'\\''s.wasm'", "'$(x)'"]);
    }
}
