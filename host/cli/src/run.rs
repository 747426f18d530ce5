//! `cofferdam run`: runs one request, with or without a terminal.

use std::process::ExitCode;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::args::{CommonArgs, OutputFormat, RunArgs};
use super::background::describe_ended_job;
use super::connect::{connect, model_change_notice};
use super::context::{self, AppContext};
use super::dialog::TerminalDialog;
use super::error::{CliError, CommandResult};
use super::json_text::json_line;
use super::print::{eprint_line, print_line};
use super::render::{EventRenderer, build_report, not_started};
use super::{exit, interrupt, policy_checks, sessions, stdin};
use cofferdam::Host;
use cofferdam::agent::events::{AgentEvent, Observer};
use cofferdam::agent::ports::LanguageModel;
use cofferdam::config::SettingsFlags;
use cofferdam::sandbox::InstanceAllocation;
use cofferdam::session::OpenSession;
use cofferdam::terminal_escape;
use cofferdam::tools::Approver;

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
    let choice = policy_checks::apply_session_policy(context.policy(), args.session)?;
    if args.record.is_some() {
        policy_checks::check_sessions_allowed(context.policy(), "--record is not allowed")?;
    }
    let host = context.open_host()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let resumed = sessions::resume(&choice, &context, host.workspace())?;
        let last_model = resumed.as_ref().and_then(|session| session.last_model.as_ref());
        let model = connect(&context, &args.model, last_model, args.record.as_deref()).await?;
        if let Some(warning) = model_change_notice(last_model, model.as_ref()) {
            eprint_line(&format!("warning: {warning}"));
        }
        let session = sessions::resumed_or_new(resumed, &choice, &context, &host)?;
        let notices = instruction_notices(&context);
        run_request(&context, &host, &model, session, &prompt, args.output, notices).await
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
    host: &Host,
    model: &Arc<dyn LanguageModel>,
    recorded: Option<OpenSession>,
    prompt: &str,
    output: OutputFormat,
    notices: Vec<String>,
) -> CommandResult {
    let id = recorded.as_ref().map(|session| session.journal.id().clone());
    let renderer = Arc::new(EventRenderer::new(output, id.as_ref()));
    let notified = Arc::clone(&renderer);
    let approver: Option<Arc<dyn Approver>> = TerminalDialog::open(&renderer, context.commands());
    let mut session = host
        .session(Arc::clone(model))
        .with_approver(approver)
        .on_notice(move |text| notified.observe(&AgentEvent::Notice(text)));
    if let Some(recorded) = recorded {
        session.resume(recorded);
    }
    let request = session.prepare(renderer.as_ref())?;
    let (request_id, cancel) = (request.id().clone(), CancellationToken::new());
    interrupt::watch_signals(cancel.clone(), request.shutdown_recorder())?;
    for notice in host.guide_notice().into_iter().chain(notices) {
        renderer.observe(&AgentEvent::Notice(&notice));
    }
    let outcome = request.run(prompt, &cancel).await;
    for job in session.end_jobs().await {
        renderer.observe(&AgentEvent::Notice(&describe_ended_job(&job)));
    }
    let code = exit::outcome_code(&outcome);
    let report = build_report(
        &request_id,
        id.as_ref(),
        &outcome,
        code,
        model.info(),
        session.transcript(),
        &renderer,
    );
    match output {
        OutputFormat::Text => eprint_line(&report.describe()),
        OutputFormat::Json | OutputFormat::StreamJson => {
            print_line(&json_line(&report));
        }
    }
    Ok(ExitCode::from(code))
}

/// Returns notices about instruction files that changed since the last session of this project.
/// Then records their current content for the next comparison.
pub(super) fn instruction_notices(context: &AppContext) -> Vec<String> {
    let listed_files = context.prepared.listed_files();
    let changes = match context.prepared.instruction_record() {
        Some(record) => match record.begin_session(listed_files) {
            Ok(changes) => changes,
            Err(error) => return vec![error.to_string()],
        },
        None => Vec::new(),
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
    if listed_files.is_truncated() {
        notices.push(
            "The workspace has too many files to find every changed instruction file.".to_owned(),
        );
    }
    if let Some(problem) = listed_files.not_analysed() {
        notices.push(format!(
            "Tools cannot change the files of a repository, because git may run them: {problem}"
        ));
    }
    notices
}
