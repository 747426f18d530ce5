//! What went wrong before anything could be done, for the person at the terminal: what, and what to
//! do about it.

use std::process::ExitCode;

use super::exit;
use super::print::eprint_line;
use crate::audit::AuditError;
use crate::config::{
    ConfigError, HomeDirectoryError, LockFileError, PolicyFileError, PolicyTrustError,
    SettingsError, UserDirectoryError,
};
use crate::model::{ModelChoiceError, RecordError};
use crate::plugins::{PluginStoreError, SourceError};
use crate::sandbox::{CacheError, HistoryError, SandboxError, WorkspaceError};
use crate::session::SessionError;

/// An error with an exit code.
#[derive(Debug)]
pub(super) struct CliError {
    message: String,
    code: u8,
}

/// What a command comes to.
pub(super) type CommandResult = Result<ExitCode, CliError>;

impl CliError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: exit::FAILURE }
    }

    pub(super) fn configuration(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: exit::CONFIGURATION_ERROR }
    }

    /// With more to know, on a line of its own.
    pub(super) fn with_detail(self, more: &str) -> Self {
        Self { message: format!("{}\n{more}", self.message), ..self }
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    pub(super) fn code(&self) -> u8 {
        self.code
    }

    /// Prints it.
    pub(super) fn report(self) -> ExitCode {
        eprint_line(&format!("cofferdam: {}", crate::terminal_escape::escape_text(&self.message)));
        ExitCode::from(self.code)
    }
}

macro_rules! from {
    ($($error:ty => $kind:ident),* $(,)?) => {
        $(impl From<$error> for CliError {
            fn from(error: $error) -> Self {
                Self::$kind(error.to_string())
            }
        })*
    };
}

from! {
    ConfigError => configuration,
    SettingsError => configuration,
    PolicyFileError => configuration,
    PolicyTrustError => configuration,
    LockFileError => configuration,
    HomeDirectoryError => configuration,
    UserDirectoryError => configuration,
    CacheError => configuration,
    ModelChoiceError => configuration,
    RecordError => new,
    HistoryError => new,
    SandboxError => new,
    WorkspaceError => configuration,
    SessionError => new,
    PluginStoreError => new,
    SourceError => new,
    AuditError => new,
    std::io::Error => new,
}
