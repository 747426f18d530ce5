//! `cofferdam audit`, and the audit log of a run.

mod args;
mod command_text;
mod export;
mod prune;
mod record_text;
mod show;
mod verify;

use std::process::ExitCode;
use std::sync::Arc;

use super::args::CommonArgs;
use super::context::{self, model_settings};
use super::error::{CliError, CommandResult};
use super::exit;
use super::print::eprint_line;
use super::user_dirs;
pub(super) use args::AuditArgs;
use args::AuditCommand;
use cofferdam::audit::{
    AuditInspection, AuditRunStart, AuditStore, AuditWriter, InspectedLog, Principal, inspect_logs,
};
use cofferdam::config::{RunSettings, UserDirectories};
use cofferdam::host::{AuditOptions, NoticeHandler};
use cofferdam::session::RedactSecrets;
use cofferdam::terminal_escape;
use cofferdam::tools::{AuditSink as _, AuthorityChange};

pub(super) fn run(common: &CommonArgs, args: &AuditArgs) -> CommandResult {
    let store = AuditStore::new(user_dirs::for_current_user(&common.environment)?.audit());
    let AuditArgs { command, session } = args;
    if let AuditCommand::Prune(which) = command {
        if session.is_some() {
            return Err(CliError::new(
                "`--session` cannot be used with `prune`: only the oldest logs can be removed, \
                    because each log refers to the previous one",
            ));
        }
        return prune::run(common, &store, which);
    }
    let AuditInspection { mut logs, directory_error: problem, .. } = inspect_logs(&store)?;
    if let Some(prefix) = session {
        logs.retain(|log| {
            log.session().is_some_and(|id| id.starts_with(prefix))
                || log.name.as_str().starts_with(prefix)
        });
        if logs.is_empty() {
            return Err(CliError::new(format!(
                "no audit log whose session or name begins with `{prefix}`"
            )));
        }
    }
    let result = match command {
        AuditCommand::Show { tool, json } => show::run(&logs, tool.as_deref(), *json),
        AuditCommand::Verify { contains } => verify::run(&logs, contains),
        AuditCommand::Export { format } => export::run(&logs, *format),
        AuditCommand::Prune(_) => Ok(ExitCode::SUCCESS),
    };
    match problem {
        Some(problem) => {
            eprint_line(&terminal_escape::escape_line(&format!("warning: {problem}"), 600));
            result.map(|_| ExitCode::from(exit::FAILURE))
        }
        None => result,
    }
}

/// Records a change of authority by a command that calls no tool, before the change takes effect.
///
/// # Errors
///
/// If `audit.required` is on and the record cannot be written. The command must then change
/// nothing.
pub(super) fn record_change(
    settings: &RunSettings,
    user_dirs: &UserDirectories,
    common: &CommonArgs,
    change: &AuthorityChange<'_>,
) -> Result<(), CliError> {
    ChangeLog::begin(settings, user_dirs, common)?.record(change)
}

/// The part of the audit log for changes that the user makes outside of sessions.
pub(super) struct ChangeLog(Option<Arc<AuditWriter>>);

impl ChangeLog {
    /// Begins the log, unless the settings disable it.
    pub(super) fn begin(
        settings: &RunSettings,
        user_dirs: &UserDirectories,
        common: &CommonArgs,
    ) -> Result<Self, CliError> {
        let Some(options) = audit_options(settings, user_dirs) else { return Ok(Self(None)) };
        let notify: NoticeHandler = Arc::new(context::warn);
        let start = run_start_without_tools(settings, common);
        Ok(Self(options.begin(&start, key_redactor(settings), &notify)?))
    }

    /// Records a change.
    pub(super) fn record(&self, change: &AuthorityChange<'_>) -> Result<(), CliError> {
        let Some(audit) = &self.0 else { return Ok(()) };
        audit.record_change(change).map_err(|error| {
            CliError::new(format!("cannot record the change in the audit log: {error}"))
        })
    }
}

fn run_start_without_tools(settings: &RunSettings, common: &CommonArgs) -> AuditRunStart<'static> {
    let workspace = &common.workspace;
    AuditRunStart {
        principal: Principal::new(&common.environment),
        session: None,
        workspace: workspace
            .canonicalize()
            .unwrap_or_else(|_| workspace.clone())
            .display()
            .to_string(),
        mode: settings.mode,
        policy: None,
        model: None,
        least_command_sandbox: settings.commands.minimum,
        required: settings.audit.required,
    }
}

fn key_redactor(settings: &RunSettings) -> RedactSecrets {
    let secrets = model_settings(settings).secrets();
    Box::new(move |text: &str| {
        secrets.iter().fold(text.to_owned(), |text, secret| secret.redact(&text))
    })
}

/// Returns the audit log of the settings; `None` if it is disabled.
pub(super) fn audit_options(
    settings: &RunSettings,
    user_dirs: &UserDirectories,
) -> Option<AuditOptions> {
    settings.audit.enabled.then(|| AuditOptions {
        // Without a home directory the log would be in a temporary place and vanish with the run.
        store: user_dirs.has_home().then(|| AuditStore::new(user_dirs.audit())),
        required: settings.audit.required,
    })
}

/// Describes each error of a log; empty if the log is intact.
fn log_errors(log: &InspectedLog) -> Vec<String> {
    let broken =
        log.chain_break.as_ref().map(|broken| format!("line {} {}", broken.line, broken.reason));
    broken.into_iter().chain(log.errors.iter().cloned()).collect()
}

/// Prints a warning for each log that fails verification. Returns whether there is one.
fn warn_errors(logs: &[InspectedLog]) -> bool {
    for log in logs.iter().filter(|log| !log.is_intact()) {
        for problem in log_errors(log) {
            eprint_line(&terminal_escape::escape_line(
                &format!("warning: {}: {problem}", log.name.as_str()),
                600,
            ));
        }
    }
    logs.iter().any(|log| !log.is_intact())
}
