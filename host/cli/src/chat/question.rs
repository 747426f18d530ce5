//! The approval dialog of a chat: the same questions and digits as elsewhere, read
//! key by key.

use std::io;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::edit_line::EditLine;
use super::keyboard::{DialogKeyboard, KeyPress, RequestKeys};
use super::view::{ChatStatusArea, ChatView};
use crate::dialog::{
    CHAT_DURATION, DialogChoice, GUIDANCE_PROMPT, OfferedChoices, approval_rules, describe,
    describe_sandbox,
};
use crate::pages::PagedText;
use crate::paging::{QuestionTerminal, TypedAnswer, ask_in_pages};
use crate::settle::SETTLE;
use crate::wrap::{self, TerminalSize};
use cofferdam::policy::ApprovalQuestion;
use cofferdam::sandbox::CommandSandbox;
use cofferdam::tools::{ApprovalAnswer, Approver};

/// Interval at which the dialog checks whether the question is still open.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Empty prompt, shown while keys are discarded.
const NOT_YET: &str = "";
const LINE_PROMPT: &str = "| ";

/// A question for the thread that owns the keyboard.
pub(super) struct PendingQuestion {
    question: ApprovalQuestion,
    /// The description of the command's sandbox.
    sandbox: String,
    answer: oneshot::Sender<ApprovalAnswer>,
}

/// Sends questions to the event loop and waits for the answers.
pub(super) struct ChatApprover {
    questions: mpsc::Sender<PendingQuestion>,
    commands: Arc<CommandSandbox>,
}

impl ChatApprover {
    /// Creates an approver and the receiver of its questions.
    pub(super) fn new(commands: &Arc<CommandSandbox>) -> (Self, mpsc::Receiver<PendingQuestion>) {
        let (questions, receiver) = mpsc::channel();
        (Self { questions, commands: Arc::clone(commands) }, receiver)
    }
}

impl Approver for ChatApprover {
    fn ask_pages<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let no = ApprovalAnswer::No { guidance: None };
            let sandbox = describe_sandbox(question, &self.commands);
            match self.questions.send(PendingQuestion {
                question: question.clone(),
                sandbox,
                answer,
            }) {
                Ok(()) => answered.await.unwrap_or(no),
                Err(_) => no,
            }
        })
    }
}

/// Shows a question and sends the answer back. The dialog closes if the call no longer waits.
///
/// If the terminal is gone before an answer, the request is cancelled, because the user did not
/// reject it.
pub(super) fn ask_user(
    keys: &mut RequestKeys<'_>,
    view: &ChatView,
    pending: PendingQuestion,
    is_over: &dyn Fn() -> bool,
    cancel: &CancellationToken,
) -> io::Result<()> {
    let offered = OfferedChoices::of(&pending.question);
    view.set_status_area(ChatStatusArea::Asking { prompt: NOT_YET, answer: EditLine::default() });
    // The file with the full diff exists while `described` does.
    let described = describe(&pending.question, CHAT_DURATION, &pending.sandbox);
    let is_over = || is_over() || pending.answer.is_closed();
    let mut question = ChatQuestion { dialog: keys.dialog_keys(), view, is_over: &is_over };
    let answer = question.ask(&described.pages, offered);
    view.set_status_area(ChatStatusArea::Running);
    let result = match answer {
        Ok(TypedAnswer::Answer(answer)) => {
            // The call may have been cancelled just now.
            let _ = pending.answer.send(answer);
            return Ok(());
        }
        Ok(TypedAnswer::Rejected) => {
            let _ = pending.answer.send(ApprovalAnswer::No { guidance: None });
            return Ok(());
        }
        Ok(TypedAnswer::Cancelled) => Ok(()),
        Err(error) => Err(error),
    };
    if !pending.answer.is_closed() {
        cancel.cancel();
    }
    result
}

/// An open question in the chat.
struct ChatQuestion<'a> {
    dialog: DialogKeyboard<'a>,
    view: &'a ChatView,
    is_over: &'a dyn Fn() -> bool,
}

impl ChatQuestion<'_> {
    fn ask(
        &mut self,
        text: &PagedText,
        offered: OfferedChoices,
    ) -> io::Result<TypedAnswer<ApprovalAnswer>> {
        let parse = |line: &str| DialogChoice::parse(line, offered);
        let choice = match ask_in_pages(text, self, approval_rules(&parse))? {
            TypedAnswer::Answer(choice) => choice,
            TypedAnswer::Rejected => return Ok(TypedAnswer::Rejected),
            TypedAnswer::Cancelled => return Ok(TypedAnswer::Cancelled),
        };
        Ok(TypedAnswer::Answer(match choice {
            DialogChoice::Yes => ApprovalAnswer::Yes,
            DialogChoice::YesForScope => ApprovalAnswer::YesForScope,
            DialogChoice::YesAlways => ApprovalAnswer::YesAlways,
            // The user's instructions count where they can have an effect.
            DialogChoice::No if offered.has_guidance => return self.read_guidance(),
            DialogChoice::No => ApprovalAnswer::No { guidance: None },
        }))
    }

    fn read_guidance(&mut self) -> io::Result<TypedAnswer<ApprovalAnswer>> {
        self.view.print_dialog_line(GUIDANCE_PROMPT);
        let mut lines = Vec::new();
        loop {
            match self.read_line(LINE_PROMPT)? {
                TypedAnswer::Answer(line) if !line.trim().is_empty() => lines.push(line),
                TypedAnswer::Answer(_) => break,
                TypedAnswer::Rejected => return Ok(TypedAnswer::Rejected),
                TypedAnswer::Cancelled => return Ok(TypedAnswer::Cancelled),
            }
        }
        let guidance = (!lines.is_empty()).then(|| lines.join("\n"));
        Ok(TypedAnswer::Answer(ApprovalAnswer::No { guidance }))
    }

    fn show_input(&self, prompt: &'static str, answer: EditLine) {
        self.view.set_status_area(ChatStatusArea::Asking { prompt, answer });
    }
}

impl QuestionTerminal for ChatQuestion<'_> {
    fn size(&self) -> TerminalSize {
        wrap::terminal_size()
    }

    fn show_page(&mut self, page: &str) -> io::Result<()> {
        self.show_input(NOT_YET, EditLine::default());
        self.view.print_dialog_line(page);
        self.dialog.discard_typed(SETTLE, self.is_over)
    }

    fn show_hint(&mut self, hint: &str) {
        self.view.print_dialog_line(hint);
    }

    fn read_line(&mut self, prompt: &'static str) -> io::Result<TypedAnswer<String>> {
        let mut line = EditLine::default();
        self.dialog.show_prompt(prompt);
        loop {
            self.show_input(prompt, line.clone());
            if (self.is_over)() {
                return Ok(TypedAnswer::Cancelled);
            }
            match self.dialog.next_key(POLL_INTERVAL)? {
                Some(KeyPress::Enter) => {
                    if !self.dialog.has_echo() {
                        for (n, part) in line.text().split('\n').enumerate() {
                            let prompt = if n == 0 { prompt } else { "  " };
                            let part = cofferdam::terminal_escape::escape_text(part);
                            self.view.print_dialog_line(&format!("{prompt}{part}"));
                        }
                    }
                    return Ok(TypedAnswer::Answer(line.take()));
                }
                Some(KeyPress::Escape | KeyPress::Interrupt) => return Ok(TypedAnswer::Rejected),
                Some(KeyPress::Edit(edit)) => line.apply(edit),
                Some(
                    KeyPress::Up | KeyPress::CycleMode | KeyPress::EndOfInput | KeyPress::Resized,
                )
                | None => {}
            }
        }
    }
}
