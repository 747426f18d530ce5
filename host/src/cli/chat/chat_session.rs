//! The conversation: read what the user says, do it, and again.

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
use super::question::{ChatApprover, PendingQuestion};
use super::session_record::SessionRecord;
use super::signals::ProcessSignals;
use super::view::{ChatStatusArea, ChatView, PROMPT_MARK};
use super::{ChatInputMode, NORMAL_EXIT, format_notice, format_reply, tty};
use crate::agent::events::{AgentEvent, Observer};
use crate::agent::ports::LanguageModel;
use crate::agent::{Agent, CompactionOutcome, RequestOutcome};
use crate::audit::AuditWriter;
use crate::cli::connect::model_change_notice;
use crate::cli::context::AppContext;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::interrupt::SHUTDOWN_RECORD_TIMEOUT;
use crate::cli::render::lines::outcome_error;
use crate::cli::request::{ConversationContext, PreparedRequest, new_request_id};
use crate::cli::run::{build_system_prompt, guide_notice, instruction_notices, read_guide};
use crate::cli::sessions::show::exchange_lines;
use crate::cli::{audit, policy_checks};
use crate::conversation::Transcript;
use crate::policy::ApprovalMode;
use crate::sandbox::Workspace;
use crate::session::{ModelIdentity, OpenSession};
use crate::terminal_escape;
use crate::tools::{Approver, AuditSink, SessionApprovals, SessionState};

/// What the model is to do.
#[derive(Clone, Copy)]
enum ModelWork<'a> {
    Prompt(&'a str),
    Compact,
}

/// What came of it.
enum ChatWorkResult {
    Finished(RequestOutcome),
    Compacted(CompactionOutcome),
    /// Nothing is done without a record of it, and there is none.
    Unrecorded,
}

/// Everything that a conversation is made of.
pub(super) struct ChatSession<'a> {
    pub(super) context: &'a AppContext,
    pub(super) workspace: Arc<Workspace>,
    pub(super) runtime: &'a Runtime,
    pub(super) model: Arc<dyn LanguageModel>,
    pub(super) view: Arc<ChatView>,
    pub(super) transcript: Transcript,
    pub(super) session_record: SessionRecord,
    /// Begun with the first request, as the record is.
    audit: Option<Arc<AuditWriter>>,
    /// What calls leave to those of the next request.
    session_state: Arc<SessionState>,
    pub(super) meter: RefCell<SessionCostMeter>,
    pub(super) approvals: Arc<SessionApprovals>,
    /// The project's guide for agents, as the newest request was given it.
    guide: Option<String>,
    /// Nobody, where what is said comes from a pipe.
    approver: Option<Arc<dyn Approver>>,
    questions: mpsc::Receiver<PendingQuestion>,
    signals: &'a ProcessSignals,
    /// What a program that has it talk is told at its end: how the newest request ended, as an exit
    /// code. `None` at a terminal.
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
        manner: ChatInputMode,
    ) -> Self {
        let (asker, questions) = ChatApprover::new(&context.commands);
        let approver: Option<Arc<dyn Approver>> =
            manner.is_interactive().then(|| Arc::new(asker) as Arc<dyn Approver>);
        let exit_code = (!manner.is_interactive()).then_some(0);
        let approvals = Arc::new(context.new_approvals(approver.clone(), None));
        let mut meter = SessionCostMeter::default();
        meter.set_overhead(
            &build_system_prompt(context, &workspace, context.settings.mode).render(),
            context.catalog.definitions(),
        );
        let (view, transcript, meter) =
            (Arc::new(ChatView::new(manner.render_mode())), Transcript::new(), RefCell::new(meter));
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
        // Nobody should have to guess where what they say goes.
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

    /// The way back.
    pub(super) fn print_resume_hint(&self) {
        self.view.set_status_area(ChatStatusArea::Idle);
        if let (Some(id), false) = (self.session_record.session_id(), self.transcript.is_empty()) {
            self.view.print_line(&format_reply(&format!(
                "session {id} · cofferdam chat --resume {} goes on with it",
                &id.as_str()[..4]
            )));
        }
    }

    /// Goes on with another conversation. What was approved in this one is not approved there
    ///
    pub(super) fn resume_session(&mut self, session: OpenSession) {
        let OpenSession {
            transcript,
            journal,
            state_deltas: remembered,
            last_model: held_with,
            request_models: models,
        } = session;
        self.view.print_line(&format_reply(&format!(
            "session {} goes on, {}; it ended with:",
            journal.id(),
            format_request_count(&transcript)
        )));
        for line in transcript.exchanges().last().map(exchange_lines).unwrap_or_default() {
            self.view.print_line(&line);
        }
        model_change_notice(held_with.as_ref(), self.model.as_ref())
            .into_iter()
            .for_each(|warning| self.view.print_line(&format_notice(&warning)));
        self.start_session(transcript, SessionRecord::Active(journal), &models);
        self.session_state = Arc::new(SessionState::from_deltas(&remembered));
    }

    /// With the model of each request that was made already.
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

    /// Talks until the user leaves.
    pub(super) fn run(&mut self, keyboard: &mut KeyboardOwner) -> io::Result<ExitCode> {
        let mut words = ChatInputQueue::default();
        while !self.signals.should_exit() {
            let line = if words.queued.is_empty() {
                let begun = words.typed.take();
                match keyboard.read_prompt(&begun, &|| self.status(), &|| self.cycle_mode())? {
                    PromptEntry::Line(line) => line,
                    PromptEntry::Exit => return Ok(self.exit_code()),
                }
            } else {
                let line = words.queued.remove(0);
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
                    match self.run_command(command, keyboard, &mut words) {
                        AfterRequest::Continue => {}
                        AfterRequest::Exit => return Ok(self.exit_code()),
                    }
                }
                LineMeaning::Prompt(prompt) => {
                    match self.run_request(keyboard, &prompt, &mut words) {
                        AfterRequest::Continue => {}
                        // What a shell reports of a program that SIGINT ended.
                        AfterRequest::Exit => return Ok(ExitCode::from(130)),
                    }
                }
            }
        }
        Ok(NORMAL_EXIT)
    }

    /// Keeps a line for the arrow keys of a later chat, with the session that it belongs to.
    /// Without one nothing is kept.
    fn add_to_history(&self, line: &str, keyboard: &KeyboardOwner) {
        if let Some(session) = self.session_record.session_id() {
            keyboard.add_to_history(line, session);
        }
    }

    /// Why this is not done for a line of a pipe, if it is not. Whoever wrote the line need not be
    /// who started the program, and that one has said how far it goes. What follows may build on
    /// it, so it is the end.
    fn check_piped_command(&self, command: &SlashCommand) -> Option<String> {
        let says = commands::pipe_denial(command, self.context.settings.mode)
            .filter(|_| self.approver.is_none())?;
        Some(format!("{says} Neither this line nor any after it was done."))
    }

    /// The exit code of somebody who leaves in the ordinary way.
    fn exit_code(&self) -> ExitCode {
        self.exit_code.map_or(NORMAL_EXIT, ExitCode::from)
    }

    /// One line that tells how things are.
    fn status(&self) -> String {
        self.meter.borrow().format_status(self.approvals.mode(), self.model.info())
    }

    /// The next mode that the policy leaves.
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
        words: &mut ChatInputQueue,
    ) -> AfterRequest {
        self.approvals.begin_request();
        let guide = read_guide(&self.workspace);
        if guide != self.guide {
            self.view.print_line(&format_notice(
                "AGENTS.md changed since the last request; the model \
                    is given it as it is now. Review it.",
            ));
            self.guide = guide;
        }
        self.meter.borrow_mut().add_prompt(prompt);
        let (came, then) = self.run_model_work(ModelWork::Prompt(prompt), keyboard, words);
        match came {
            ChatWorkResult::Finished(outcome) => {
                self.report_outcome(&outcome, words);
                self.exit_code = self.exit_code.map(|_| exit::outcome_code(&outcome));
            }
            ChatWorkResult::Unrecorded => {
                self.meter.borrow_mut().set_conversation(&self.transcript);
                self.restore_unsent(Some(prompt), words);
            }
            ChatWorkResult::Compacted(_) => {}
        }
        then
    }

    /// Summarises what was said.
    pub(super) fn compact(
        &mut self,
        keyboard: &mut KeyboardOwner,
        words: &mut ChatInputQueue,
    ) -> AfterRequest {
        const NOTHING: &str = "there is nothing yet that a summary could stand for";
        if self.transcript.is_empty() {
            self.view.print_line(&format_reply(NOTHING));
            return AfterRequest::Continue;
        }
        let (came, then) = self.run_model_work(ModelWork::Compact, keyboard, words);
        match came {
            // What was removed has been told by the event.
            ChatWorkResult::Compacted(CompactionOutcome::Done { .. })
            | ChatWorkResult::Finished(_) => {}
            ChatWorkResult::Unrecorded => self.restore_unsent(None, words),
            ChatWorkResult::Compacted(CompactionOutcome::NothingToSummarise) => {
                self.view.print_line(&format_reply(NOTHING))
            }
            ChatWorkResult::Compacted(CompactionOutcome::Failed { message }) => {
                self.view.print_line(&format_notice(&format!("there is no summary: {message}")));
                self.restore_unsent(None, words);
            }
            ChatWorkResult::Compacted(CompactionOutcome::Aborted) => {
                self.view.print_line(&format_notice("stopped. The conversation is as it was."));
                self.restore_unsent(None, words);
            }
        }
        then
    }

    /// The audit log of this conversation, under the name of its session.
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

    /// Has the model work, and attends to it.
    fn run_model_work(
        &mut self,
        work: ModelWork<'_>,
        keyboard: &mut KeyboardOwner,
        words: &mut ChatInputQueue,
    ) -> (ChatWorkResult, AfterRequest) {
        let (journal, warning) = self.session_record.take_journal(self.context, &self.workspace);
        if let Some(warning) = warning {
            self.view.print_line(&format_notice(&warning));
        }
        let unrecorded = match &journal {
            Some(_) => None,
            None => policy_checks::session_required_error(
                self.context.catalog.policy(),
                "its record cannot be begun or not be written any more",
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
        let (id, cancel, last_words) =
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
        let (came, then) = run_with_event_loop(&cancel, work, |is_finished| {
            let attention = EventSources {
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
            let then = attention.run(keyboard, words);
            if !is_finished() {
                last_words
                    .iter()
                    .for_each(|last_words| last_words.finish_within(SHUTDOWN_RECORD_TIMEOUT));
                tty::restore();
                std::process::exit(130);
            }
            then
        });
        self.view.set_status_area(ChatStatusArea::Idle);
        self.transcript = transcript;
        self.session_record.return_journal(request.into_journal());
        self.meter.borrow_mut().set_conversation(&self.transcript);
        (came, then)
    }

    /// Tells how a request ended. Unless it ended well, what was queued is not sent by itself.
    fn report_outcome(&self, outcome: &RequestOutcome, words: &mut ChatInputQueue) {
        if let Some(problem) = outcome_error(outcome) {
            self.view.print_line(&format_notice(&format!("{problem}{}", outcome_hint(outcome))));
        }
        if !matches!(outcome, RequestOutcome::Answered { .. } | RequestOutcome::Limit { .. }) {
            self.restore_unsent(None, words);
        }
        self.view.print_line("");
    }

    /// Puts back where it can be changed what was not sent: a prompt, and what was queued behind it
    ///
    fn restore_unsent(&self, prompt: Option<&str>, words: &mut ChatInputQueue) {
        let mut all: Vec<String> = prompt
            .map(str::to_owned)
            .into_iter()
            .chain(std::mem::take(&mut words.queued))
            .collect();
        if all.is_empty() {
            return;
        }
        all.extend(Some(words.typed.take()).filter(|typed| !typed.is_empty()));
        words.typed = EditLine::from_text(all.join("\n"));
        let what = if prompt.is_some() { "It" } else { "What was queued" };
        self.view.print_line(&format_reply(&format!("{what} was not sent; it is below.")));
    }
}

/// What the user can do about it, after the words for it.
fn outcome_hint(outcome: &RequestOutcome) -> &'static str {
    match outcome {
        RequestOutcome::Limit { .. } => ". Say `go on` to let it go on.",
        RequestOutcome::Empty => ". Say it in other words, or choose another /model.",
        RequestOutcome::Rejected => ". Say what to do instead.",
        RequestOutcome::Aborted => ". What was done until then is remembered.",
        RequestOutcome::TimedOut { .. } => ".",
        RequestOutcome::Answered { .. }
        | RequestOutcome::ProviderError { .. }
        | RequestOutcome::Overflow { .. }
        | RequestOutcome::InternalError { .. } => "",
    }
}

fn format_request_count(transcript: &Transcript) -> String {
    match transcript.exchanges().len() {
        1 => "1 request".to_owned(),
        many => format!("{many} requests"),
    }
}
