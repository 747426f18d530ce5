//! `cofferdam run`: one request, headless or at a terminal.

use std::process::ExitCode;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::args::{CommonArgs, OutputFormat, RunArgs};
use super::connect::{connect, model_change_notice};
use super::context::{self, AppContext};
use super::dialog::TerminalDialog;
use super::error::{CliError, CommandResult};
use super::print::{eprint_line, print_line};
use super::render::{EventRenderer, build_report, not_started};
use super::request::{ConversationContext, PreparedRequest, new_request_id};
use super::{audit, exit, interrupt, policy_checks, sessions, stdin};
use crate::agent::events::{AgentEvent, Observer};
use crate::agent::ports::LanguageModel;
use crate::agent::{Agent, SystemPrompt};
use crate::config::SettingsFlags;
use crate::policy::ApprovalMode;
use crate::sandbox::{InstanceAllocation, Workspace};
use crate::session::OpenSession;
use crate::terminal_escape;
use crate::tools::{Approver, ReorderPolicy, SessionState};

/// The file with the project's own words for agents, and how much of it goes into the system
/// prompt.
const GUIDE_FILE: &str = "AGENTS.md";
const MAX_GUIDE_BYTES: usize = 64 << 10;
/// Changed instruction files that are named one by one.
const MAX_NAMED_CHANGES: usize = 10;

pub(super) fn run(common: &CommonArgs, args: RunArgs) -> CommandResult {
    let output = args.output;
    let result = start_request(common, args);
    if let (Err(error), OutputFormat::Json | OutputFormat::StreamJson) = (&result, output) {
        // A program that reads JSON gets JSON in this case too.
        print_line(&not_started(error.code(), error.message()));
    }
    result
}

fn start_request(common: &CommonArgs, args: RunArgs) -> CommandResult {
    let prompt = read_prompt(&args.prompt)?;
    let flags = SettingsFlags {
        timeout: args.timeout,
        ..common.flags(args.model.clone(), args.calls, args.max_tool_iterations)
    };
    let parts = context::load_context(common, flags, InstanceAllocation::Pooled)?;
    parts.check_named_plugins()?;
    parts.warn_refused_plugins();
    let choice = policy_checks::apply_session_policy(parts.catalog.policy(), &args.session)?;
    if args.record.is_some() {
        policy_checks::check_sessions_allowed(parts.catalog.policy(), "--record is not allowed")?;
    }
    let workspace = parts.open_workspace(&common.workspace)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(async {
        let resumed = sessions::resume(&choice, &parts, &workspace)?;
        let held_with = resumed.as_ref().and_then(|session| session.last_model.as_ref());
        let model = connect(&parts, &args.model, held_with, args.record.as_deref()).await?;
        model_change_notice(held_with, model.as_ref())
            .into_iter()
            .for_each(|warning| eprint_line(&format!("warning: {warning}")));
        let session = sessions::resumed_or_new(resumed, &choice, &parts, &workspace)?;
        let notices = instruction_notices(&parts);
        run_request(&parts, &workspace, &model, session, &prompt, args.output, notices).await
    });
    // A thread that waits for an answer in a dialog that is gone must not hold the process back.
    runtime.shutdown_background();
    done
}

fn read_prompt(given: &str) -> Result<String, CliError> {
    let text = if given == "-" { stdin::read_text("the task")? } else { given.to_owned() };
    if text.trim().is_empty() {
        return Err(CliError::new(
            "the task is empty: say what to do, as in `cofferdam run \"Explain this project\"`",
        ));
    }
    Ok(text)
}

/// Runs one request and tells how it ended, after these notices. Without a session it begins from
/// nothing and leaves nothing.
pub(super) async fn run_request(
    parts: &AppContext,
    workspace: &Arc<Workspace>,
    model: &Arc<dyn LanguageModel>,
    session: Option<OpenSession>,
    prompt: &str,
    output: OutputFormat,
    notices: Vec<String>,
) -> CommandResult {
    let (mut transcript, journal, remembered) = match session {
        Some(OpenSession { transcript, journal, state_deltas: remembered, .. }) => {
            (transcript, Some(journal), remembered)
        }
        None => Default::default(),
    };
    let session_id = journal.as_ref().map(|journal| journal.id().clone());
    let renderer = Arc::new(EventRenderer::new(output, session_id.as_ref()));
    let info = model.info();
    let told = Arc::clone(&renderer);
    let notify = move |text: &str| told.observe(&AgentEvent::Notice(text));
    let name = Some(format!("{}:{}", info.provider, info.model));
    let audit =
        audit::begin_log(parts, workspace, session_id.as_ref(), name, parts.settings.mode, notify)?;
    let approver: Option<Arc<dyn Approver>> = TerminalDialog::open(&renderer, &parts.commands);
    let approvals = Arc::new(parts.new_approvals(approver, audit.as_ref()));
    let conversation = ConversationContext {
        approvals,
        session_state: Arc::new(SessionState::from_deltas(&remembered)),
        audit,
        journal,
    };
    let request = PreparedRequest::new(conversation, parts, workspace, model, renderer.as_ref());
    let (id, cancel) = (new_request_id(), CancellationToken::new());
    interrupt::watch_signals(cancel.clone(), request.shutdown_recorder())?;
    guide_notice(workspace)
        .into_iter()
        .chain(notices)
        .for_each(|notice| renderer.observe(&AgentEvent::Notice(&notice)));
    let outcome = request
        .run(async |agent: &Agent<'_>| {
            agent.run_request(&id, &mut transcript, prompt, &cancel).await
        })
        .await;
    let code = exit::outcome_code(&outcome);
    let report = build_report(
        &id,
        session_id.as_ref(),
        &outcome,
        code,
        model.info(),
        &transcript,
        &renderer,
    );
    match output {
        OutputFormat::Text => eprint_line(&report.describe()),
        OutputFormat::Json | OutputFormat::StreamJson => {
            let line =
                serde_json::to_string(&report).map_err(|error| CliError::new(error.to_string()))?;
            print_line(&line);
        }
    }
    Ok(ExitCode::from(code))
}

/// What the user should know of the guide.
pub(super) fn guide_notice(workspace: &Arc<Workspace>) -> Option<String> {
    match workspace.read_prefix(GUIDE_FILE, MAX_GUIDE_BYTES) {
        Ok(Some((_, true))) => Some(format!(
            "{GUIDE_FILE} is larger than {} KiB; the model is given its beginning.",
            MAX_GUIDE_BYTES >> 10
        )),
        Ok(Some((_, false)) | None) => None,
        Err(denial) => Some(format!(
            "{GUIDE_FILE} is not read, and the model is not given it: {}",
            denial.reason
        )),
    }
}

/// What the user should know of instruction files that are not what they were when the last session
/// of this project began. From now on the next session compares with what is there now.
pub(super) fn instruction_notices(parts: &AppContext) -> Vec<String> {
    let changes = match parts.instruction_record.begin_session(&parts.listed_files) {
        Ok(changes) => changes,
        Err(error) => return vec![error.to_string()],
    };
    let mut notices: Vec<String> = changes
        .iter()
        .take(MAX_NAMED_CHANGES)
        .map(|change| terminal_escape::escape_line(&change.describe(), 1000))
        .collect();
    if let Some(more @ 1..) = changes.len().checked_sub(MAX_NAMED_CHANGES) {
        notices.push(format!(
            "{more} more instruction files changed since the last session of this project."
        ));
    }
    if !changes.is_empty() {
        notices.push(
            "Instruction files tell the model what to do: review them before you go on.".to_owned(),
        );
    }
    if parts.listed_files.is_truncated() {
        notices.push(
            "The workspace has too many files to look for all changed instruction files \
            among them."
                .to_owned(),
        );
    }
    if let Some(problem) = parts.listed_files.not_analysed() {
        notices.push(format!(
            "Tools cannot change files of a repository, because git may run them: {problem}"
        ));
    }
    notices
}

/// The system prompt of a request that begins in a mode.
pub(super) fn build_system_prompt(
    parts: &AppContext,
    workspace: &Arc<Workspace>,
    mode: ApprovalMode,
) -> SystemPrompt {
    SystemPrompt {
        workspace: workspace.root().display().to_string(),
        os: std::env::consts::OS.to_owned(),
        date: jiff::Zoned::now().date().to_string(),
        reads_wait_for_writes: parts.settings.reorder == ReorderPolicy::Safe,
        plan_mode: mode == ApprovalMode::Plan,
        guide: read_guide(workspace),
    }
}

/// The project's guide for agents as it is now, as far as the model is given it.
pub(super) fn read_guide(workspace: &Arc<Workspace>) -> Option<String> {
    workspace.read_prefix(GUIDE_FILE, MAX_GUIDE_BYTES).ok().flatten().map(|(text, has_more)| {
        match has_more {
            false => text,
            true => format!("{text}\n(This is its beginning; {GUIDE_FILE} goes on.)"),
        }
    })
}
