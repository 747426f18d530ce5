//! `cofferdam run`: one request, headless or at a terminal.

use std::process::ExitCode;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::args::{Common, Output, RunArgs};
use super::assemble::{self, Parts};
use super::connect::{connect, elsewhere};
use super::dialog::TerminalDialog;
use super::error::{CliError, Done};
use super::print::{stderr_line, stdout_line};
use super::render::{Renderer, not_started, report};
use super::request::{Conversation, Request, next_id};
use super::{audit, bounds, exit, interrupt, sessions, stdin};
use crate::agent::events::{Event, Observer};
use crate::agent::ports::Model;
use crate::agent::{Agent, SystemPrompt};
use crate::config::Flags;
use crate::policy::Mode;
use crate::sandbox::{Allocation, Workspace};
use crate::session::Session;
use crate::shown;
use crate::tools::{Approver, Memory, Reorder};

/// The file with the project's own words for agents, and how much of it goes into the system prompt.
const GUIDE: &str = "AGENTS.md";
const LARGEST_GUIDE: usize = 64 << 10;
/// Changed instruction files that are named one by one.
const MOST_CHANGES: usize = 10;

pub(super) fn run(common: &Common, args: RunArgs) -> Done {
    let output = args.output;
    let result = start(common, args);
    if let (Err(error), Output::Json | Output::StreamJson) = (&result, output) {
        // A program that reads JSON gets JSON in this case too.
        stdout_line(&not_started(error.code(), error.message()));
    }
    result
}

fn start(common: &Common, args: RunArgs) -> Done {
    let prompt = prompt(&args.prompt)?;
    let flags = Flags { timeout: args.timeout, ..common.flags(args.model.clone(), args.calls, args.max_tool_iterations) };
    let parts = assemble::parts(common, flags, Allocation::Pooled)?;
    parts.stop_for_broken()?;
    parts.warn_of_refused();
    let choice = bounds::session_choice(parts.catalog.policy(), &args.session)?;
    if args.record.is_some() {
        bounds::check_keeping(parts.catalog.policy(), "--record is not allowed")?;
    }
    let workspace = parts.workspace(&common.workspace)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(async {
        let resumed = sessions::resumed(&choice, &parts, &workspace)?;
        let held_with = resumed.as_ref().and_then(|session| session.held_with.as_ref());
        let model = connect(&parts, &args.model, held_with, args.record.as_deref()).await?;
        elsewhere(held_with, model.as_ref()).into_iter().for_each(|warning| stderr_line(&format!("warning: {warning}")));
        let session = sessions::or_begun(resumed, &choice, &parts, &workspace)?;
        let notices = instruction_notices(&parts);
        request(&parts, &workspace, &model, session, &prompt, args.output, notices).await
    });
    // A thread that waits for an answer in a dialog that is gone must not hold the process back.
    runtime.shutdown_background();
    done
}

fn prompt(given: &str) -> Result<String, CliError> {
    let text = if given == "-" { stdin::read_text("the task")? } else { given.to_owned() };
    if text.trim().is_empty() {
        return Err(CliError::new("the task is empty: say what to do, as in `cofferdam run \"Explain this project\"`"));
    }
    Ok(text)
}

/// Runs one request and tells how it ended, after these notices. Without a session it begins from nothing and leaves nothing.
pub(super) async fn request(
    parts: &Parts,
    workspace: &Arc<Workspace>,
    model: &Arc<dyn Model>,
    session: Option<Session>,
    prompt: &str,
    output: Output,
    notices: Vec<String>,
) -> Done {
    let (mut transcript, journal, remembered) = match session {
        Some(Session { transcript, journal, remembered, .. }) => (transcript, Some(journal), remembered),
        None => Default::default(),
    };
    let session_id = journal.as_ref().map(|journal| journal.id().clone());
    let renderer = Arc::new(Renderer::new(output, session_id.as_ref()));
    let info = model.info();
    let told = Arc::clone(&renderer);
    let notify = move |text: &str| told.observe(&Event::Notice(text));
    let name = Some(format!("{}:{}", info.provider, info.model));
    let audit = audit::begin(parts, workspace, session_id.as_ref(), name, parts.settings.mode, notify)?;
    let approver: Option<Arc<dyn Approver>> = TerminalDialog::at_this_terminal(&renderer, &parts.commands);
    let approvals = Arc::new(parts.approvals(approver, audit.as_ref()));
    let conversation = Conversation { approvals, memory: Arc::new(Memory::restored(&remembered)), audit, journal };
    let request = Request::of(conversation, parts, workspace, model, renderer.as_ref());
    let (id, cancel) = (next_id(), CancellationToken::new());
    interrupt::watch(cancel.clone(), request.last_words())?;
    guide_notice(workspace).into_iter().chain(notices).for_each(|notice| renderer.observe(&Event::Notice(&notice)));
    let outcome = request.work(async |agent: &Agent<'_>| agent.request(&id, &mut transcript, prompt, &cancel).await).await;
    let code = exit::code(&outcome);
    let report = report(&id, session_id.as_ref(), &outcome, code, model.info(), &transcript, &renderer);
    match output {
        Output::Text => stderr_line(&report.in_words()),
        Output::Json | Output::StreamJson => {
            let line = serde_json::to_string(&report).map_err(|error| CliError::new(error.to_string()))?;
            stdout_line(&line);
        }
    }
    Ok(ExitCode::from(code))
}

/// What the user should know of the guide.
pub(super) fn guide_notice(workspace: &Arc<Workspace>) -> Option<String> {
    match workspace.read_beginning(GUIDE, LARGEST_GUIDE) {
        Ok(Some((_, true))) => Some(format!("{GUIDE} is larger than {} KiB; the model is given its beginning.", LARGEST_GUIDE >> 10)),
        Ok(Some((_, false)) | None) => None,
        Err(denial) => Some(format!("{GUIDE} is not read, and the model is not given it: {}", denial.reason)),
    }
}

/// What the user should know of instruction files that are not what they were when the last session of this project began.
/// From now on the next session compares with what is there now.
pub(super) fn instruction_notices(parts: &Parts) -> Vec<String> {
    let changes = match parts.instructions.begin_session(&parts.listed) {
        Ok(changes) => changes,
        Err(error) => return vec![error.to_string()],
    };
    let mut notices: Vec<String> = changes.iter().take(MOST_CHANGES).map(|change| shown::line(&change.describe(), 1000)).collect();
    if let Some(more @ 1..) = changes.len().checked_sub(MOST_CHANGES) {
        notices.push(format!("{more} more instruction files changed since the last session of this project."));
    }
    if !changes.is_empty() {
        notices.push("Instruction files tell the model what to do: review them before you go on.".to_owned());
    }
    if parts.listed.is_cut() {
        notices.push("The workspace has too many files to look for all changed instruction files among them.".to_owned());
    }
    if let Some(problem) = parts.listed.not_analysed() {
        notices.push(format!("Tools cannot change files of a repository, because git may run them: {problem}"));
    }
    notices
}

/// The system prompt of a request that begins in a mode.
pub(super) fn system_prompt(parts: &Parts, workspace: &Arc<Workspace>, mode: Mode) -> SystemPrompt {
    SystemPrompt {
        workspace: workspace.root().display().to_string(),
        os: std::env::consts::OS.to_owned(),
        date: jiff::Zoned::now().date().to_string(),
        reads_wait_for_writes: parts.settings.reorder == Reorder::Safe,
        plan_mode: mode == Mode::Plan,
        guide: guide(workspace),
    }
}

/// The project's guide for agents as it is now, as far as the model is given it.
pub(super) fn guide(workspace: &Arc<Workspace>) -> Option<String> {
    workspace.read_beginning(GUIDE, LARGEST_GUIDE).ok().flatten().map(|(text, has_more)| match has_more {
        false => text,
        true => format!("{text}\n(This is its beginning; {GUIDE} goes on.)"),
    })
}
