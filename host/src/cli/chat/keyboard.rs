//! Who reads the terminal. There is one [`KeyboardOwner`], and reading takes it: the prompt, the
//! watch over a running request, and a dialog within that watch each borrow it for as long as they
//! read. A second reader does not compile.

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
use crate::cli::print::{eprint_line, eprint_text};
use crate::session::SessionId;

/// How often it is looked whether a question still stands.
const GLANCE: Duration = Duration::from_millis(50);

/// The right to read what is typed. It is made once, with the terminal.
pub(super) enum KeyboardOwner {
    /// Key by key, with an editor at the prompt.
    Raw(Box<RawKeys>),
    /// Line by line.
    Lines(PipedLineReader),
}

/// A terminal that is ours.
pub(super) struct RawKeys {
    tty: RawTerminal,
    editor: Reedline,
    continuation: LineContinuation,
    history: PromptHistory,
}

/// What came of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PromptEntry {
    Line(String),
    Exit,
}

/// Reads while a request runs.
pub(super) struct RequestKeys<'a>(&'a mut KeyboardOwner);

/// Reads the answer to one question. While it does, nobody reads for the request.
pub(super) struct DialogKeyboard<'a> {
    keyboard: &'a mut KeyboardOwner,
    /// A key that rejects, typed before the keyboard was quiet.
    early: Option<KeyPress>,
}

/// A key, as it matters outside of the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyPress {
    Edit(LineEdit),
    Enter,
    /// Takes back what was queued last.
    Up,
    Escape,
    Interrupt,
    CycleMode,
    /// Ctrl-D.
    EndOfInput,
    Resized,
}

impl KeyboardOwner {
    pub(super) fn with_raw_keys(
        tty: RawTerminal,
        history: PromptHistory,
        end: Arc<AtomicBool>,
    ) -> Self {
        let goes_on = LineContinuation::default();
        let editor = editor::new_editor(history.load(), end, &goes_on);
        Self::Raw(Box::new(RawKeys { tty, editor, continuation: goes_on, history }))
    }

    /// Reads at the prompt, which begins with a text that is there already. `cycle_mode` is called
    /// for Shift-Tab; `status` tells how things are now.
    pub(super) fn read_prompt(
        &mut self,
        begun: &str,
        status: &dyn Fn() -> String,
        cycle_mode: &dyn Fn(),
    ) -> io::Result<PromptEntry> {
        match self {
            Self::Raw(keys) => keys.read_prompt(begun, status, cycle_mode),
            Self::Lines(lines) => lines.read_prompt(begun, status),
        }
    }

    /// Keeps a line for the arrow keys of a later chat. A history that cannot be written is no
    /// reason not to talk.
    pub(super) fn add_to_history(&self, line: &str, session: &SessionId) {
        match self {
            Self::Raw(keys) => drop(keys.history.add(line, session)),
            Self::Lines(_) => {}
        }
    }

    /// Reads while a request runs.
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
        begun: &str,
        status: &dyn Fn() -> String,
        cycle_mode: &dyn Fn(),
    ) -> io::Result<PromptEntry> {
        if !begun.is_empty() {
            self.editor.run_edit_commands(&[EditCommand::InsertString(begun.to_owned())]);
        }
        let mut leaving = false;
        loop {
            let status =
                if leaving { "Ctrl-C again, or Ctrl-D, leaves".to_owned() } else { status() };
            let signal = self.editor.read_line(&PromptLine { status }).map_err(io::Error::other)?;
            let was_leaving = std::mem::take(&mut leaving);
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
                Signal::HostCommand(_) | Signal::CtrlC if was_leaving => {
                    // The editor takes itself for suspended, and left the cursor in its line.
                    eprint_line("");
                    return Ok(PromptEntry::Exit);
                }
                Signal::HostCommand(_) | Signal::CtrlC => leaving = true,
                // Ctrl-D, a wish from outside, and whatever a later editor may say.
                _ => return Ok(PromptEntry::Exit),
            }
        }
    }
}

impl RequestKeys<'_> {
    /// The next key, if one comes soon enough.
    pub(super) fn poll_key(&mut self, patience: Duration) -> io::Result<Option<KeyPress>> {
        match &mut *self.0 {
            KeyboardOwner::Raw(_) => next(patience),
            KeyboardOwner::Lines(lines) => Ok(lines.next_key(patience)),
        }
    }

    /// Reads the answer to a page that has just been shown. What is typed until the keyboard has
    /// been quiet for so long is none, unless it rejects.
    pub(super) fn dialog_keys(
        &mut self,
        settle: Duration,
        is_over: &dyn Fn() -> bool,
    ) -> io::Result<DialogKeyboard<'_>> {
        let early = match &mut *self.0 {
            KeyboardOwner::Raw(_) => drop_until_quiet(next, settle, is_over)?,
            KeyboardOwner::Lines(lines) => {
                lines.discard_typed(settle, is_over);
                None
            }
        };
        Ok(DialogKeyboard { keyboard: self.0, early })
    }
}

impl DialogKeyboard<'_> {
    /// The next key, if one comes soon enough.
    pub(super) fn next_key(&mut self, patience: Duration) -> io::Result<Option<KeyPress>> {
        if let Some(early) = self.early.take() {
            return Ok(Some(early));
        }
        match &mut *self.keyboard {
            KeyboardOwner::Raw(_) => next(patience),
            KeyboardOwner::Lines(lines) => Ok(lines.next_answer_key(patience)),
        }
    }

    /// An answer is waited for. Where nothing can be drawn anew, the words before it are written
    /// here, once.
    pub(super) fn show_prompt(&self, mark: &str) {
        match self.keyboard {
            KeyboardOwner::Raw(_) => {}
            KeyboardOwner::Lines(_) => eprint_text(mark),
        }
    }

    /// Whether what is typed stays to be seen without being said again.
    pub(super) fn has_echo(&self) -> bool {
        match self.keyboard {
            KeyboardOwner::Raw(_) => false,
            KeyboardOwner::Lines(_) => true,
        }
    }
}

/// Drops keys until none has come for so long. Gives one that rejects at once.
fn drop_until_quiet(
    mut next: impl FnMut(Duration) -> io::Result<Option<KeyPress>>,
    settle: Duration,
    is_over: &dyn Fn() -> bool,
) -> io::Result<Option<KeyPress>> {
    let mut quiet_since = Instant::now();
    while quiet_since.elapsed() < settle && !is_over() {
        match next(settle.saturating_sub(quiet_since.elapsed()).min(GLANCE))? {
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

fn next(patience: Duration) -> io::Result<Option<KeyPress>> {
    if poll(patience)? { Ok(key_from_event(read()?)) } else { Ok(None) }
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
            move |patience: Duration| {
                typed += 1;
                std::thread::sleep(if typed > keys { patience } else { Duration::from_millis(10) });
                Ok((typed <= keys)
                    .then(|| if typed == keys { last.clone() } else { KeyPress::Enter }))
            }
        };
        let begun = Instant::now();
        assert_eq!(
            drop_until_quiet(burst(30, KeyPress::Enter), settle, &|| false).expect("it reads"),
            None
        );
        assert!(
            begun.elapsed() >= 30 * Duration::from_millis(10) + settle,
            "{:?}",
            begun.elapsed()
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
            "nobody waits any more"
        );
    }

    #[test]
    fn pasted_line_breaks_are_no_enter() {
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
