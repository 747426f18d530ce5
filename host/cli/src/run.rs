//! `cofferdam run`: runs one request, with or without a terminal.

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
use cofferdam::agent::events::{AgentEvent, Observer};
use cofferdam::agent::ports::LanguageModel;
use cofferdam::agent::{Agent, SystemPrompt};
use cofferdam::config::SettingsFlags;
use cofferdam::policy::ApprovalMode;
use cofferdam::sandbox::{InstanceAllocation, Workspace};
use cofferdam::session::OpenSession;
use cofferdam::terminal_escape;
use cofferdam::tools::{Approver, ReorderPolicy, SessionState};

/// The project's guide for agents, and the maximum number of its bytes in the system prompt.
const GUIDE_FILE: &str = "AGENTS.md";
const MAX_GUIDE_BYTES: usize = 64 << 10;
/// Maximum number of changed instruction files that are named.
const MAX_NAMED_CHANGES: usize = 10;

pub(super) fn run(common: &CommonArgs, args: RunArgs) -> CommandResult {
    let output = args.output;
    let result = start_request(common, args);
    if let (Err(error), OutputFormat::Json | OutputFormat::StreamJson) = (&result, output) {
        // Programs that read JSON get JSON for this error too.
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
    let context = context::load_context(common, flags, InstanceAllocation::Pooled)?;
    context.check_named_plugins()?;
    context.warn_refused_plugins();
    let choice = policy_checks::apply_session_policy(context.catalog.policy(), &args.session)?;
    if args.record.is_some() {
        policy_checks::check_sessions_allowed(context.catalog.policy(), "--record is not allowed")?;
    }
    let workspace = context.open_workspace(&common.workspace)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let resumed = sessions::resume(&choice, &context, &workspace)?;
        let last_model = resumed.as_ref().and_then(|session| session.last_model.as_ref());
        let model = connect(&context, &args.model, last_model, args.record.as_deref()).await?;
        if let Some(warning) = model_change_notice(last_model, model.as_ref()) {
            eprint_line(&format!("warning: {warning}"));
        }
        let session = sessions::resumed_or_new(resumed, &choice, &context, &workspace)?;
        let notices = instruction_notices(&context);
        run_request(&context, &workspace, &model, session, &prompt, args.output, notices).await
    });
    // A thread that still waits for an answer to a dialog must not block the exit.
    runtime.shutdown_background();
    result
}

fn read_prompt(argument: &str) -> Result<String, CliError> {
    let text = if argument == "-" { stdin::read_text("the prompt")? } else { argument.to_owned() };
    if text.trim().is_empty() {
        return Err(CliError::new(
            "the prompt is empty\nhint: for example, `cofferdam run \"Explain this project\"`",
        ));
    }
    Ok(text)
}

/// Runs a request and prints its outcome. `notices` are printed before it starts. Without a
/// session, the request starts with an empty transcript and is not recorded.
pub(super) async fn run_request(
    context: &AppContext,
    workspace: &Arc<Workspace>,
    model: &Arc<dyn LanguageModel>,
    session: Option<OpenSession>,
    prompt: &str,
    output: OutputFormat,
    notices: Vec<String>,
) -> CommandResult {
    let (mut transcript, journal, state_deltas) = match session {
        Some(OpenSession { transcript, journal, state_deltas, .. }) => {
            (transcript, Some(journal), state_deltas)
        }
        None => Default::default(),
    };
    let session_id = journal.as_ref().map(|journal| journal.id().clone());
    let renderer = Arc::new(EventRenderer::new(output, session_id.as_ref()));
    let info = model.info();
    let notified = Arc::clone(&renderer);
    let notify = move |text: &str| notified.observe(&AgentEvent::Notice(text));
    let name = Some(format!("{}:{}", info.provider, info.model));
    let audit = audit::begin_log(
        context,
        workspace,
        session_id.as_ref(),
        name,
        context.settings.mode,
        notify,
    )?;
    let approver: Option<Arc<dyn Approver>> = TerminalDialog::open(&renderer, &context.commands);
    let approvals = Arc::new(context.new_approvals(approver, audit.as_ref()));
    let conversation = ConversationContext {
        approvals,
        session_state: Arc::new(SessionState::from_deltas(&state_deltas)),
        audit,
        journal,
    };
    let request = PreparedRequest::new(conversation, context, workspace, model, renderer.as_ref());
    let (id, cancel) = (new_request_id(), CancellationToken::new());
    interrupt::watch_signals(cancel.clone(), request.shutdown_recorder())?;
    for notice in guide_notice(workspace).into_iter().chain(notices) {
        renderer.observe(&AgentEvent::Notice(&notice));
    }
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

/// Returns a notice if the guide is truncated or cannot be read.
pub(super) fn guide_notice(workspace: &Arc<Workspace>) -> Option<String> {
    match workspace.read_prefix(GUIDE_FILE, MAX_GUIDE_BYTES) {
        Ok(Some((_, true))) => Some(format!(
            "{GUIDE_FILE} is larger than {} KiB; the model receives only its beginning.",
            MAX_GUIDE_BYTES >> 10
        )),
        Ok(Some((_, false)) | None) => None,
        Err(denial) => Some(format!(
            "cannot read {GUIDE_FILE}, so the model does not receive it: {}",
            denial.reason
        )),
    }
}

/// Returns notices about instruction files that changed since the last session of this project.
/// Then records their current content for the next comparison.
pub(super) fn instruction_notices(context: &AppContext) -> Vec<String> {
    let changes = match context.instruction_record.begin_session(&context.listed_files) {
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
            "Instruction files tell the model what to do. Review them before you continue."
                .to_owned(),
        );
    }
    if context.listed_files.is_truncated() {
        notices.push(
            "The workspace has too many files to find every changed instruction file.".to_owned(),
        );
    }
    if let Some(problem) = context.listed_files.not_analysed() {
        notices.push(format!(
            "Tools cannot change the files of a repository, because git may run them: {problem}"
        ));
    }
    notices
}

/// Builds the system prompt of a request in a mode.
pub(super) fn build_system_prompt(
    context: &AppContext,
    workspace: &Arc<Workspace>,
    mode: ApprovalMode,
) -> SystemPrompt {
    SystemPrompt {
        workspace: workspace.root().display().to_string(),
        os: std::env::consts::OS.to_owned(),
        date: jiff::Zoned::now().date().to_string(),
        reads_wait_for_writes: context.settings.reorder == ReorderPolicy::Safe,
        plan_mode: mode == ApprovalMode::Plan,
        guide: read_guide(workspace),
    }
}

/// Returns the project's current guide for agents, truncated to its maximum length.
pub(super) fn read_guide(workspace: &Arc<Workspace>) -> Option<String> {
    workspace.read_prefix(GUIDE_FILE, MAX_GUIDE_BYTES).ok().flatten().map(|(text, has_more)| {
        match has_more {
            false => text,
            true => format!("{text}\n({GUIDE_FILE} is longer; only its beginning is shown.)"),
        }
    })
}
