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
    CHAT_DURATION, DialogChoice, GUIDANCE_PROMPT, OfferedChoices, PagingChoice, describe,
    describe_sandbox,
};
use crate::settle::SETTLE;
use crate::wrap;
use cofferdam::policy::ApprovalQuestion;
use cofferdam::sandbox::CommandSandbox;
use cofferdam::tools::{ApprovalAnswer, Approver};

/// Interval at which the dialog checks whether the question is still open.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const CHOICE_PROMPT: &str = "> ";
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
    let pages = described.pages.layout(wrap::terminal_size());
    let answer = ask(keys, view, &pages, offered, &is_over);
    view.set_status_area(ChatStatusArea::Running);
    let result = match answer {
        Ok(Some(answer)) => {
            // The call may have been cancelled just now.
            let _ = pending.answer.send(answer);
            return Ok(());
        }
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    if !pending.answer.is_closed() {
        cancel.cancel();
    }
    result
}

/// Shows the pages one by one and reads the answer after the last one. Keys typed before a page was
/// readable do not count.
fn ask(
    keys: &mut RequestKeys<'_>,
    view: &ChatView,
    pages: &[String],
    offered: OfferedChoices,
    is_over: &dyn Fn() -> bool,
) -> io::Result<Option<ApprovalAnswer>> {
    for (n, page) in pages.iter().enumerate() {
        view.set_status_area(ChatStatusArea::Asking {
            prompt: NOT_YET,
            answer: EditLine::default(),
        });
        view.print_dialog_line(page);
        let mut dialog = keys.dialog_keys(SETTLE, is_over)?;
        if n + 1 == pages.len() {
            return read_answer(&mut dialog, view, offered, is_over);
        }
        match read_page_step(&mut dialog, view, is_over)? {
            DialogPageStep::Choice(PagingChoice::More) => {}
            DialogPageStep::Choice(PagingChoice::No) => {
                return reject(&mut dialog, view, offered, is_over);
            }
            DialogPageStep::Rejected => return Ok(Some(ApprovalAnswer::No { guidance: None })),
            DialogPageStep::Cancelled => return Ok(None),
        }
    }
    Ok(Some(ApprovalAnswer::No { guidance: None }))
}

/// The result of a page that is not the last one.
enum DialogPageStep {
    Choice(PagingChoice),
    Rejected,
    Cancelled,
}

fn read_page_step(
    dialog: &mut DialogKeyboard<'_>,
    view: &ChatView,
    is_over: &dyn Fn() -> bool,
) -> io::Result<DialogPageStep> {
    loop {
        match read_typed_line(dialog, view, CHOICE_PROMPT, is_over)? {
            TypedAnswer::Line(line) => match PagingChoice::parse(&line) {
                Ok(turn) => return Ok(DialogPageStep::Choice(turn)),
                Err(hint) => view.print_dialog_line(hint),
            },
            TypedAnswer::Rejected => return Ok(DialogPageStep::Rejected),
            TypedAnswer::Cancelled => return Ok(DialogPageStep::Cancelled),
        }
    }
}

fn read_answer(
    dialog: &mut DialogKeyboard<'_>,
    view: &ChatView,
    offered: OfferedChoices,
    is_over: &dyn Fn() -> bool,
) -> io::Result<Option<ApprovalAnswer>> {
    loop {
        let choice = match read_typed_line(dialog, view, CHOICE_PROMPT, is_over)? {
            TypedAnswer::Line(choice) => choice,
            TypedAnswer::Rejected => return Ok(Some(ApprovalAnswer::No { guidance: None })),
            TypedAnswer::Cancelled => return Ok(None),
        };
        match DialogChoice::parse(&choice, offered) {
            Ok(DialogChoice::Yes) => return Ok(Some(ApprovalAnswer::Yes)),
            Ok(DialogChoice::YesForScope) => return Ok(Some(ApprovalAnswer::YesForScope)),
            Ok(DialogChoice::YesAlways) => return Ok(Some(ApprovalAnswer::YesAlways)),
            Ok(DialogChoice::No) => return reject(dialog, view, offered, is_over),
            Err(hint) => view.print_dialog_line(hint),
        }
    }
}

/// Returns the rejection, with the user's instructions where they can have an effect.
fn reject(
    dialog: &mut DialogKeyboard<'_>,
    view: &ChatView,
    offered: OfferedChoices,
    is_over: &dyn Fn() -> bool,
) -> io::Result<Option<ApprovalAnswer>> {
    if offered.has_guidance {
        read_guidance(dialog, view, is_over)
    } else {
        Ok(Some(ApprovalAnswer::No { guidance: None }))
    }
}

fn read_guidance(
    dialog: &mut DialogKeyboard<'_>,
    view: &ChatView,
    is_over: &dyn Fn() -> bool,
) -> io::Result<Option<ApprovalAnswer>> {
    view.print_dialog_line(GUIDANCE_PROMPT);
    let mut lines = Vec::new();
    loop {
        match read_typed_line(dialog, view, LINE_PROMPT, is_over)? {
            TypedAnswer::Line(line) if !line.trim().is_empty() => lines.push(line),
            TypedAnswer::Line(_) => break,
            TypedAnswer::Rejected => return Ok(Some(ApprovalAnswer::No { guidance: None })),
            TypedAnswer::Cancelled => return Ok(None),
        }
    }
    Ok(Some(ApprovalAnswer::No { guidance: (!lines.is_empty()).then(|| lines.join("\n")) }))
}

enum TypedAnswer {
    Line(String),
    /// Esc or Ctrl-C was pressed.
    Rejected,
    /// The call no longer waits for an answer.
    Cancelled,
}

fn read_typed_line(
    dialog: &mut DialogKeyboard<'_>,
    view: &ChatView,
    prompt: &'static str,
    is_over: &dyn Fn() -> bool,
) -> io::Result<TypedAnswer> {
    let mut line = EditLine::default();
    dialog.show_prompt(prompt);
    loop {
        view.set_status_area(ChatStatusArea::Asking { prompt, answer: line.clone() });
        if is_over() {
            return Ok(TypedAnswer::Cancelled);
        }
        match dialog.next_key(POLL_INTERVAL)? {
            Some(KeyPress::Enter) => {
                for (n, part) in line.text().split('\n').enumerate().filter(|_| !dialog.has_echo())
                {
                    let prompt = if n == 0 { prompt } else { "  " };
                    view.print_dialog_line(&format!(
                        "{prompt}{}",
                        cofferdam::terminal_escape::escape_text(part)
                    ));
                }
                return Ok(TypedAnswer::Line(line.take()));
            }
            Some(KeyPress::Escape | KeyPress::Interrupt) => return Ok(TypedAnswer::Rejected),
            Some(KeyPress::Edit(edit)) => line.apply(edit),
            Some(KeyPress::Up | KeyPress::CycleMode | KeyPress::EndOfInput | KeyPress::Resized)
            | None => {}
        }
    }
}
