//! Exclusive access to terminal input. There is one [`KeyboardOwner`]. The prompt, the event loop
//! of a request, and a dialog within that loop each borrow it mutably while they read, so a second
//! reader does not compile.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use reedline::{EditCommand, Reedline, Signal};

use super::edit_line::LineEdit;
use super::editor::{self, CYCLE_MODE_COMMAND, INTERRUPT_COMMAND, LineContinuation, PromptLine};
use super::history::PromptHistory;
use super::line_reader::PipedLineReader;
use super::tty::RawTerminal;
use crate::print::{eprint_line, eprint_text};
use cofferdam::session::SessionId;

/// Interval at which a settling dialog checks whether its question is still open.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The only reader of user input, created once with the terminal.
pub(super) enum KeyboardOwner {
    /// Reads key by key, with a line editor at the prompt.
    Raw(Box<RawKeys>),
    /// Reads line by line.
    Lines(PipedLineReader),
}

/// A terminal in raw mode, with the editor and its history.
pub(super) struct RawKeys {
    tty: RawTerminal,
    editor: Reedline,
    continuation: LineContinuation,
    history: PromptHistory,
}

/// The result of reading at the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PromptEntry {
    Line(String),
    Exit,
}

/// Reads keys while a request runs.
pub(super) struct RequestKeys<'a>(&'a mut KeyboardOwner);

/// Reads the answer to one question. While it exists, the event loop cannot read.
pub(super) struct DialogKeyboard<'a> {
    keyboard: &'a mut KeyboardOwner,
    /// A rejecting key that was typed while the dialog settled.
    early: Option<KeyPress>,
}

/// A key press outside the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyPress {
    Edit(LineEdit),
    Enter,
    /// Returns the line that was queued last to the input line.
    Up,
    Escape,
    Interrupt,
    CycleMode,
    /// Ctrl-D, the end of input.
    EndOfInput,
    Resized,
}

impl KeyboardOwner {
    pub(super) fn with_raw_keys(
        tty: RawTerminal,
        history: PromptHistory,
        end: Arc<AtomicBool>,
    ) -> Self {
        let continuation = LineContinuation::default();
        let editor = editor::new_editor(history.load(), end, &continuation);
        Self::Raw(Box::new(RawKeys { tty, editor, continuation, history }))
    }

    /// Reads a line at the prompt.
    ///
    /// The editor starts with `initial_text`. `cycle_mode` is called for Shift-Tab;
    /// `status` returns the current status line.
    pub(super) fn read_prompt(
        &mut self,
        initial_text: &str,
        status: &dyn Fn() -> String,
        cycle_mode: &dyn Fn(),
    ) -> io::Result<PromptEntry> {
        match self {
            Self::Raw(keys) => keys.read_prompt(initial_text, status, cycle_mode),
            Self::Lines(lines) => lines.read_prompt(initial_text, status),
        }
    }

    /// Adds a line to the prompt history. Errors are ignored: the chat works without a history.
    pub(super) fn add_to_history(&self, line: &str, session: &SessionId) {
        match self {
            Self::Raw(keys) => {
                let _ = keys.history.add(line, session);
            }
            Self::Lines(_) => {}
        }
    }

    /// Starts reading keys for a running request.
    pub(super) fn request_keys(&mut self) -> RequestKeys<'_> {
        if let Self::Raw(keys) = self {
            keys.tty.enable_bracketed_paste();
        }
        RequestKeys(self)
    }
}

impl RawKeys {
    fn read_prompt(
        &mut self,
        initial_text: &str,
        status: &dyn Fn() -> String,
        cycle_mode: &dyn Fn(),
    ) -> io::Result<PromptEntry> {
        if !initial_text.is_empty() {
            self.editor.run_edit_commands(&[EditCommand::InsertString(initial_text.to_owned())]);
        }
        let mut exit_on_interrupt = false;
        loop {
            let status = if exit_on_interrupt {
                "Ctrl-C again, or Ctrl-D, leaves the chat".to_owned()
            } else {
                status()
            };
            let signal = self.editor.read_line(&PromptLine { status }).map_err(io::Error::other)?;
            let was_asked_to_exit = std::mem::take(&mut exit_on_interrupt);
            match signal {
                Signal::Success(text) => {
                    return Ok(PromptEntry::Line(self.continuation.join_continuations(&text)));
                }
                Signal::HostCommand(name) if name == CYCLE_MODE_COMMAND => cycle_mode(),
                Signal::HostCommand(name)
                    if name == INTERRUPT_COMMAND
                        && !self.editor.current_buffer_contents().is_empty() =>
                {
                    self.editor.run_edit_commands(&[EditCommand::Clear]);
                }
                Signal::HostCommand(_) | Signal::CtrlC if was_asked_to_exit => {
                    // The editor believes that it was suspended and left the cursor in its line.
                    eprint_line("");
                    return Ok(PromptEntry::Exit);
                }
                Signal::HostCommand(_) | Signal::CtrlC => exit_on_interrupt = true,
                // Ctrl-D, the break signal, and signals that a later editor version may add.
                _ => return Ok(PromptEntry::Exit),
            }
        }
    }
}

impl RequestKeys<'_> {
    /// Returns the next key that arrives within `timeout`.
    pub(super) fn poll_key(&mut self, timeout: Duration) -> io::Result<Option<KeyPress>> {
        match &mut *self.0 {
            KeyboardOwner::Raw(_) => next(timeout),
            KeyboardOwner::Lines(lines) => Ok(lines.next_key(timeout)),
        }
    }

    /// Starts reading the answer to a question.
    pub(super) fn dialog_keys(&mut self) -> DialogKeyboard<'_> {
        DialogKeyboard { keyboard: self.0, early: None }
    }
}

impl DialogKeyboard<'_> {
    /// Discards keys until no key was pressed for `settle`, except a key that rejects. Called for
    /// each page that has just been shown.
    pub(super) fn discard_typed(
        &mut self,
        settle: Duration,
        is_over: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        match &mut *self.keyboard {
            KeyboardOwner::Raw(_) => {
                let early = drop_until_quiet(next, settle, is_over)?;
                self.early = early.or(self.early.take());
            }
            KeyboardOwner::Lines(lines) => lines.discard_typed(settle, is_over),
        }
        Ok(())
    }

    /// Returns the next key that arrives within `timeout`.
    pub(super) fn next_key(&mut self, timeout: Duration) -> io::Result<Option<KeyPress>> {
        if let Some(early) = self.early.take() {
            return Ok(Some(early));
        }
        match &mut *self.keyboard {
            KeyboardOwner::Raw(_) => next(timeout),
            KeyboardOwner::Lines(lines) => Ok(lines.next_answer_key(timeout)),
        }
    }

    /// Shows the prompt for an answer on terminals that are not redrawn; elsewhere the view draws
    /// it.
    pub(super) fn show_prompt(&self, mark: &str) {
        match self.keyboard {
            KeyboardOwner::Raw(_) => {}
            KeyboardOwner::Lines(_) => eprint_text(mark),
        }
    }

    /// Returns whether the terminal itself echoes the input.
    pub(super) fn has_echo(&self) -> bool {
        match self.keyboard {
            KeyboardOwner::Raw(_) => false,
            KeyboardOwner::Lines(_) => true,
        }
    }
}

/// Discards keys until none arrives for `settle`. Returns a rejecting key immediately.
fn drop_until_quiet(
    mut next: impl FnMut(Duration) -> io::Result<Option<KeyPress>>,
    settle: Duration,
    is_over: &dyn Fn() -> bool,
) -> io::Result<Option<KeyPress>> {
    let mut quiet_since = Instant::now();
    while quiet_since.elapsed() < settle && !is_over() {
        match next(settle.saturating_sub(quiet_since.elapsed()).min(POLL_INTERVAL))? {
            Some(key @ (KeyPress::Escape | KeyPress::Interrupt)) => return Ok(Some(key)),
            Some(KeyPress::Resized) | None => {}
            Some(
                KeyPress::Edit(_)
                | KeyPress::Enter
                | KeyPress::Up
                | KeyPress::CycleMode
                | KeyPress::EndOfInput,
            ) => quiet_since = Instant::now(),
        }
    }
    Ok(None)
}

fn next(timeout: Duration) -> io::Result<Option<KeyPress>> {
    if poll(timeout)? { Ok(key_from_event(read()?)) } else { Ok(None) }
}

fn key_from_event(event: Event) -> Option<KeyPress> {
    match event {
        Event::Key(KeyEvent {
            code,
            modifiers,
            kind: KeyEventKind::Press | KeyEventKind::Repeat,
            ..
        }) => key_from_code(code, modifiers),
        Event::Paste(text) => {
            Some(KeyPress::Edit(LineEdit::Insert(text.replace("\r\n", "\n").replace('\r', "\n"))))
        }
        Event::Resize(..) => Some(KeyPress::Resized),
        Event::Key(_) | Event::FocusGained | Event::FocusLost | Event::Mouse(_) => None,
    }
}

fn key_from_code(code: KeyCode, modifiers: KeyModifiers) -> Option<KeyPress> {
    let control = modifiers.contains(KeyModifiers::CONTROL);
    let alt = modifiers.contains(KeyModifiers::ALT);
    let edit = |edit| Some(KeyPress::Edit(edit));
    match code {
        KeyCode::Enter if alt || modifiers.contains(KeyModifiers::SHIFT) => {
            edit(LineEdit::Insert("\n".into()))
        }
        KeyCode::Enter => Some(KeyPress::Enter),
        KeyCode::Esc => Some(KeyPress::Escape),
        KeyCode::BackTab => Some(KeyPress::CycleMode),
        KeyCode::Up => Some(KeyPress::Up),
        KeyCode::Left => edit(LineEdit::Left),
        KeyCode::Right => edit(LineEdit::Right),
        KeyCode::Home => edit(LineEdit::Start),
        KeyCode::End => edit(LineEdit::End),
        KeyCode::Backspace if alt => edit(LineEdit::DeleteWord),
        KeyCode::Backspace => edit(LineEdit::Backspace),
        KeyCode::Delete => edit(LineEdit::Delete),
        KeyCode::Char(c) if control => match c {
            'c' => Some(KeyPress::Interrupt),
            'd' => Some(KeyPress::EndOfInput),
            'w' => edit(LineEdit::DeleteWord),
            'u' => edit(LineEdit::DeleteToStart),
            'a' => edit(LineEdit::Start),
            'e' => edit(LineEdit::End),
            'h' => edit(LineEdit::Backspace),
            _ => None,
        },
        KeyCode::Char(_) if alt => None,
        KeyCode::Char(c) => edit(LineEdit::Insert(c.to_string())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r042_keys_are_dropped_until_the_keyboard_is_quiet() {
        let settle = Duration::from_millis(100);
        let burst = |keys: usize, last: KeyPress| {
            let mut typed = 0;
            move |timeout: Duration| {
                typed += 1;
                std::thread::sleep(if typed > keys { timeout } else { Duration::from_millis(10) });
                Ok((typed <= keys)
                    .then(|| if typed == keys { last.clone() } else { KeyPress::Enter }))
            }
        };
        let initial_text = Instant::now();
        assert_eq!(
            drop_until_quiet(burst(30, KeyPress::Enter), settle, &|| false).expect("it reads"),
            None
        );
        assert!(
            initial_text.elapsed() >= 30 * Duration::from_millis(10) + settle,
            "{:?}",
            initial_text.elapsed()
        );
        for rejects in [KeyPress::Escape, KeyPress::Interrupt] {
            assert_eq!(
                drop_until_quiet(burst(3, rejects.clone()), settle, &|| false).expect("it reads"),
                Some(rejects)
            );
        }
        assert_eq!(
            drop_until_quiet(|_| Ok(Some(KeyPress::Enter)), settle, &|| true).expect("it reads"),
            None,
            "a cancelled wait must end"
        );
    }

    #[test]
    fn pasted_line_breaks_do_not_submit() {
        let pasted = key_from_event(Event::Paste("1\r\n2\r3\n".into()));
        assert_eq!(pasted, Some(KeyPress::Edit(LineEdit::Insert("1\n2\n3\n".into()))));
        assert_eq!(
            key_from_code(KeyCode::Enter, KeyModifiers::ALT),
            Some(KeyPress::Edit(LineEdit::Insert("\n".into())))
        );
        assert_eq!(
            key_from_code(KeyCode::Char('c'), KeyModifiers::CONTROL),
            Some(KeyPress::Interrupt)
        );
        assert_eq!(key_from_code(KeyCode::Char('x'), KeyModifiers::CONTROL), None);
    }
}
