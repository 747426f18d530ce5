//! `cofferdam audit`, and the log of a run.

mod args;
mod export;
mod show;
mod verify;

use std::path::Path;
use std::sync::Arc;

use super::assemble::{Parts, model_settings};
use super::error::{CliError, Done};
use super::print::stderr_line;
use super::sessions::redact;
use crate::audit::{Audit, Begin, Inspected, Notify, Store, inspect};
use crate::config::{Folders, Settings};
use crate::policy::Mode;
use crate::sandbox::{Digest, Workspace};
use crate::session::{Redact, SessionId};
use crate::shown;
pub(super) use args::AuditArgs;
use args::AuditCommand;

pub(super) fn run(args: &AuditArgs) -> Done {
    let store = Store::new(Folders::of_this_user()?.audit());
    let mut logs = inspect(&store)?;
    let AuditArgs { command, session } = args;
    if let Some(prefix) = session {
        logs.retain(|log| log.session().is_some_and(|id| id.starts_with(prefix)) || log.name.as_str().starts_with(prefix));
        if logs.is_empty() {
            return Err(CliError::new(format!("no log of a session or of a name that begins with '{prefix}'")));
        }
    }
    match command {
        AuditCommand::Show { tool, json } => show::run(&logs, tool.as_deref(), *json),
        AuditCommand::Verify { contains } => verify::run(&logs, contains),
        AuditCommand::Export { format } => export::run(&logs, *format),
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
        command_sandbox: "none".into(),
        required: parts.settings.audit.required,
    };
    open(&parts.settings, &parts.folders, &begin, redact(parts), Box::new(notify))
}

/// The log of a command that calls no tool and changes what will be allowed.
pub(super) fn begin_without_tools(settings: &Settings, folders: &Folders, workspace: &Path) -> Result<Option<Arc<Audit>>, CliError> {
    let begin = Begin {
        session: None,
        workspace: workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned()).display().to_string(),
        mode: settings.mode,
        policy: None,
        model: None,
        command_sandbox: "none".into(),
        required: settings.audit.required,
    };
    let secrets = model_settings(settings).secrets();
    let redact = move |text: &str| secrets.iter().fold(text.to_owned(), |text, secret| secret.redact(&text));
    open(settings, folders, &begin, Box::new(redact), Box::new(|text: &str| stderr_line(&shown::line(text, 600))))
}

fn open(settings: &Settings, folders: &Folders, begin: &Begin<'_>, redact: Redact, notify: Notify) -> Result<Option<Arc<Audit>>, CliError> {
    if !settings.audit.enabled {
        return Ok(None);
    }
    match Audit::begin(&Store::new(folders.audit()), begin, redact, notify) {
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
