//! Being there while a request runs: keys are read, questions are put, words are queued, and a wish
//! to stop is heard.

use std::io;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::commands::{self, LineMeaning};
use super::edit_line::EditLine;
use super::keyboard::{KeyPress, KeyboardOwner};
use super::question::{self, PendingQuestion};
use super::signals::ProcessSignals;
use super::view::{BilledItem, ChatStatusArea, ChatView};

/// How long a key is waited for before something else is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(40);
/// How long a request may take to end once the user wants to leave.
const EXIT_GRACE_PERIOD: Duration = Duration::from_secs(2);

/// What was typed during a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ChatInputQueue {
    /// Sent, and waiting for their turn.
    pub(super) queued: Vec<String>,
    /// Not sent yet.
    pub(super) typed: EditLine,
}

/// Whether the chat goes on after the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterRequest {
    Continue,
    /// The user asked twice, or the program was told to end.
    Exit,
}

/// Everything there is to attend to.
pub(super) struct EventSources<'a> {
    pub(super) view: &'a ChatView,
    pub(super) questions: &'a mpsc::Receiver<PendingQuestion>,
    /// The user pressed the key that changes the mode.
    pub(super) cycle_mode: &'a dyn Fn(),
    pub(super) signals: &'a ProcessSignals,
    pub(super) cancel: &'a CancellationToken,
    /// A turn was added to the conversation.
    pub(super) on_billed_item: &'a dyn Fn(&BilledItem),
    /// How things are, for the line above what is typed.
    pub(super) status: &'a dyn Fn() -> String,
    pub(super) is_finished: &'a dyn Fn() -> bool,
}

/// Has work done on a thread of its own while somebody attends to it, who can ask whether it is
/// done. If that one panics, the work is stopped: it would be waited for, with the terminal in
/// pieces.
pub(super) fn run_with_event_loop<W: Send, A>(
    cancel: &CancellationToken,
    work: impl FnOnce() -> W + Send,
    attend: impl FnOnce(&dyn Fn() -> bool) -> A,
) -> (W, A) {
    std::thread::scope(|scope| {
        let working = scope.spawn(work);
        let _stopped_then = cancel.clone().drop_guard();
        let attended = attend(&|| working.is_finished());
        (working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), attended)
    })
}

impl EventSources<'_> {
    /// Attends until the request is over. If the terminal is gone, the request is stopped.
    pub(super) fn run(
        &self,
        keyboard: &mut KeyboardOwner,
        words: &mut ChatInputQueue,
    ) -> AfterRequest {
        let attended = self.run_until_finished(keyboard, words);
        if attended.is_err() {
            self.cancel.cancel();
            self.wait_until(Instant::now() + EXIT_GRACE_PERIOD);
        }
        attended.unwrap_or(AfterRequest::Exit)
    }

    fn run_until_finished(
        &self,
        keyboard: &mut KeyboardOwner,
        words: &mut ChatInputQueue,
    ) -> io::Result<AfterRequest> {
        let mut watch = keyboard.request_keys();
        let mut leaving: Option<Instant> = None;
        self.view.set_status((self.status)());
        self.view.set_status_area(ChatStatusArea::Running);
        self.view.set_input(&words.typed, &words.queued);
        while !(self.is_finished)() {
            if leaving.is_none() && self.signals.should_exit() {
                self.cancel.cancel();
                leaving = Some(Instant::now() + EXIT_GRACE_PERIOD);
            }
            if leaving.is_some_and(|until| Instant::now() >= until) {
                break;
            }
            let mut patience = POLL_INTERVAL;
            if let Ok(asked) = self.questions.try_recv() {
                // What has been typed by now was typed for the line below, not for the dialog.
                while let Some(key) = watch.poll_key(Duration::ZERO)? {
                    self.handle_key(key, words, &mut leaving);
                }
                let is_over = || (self.is_finished)() || self.signals.should_exit();
                question::ask_user(&mut watch, self.view, asked, &is_over, self.cancel)?;
                patience = Duration::ZERO;
            }
            if let Some(key) = watch.poll_key(patience)? {
                self.handle_key(key, words, &mut leaving);
                self.view.set_input(&words.typed, &words.queued);
            }
            let taken = self.view.take_billed();
            if !taken.is_empty() {
                taken.iter().for_each(self.on_billed_item);
                self.view.set_status((self.status)());
            }
            self.view.tick();
        }
        self.view.take_billed().iter().for_each(self.on_billed_item);
        Ok(if leaving.is_some() { AfterRequest::Exit } else { AfterRequest::Continue })
    }

    fn handle_key(&self, key: KeyPress, words: &mut ChatInputQueue, leaving: &mut Option<Instant>) {
        match key {
            KeyPress::Escape if self.cancel.is_cancelled() => {}
            KeyPress::Escape => self.request_stop(),
            // The second time the user wants to be gone: the request may save what it has.
            KeyPress::Interrupt if self.cancel.is_cancelled() => {
                *leaving = leaving.or(Some(Instant::now() + EXIT_GRACE_PERIOD))
            }
            KeyPress::Interrupt => self.request_stop(),
            KeyPress::CycleMode => {
                (self.cycle_mode)();
                self.view.set_status((self.status)());
            }
            KeyPress::Enter => self.queue_input(words),
            KeyPress::Up if words.typed.is_empty() => {
                if let Some(last) = words.queued.pop() {
                    words.typed = EditLine::from_text(last);
                }
            }
            KeyPress::Edit(edit) => words.typed.apply(edit),
            KeyPress::Up | KeyPress::EndOfInput | KeyPress::Resized => {}
        }
    }

    fn request_stop(&self) {
        self.cancel.cancel();
        self.view.set_status_area(ChatStatusArea::Stopping);
    }

    /// Words go into the queue; what is no command does not.
    fn queue_input(&self, words: &mut ChatInputQueue) {
        if words.typed.continue_line() {
            return;
        }
        match commands::parse_line(words.typed.text()) {
            LineMeaning::Empty => drop(words.typed.take()),
            LineMeaning::Prompt(_) | LineMeaning::Command(_) => {
                words.queued.push(words.typed.take())
            }
            LineMeaning::Invalid(problem) => self.view.print_line(&super::format_notice(&problem)),
        }
    }

    fn wait_until(&self, until: Instant) {
        while !(self.is_finished)() && Instant::now() < until {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r107_if_whoever_attends_panics_the_work_is_stopped() {
        let cancel = CancellationToken::new();
        let (told, was_told) = mpsc::channel();
        let work = || {
            let deadline = Instant::now() + Duration::from_secs(10);
            while !cancel.is_cancelled() && Instant::now() < deadline {
                std::thread::sleep(POLL_INTERVAL);
            }
            told.send(cancel.is_cancelled()).expect("somebody listens");
        };
        let attended = std::panic::AssertUnwindSafe(|| {
            run_with_event_loop(&cancel, work, |_| panic!("a key that nobody thought of"))
        });
        assert!(std::panic::catch_unwind(attended).is_err());
        assert_eq!(was_told.recv(), Ok(true));
    }
}
