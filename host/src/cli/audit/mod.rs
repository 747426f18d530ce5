//! `cofferdam audit`, and the log of a run.

mod args;
mod export;
mod prune;
mod show;
mod verify;
mod words;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use super::args::Common;
use super::assemble::{Parts, model_settings};
use super::error::{CliError, Done};
use super::exit;
use super::print::stderr_line;
use super::sessions::redact;
use crate::audit::{Audit, Begin, Inspected, Inspection, Notify, Store, inspect};
use crate::config::{Folders, NoHome, Settings};
use crate::policy::Mode;
use crate::sandbox::{Digest, Workspace};
use crate::session::{Redact, SessionId};
use crate::shown;
use crate::tools::{Change, Ledger as _};
pub(super) use args::AuditArgs;
use args::AuditCommand;

pub(super) fn run(common: &Common, args: &AuditArgs) -> Done {
    let store = Store::new(Folders::of_this_user()?.audit());
    let AuditArgs { command, session } = args;
    if let AuditCommand::Prune(which) = command {
        if session.is_some() {
            return Err(CliError::new("logs go from the oldest on, or the others could not be checked: leave out --session"));
        }
        return prune::run(common, &store, which);
    }
    let Inspection { mut logs, problem } = inspect(&store)?;
    if let Some(prefix) = session {
        logs.retain(|log| log.session().is_some_and(|id| id.starts_with(prefix)) || log.name.as_str().starts_with(prefix));
        if logs.is_empty() {
            return Err(CliError::new(format!("no log of a session or of a name that begins with '{prefix}'")));
        }
    }
    let done = match command {
        AuditCommand::Show { tool, json } => show::run(&logs, tool.as_deref(), *json),
        AuditCommand::Verify { contains } => verify::run(&logs, contains),
        AuditCommand::Export { format } => export::run(&logs, *format),
        AuditCommand::Prune(_) => Ok(ExitCode::SUCCESS),
    };
    match problem {
        Some(problem) => {
            stderr_line(&shown::line(&format!("warning: {problem}"), 600));
            done.map(|_| ExitCode::from(exit::FAILED))
        }
        None => done,
    }
}

/// The log of a run. Where it has to be had and cannot be begun, nothing starts; else the run does without.
pub(super) fn begin(
    parts: &Parts,
    workspace: &Workspace,
    session: Option<&SessionId>,
    model: Option<String>,
    mode: Mode,
    notify: impl Fn(&str) + Send + Sync + 'static,
) -> Result<Option<Arc<Audit>>, CliError> {
    let begin = Begin {
        session,
        workspace: workspace.root().display().to_string(),
        mode,
        policy: Some(Digest::of(format!("{:?}", parts.catalog.policy()).as_bytes()).to_string()),
        model,
        least_command_sandbox: parts.commands.rules().minimum,
        required: parts.settings.audit.required,
    };
    open(&parts.settings, &parts.folders, &begin, redact(parts), Box::new(notify))
}

/// Puts on record what a command is about to do that calls no tool: before it counts. Where that has to be and cannot, it is
/// an error, and the command does nothing.
pub(super) fn record(settings: &Settings, folders: &Folders, workspace: &Path, change: &Change<'_>) -> Result<(), CliError> {
    let (redact, notify) = (without_keys(settings), Box::new(|text: &str| stderr_line(&shown::line(text, 600))));
    match open(settings, folders, &without_tools(settings, workspace), redact, notify)? {
        Some(audit) => audit.changed(change).map_err(|error| CliError::new(format!("it cannot be put on record: {error}"))),
        None => Ok(()),
    }
}

fn without_tools(settings: &Settings, workspace: &Path) -> Begin<'static> {
    Begin {
        session: None,
        workspace: workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned()).display().to_string(),
        mode: settings.mode,
        policy: None,
        model: None,
        least_command_sandbox: settings.commands.minimum,
        required: settings.audit.required,
    }
}

fn without_keys(settings: &Settings) -> Redact {
    let secrets = model_settings(settings).secrets();
    Box::new(move |text: &str| secrets.iter().fold(text.to_owned(), |text, secret| secret.redact(&text)))
}

fn open(settings: &Settings, folders: &Folders, begin: &Begin<'_>, redact: Redact, notify: Notify) -> Result<Option<Arc<Audit>>, CliError> {
    if !settings.audit.enabled {
        return Ok(None);
    }
    // What is gone with the run is no record.
    let begun = match folders.has_home() {
        true => Audit::begin(&Store::new(folders.audit()), begin, redact, notify).map_err(|error| error.to_string()),
        false => Err(NoHome.to_string()),
    };
    match begun {
        Ok(audit) => Ok(Some(Arc::new(audit))),
        Err(error) if settings.audit.required => {
            Err(CliError::new(format!("{error}\nNothing is done without a record of it, since the configuration says `audit.required`.")))
        }
        Err(error) => {
            stderr_line(&shown::line(&format!("warning: this run leaves no audit log: {error}"), 600));
            Ok(None)
        }
    }
}

/// What is wrong with a log, if anything is.
fn problems(log: &Inspected) -> Vec<String> {
    let broken = log.broken.as_ref().map(|broken| format!("line {} {}", broken.line, broken.problem));
    broken.into_iter().chain(log.problems.iter().cloned()).collect()
}

/// Says on standard error which logs are not what was written; whether there are any.
fn warn_of_problems(logs: &[Inspected]) -> bool {
    for log in logs.iter().filter(|log| !log.is_good()) {
        for problem in problems(log) {
            stderr_line(&shown::line(&format!("warning: {}: {problem}", log.name.as_str()), 600));
        }
    }
    logs.iter().any(|log| !log.is_good())
}
