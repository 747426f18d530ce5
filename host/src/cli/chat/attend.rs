//! Being there while a request runs: keys are read, questions are put, words are queued, and a wish to stop is heard.

use std::io;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::commands::{self, Meaning};
use super::keyboard::{Key, Keyboard};
use super::line::Line;
use super::question::{self, Asked};
use super::signals::Signals;
use super::view::{Scene, Taken, View};

/// How long a key is waited for before something else is looked at.
const GLANCE: Duration = Duration::from_millis(40);
/// How long a request may take to end once the user wants to leave.
const GRACE: Duration = Duration::from_secs(2);

/// What was typed during a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    /// Sent, and waiting for their turn.
    pub(super) queued: Vec<String>,
    /// Not sent yet.
    pub(super) typed: Line,
}

/// Whether the chat goes on after the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    GoOn,
    /// The user asked twice, or the program was told to end.
    Leave,
}

/// Everything there is to attend to.
pub(super) struct Attention<'a> {
    pub(super) view: &'a View,
    pub(super) questions: &'a mpsc::Receiver<Asked>,
    /// The user pressed the key that changes the mode.
    pub(super) cycle_mode: &'a dyn Fn(),
    pub(super) signals: &'a Signals,
    pub(super) cancel: &'a CancellationToken,
    /// A turn was added to the conversation.
    pub(super) on_taken: &'a dyn Fn(&Taken),
    /// How things are, for the line above what is typed.
    pub(super) status: &'a dyn Fn() -> String,
    pub(super) is_finished: &'a dyn Fn() -> bool,
}

/// Has work done on a thread of its own while somebody attends to it, who can ask whether it is done. If that one panics, the
/// work is stopped: it would be waited for, with the terminal in pieces.
pub(super) fn beside<W: Send, A>(
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

impl Attention<'_> {
    /// Attends until the request is over. If the terminal is gone, the request is stopped.
    pub(super) fn attend(&self, keyboard: &mut Keyboard, words: &mut Words) -> Then {
        let attended = self.watch(keyboard, words);
        if attended.is_err() {
            self.cancel.cancel();
            self.wait(Instant::now() + GRACE);
        }
        attended.unwrap_or(Then::Leave)
    }

    fn watch(&self, keyboard: &mut Keyboard, words: &mut Words) -> io::Result<Then> {
        let mut watch = keyboard.watch();
        let mut leaving: Option<Instant> = None;
        self.view.set_status((self.status)());
        self.view.set_scene(Scene::Running);
        self.view.set_typed(&words.typed, &words.queued);
        while !(self.is_finished)() {
            if leaving.is_none() && self.signals.leave() {
                self.cancel.cancel();
                leaving = Some(Instant::now() + GRACE);
            }
            if leaving.is_some_and(|until| Instant::now() >= until) {
                break;
            }
            let mut patience = GLANCE;
            if let Ok(asked) = self.questions.try_recv() {
                // What has been typed by now was typed for the line below, not for the dialog.
                while let Some(key) = watch.next(Duration::ZERO)? {
                    self.press(key, words, &mut leaving);
                }
                let is_over = || (self.is_finished)() || self.signals.leave();
                question::converse(&mut watch, self.view, asked, &is_over, self.cancel)?;
                patience = Duration::ZERO;
            }
            if let Some(key) = watch.next(patience)? {
                self.press(key, words, &mut leaving);
                self.view.set_typed(&words.typed, &words.queued);
            }
            let taken = self.view.taken();
            if !taken.is_empty() {
                taken.iter().for_each(self.on_taken);
                self.view.set_status((self.status)());
            }
            self.view.tick();
        }
        self.view.taken().iter().for_each(self.on_taken);
        Ok(if leaving.is_some() { Then::Leave } else { Then::GoOn })
    }

    fn press(&self, key: Key, words: &mut Words, leaving: &mut Option<Instant>) {
        match key {
            Key::Escape if self.cancel.is_cancelled() => {}
            Key::Escape => self.stop(),
            // The second time the user wants to be gone: the request may save what it has.
            Key::Interrupt if self.cancel.is_cancelled() => *leaving = leaving.or(Some(Instant::now() + GRACE)),
            Key::Interrupt => self.stop(),
            Key::CycleMode => {
                (self.cycle_mode)();
                self.view.set_status((self.status)());
            }
            Key::Enter => self.queue(words),
            Key::Up if words.typed.is_empty() => {
                if let Some(last) = words.queued.pop() {
                    words.typed = Line::of(last);
                }
            }
            Key::Edit(edit) => words.typed.edit(edit),
            Key::Up | Key::EndOfInput | Key::Resized => {}
        }
    }

    fn stop(&self) {
        self.cancel.cancel();
        self.view.set_scene(Scene::Stopping);
    }

    /// Words go into the queue; what is no command does not.
    fn queue(&self, words: &mut Words) {
        if words.typed.goes_on() {
            return;
        }
        match commands::meaning(words.typed.text()) {
            Meaning::Nothing => drop(words.typed.take()),
            Meaning::Prompt(_) | Meaning::Command(_) => words.queued.push(words.typed.take()),
            Meaning::Mistake(problem) => self.view.say(&super::told(&problem)),
        }
    }

    fn wait(&self, until: Instant) {
        while !(self.is_finished)() && Instant::now() < until {
            std::thread::sleep(GLANCE);
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
                std::thread::sleep(GLANCE);
            }
            told.send(cancel.is_cancelled()).expect("somebody listens");
        };
        let attended = std::panic::AssertUnwindSafe(|| beside(&cancel, work, |_| panic!("a key that nobody thought of")));
        assert!(std::panic::catch_unwind(attended).is_err());
        assert_eq!(was_told.recv(), Ok(true));
    }
}
