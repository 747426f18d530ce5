//! The main loop of a chat: read a line, run it as a command or a request, repeat.

use std::cell::RefCell;
use std::io;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};

use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::commands::{self, LineMeaning, SlashCommand};
use super::edit_line::EditLine;
use super::event_loop::{AfterRequest, ChatInputQueue, EventSources, run_with_event_loop};
use super::keyboard::{KeyboardOwner, PromptEntry};
use super::meter::SessionCostMeter;
use super::outcome_text::{format_request_count, outcome_hint};
use super::question::{ChatApprover, PendingQuestion};
use super::session_record::SessionRecord;
use super::signals::ProcessSignals;
use super::view::{ChatStatusArea, ChatView, PROMPT_MARK};
use super::{ChatInputMode, NORMAL_EXIT, format_notice, format_reply, tty};
use crate::connect::model_change_notice;
use crate::context::AppContext;
use crate::error::CliError;
use crate::exit;
use crate::interrupt::SHUTDOWN_RECORD_TIMEOUT;
use crate::render::lines::outcome_error;
use crate::request::{ConversationContext, PreparedRequest, new_request_id};
use crate::run::{build_system_prompt, guide_notice, instruction_notices, read_guide};
use crate::sessions::show::exchange_lines;
use crate::{audit, policy_checks};
use cofferdam::agent::events::{AgentEvent, Observer};
use cofferdam::agent::ports::LanguageModel;
use cofferdam::agent::{Agent, CompactionOutcome, RequestOutcome};
use cofferdam::audit::AuditWriter;
use cofferdam::conversation::Transcript;
use cofferdam::policy::ApprovalMode;
use cofferdam::sandbox::Workspace;
use cofferdam::session::{ModelIdentity, OpenSession};
use cofferdam::terminal_escape;
use cofferdam::tools::{Approver, AuditSink, SessionApprovals, SessionState};

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
    pub(super) workspace: Arc<Workspace>,
    pub(super) runtime: &'a Runtime,
    pub(super) model: Arc<dyn LanguageModel>,
    pub(super) view: Arc<ChatView>,
    pub(super) transcript: Transcript,
    pub(super) session_record: SessionRecord,
    /// The audit log; created by the first request, like the session record.
    audit: Option<Arc<AuditWriter>>,
    /// Tool state that later requests of the session see.
    session_state: Arc<SessionState>,
    pub(super) meter: RefCell<SessionCostMeter>,
    pub(super) approvals: Arc<SessionApprovals>,
    /// The project's guide for agents (`AGENTS.md`), as sent with the latest request.
    guide: Option<String>,
    /// Answers approval questions; `None` if input comes from a pipe.
    approver: Option<Arc<dyn Approver>>,
    questions: mpsc::Receiver<PendingQuestion>,
    signals: &'a ProcessSignals,
    /// The exit code for the end of piped input: that of the latest request. `None` at a terminal.
    exit_code: Option<u8>,
}

impl<'a> ChatSession<'a> {
    pub(super) fn new(
        context: &'a AppContext,
        workspace: Arc<Workspace>,
        runtime: &'a Runtime,
        model: Arc<dyn LanguageModel>,
        session_record: SessionRecord,
        signals: &'a ProcessSignals,
        input_mode: ChatInputMode,
    ) -> Self {
        let (asker, questions) = ChatApprover::new(&context.commands);
        let approver: Option<Arc<dyn Approver>> =
            input_mode.is_interactive().then(|| Arc::new(asker) as Arc<dyn Approver>);
        let exit_code = (!input_mode.is_interactive()).then_some(0);
        let approvals = Arc::new(context.new_approvals(approver.clone(), None));
        let mut meter = SessionCostMeter::default();
        meter.set_overhead(
            &build_system_prompt(context, &workspace, context.settings.mode).render(),
            context.catalog.definitions(),
        );
        let (view, transcript, meter) = (
            Arc::new(ChatView::new(input_mode.render_mode())),
            Transcript::new(),
            RefCell::new(meter),
        );
        let (audit, session_state) = (None, Arc::default());
        let guide = read_guide(&workspace);
        Self {
            context,
            workspace,
            runtime,
            model,
            view,
            transcript,
            session_record,
            audit,
            session_state,
            meter,
            approvals,
            guide,
            approver,
            questions,
            signals,
            exit_code,
        }
    }

    pub(super) fn print_banner(&self) {
        let place = self.workspace.root().display();
        // Shows where prompts are sent if the address is not the provider's default.
        let model = self
            .model
            .info()
            .address
            .as_ref()
            .map(|_| format!(" · {}", ModelIdentity::from(self.model.info())))
            .unwrap_or_default();
        self.view.print_line(&format_reply(&format!(
            "cofferdam {} in {place}{model} · /help lists commands",
            env!("CARGO_PKG_VERSION")
        )));
        let notices =
            guide_notice(&self.workspace).into_iter().chain(instruction_notices(self.context));
        notices.for_each(|notice| self.view.print_line(&format_notice(&notice)));
    }

    /// Prints how to resume this session.
    pub(super) fn print_resume_hint(&self) {
        self.view.set_status_area(ChatStatusArea::Idle);
        if let (Some(id), false) = (self.session_record.session_id(), self.transcript.is_empty()) {
            self.view.print_line(&format_reply(&format!(
                "session {id} · cofferdam chat --resume {} continues it",
                &id.as_str()[..4]
            )));
        }
    }

    /// Switches to a stored session. Approvals of this session do not carry over.
    pub(super) fn resume_session(&mut self, session: OpenSession) {
        let OpenSession { transcript, journal, state_deltas, last_model, request_models: models } =
            session;
        self.view.print_line(&format_reply(&format!(
            "continuing session {} ({}); its last request:",
            journal.id(),
            format_request_count(&transcript)
        )));
        for line in transcript.exchanges().last().map(exchange_lines).unwrap_or_default() {
            self.view.print_line(&line);
        }
        if let Some(warning) = model_change_notice(last_model.as_ref(), self.model.as_ref()) {
            self.view.print_line(&format_notice(&warning));
        }
        self.start_session(transcript, SessionRecord::Active(journal), &models);
        self.session_state = Arc::new(SessionState::from_deltas(&state_deltas));
    }

    /// Starts a session with a transcript. `models` has the model of each recorded request, for the
    /// cost so far.
    pub(super) fn start_session(
        &mut self,
        transcript: Transcript,
        record: SessionRecord,
        models: &[Option<String>],
    ) {
        let mode = self.approvals.mode();
        self.approvals = Arc::new(self.context.new_approvals(self.approver.clone(), None));
        self.audit = None;
        self.session_state = Arc::default();
        self.approvals.set_mode(mode);
        self.meter.borrow_mut().start_session(&transcript, models);
        self.transcript = transcript;
        self.session_record = record;
    }

    /// Reads and handles input until the user leaves. Returns the exit code.
    pub(super) fn run(&mut self, keyboard: &mut KeyboardOwner) -> io::Result<ExitCode> {
        let mut input = ChatInputQueue::default();
        while !self.signals.should_exit() {
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
        if let Some(session) = self.session_record.session_id() {
            keyboard.add_to_history(line, session);
        }
    }

    /// Returns why a command is refused on piped input, or `None` if it is allowed.
    ///
    /// Whoever wrote the line need not be who started the program with its permissions. A
    /// refusal ends the chat, since later lines may depend on it.
    fn check_piped_command(&self, command: &SlashCommand) -> Option<String> {
        let denial = commands::pipe_denial(command, self.context.settings.mode)
            .filter(|_| self.approver.is_none())?;
        Some(format!("{denial} Neither this line nor any later line was run."))
    }

    /// Returns the exit code of an ordinary exit.
    fn exit_code(&self) -> ExitCode {
        self.exit_code.map_or(NORMAL_EXIT, ExitCode::from)
    }

    /// Returns the status line.
    fn status(&self) -> String {
        self.meter.borrow().format_status(self.approvals.mode(), self.model.info())
    }

    /// Switches to the next mode that the policy allows.
    fn cycle_mode(&self) {
        let all =
            std::iter::successors(Some(self.approvals.mode().next()), |mode| Some(mode.next()))
                .take(ApprovalMode::ALL.len());
        if let Some(mode) = all
            .into_iter()
            .find(|mode| self.context.catalog.policy().mode_denied_by(*mode).is_none())
        {
            self.approvals.set_mode(mode);
        }
    }

    fn run_request(
        &mut self,
        keyboard: &mut KeyboardOwner,
        prompt: &str,
        input: &mut ChatInputQueue,
    ) -> AfterRequest {
        self.approvals.begin_request();
        let guide = read_guide(&self.workspace);
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
                self.meter.borrow_mut().set_conversation(&self.transcript);
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
        if self.transcript.is_empty() {
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
                    "cannot summarize the conversation: \
                    {message}"
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

    /// Begins the audit log of this session unless it exists.
    fn begin_audit(&mut self) -> Result<(), CliError> {
        if self.audit.is_none() {
            let (info, view) = (self.model.info(), Arc::clone(&self.view));
            let model = Some(format!("{}:{}", info.provider, info.model));
            let notify = move |text: &str| view.observe(&AgentEvent::Notice(text));
            self.audit = audit::begin_log(
                self.context,
                &self.workspace,
                self.session_record.session_id(),
                model,
                self.approvals.mode(),
                notify,
            )?;
            if let Some(audit) = &self.audit {
                self.approvals.set_audit_sink(Arc::clone(audit) as Arc<dyn AuditSink>);
            }
        }
        Ok(())
    }

    /// Runs the model's work on another thread, with the event loop on this one.
    fn run_model_work(
        &mut self,
        work: ModelWork<'_>,
        keyboard: &mut KeyboardOwner,
        input: &mut ChatInputQueue,
    ) -> (ChatWorkResult, AfterRequest) {
        let (journal, warning) = self.session_record.take_journal(self.context, &self.workspace);
        if let Some(warning) = warning {
            self.view.print_line(&format_notice(&warning));
        }
        let unrecorded = match &journal {
            Some(_) => None,
            None => policy_checks::session_required_error(
                self.context.catalog.policy(),
                "the session cannot be recorded",
            ),
        };
        if let Some(error) = unrecorded.or_else(|| self.begin_audit().err()) {
            self.view.print_line(&format_notice(error.message()));
            self.session_record.return_journal(journal);
            return (ChatWorkResult::Unrecorded, AfterRequest::Continue);
        }
        if let ModelWork::Prompt(prompt) = work {
            self.add_to_history(prompt, keyboard);
        }
        let model = Arc::clone(&self.model);
        let conversation = ConversationContext {
            approvals: Arc::clone(&self.approvals),
            session_state: Arc::clone(&self.session_state),
            audit: self.audit.clone(),
            journal,
        };
        let view = Arc::clone(&self.view);
        let request = PreparedRequest::new(
            conversation,
            self.context,
            &self.workspace,
            &model,
            view.as_ref(),
        );
        self.meter
            .borrow_mut()
            .set_overhead(request.system_prompt(), self.context.catalog.definitions());
        let (id, cancel, shutdown_recorder) =
            (new_request_id(), CancellationToken::new(), request.shutdown_recorder());
        let (runtime, mut transcript) = (self.runtime, std::mem::take(&mut self.transcript));
        let work = || {
            runtime.block_on(request.run(async |agent: &Agent<'_>| match work {
                ModelWork::Prompt(prompt) => ChatWorkResult::Finished(
                    agent.run_request(&id, &mut transcript, prompt, &cancel).await,
                ),
                ModelWork::Compact => {
                    ChatWorkResult::Compacted(agent.compact(&mut transcript, &cancel).await)
                }
            }))
        };
        let (result, after) = run_with_event_loop(&cancel, work, |is_finished| {
            let events = EventSources {
                view: &self.view,
                questions: &self.questions,
                cycle_mode: &|| self.cycle_mode(),
                signals: self.signals,
                cancel: &cancel,
                on_billed_item: &|taken| {
                    self.meter.borrow_mut().add_billed_item(taken, &model.info().model)
                },
                status: &|| self.meter.borrow().format_status(self.approvals.mode(), model.info()),
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
        self.transcript = transcript;
        self.session_record.return_journal(request.into_journal());
        self.meter.borrow_mut().set_conversation(&self.transcript);
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
