//! `cofferdam sessions`, and the session of a request.

mod delete;
pub(super) mod export;
pub(super) mod list;
pub(super) mod show;

use std::time::SystemTime;

use super::args::{ChatArgs, CommonArgs, SessionChoice, SessionsArgs, SessionsCommand};
use super::context::AppContext;
use super::error::{CliError, CommandResult};
use super::print::eprint_line;
use super::spending::SpentTotals;
use super::{chat, policy_checks};
use crate::config::UserDirectories;
use crate::sandbox::Workspace;
use crate::session::{
    OpenSession, RedactSecrets, SavedSession, SessionScope, SessionStore, StoredSession,
};
use crate::terminal_escape;

pub(super) fn run(common: &CommonArgs, args: &SessionsArgs) -> CommandResult {
    let folders = UserDirectories::for_current_user()?;
    let store = SessionStore::new(folders.sessions());
    // Those of all projects can be had from anywhere.
    let workspace = if args.all { None } else { Some(Workspace::open(&common.workspace)?) };
    let scope = workspace
        .as_ref()
        .map_or(SessionScope::All, |workspace| SessionScope::Project(workspace.root()));
    match &args.command {
        SessionsCommand::List { json } => list::run(&store.list(scope)?, args.all, *json),
        SessionsCommand::Resume { id, model, calls } => {
            let session = SessionChoice { resume: Some(id.clone()), ..SessionChoice::default() };
            chat::run(
                common,
                ChatArgs {
                    model: model.clone(),
                    calls: calls.clone(),
                    session,
                    max_tool_iterations: None,
                },
            )
        }
        SessionsCommand::Show { id, json } => show::run(&store.find(scope, id)?, *json),
        SessionsCommand::Export { id } => export::run(&store.find(scope, id)?),
        SessionsCommand::Delete { id, yes } => {
            delete::run(&store.find(scope, id)?, &folders.prompt_history(), *yes)
        }
    }
}

/// The session that a request belongs to. Where a new one cannot be begun, the request does
/// without, unless the policy has it recorded.
pub(super) fn resumed_or_new(
    resumed: Option<OpenSession>,
    choice: &SessionChoice,
    parts: &AppContext,
    workspace: &Workspace,
) -> Result<Option<OpenSession>, CliError> {
    match resumed {
        None if choice.no_session => Ok(None),
        None => match create(parts, workspace) {
            Ok(session) => Ok(Some(session)),
            Err(warning) => {
                match policy_checks::session_required_error(parts.catalog.policy(), &warning) {
                    Some(error) => Err(error),
                    None => {
                        eprint_line(&warning);
                        Ok(None)
                    }
                }
            }
        },
        session => Ok(session),
    }
}

/// The session that goes on, if one was asked for; it has to be had.
pub(super) fn resume(
    choice: &SessionChoice,
    parts: &AppContext,
    workspace: &Workspace,
) -> Result<Option<OpenSession>, CliError> {
    let store = SessionStore::new(parts.user_dirs.sessions());
    let root = workspace.root();
    let may_resume = || {
        policy_checks::check_sessions_allowed(parts.catalog.policy(), "a session cannot be resumed")
    };
    match (&choice.resume, choice.newest) {
        (Some(prefix), _) => {
            let entry = store.find(SessionScope::Project(root), prefix)?;
            may_resume()?;
            Ok(Some(entry.resume(root, secret_redactor(parts))?))
        }
        (None, true) => {
            may_resume()?;
            let (session, open) = store.resume_newest(root, || secret_redactor(parts))?;
            for newer in open {
                let it = session.journal.id();
                eprint_line(&format!(
                    "warning: session {newer} is newer and open in another process; session {it} \
                        goes on instead"
                ));
            }
            Ok(Some(session))
        }
        (None, false) => Ok(None),
    }
}

/// A new session, or what to tell the user if none can be begun.
pub(super) fn create(parts: &AppContext, workspace: &Workspace) -> Result<OpenSession, String> {
    if !parts.user_dirs.has_home() {
        return Err("warning: this is not recorded: there is no home folder".to_owned());
    }
    SessionStore::new(parts.user_dirs.sessions())
        .create_session(workspace.root(), secret_redactor(parts))
        .map_err(|error| {
            terminal_escape::escape_line(&format!("warning: this is not recorded: {error}"), 600)
        })
}

/// Takes every key out that this program knows of.
pub(super) fn secret_redactor(parts: &AppContext) -> RedactSecrets {
    let secrets = parts.secrets.clone();
    Box::new(move |text| secrets.iter().fold(text.to_owned(), |text, secret| secret.redact(&text)))
}

/// How the last request of a session ended, in a word.
fn outcome_label(saved: &SavedSession) -> &str {
    match saved.requests.last() {
        None => "empty",
        Some(request) => {
            request.ended.as_ref().map_or("unfinished", |ended| ended.outcome.as_str())
        }
    }
}

/// Where it belongs, if that was written down.
fn workspace_path(saved: &SavedSession) -> Option<&str> {
    saved.header.as_ref().map(|header| header.workspace.as_str())
}

/// For people, in their time zone.
pub(super) fn format_local_time(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time).map_or_else(
        |_| "?".into(),
        |time| time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
    )
}

/// A session as JSON, without what was said in it beyond the first words.
fn summary_json(entry: &StoredSession, saved: &SavedSession) -> serde_json::Value {
    let spent = SpentTotals::sum(request_totals(saved));
    serde_json::json!({
        "id": entry.id,
        "workspace": workspace_path(saved),
        "created": saved.header.as_ref().map(|header| &header.created),
        "changed": jiff::Timestamp::try_from(entry.modified).ok().map(|time| time.to_string()),
        "turns": saved.turn_count(),
        "prompt": saved.requests.first().map(|request| &request.prompt),
        "ended": saved.requests.last().and_then(|request| request.ended.as_ref()),
        "usage": spent.usage,
        "cost": spent.cost,
    })
}

/// What each request used.
fn request_totals(saved: &SavedSession) -> impl Iterator<Item = SpentTotals> {
    let all = saved.requests.iter().zip(saved.transcript.exchanges());
    all.map(|(request, exchange)| SpentTotals::spent_on(exchange, request.model.as_deref()))
}
