//! The main loop of a chat: read a line, run it as a command or a request, repeat.

use std::cell::RefCell;
use std::io;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::SystemTime;

use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::commands::{self, LineMeaning, SlashCommand};
use super::edit_line::EditLine;
use super::event_loop::{AfterRequest, ChatInputQueue, EventSources, run_with_event_loop};
use super::keyboard::{KeyboardOwner, PromptEntry};
use super::meter::SessionCostMeter;
use super::outcome_text::{format_request_count, outcome_hint};
use super::question::{ChatApprover, PendingQuestion};
use super::signals::ProcessSignals;
use super::view::{ChatStatusArea, ChatView, PROMPT_MARK};
use super::{ChatInputMode, NORMAL_EXIT, format_notice, format_reply, tty};
use crate::connect::model_change_notice;
use crate::context::AppContext;
use crate::error::CliError;
use crate::exit;
use crate::interrupt::SHUTDOWN_RECORD_TIMEOUT;
use crate::render::lines::outcome_error;
use crate::run::instruction_notices;
use crate::sessions::show::exchange_lines;
use cofferdam::agent::events::{AgentEvent, Observer};
use cofferdam::agent::ports::LanguageModel;
use cofferdam::agent::{CompactionOutcome, RequestOutcome};
use cofferdam::conversation::Transcript;
use cofferdam::host::SessionRecord;
use cofferdam::policy::{ApprovalMode, Policy};
use cofferdam::sandbox::JobId;
use cofferdam::session::{ModelIdentity, OpenSession};
use cofferdam::terminal_escape;
use cofferdam::tools::{Approver, SessionApprovals};
use cofferdam::{Host, Session};

/// The work of the model: answer a prompt, or summarize the conversation.
#[derive(Clone, Copy)]
enum ModelWork<'a> {
    Prompt(&'a str),
    Compact,
}

/// The result of the model's work.
enum ChatWorkResult {
    Finished(RequestOutcome),
    Compacted(CompactionOutcome),
    /// Nothing ran, because a record is required and cannot be written.
    Unrecorded,
}

/// The state of a chat.
pub(super) struct ChatSession<'a> {
    pub(super) context: &'a AppContext,
    pub(super) runtime: &'a Runtime,
    pub(super) view: Arc<ChatView>,
    pub(super) session: Session,
    /// When the chat began.
    pub(super) began: SystemTime,
    pub(super) meter: RefCell<SessionCostMeter>,
    /// The project's guide for agents (`AGENTS.md`), as sent with the latest request.
    guide: Option<String>,
    /// Whether a user can answer questions; false if input comes from a pipe.
    has_approver: bool,
    questions: mpsc::Receiver<PendingQuestion>,
    signals: &'a ProcessSignals,
    /// The background commands whose end the user has seen.
    pub(super) reported_jobs: Vec<JobId>,
    /// The exit code for the end of piped input: that of the latest request. `None` at a terminal.
    exit_code: Option<u8>,
}

impl<'a> ChatSession<'a> {
    pub(super) fn new(
        context: &'a AppContext,
        host: &Host,
        runtime: &'a Runtime,
        model: Arc<dyn LanguageModel>,
        record: SessionRecord,
        signals: &'a ProcessSignals,
        input_mode: ChatInputMode,
    ) -> Self {
        let (asker, questions) = ChatApprover::new(context.commands());
        let approver: Option<Arc<dyn Approver>> =
            input_mode.is_interactive().then(|| Arc::new(asker) as Arc<dyn Approver>);
        let exit_code = (!input_mode.is_interactive()).then_some(0);
        let mut meter = SessionCostMeter::default();
        meter.set_overhead(
            &host.system_prompt(context.settings.mode).render(),
            context.catalog().definitions(),
        );
        let view = Arc::new(ChatView::new(input_mode.render_mode()));
        let notices = Arc::clone(&view);
        let has_approver = approver.is_some();
        let session = host
            .session(model)
            .with_approver(approver)
            .with_record(record)
            .on_notice(move |text| notices.observe(&AgentEvent::Notice(text)));
        Self {
            context,
            runtime,
            view,
            session,
            began: SystemTime::now(),
            meter: RefCell::new(meter),
            guide: host.guide(),
            has_approver,
            questions,
            signals,
            reported_jobs: Vec::new(),
            exit_code,
        }
    }

    pub(super) fn print_banner(&self) {
        let place = self.session.host().workspace().root().display();
        // Shows where prompts are sent if the address is not the provider's default.
        let info = self.session.model().info();
        let model = match &info.address {
            Some(_) => format!(" · {}", ModelIdentity::from(info)),
            None => String::new(),
        };
        self.view.print_line(&format_reply(&format!(
            "cofferdam {} in {place}{model} · /help lists commands",
            env!("CARGO_PKG_VERSION")
        )));
        let notices =
            self.session.host().guide_notice().into_iter().chain(instruction_notices(self.context));
        notices.for_each(|notice| self.view.print_line(&format_notice(&notice)));
    }

    /// Prints how to resume this session.
    pub(super) fn print_resume_hint(&self) {
        self.view.set_status_area(ChatStatusArea::Idle);
        if let (Some(id), false) = (self.session.id(), self.session.transcript().is_empty()) {
            self.view.print_line(&format_reply(&format!(
                "session {id} · cofferdam chat --resume {} continues it",
                &id.as_str()[..4]
            )));
        }
    }

    /// Switches to a stored session. Approvals of this session do not carry over.
    pub(super) fn resume_session(&mut self, session: OpenSession) {
        self.end_jobs();
        self.view.print_line(&format_reply(&format!(
            "continuing session {} ({}); its last request:",
            session.journal.id(),
            format_request_count(&session.transcript)
        )));
        for line in session.transcript.exchanges().last().map(exchange_lines).unwrap_or_default() {
            self.view.print_line(&line);
        }
        let last_model = session.last_model.as_ref();
        if let Some(warning) = model_change_notice(last_model, self.session.model().as_ref()) {
            self.view.print_line(&format_notice(&warning));
        }
        self.meter.borrow_mut().start_session(&session.transcript, &session.request_models);
        self.session.resume(session);
    }

    /// Starts a session with an empty conversation.
    pub(super) fn start_session(&mut self, record: SessionRecord) {
        self.end_jobs();
        let transcript = Transcript::new();
        self.meter.borrow_mut().start_session(&transcript, &[]);
        self.session.restart(transcript, record);
    }

    /// Reads and handles input until the user leaves. Returns the exit code.
    pub(super) fn run(&mut self, keyboard: &mut KeyboardOwner) -> io::Result<ExitCode> {
        let mut input = ChatInputQueue::default();
        while !self.signals.should_exit() {
            self.report_ended_jobs();
            let line = if input.queued.is_empty() {
                let initial_text = input.typed.take();
                match keyboard
                    .read_prompt(&initial_text, &|| self.status(), &|| self.cycle_mode())?
                {
                    PromptEntry::Line(line) => line,
                    PromptEntry::Exit => return Ok(self.exit_code()),
                }
            } else {
                let line = input.queued.remove(0);
                self.view.print_line(&format!(
                    "{PROMPT_MARK}{}",
                    terminal_escape::escape_text(&line).replace('\n', "\n  ")
                ));
                line
            };
            match commands::parse_line(&line) {
                LineMeaning::Empty => {}
                LineMeaning::Invalid(problem) => {
                    self.add_to_history(&line, keyboard);
                    self.view.print_line(&format_notice(&problem));
                }
                LineMeaning::Command(command) => {
                    if let Some(problem) = self.check_piped_command(&command) {
                        self.view.print_line(&format_notice(&problem));
                        return Ok(ExitCode::from(exit::FAILURE));
                    }
                    self.add_to_history(&line, keyboard);
                    match self.run_command(command, keyboard, &mut input) {
                        AfterRequest::Continue => {}
                        AfterRequest::Exit => return Ok(self.exit_code()),
                    }
                }
                LineMeaning::Prompt(prompt) => {
                    match self.run_request(keyboard, &prompt, &mut input) {
                        AfterRequest::Continue => {}
                        // The exit code that a shell reports for a program ended by SIGINT.
                        AfterRequest::Exit => return Ok(ExitCode::from(130)),
                    }
                }
            }
        }
        Ok(NORMAL_EXIT)
    }

    /// Adds a line to the prompt history, under the current session. Without a session nothing is
    /// saved.
    fn add_to_history(&self, line: &str, keyboard: &KeyboardOwner) {
        if let Some(session) = self.session.id() {
            keyboard.add_to_history(line, session);
        }
    }

    /// Returns why a command is refused on piped input, or `None` if it is allowed.
    ///
    /// The author of the line may not be the user who started the program. A refusal ends
    /// the chat, since later lines may depend on it.
    fn check_piped_command(&self, command: &SlashCommand) -> Option<String> {
        let denial = commands::pipe_denial(command, self.context.settings.mode)
            .filter(|_| !self.has_approver)?;
        Some(format!("{denial} This line and all later lines were ignored."))
    }

    /// Returns the exit code of an ordinary exit.
    fn exit_code(&self) -> ExitCode {
        self.exit_code.map_or(NORMAL_EXIT, ExitCode::from)
    }

    /// Returns the status line.
    fn status(&self) -> String {
        self.meter
            .borrow()
            .format_status(self.session.approvals().mode(), self.session.model().info())
    }

    /// Switches to the next mode that the policy allows.
    fn cycle_mode(&self) {
        switch_to_next_mode(self.session.approvals(), self.context.policy());
    }

    fn run_request(
        &mut self,
        keyboard: &mut KeyboardOwner,
        prompt: &str,
        input: &mut ChatInputQueue,
    ) -> AfterRequest {
        self.session.approvals().begin_request();
        let guide = self.session.host().guide();
        if guide != self.guide {
            self.view.print_line(&format_notice(
                "AGENTS.md changed since the last request, and the model receives the new content. \
                    Review it.",
            ));
            self.guide = guide;
        }
        self.meter.borrow_mut().add_prompt(prompt);
        let (result, after) = self.run_model_work(ModelWork::Prompt(prompt), keyboard, input);
        match result {
            ChatWorkResult::Finished(outcome) => {
                self.report_outcome(&outcome, input);
                self.exit_code = self.exit_code.map(|_| exit::outcome_code(&outcome));
            }
            ChatWorkResult::Unrecorded => {
                self.meter.borrow_mut().set_conversation(self.session.transcript());
                self.restore_unsent(Some(prompt), input);
            }
            ChatWorkResult::Compacted(_) => {}
        }
        after
    }

    /// Replaces the conversation by a summary.
    pub(super) fn compact(
        &mut self,
        keyboard: &mut KeyboardOwner,
        input: &mut ChatInputQueue,
    ) -> AfterRequest {
        const NOTHING: &str = "there is nothing to summarize yet";
        if self.session.transcript().is_empty() {
            self.view.print_line(&format_reply(NOTHING));
            return AfterRequest::Continue;
        }
        let (result, after) = self.run_model_work(ModelWork::Compact, keyboard, input);
        match result {
            // The view has already printed the summary event.
            ChatWorkResult::Compacted(CompactionOutcome::Done { .. })
            | ChatWorkResult::Finished(_) => {}
            ChatWorkResult::Unrecorded => self.restore_unsent(None, input),
            ChatWorkResult::Compacted(CompactionOutcome::NothingToSummarise) => {
                self.view.print_line(&format_reply(NOTHING))
            }
            ChatWorkResult::Compacted(CompactionOutcome::Failed { message }) => {
                self.view.print_line(&format_notice(&format!(
                    "cannot summarize the conversation: {message}"
                )));
                self.restore_unsent(None, input);
            }
            ChatWorkResult::Compacted(CompactionOutcome::Aborted) => {
                self.view.print_line(&format_notice("stopped; the conversation is unchanged"));
                self.restore_unsent(None, input);
            }
        }
        after
    }

    /// Runs the model's work on another thread, with the event loop on this one.
    fn run_model_work(
        &mut self,
        work: ModelWork<'_>,
        keyboard: &mut KeyboardOwner,
        input: &mut ChatInputQueue,
    ) -> (ChatWorkResult, AfterRequest) {
        let (view, model) = (Arc::clone(&self.view), Arc::clone(self.session.model()));
        let (approvals, policy) =
            (Arc::clone(self.session.approvals()), Arc::clone(self.context.policy()));
        let request = match self.session.prepare(view.as_ref()) {
            Ok(request) => request,
            Err(error) => {
                self.view.print_line(&format_notice(CliError::from(error).message()));
                return (ChatWorkResult::Unrecorded, AfterRequest::Continue);
            }
        };
        if let (ModelWork::Prompt(prompt), Some(session)) = (work, request.session_id()) {
            keyboard.add_to_history(prompt, session);
        }
        self.meter
            .borrow_mut()
            .set_overhead(request.system_prompt(), self.context.catalog().definitions());
        let (cancel, shutdown_recorder) = (CancellationToken::new(), request.shutdown_recorder());
        let (runtime, meter) = (self.runtime, &self.meter);
        let work = || {
            runtime.block_on(async {
                match work {
                    ModelWork::Prompt(prompt) => {
                        ChatWorkResult::Finished(request.run(prompt, &cancel).await)
                    }
                    ModelWork::Compact => ChatWorkResult::Compacted(request.compact(&cancel).await),
                }
            })
        };
        let (result, after) = run_with_event_loop(&cancel, work, |is_finished| {
            let events = EventSources {
                view: &self.view,
                questions: &self.questions,
                cycle_mode: &|| switch_to_next_mode(&approvals, &policy),
                signals: self.signals,
                cancel: &cancel,
                on_billed_item: &|taken| {
                    meter.borrow_mut().add_billed_item(taken, &model.info().model)
                },
                status: &|| meter.borrow().format_status(approvals.mode(), model.info()),
                is_finished,
            };
            let after = events.run(keyboard, input);
            if !is_finished() {
                if let Some(recorder) = &shutdown_recorder {
                    recorder.finish_within(SHUTDOWN_RECORD_TIMEOUT);
                }
                tty::restore();
                std::process::exit(130);
            }
            after
        });
        self.view.set_status_area(ChatStatusArea::Idle);
        self.meter.borrow_mut().set_conversation(self.session.transcript());
        (result, after)
    }

    /// Reports how a request ended. Queued input is sent automatically only after a normal end.
    fn report_outcome(&self, outcome: &RequestOutcome, input: &mut ChatInputQueue) {
        if let Some(problem) = outcome_error(outcome) {
            self.view.print_line(&format_notice(&format!("{problem}{}", outcome_hint(outcome))));
        }
        if !matches!(outcome, RequestOutcome::Answered { .. } | RequestOutcome::Limit { .. }) {
            self.restore_unsent(None, input);
        }
        self.view.print_line("");
    }

    /// Returns an unsent prompt and queued input to the input line.
    fn restore_unsent(&self, prompt: Option<&str>, input: &mut ChatInputQueue) {
        let mut all: Vec<String> = prompt
            .map(str::to_owned)
            .into_iter()
            .chain(std::mem::take(&mut input.queued))
            .collect();
        if all.is_empty() {
            return;
        }
        all.extend(Some(input.typed.take()).filter(|typed| !typed.is_empty()));
        input.typed = EditLine::from_text(all.join("\n"));
        let reply = match prompt {
            Some(_) => "The prompt was not sent; it is in the input line.",
            None => "The queued prompts were not sent; they are in the input line.",
        };
        self.view.print_line(&format_reply(reply));
    }
}

/// Switches to the next mode that the policy allows.
fn switch_to_next_mode(approvals: &SessionApprovals, policy: &Policy) {
    let mut mode = approvals.mode();
    for _ in ApprovalMode::ALL {
        mode = mode.next();
        if policy.mode_denied_by(mode).is_none() {
            return approvals.set_mode(mode);
        }
    }
}
