//! `cofferdam run`: one request, headless or at a terminal.

use std::io::Read as _;
use std::process::ExitCode;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::args::{Common, Output, RunArgs};
use super::assemble::{self, Parts, model_settings};
use super::dialog::TerminalDialog;
use super::error::{CliError, Done};
use super::print::{stderr_line, stdout_line};
use super::render::{Renderer, report};
use super::{audit, exit, interrupt, sessions};
use crate::agent::events::{Event, Observer};
use crate::agent::ports::Model;
use crate::agent::{Agent, RequestId, SystemPrompt};
use crate::config::Flags;
use crate::model;
use crate::policy::Mode;
use crate::sandbox::{Allocation, Workspace};
use crate::session::{Recording, Session};
use crate::shown;
use crate::tools::{Approver, Memory, Reorder};

/// The file with the project's own words for agents, and how much of it goes into the system prompt.
const GUIDE: &str = "AGENTS.md";
const LARGEST_GUIDE: usize = 64 << 10;

pub(super) fn run(common: &Common, args: RunArgs) -> Done {
    let output = args.output;
    let result = start(common, args);
    if let (Err(error), Output::Json | Output::StreamJson) = (&result, output) {
        // A program that reads JSON gets JSON in this case too.
        let line = serde_json::json!({"type": "result", "outcome": "not-started", "exit_code": error.code(), "error": error.message()});
        stdout_line(&line.to_string());
    }
    result
}

fn start(common: &Common, args: RunArgs) -> Done {
    let prompt = prompt(&args.prompt)?;
    let flags = Flags { timeout: args.timeout, ..common.flags(args.model, args.calls, args.max_tool_iterations) };
    let parts = assemble::parts(common, flags, Allocation::Pooled)?;
    parts.warn_of_refused();
    let workspace = parts.workspace(&common.workspace)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(async {
        let model = connect(&parts, args.record.as_deref()).await?;
        let session = sessions::open(&args.session, &parts, &workspace)?;
        request(&parts, &workspace, &model, session, &prompt, args.output).await
    });
    // A thread that waits for an answer in a dialog that is gone must not hold the process back.
    runtime.shutdown_background();
    done
}

fn prompt(given: &str) -> Result<String, CliError> {
    let mut text = given.to_owned();
    if given == "-" {
        text.clear();
        std::io::stdin().lock().read_to_string(&mut text)?;
    }
    if text.trim().is_empty() {
        return Err(CliError::new("the task is empty: say what to do, as in `cofferdam run \"Explain this project\"`"));
    }
    Ok(text)
}

pub(super) async fn connect(parts: &Parts, record: Option<&std::path::Path>) -> Result<Arc<dyn Model>, CliError> {
    let settings = model_settings(&parts.settings);
    let choice = model::choose(parts.settings.model.as_deref(), &settings).await?;
    if let Some(remark) = &choice.remark {
        stderr_line(&shown::line(remark, 400));
    }
    let model = model::connect(&choice.spec, &settings)?;
    Ok(match record {
        Some(path) => Arc::new(model::Recorder::create(model, path, parts.secrets.clone())?),
        None => model.into(),
    })
}

/// Runs one request and tells how it ended. Without a session it begins from nothing and leaves nothing.
pub(super) async fn request(
    parts: &Parts,
    workspace: &Arc<Workspace>,
    model: &Arc<dyn Model>,
    session: Option<Session>,
    prompt: &str,
    output: Output,
) -> Done {
    let renderer = Arc::new(Renderer::new(output));
    let (mut transcript, journal, remembered) = match session {
        Some(Session { transcript, journal, remembered }) => (transcript, Some(journal), remembered),
        None => Default::default(),
    };
    let session_id = journal.as_ref().map(|journal| journal.id().clone());
    let recording = journal.map(|journal| Recording::new(journal, renderer.as_ref()));
    let observer: &dyn Observer = match &recording {
        Some(recording) => recording,
        None => renderer.as_ref(),
    };
    let info = model.info();
    let told = Arc::clone(&renderer);
    let notify = move |text: &str| told.observe(&Event::Notice(text));
    let name = Some(format!("{}:{}", info.provider, info.model));
    let audit = audit::begin(parts, workspace, session_id.as_ref(), name, parts.settings.mode, notify)?;
    let watching = audit.as_ref().map(|audit| audit.watching(observer));
    let observer: &dyn Observer = match &watching {
        Some(watching) => watching,
        None => observer,
    };
    let approver: Option<Arc<dyn Approver>> = TerminalDialog::at_this_terminal(&renderer, &parts.commands);
    let approvals = Arc::new(parts.approvals(approver, audit.as_ref()));
    let system = system_prompt(parts, workspace, parts.settings.mode);
    let sub_agents = parts.sub_agents(workspace, &approvals, model, system.render_for_sub_agent());
    let dispatcher = parts.dispatcher_with(workspace, approvals).with_sub_agents(sub_agents);
    let dispatcher = dispatcher.with_memory(Arc::new(Memory::restored(&remembered)));
    let cancel = CancellationToken::new();
    interrupt::watch(cancel.clone(), recording.as_ref().map(Recording::last_words))?;
    let agent = Agent {
        model: model.as_ref(),
        tools: &dispatcher,
        observer,
        system: system.render(),
        turn_limit: parts.settings.turn_limit,
        time_limit: parts.settings.time_limit,
        interventions: parts.settings.interventions,
    };
    guide_notice(workspace).into_iter().for_each(|notice| observer.observe(&Event::Notice(&notice)));
    let id = RequestId::new(random());
    let outcome = agent.request(&id, &mut transcript, prompt, &cancel).await;
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

/// The system prompt of a request that begins in a mode.
pub(super) fn system_prompt(parts: &Parts, workspace: &Arc<Workspace>, mode: Mode) -> SystemPrompt {
    SystemPrompt {
        workspace: workspace.root().display().to_string(),
        os: std::env::consts::OS.to_owned(),
        date: jiff::Zoned::now().date().to_string(),
        reads_wait_for_writes: parts.settings.reorder == Reorder::Safe,
        plan_mode: mode == Mode::Plan,
        guide: workspace.read_beginning(GUIDE, LARGEST_GUIDE).ok().flatten().map(|(text, has_more)| match has_more {
            false => text,
            true => format!("{text}\n(This is its beginning; {GUIDE} goes on.)"),
        }),
    }
}

/// Bits that differ from one request to the next; nothing depends on their being hard to guess.
pub(super) fn random() -> u32 {
    use std::hash::{BuildHasher as _, RandomState};
    let bits = RandomState::new().hash_one(std::process::id());
    u32::try_from(bits >> 32).unwrap_or_default()
}
