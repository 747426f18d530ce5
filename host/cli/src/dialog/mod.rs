//! The approval dialog at a terminal, read line by line.

mod choices;
mod description;

use std::io::{self, BufRead};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;

use super::pages::PagedText;
use super::paging::{TypedAnswer, ask_in_pages};
use super::print::{eprint_line, eprint_text};
use super::render::EventRenderer;
use super::settle::{AskingTerminal, LineQuestion, SETTLE, read_line};
use cofferdam::policy::ApprovalQuestion;
use cofferdam::sandbox::CommandSandbox;
use cofferdam::tools::{ApprovalAnswer, Approver};

pub(super) use choices::{DialogChoice, OfferedChoices, approval_rules};
pub(super) use description::{CHAT_DURATION, REQUEST_DURATION, describe, describe_sandbox};

/// An approver that asks at the terminal of this process.
pub(super) struct TerminalDialog {
    renderer: Arc<EventRenderer>,
    commands: Arc<CommandSandbox>,
    /// The terminal, shared by all questions.
    terminal: Arc<Mutex<AskingTerminal>>,
}

impl TerminalDialog {
    /// Opens the terminal for questions. Returns `None` if standard error is not a terminal or
    /// `/dev/tty` cannot be opened.
    pub(super) fn open(
        renderer: &Arc<EventRenderer>,
        commands: &Arc<CommandSandbox>,
    ) -> Option<Arc<dyn Approver>> {
        let terminal = Arc::new(Mutex::new(AskingTerminal::of_this_process(SETTLE)?));
        Some(Arc::new(Self {
            renderer: Arc::clone(renderer),
            commands: Arc::clone(commands),
            terminal,
        }))
    }
}

impl Approver for TerminalDialog {
    fn ask_pages<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            let _quiet = self.renderer.pause();
            // A diff that was cut is whole in a file for as long as the question is open.
            let described =
                describe(question, REQUEST_DURATION, &describe_sandbox(question, &self.commands));
            let (text, offered) = (described.pages.clone(), OfferedChoices::of(question));
            let terminal = Arc::clone(&self.terminal);
            // If the question is dropped meanwhile, its thread ends without an answer.
            let open = Arc::new(());
            let watched = Arc::downgrade(&open);
            let is_over = move || watched.strong_count() == 0;
            let answer =
                tokio::task::spawn_blocking(move || ask_user(&terminal, &text, offered, &is_over));
            let answer = answer.await.unwrap_or(ApprovalAnswer::No { guidance: None });
            drop(open);
            answer
        })
    }
}

/// The prompt for guidance after a rejection.
pub(super) const GUIDANCE_PROMPT: &str = concat!(
    "What should it do instead? An empty line sends your text; ",
    "an empty first line ends the request.",
);

fn ask_user(
    terminal: &Mutex<AskingTerminal>,
    text: &PagedText,
    offered: OfferedChoices,
    is_over: &dyn Fn() -> bool,
) -> ApprovalAnswer {
    let mut terminal = terminal.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let parse = |line: &str| DialogChoice::parse(line, offered);
    let mut question = LineQuestion::new(&mut terminal, is_over);
    // A closed terminal counts as no.
    let choice = match ask_in_pages(text, &mut question, approval_rules(&parse)) {
        Ok(TypedAnswer::Answer(choice)) => choice,
        Ok(TypedAnswer::Rejected | TypedAnswer::Cancelled) | Err(_) => {
            return ApprovalAnswer::No { guidance: None };
        }
    };
    match choice {
        DialogChoice::Yes => ApprovalAnswer::Yes,
        DialogChoice::YesForScope => ApprovalAnswer::YesForScope,
        DialogChoice::YesAlways => ApprovalAnswer::YesAlways,
        // The user's instructions count where they can have an effect.
        DialogChoice::No if offered.has_guidance => ApprovalAnswer::No {
            guidance: read_guidance(&mut terminal.input_until(is_over)).unwrap_or_default(),
        },
        DialogChoice::No => ApprovalAnswer::No { guidance: None },
    }
}

fn read_guidance(terminal: &mut impl BufRead) -> io::Result<Option<String>> {
    eprint_line(GUIDANCE_PROMPT);
    let mut lines = Vec::new();
    loop {
        eprint_text("| ");
        match read_line(terminal)? {
            Some(line) if !line.trim().is_empty() => lines.push(line),
            Some(_) | None => break,
        }
    }
    Ok((!lines.is_empty()).then(|| lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r044_guidance_in_another_encoding_is_not_lost() {
        let words = read_guidance(&mut &b"Gr\xfc\xdfe, and stop\r\nnow\n\nnot this\n"[..]);
        assert_eq!(words.expect("it reads").as_deref(), Some("Gr\u{fffd}\u{fffd}e, and stop\nnow"));
    }
}
