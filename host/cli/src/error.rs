//! Errors of commands, as printed for the user: what failed, and what to do about it.

use std::process::ExitCode;

use super::exit;
use super::print::eprint_line;
use cofferdam::HostError;
use cofferdam::audit::AuditError;
use cofferdam::config::{
    ConfigError, HomeDirectoryError, PolicyFileError, PolicyTrustError, SettingsError,
    UserDirectoryError,
};
use cofferdam::model::{ModelChoiceError, RecordError};
use cofferdam::plugins::{LockFileError, PluginStoreError, SourceError, UnacceptedPluginError};
use cofferdam::sandbox::{CacheError, HistoryError, SandboxError, WorkspaceError};
use cofferdam::session::SessionError;

/// An error message with the exit code of the program.
#[derive(Debug)]
pub(super) struct CliError {
    message: String,
    code: u8,
}

/// The result of a command: its exit code or an error.
pub(super) type CommandResult = Result<ExitCode, CliError>;

impl CliError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: exit::FAILURE }
    }

    pub(super) fn configuration(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: exit::CONFIGURATION_ERROR }
    }

    /// Appends a detail on a line of its own.
    pub(super) fn with_detail(self, more: &str) -> Self {
        Self { message: format!("{}\n{more}", self.message), ..self }
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    pub(super) fn code(&self) -> u8 {
        self.code
    }

    /// Prints the error and returns its exit code.
    pub(super) fn report(self) -> ExitCode {
        eprint_line(&format!(
            "cofferdam: {}",
            cofferdam::terminal_escape::escape_text(&self.message)
        ));
        ExitCode::from(self.code)
    }
}

impl From<HostError> for CliError {
    fn from(error: HostError) -> Self {
        let text = error.to_string();
        match error {
            HostError::Sandbox(_)
            | HostError::CurrentProgram(_)
            | HostError::Audit(_)
            | HostError::NoAuditDirectory
            | HostError::NoCall => Self::new(text),
            _ => Self::configuration(text),
        }
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
    UnacceptedPluginError => configuration,
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
