//! The event loop of a running request: it reads keys, shows questions, queues input and handles
//! interrupts.

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

/// Maximum wait for a key before other sources are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(40);
/// Time for a request to save its state once the user wants to leave.
const EXIT_GRACE_PERIOD: Duration = Duration::from_secs(2);

/// Input typed during a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ChatInputQueue {
    /// Lines to send after the request.
    pub(super) queued: Vec<String>,
    /// The line being edited.
    pub(super) typed: EditLine,
}

/// Whether the chat continues after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterRequest {
    Continue,
    /// The user interrupted twice, or a signal ended the program.
    Exit,
}

/// The inputs and outputs of the event loop.
pub(super) struct EventSources<'a> {
    pub(super) view: &'a ChatView,
    pub(super) questions: &'a mpsc::Receiver<PendingQuestion>,
    /// Called when the user presses the key that changes the mode.
    pub(super) cycle_mode: &'a dyn Fn(),
    pub(super) signals: &'a ProcessSignals,
    pub(super) cancel: &'a CancellationToken,
    /// Called for each billed item, such as a finished turn.
    pub(super) on_billed_item: &'a dyn Fn(&BilledItem),
    /// Returns the status line.
    pub(super) status: &'a dyn Fn() -> String,
    pub(super) is_finished: &'a dyn Fn() -> bool,
}

/// Runs `work` on another thread and `attend` on this one. `attend` receives a function that tells
/// whether the work is finished.
///
/// If `attend` panics, the work is cancelled. Otherwise the scope would wait for it with a broken
/// terminal.
pub(super) fn run_with_event_loop<W: Send, A>(
    cancel: &CancellationToken,
    work: impl FnOnce() -> W + Send,
    attend: impl FnOnce(&dyn Fn() -> bool) -> A,
) -> (W, A) {
    std::thread::scope(|scope| {
        let worker = scope.spawn(work);
        let _stopped_then = cancel.clone().drop_guard();
        let result = attend(&|| worker.is_finished());
        (worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), result)
    })
}

impl EventSources<'_> {
    /// Handles events until the request is over. If the terminal is gone, the request is cancelled.
    pub(super) fn run(
        &self,
        keyboard: &mut KeyboardOwner,
        input: &mut ChatInputQueue,
    ) -> AfterRequest {
        let result = self.run_until_finished(keyboard, input);
        if result.is_err() {
            self.cancel.cancel();
            self.wait_until(Instant::now() + EXIT_GRACE_PERIOD);
        }
        result.unwrap_or(AfterRequest::Exit)
    }

    fn run_until_finished(
        &self,
        keyboard: &mut KeyboardOwner,
        input: &mut ChatInputQueue,
    ) -> io::Result<AfterRequest> {
        let mut keys = keyboard.request_keys();
        let mut exit_deadline: Option<Instant> = None;
        self.view.set_status((self.status)());
        self.view.set_status_area(ChatStatusArea::Running);
        self.view.set_input(&input.typed, &input.queued);
        while !(self.is_finished)() {
            if exit_deadline.is_none() && self.signals.should_exit() {
                self.cancel.cancel();
                exit_deadline = Some(Instant::now() + EXIT_GRACE_PERIOD);
            }
            if exit_deadline.is_some_and(|until| Instant::now() >= until) {
                break;
            }
            let mut timeout = POLL_INTERVAL;
            if let Ok(pending) = self.questions.try_recv() {
                // Earlier keys belong to the input line, not to the dialog.
                while let Some(key) = keys.poll_key(Duration::ZERO)? {
                    self.handle_key(key, input, &mut exit_deadline);
                }
                let is_over = || (self.is_finished)() || self.signals.should_exit();
                question::ask_user(&mut keys, self.view, pending, &is_over, self.cancel)?;
                timeout = Duration::ZERO;
            }
            if let Some(key) = keys.poll_key(timeout)? {
                self.handle_key(key, input, &mut exit_deadline);
                self.view.set_input(&input.typed, &input.queued);
            }
            let taken = self.view.take_billed();
            if !taken.is_empty() {
                taken.iter().for_each(self.on_billed_item);
                self.view.set_status((self.status)());
            }
            self.view.tick();
        }
        self.view.take_billed().iter().for_each(self.on_billed_item);
        Ok(if exit_deadline.is_some() { AfterRequest::Exit } else { AfterRequest::Continue })
    }

    fn handle_key(
        &self,
        key: KeyPress,
        input: &mut ChatInputQueue,
        exit_deadline: &mut Option<Instant>,
    ) {
        match key {
            KeyPress::Escape if self.cancel.is_cancelled() => {}
            KeyPress::Escape => self.request_stop(),
            // The second interrupt means exit; the request gets time to save its state.
            KeyPress::Interrupt if self.cancel.is_cancelled() => {
                *exit_deadline = exit_deadline.or(Some(Instant::now() + EXIT_GRACE_PERIOD))
            }
            KeyPress::Interrupt => self.request_stop(),
            KeyPress::CycleMode => {
                (self.cycle_mode)();
                self.view.set_status((self.status)());
            }
            KeyPress::Enter => self.queue_input(input),
            KeyPress::Up if input.typed.is_empty() => {
                if let Some(last) = input.queued.pop() {
                    input.typed = EditLine::from_text(last);
                }
            }
            KeyPress::Edit(edit) => input.typed.apply(edit),
            KeyPress::Up | KeyPress::EndOfInput | KeyPress::Resized => {}
        }
    }

    fn request_stop(&self) {
        self.cancel.cancel();
        self.view.set_status_area(ChatStatusArea::Stopping);
    }

    /// Queues the input line, unless it is an invalid command.
    fn queue_input(&self, input: &mut ChatInputQueue) {
        if input.typed.continue_line() {
            return;
        }
        match commands::parse_line(input.typed.text()) {
            LineMeaning::Empty => {
                input.typed.take();
            }
            LineMeaning::Prompt(_) | LineMeaning::Command(_) => {
                input.queued.push(input.typed.take())
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
    fn r107_a_panic_of_the_event_loop_cancels_the_work() {
        let cancel = CancellationToken::new();
        let (sender, was_cancelled) = mpsc::channel();
        let work = || {
            let deadline = Instant::now() + Duration::from_secs(10);
            while !cancel.is_cancelled() && Instant::now() < deadline {
                std::thread::sleep(POLL_INTERVAL);
            }
            sender.send(cancel.is_cancelled()).expect("the event loop has started");
        };
        let result = std::panic::AssertUnwindSafe(|| {
            run_with_event_loop(&cancel, work, |_| panic!("simulated panic"))
        });
        assert!(std::panic::catch_unwind(result).is_err());
        assert_eq!(was_cancelled.recv(), Ok(true));
    }
}
