//! `cofferdam sessions`, and the sessions of requests.

mod delete;
pub(super) mod export;
pub(super) mod list;
pub(super) mod show;

use std::time::SystemTime;

use super::args::{ChatArgs, CommonArgs, SessionChoice, SessionsArgs, SessionsCommand};
use super::context::{self, AppContext};
use super::error::{CliError, CommandResult};
use super::print::eprint_line;
use super::spending::SpentTotals;
use super::{chat, policy_checks, user_dirs};
use cofferdam::Host;
use cofferdam::sandbox::Workspace;
use cofferdam::session::{OpenSession, SavedSession, SessionScope, SessionStore, StoredSession};

pub(super) fn run(common: &CommonArgs, args: &SessionsArgs) -> CommandResult {
    let user_dirs = user_dirs::for_current_user(&common.environment)?;
    let store = SessionStore::new(user_dirs.sessions());
    // `--all` works in any directory.
    let workspace = if args.all {
        None
    } else {
        Some(Workspace::open(&common.workspace, &common.environment)?)
    };
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
            delete::run(&store.find(scope, id)?, &user_dirs.prompt_history(), *yes)
        }
    }
}

/// Returns the resumed session, or a new one. If none can be created, the request runs unrecorded,
/// unless the policy requires a record.
pub(super) fn resumed_or_new(
    resumed: Option<OpenSession>,
    choice: &SessionChoice,
    context: &AppContext,
    host: &Host,
) -> Result<Option<OpenSession>, CliError> {
    match resumed {
        None if choice.no_session => Ok(None),
        None => match host.create_session() {
            Ok(session) => Ok(Some(session)),
            Err(warning) => {
                match policy_checks::session_required_error(context.policy(), &warning) {
                    Some(error) => Err(error),
                    None => {
                        context::warn(&warning);
                        Ok(None)
                    }
                }
            }
        },
        session => Ok(session),
    }
}

/// Opens the session that the command line selects to continue, if any.
///
/// # Errors
///
/// If it does not exist, is open elsewhere, or the policy denies it.
pub(super) fn resume(
    choice: &SessionChoice,
    context: &AppContext,
    workspace: &Workspace,
) -> Result<Option<OpenSession>, CliError> {
    let store = SessionStore::new(context.user_dirs.sessions());
    let root = workspace.root();
    let may_resume =
        || policy_checks::check_sessions_allowed(context.policy(), "a session cannot be resumed");
    match (&choice.resume, choice.newest) {
        (Some(prefix), _) => {
            let entry = store.find(SessionScope::Project(root), prefix)?;
            may_resume()?;
            Ok(Some(entry.resume(root, context.prepared.redactor())?))
        }
        (None, true) => {
            may_resume()?;
            let (session, open) = store.resume_newest(root, || context.prepared.redactor())?;
            for newer in open {
                let resumed = session.journal.id();
                eprint_line(&format!(
                    "warning: session {newer} is newer, but open in another process; continuing \
                        session {resumed}"
                ));
            }
            Ok(Some(session))
        }
        (None, false) => Ok(None),
    }
}

/// Returns how the last request of a session ended, in one word.
fn outcome_label(saved: &SavedSession) -> &str {
    match saved.requests.last() {
        None => "empty",
        Some(request) => {
            request.ended.as_ref().map_or("unfinished", |ended| ended.outcome.as_str())
        }
    }
}

/// Returns the workspace of a session, if recorded.
fn workspace_path(saved: &SavedSession) -> Option<&str> {
    saved.header.as_ref().map(|header| header.workspace.as_str())
}

/// Formats a time in the local time zone.
pub(super) fn format_local_time(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time).map_or_else(
        |_| "?".into(),
        |time| time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
    )
}

/// Summarizes a session as JSON, with its first prompt only.
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

/// Returns the usage and cost of each request.
fn request_totals(saved: &SavedSession) -> impl Iterator<Item = SpentTotals> {
    let all = saved.requests.iter().zip(saved.transcript.exchanges());
    all.map(|(request, exchange)| SpentTotals::spent_on(exchange, request.model.as_deref()))
}
