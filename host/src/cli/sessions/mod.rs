//! `cofferdam sessions`, and the session of a request.

mod delete;
pub(super) mod export;
pub(super) mod list;
pub(super) mod show;

use std::time::SystemTime;

use super::args::{ChatArgs, Common, SessionChoice, SessionsArgs, SessionsCommand};
use super::assemble::Parts;
use super::chat;
use super::error::{CliError, Done};
use super::print::stderr_line;
use super::spent::Spent;
use crate::config::Folders;
use crate::sandbox::Workspace;
use crate::session::{Entry, Redact, Saved, Scope, Session, Store};
use crate::shown;

pub(super) fn run(common: &Common, args: &SessionsArgs) -> Done {
    let folders = Folders::of_this_user()?;
    let store = Store::new(folders.sessions());
    // Those of all projects can be had from anywhere.
    let workspace = if args.all { None } else { Some(Workspace::open(&common.workspace)?) };
    let scope = workspace.as_ref().map_or(Scope::All, |workspace| Scope::Project(workspace.root()));
    match &args.command {
        SessionsCommand::List { json } => list::run(&store.list(scope)?, args.all, *json),
        SessionsCommand::Resume { id, model, calls } => {
            let session = SessionChoice { resume: Some(id.clone()), ..SessionChoice::default() };
            chat::run(common, ChatArgs { model: model.clone(), calls: calls.clone(), session, max_tool_iterations: None })
        }
        SessionsCommand::Show { id, json } => show::run(&store.find(scope, id)?, *json),
        SessionsCommand::Export { id } => export::run(&store.find(scope, id)?),
        SessionsCommand::Delete { id, yes } => delete::run(&store.find(scope, id)?, &folders.prompt_history(), *yes),
    }
}

/// The session that a request belongs to. Where a new one cannot be begun, the request does without.
pub(super) fn or_begun(resumed: Option<Session>, choice: &SessionChoice, parts: &Parts, workspace: &Workspace) -> Option<Session> {
    match resumed {
        None if choice.no_session => None,
        None => begun(parts, workspace).map_err(|warning| stderr_line(&warning)).ok(),
        session => session,
    }
}

/// The session that goes on, if one was asked for; it has to be had.
pub(super) fn resumed(choice: &SessionChoice, parts: &Parts, workspace: &Workspace) -> Result<Option<Session>, CliError> {
    let store = Store::new(parts.folders.sessions());
    let root = workspace.root();
    match (&choice.resume, choice.newest) {
        (Some(prefix), _) => Ok(Some(store.find(Scope::Project(root), prefix)?.resume(root, redact(parts))?)),
        (None, true) => {
            let (session, open) = store.resume_newest(root, || redact(parts))?;
            for newer in open {
                let it = session.journal.id();
                stderr_line(&format!("warning: session {newer} is newer and open in another process; session {it} goes on instead"));
            }
            Ok(Some(session))
        }
        (None, false) => Ok(None),
    }
}

/// A new session, or what to tell the user if none can be begun.
pub(super) fn begun(parts: &Parts, workspace: &Workspace) -> Result<Session, String> {
    if !parts.folders.has_home() {
        return Err("warning: this is not recorded: there is no home folder".to_owned());
    }
    Store::new(parts.folders.sessions())
        .create(workspace.root(), redact(parts))
        .map_err(|error| shown::line(&format!("warning: this is not recorded: {error}"), 600))
}

/// Takes every key out that this program knows of.
pub(super) fn redact(parts: &Parts) -> Redact {
    let secrets = parts.secrets.clone();
    Box::new(move |text| secrets.iter().fold(text.to_owned(), |text, secret| secret.redact(&text)))
}

/// How the last request of a session ended, in a word.
fn ending(saved: &Saved) -> &str {
    match saved.requests.last() {
        None => "empty",
        Some(request) => request.ended.as_ref().map_or("unfinished", |ended| ended.outcome.as_str()),
    }
}

/// Where it belongs, if that was written down.
fn workspace_of(saved: &Saved) -> Option<&str> {
    saved.header.as_ref().map(|header| header.workspace.as_str())
}

/// For people, in their time zone.
pub(super) fn local_time(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time)
        .map_or_else(|_| "?".into(), |time| time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string())
}

/// A session as JSON, without what was said in it beyond the first words.
fn summary(entry: &Entry, saved: &Saved) -> serde_json::Value {
    let spent = Spent::sum(spent(saved));
    serde_json::json!({
        "id": entry.id,
        "workspace": workspace_of(saved),
        "created": saved.header.as_ref().map(|header| &header.created),
        "changed": jiff::Timestamp::try_from(entry.changed).ok().map(|time| time.to_string()),
        "turns": saved.turns(),
        "prompt": saved.requests.first().map(|request| &request.prompt),
        "ended": saved.requests.last().and_then(|request| request.ended.as_ref()),
        "usage": spent.usage,
        "cost": spent.cost,
    })
}

/// What each request used.
fn spent(saved: &Saved) -> impl Iterator<Item = Spent> {
    let all = saved.requests.iter().zip(saved.transcript.exchanges());
    all.map(|(request, exchange)| Spent::on(exchange, request.model.as_deref()))
}
