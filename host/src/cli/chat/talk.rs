//! The conversation: read what the user says, do it, and again.

use std::cell::RefCell;
use std::io;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};

use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::attend::{Attention, Then, Words, beside};
use super::commands::{self, Command, Meaning};
use super::keyboard::{Entered, Keyboard};
use super::line::Line;
use super::meter::Meter;
use super::question::{Asked, Asker};
use super::record::Record;
use super::signals::Signals;
use super::view::{MARK, Scene, View};
use super::{LEFT, Manner, remark, told, tty};
use crate::agent::events::{Event, Observer};
use crate::agent::ports::Model;
use crate::agent::{Agent, Compacted, Outcome};
use crate::audit::Audit;
use crate::cli::assemble::Parts;
use crate::cli::audit;
use crate::cli::connect::elsewhere;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::interrupt::FOR_LAST_WORDS;
use crate::cli::render::lines::problem;
use crate::cli::request::{Conversation, Request, next_id};
use crate::cli::run::{guide_notice, system_prompt};
use crate::cli::sessions::show::said_and_done;
use crate::conversation::Transcript;
use crate::policy::Mode;
use crate::sandbox::Workspace;
use crate::session::{HeldWith, Session};
use crate::shown;
use crate::tools::{Approvals, Approver, Ledger, Memory};

/// What the model is to do.
#[derive(Clone, Copy)]
enum Work<'a> {
    Prompt(&'a str),
    Compact,
}

/// What came of it.
enum Came {
    Ended(Outcome),
    Compacted(Compacted),
    /// Nothing is done without a record of it, and there is none.
    Unrecorded,
}

/// Everything that a conversation is made of.
pub(super) struct Talk<'a> {
    pub(super) parts: &'a Parts,
    pub(super) workspace: Arc<Workspace>,
    pub(super) runtime: &'a Runtime,
    pub(super) model: Arc<dyn Model>,
    pub(super) view: Arc<View>,
    pub(super) transcript: Transcript,
    pub(super) record: Record,
    /// Begun with the first request, as the record is.
    audit: Option<Arc<Audit>>,
    /// What calls leave to those of the next request.
    memory: Arc<Memory>,
    pub(super) meter: RefCell<Meter>,
    pub(super) approvals: Arc<Approvals>,
    /// Nobody, where what is said comes from a pipe.
    asker: Option<Arc<dyn Approver>>,
    questions: mpsc::Receiver<Asked>,
    signals: &'a Signals,
    /// What a program that has it talk is told at its end: how the newest request ended, as an exit code. `None` at a terminal.
    code: Option<u8>,
}

impl<'a> Talk<'a> {
    pub(super) fn new(
        parts: &'a Parts,
        workspace: Arc<Workspace>,
        runtime: &'a Runtime,
        model: Arc<dyn Model>,
        record: Record,
        signals: &'a Signals,
        manner: Manner,
    ) -> Self {
        let (asker, questions) = Asker::new(&parts.commands);
        let asker: Option<Arc<dyn Approver>> = manner.can_be_asked().then(|| Arc::new(asker) as Arc<dyn Approver>);
        let code = (!manner.can_be_asked()).then_some(0);
        let approvals = Arc::new(parts.approvals(asker.clone(), None));
        let mut meter = Meter::default();
        meter.set_beside(&system_prompt(parts, &workspace, parts.settings.mode).render(), parts.catalog.definitions());
        let (view, transcript, meter) = (Arc::new(View::new(manner.face())), Transcript::new(), RefCell::new(meter));
        let (audit, memory) = (None, Arc::default());
        Self {
            parts,
            workspace,
            runtime,
            model,
            view,
            transcript,
            record,
            audit,
            memory,
            meter,
            approvals,
            asker,
            questions,
            signals,
            code,
        }
    }

    pub(super) fn greet(&self) {
        let place = self.workspace.root().display();
        // Nobody should have to guess where what they say goes.
        let model = self.model.info().address.as_ref().map(|_| format!(" · {}", HeldWith::from(self.model.info()))).unwrap_or_default();
        self.view.say(&remark(&format!("cofferdam {} in {place}{model} · /help lists commands", env!("CARGO_PKG_VERSION"))));
        guide_notice(&self.workspace).into_iter().for_each(|notice| self.view.say(&told(&notice)));
    }

    /// The way back.
    pub(super) fn take_leave(&self) {
        self.view.set_scene(Scene::Still);
        if let (Some(id), false) = (self.record.id(), self.transcript.is_empty()) {
            self.view.say(&remark(&format!("session {id} · cofferdam chat --resume {} goes on with it", &id.as_str()[..4])));
        }
    }

    /// Goes on with another conversation. What was approved in this one is not approved there.
    pub(super) fn go_on_with(&mut self, session: Session) {
        let Session { transcript, journal, remembered, held_with, models } = session;
        self.view.say(&remark(&format!("session {} goes on, {}; it ended with:", journal.id(), requests(&transcript))));
        for line in transcript.exchanges().last().map(said_and_done).unwrap_or_default() {
            self.view.say(&line);
        }
        elsewhere(held_with.as_ref(), self.model.as_ref()).into_iter().for_each(|warning| self.view.say(&told(&warning)));
        self.begin_with(transcript, Record::On(journal), &models);
        self.memory = Arc::new(Memory::restored(&remembered));
    }

    /// With the model of each request that was made already.
    pub(super) fn begin_with(&mut self, transcript: Transcript, record: Record, models: &[Option<String>]) {
        let mode = self.approvals.mode();
        self.approvals = Arc::new(self.parts.approvals(self.asker.clone(), None));
        self.audit = None;
        self.memory = Arc::default();
        self.approvals.set_mode(mode);
        self.meter.borrow_mut().begin_with(&transcript, models);
        self.transcript = transcript;
        self.record = record;
    }

    /// Talks until the user leaves.
    pub(super) fn talk(&mut self, keyboard: &mut Keyboard) -> io::Result<ExitCode> {
        let mut words = Words::default();
        while !self.signals.leave() {
            let line = if words.queued.is_empty() {
                let begun = words.typed.take();
                match keyboard.prompt(&begun, &|| self.status(), &|| self.cycle_mode())? {
                    Entered::Line(line) => line,
                    Entered::Leave => return Ok(self.left()),
                }
            } else {
                let line = words.queued.remove(0);
                self.view.say(&format!("{MARK}{}", shown::block(&line).replace('\n', "\n  ")));
                line
            };
            match commands::meaning(&line) {
                Meaning::Nothing => {}
                Meaning::Mistake(problem) => {
                    self.remember(&line, keyboard);
                    self.view.say(&told(&problem));
                }
                Meaning::Command(command) => {
                    if let Some(problem) = self.out_of_place(&command) {
                        self.view.say(&told(&problem));
                        return Ok(ExitCode::from(exit::FAILED));
                    }
                    self.remember(&line, keyboard);
                    match self.act(command, keyboard, &mut words) {
                        Then::GoOn => {}
                        Then::Leave => return Ok(self.left()),
                    }
                }
                Meaning::Prompt(prompt) => match self.request(keyboard, &prompt, &mut words) {
                    Then::GoOn => {}
                    // What a shell reports of a program that SIGINT ended.
                    Then::Leave => return Ok(ExitCode::from(130)),
                },
            }
        }
        Ok(LEFT)
    }

    /// Keeps a line for the arrow keys of a later chat, with the session that it belongs to. Without one nothing is kept.
    fn remember(&self, line: &str, keyboard: &Keyboard) {
        if let Some(session) = self.record.id() {
            keyboard.remember(line, session);
        }
    }

    /// Why this is not done for a line of a pipe, if it is not. Whoever wrote the line need not be who started the program, and
    /// that one has said how far it goes. What follows may build on it, so it is the end.
    fn out_of_place(&self, command: &Command) -> Option<String> {
        let says = commands::out_of_place(command, self.parts.settings.mode).filter(|_| self.asker.is_none())?;
        Some(format!("{says} Neither this line nor any after it was done."))
    }

    /// The exit code of somebody who leaves in the ordinary way.
    fn left(&self) -> ExitCode {
        self.code.map_or(LEFT, ExitCode::from)
    }

    /// One line that tells how things are.
    fn status(&self) -> String {
        self.meter.borrow().status(self.approvals.mode(), self.model.info())
    }

    /// The next mode that the policy leaves.
    fn cycle_mode(&self) {
        let all = std::iter::successors(Some(self.approvals.mode().next()), |mode| Some(mode.next())).take(Mode::ALL.len());
        if let Some(mode) = all.into_iter().find(|mode| self.parts.catalog.policy().forbids(*mode).is_none()) {
            self.approvals.set_mode(mode);
        }
    }

    fn request(&mut self, keyboard: &mut Keyboard, prompt: &str, words: &mut Words) -> Then {
        self.approvals.request_begins();
        self.meter.borrow_mut().prompt(prompt);
        let (came, then) = self.work(Work::Prompt(prompt), keyboard, words);
        match came {
            Came::Ended(outcome) => {
                self.ended(&outcome, words);
                self.code = self.code.map(|_| exit::code(&outcome));
            }
            Came::Unrecorded => {
                self.meter.borrow_mut().set_conversation(&self.transcript);
                self.give_back(Some(prompt), words);
            }
            Came::Compacted(_) => {}
        }
        then
    }

    /// Summarises what was said.
    pub(super) fn compact(&mut self, keyboard: &mut Keyboard, words: &mut Words) -> Then {
        const NOTHING: &str = "there is nothing yet that a summary could stand for";
        if self.transcript.is_empty() {
            self.view.say(&remark(NOTHING));
            return Then::GoOn;
        }
        let (came, then) = self.work(Work::Compact, keyboard, words);
        match came {
            // What was removed has been told by the event.
            Came::Compacted(Compacted::Done { .. }) | Came::Ended(_) => {}
            Came::Unrecorded => self.give_back(None, words),
            Came::Compacted(Compacted::Nothing) => self.view.say(&remark(NOTHING)),
            Came::Compacted(Compacted::Failed { message }) => {
                self.view.say(&told(&format!("there is no summary: {message}")));
                self.give_back(None, words);
            }
            Came::Compacted(Compacted::Aborted) => {
                self.view.say(&told("stopped. The conversation is as it was."));
                self.give_back(None, words);
            }
        }
        then
    }

    /// The audit log of this conversation, under the name of its session.
    fn begin_audit(&mut self) -> Result<(), CliError> {
        if self.audit.is_none() {
            let (info, view) = (self.model.info(), Arc::clone(&self.view));
            let model = Some(format!("{}:{}", info.provider, info.model));
            let notify = move |text: &str| view.observe(&Event::Notice(text));
            self.audit = audit::begin(self.parts, &self.workspace, self.record.id(), model, self.approvals.mode(), notify)?;
            if let Some(audit) = &self.audit {
                self.approvals.record_by(Arc::clone(audit) as Arc<dyn Ledger>);
            }
        }
        Ok(())
    }

    /// Has the model work, and attends to it.
    fn work(&mut self, work: Work<'_>, keyboard: &mut Keyboard, words: &mut Words) -> (Came, Then) {
        let (journal, warning) = self.record.take(self.parts, &self.workspace);
        if let Some(warning) = warning {
            self.view.say(&told(&warning));
        }
        if let Err(error) = self.begin_audit() {
            self.view.say(&told(error.message()));
            self.record.give_back(journal);
            return (Came::Unrecorded, Then::GoOn);
        }
        if let Work::Prompt(prompt) = work {
            self.remember(prompt, keyboard);
        }
        let model = Arc::clone(&self.model);
        let conversation =
            Conversation { approvals: Arc::clone(&self.approvals), memory: Arc::clone(&self.memory), audit: self.audit.clone(), journal };
        let view = Arc::clone(&self.view);
        let request = Request::of(conversation, self.parts, &self.workspace, &model, view.as_ref());
        self.meter.borrow_mut().set_beside(request.system(), self.parts.catalog.definitions());
        let (id, cancel, last_words) = (next_id(), CancellationToken::new(), request.last_words());
        let (runtime, mut transcript) = (self.runtime, std::mem::take(&mut self.transcript));
        let work = || {
            runtime.block_on(request.work(async |agent: &Agent<'_>| match work {
                Work::Prompt(prompt) => Came::Ended(agent.request(&id, &mut transcript, prompt, &cancel).await),
                Work::Compact => Came::Compacted(agent.compact(&mut transcript, &cancel).await),
            }))
        };
        let (came, then) = beside(&cancel, work, |is_finished| {
            let attention = Attention {
                view: &self.view,
                questions: &self.questions,
                cycle_mode: &|| self.cycle_mode(),
                signals: self.signals,
                cancel: &cancel,
                on_taken: &|taken| self.meter.borrow_mut().took(taken, &model.info().model),
                status: &|| self.meter.borrow().status(self.approvals.mode(), model.info()),
                is_finished,
            };
            let then = attention.attend(keyboard, words);
            if !is_finished() {
                last_words.iter().for_each(|last_words| last_words.write_within(FOR_LAST_WORDS));
                tty::give_back();
                std::process::exit(130);
            }
            then
        });
        self.view.set_scene(Scene::Still);
        self.transcript = transcript;
        self.record.give_back(request.into_journal());
        self.meter.borrow_mut().set_conversation(&self.transcript);
        (came, then)
    }

    /// Tells how a request ended. Unless it ended well, what was queued is not sent by itself.
    fn ended(&self, outcome: &Outcome, words: &mut Words) {
        if let Some(problem) = problem(outcome) {
            self.view.say(&told(&format!("{problem}{}", hint(outcome))));
        }
        if !matches!(outcome, Outcome::Answered { .. } | Outcome::Limit { .. }) {
            self.give_back(None, words);
        }
        self.view.say("");
    }

    /// Puts back where it can be changed what was not sent: a prompt, and what was queued behind it.
    fn give_back(&self, prompt: Option<&str>, words: &mut Words) {
        let mut all: Vec<String> = prompt.map(str::to_owned).into_iter().chain(std::mem::take(&mut words.queued)).collect();
        if all.is_empty() {
            return;
        }
        all.extend(Some(words.typed.take()).filter(|typed| !typed.is_empty()));
        words.typed = Line::of(all.join("\n"));
        let what = if prompt.is_some() { "It" } else { "What was queued" };
        self.view.say(&remark(&format!("{what} was not sent; it is below.")));
    }
}

/// What the user can do about it, after the words for it.
fn hint(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Limit { .. } => ". Say `go on` to let it go on.",
        Outcome::Empty => ". Say it in other words, or choose another /model.",
        Outcome::Rejected => ". Say what to do instead.",
        Outcome::Aborted => ". What was done until then is remembered.",
        Outcome::TimedOut { .. } => ".",
        Outcome::Answered { .. } | Outcome::ProviderError { .. } | Outcome::Overflow { .. } | Outcome::InternalError { .. } => "",
    }
}

fn requests(transcript: &Transcript) -> String {
    match transcript.exchanges().len() {
        1 => "1 request".to_owned(),
        many => format!("{many} requests"),
    }
}
