//! Who reads the terminal. There is one [`Keyboard`], and reading takes it: the prompt, the watch over a running request, and
//! a dialog within that watch each borrow it for as long as they read. A second reader does not compile.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use reedline::{EditCommand, Reedline, Signal};

use super::editor::{self, CYCLE_MODE, GoesOn, INTERRUPT, Ready};
use super::history::History;
use super::line::Edit;
use super::plain::Lines;
use super::tty::Tty;
use crate::cli::print::{stderr_line, stderr_piece};
use crate::session::SessionId;

/// How often it is looked whether a question still stands.
const GLANCE: Duration = Duration::from_millis(50);

/// The right to read what is typed. It is made once, with the terminal.
pub(super) enum Keyboard {
    /// Key by key, with an editor at the prompt.
    Keys(Box<Keys>),
    /// Line by line.
    Lines(Lines),
}

/// A terminal that is ours.
pub(super) struct Keys {
    tty: Tty,
    editor: Reedline,
    goes_on: GoesOn,
    history: History,
}

/// What came of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entered {
    Line(String),
    Leave,
}

/// Reads while a request runs.
pub(super) struct Watch<'a>(&'a mut Keyboard);

/// Reads the answer to one question. While it does, nobody reads for the request.
pub(super) struct Dialog<'a> {
    keyboard: &'a mut Keyboard,
    /// A key that rejects, typed before the keyboard was quiet.
    early: Option<Key>,
}

/// A key, as it matters outside of the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Edit(Edit),
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

impl Keyboard {
    pub(super) fn of_keys(tty: Tty, history: History, end: Arc<AtomicBool>) -> Self {
        let goes_on = GoesOn::default();
        let editor = editor::editor(history.load(), end, &goes_on);
        Self::Keys(Box::new(Keys { tty, editor, goes_on, history }))
    }

    /// Reads at the prompt, which begins with a text that is there already. `cycle_mode` is called for Shift-Tab; `status` tells
    /// how things are now.
    pub(super) fn prompt(&mut self, begun: &str, status: &dyn Fn() -> String, cycle_mode: &dyn Fn()) -> io::Result<Entered> {
        match self {
            Self::Keys(keys) => keys.prompt(begun, status, cycle_mode),
            Self::Lines(lines) => lines.prompt(begun, status),
        }
    }

    /// Keeps a line for the arrow keys of a later chat. A history that cannot be written is no reason not to talk.
    pub(super) fn remember(&self, line: &str, session: &SessionId) {
        match self {
            Self::Keys(keys) => drop(keys.history.add(line, session)),
            Self::Lines(_) => {}
        }
    }

    /// Reads while a request runs.
    pub(super) fn watch(&mut self) -> Watch<'_> {
        if let Self::Keys(keys) = self {
            keys.tty.mark_pasted_text();
        }
        Watch(self)
    }
}

impl Keys {
    fn prompt(&mut self, begun: &str, status: &dyn Fn() -> String, cycle_mode: &dyn Fn()) -> io::Result<Entered> {
        if !begun.is_empty() {
            self.editor.run_edit_commands(&[EditCommand::InsertString(begun.to_owned())]);
        }
        let mut leaving = false;
        loop {
            let status = if leaving { "Ctrl-C again, or Ctrl-D, leaves".to_owned() } else { status() };
            let signal = self.editor.read_line(&Ready { status }).map_err(io::Error::other)?;
            let was_leaving = std::mem::take(&mut leaving);
            match signal {
                Signal::Success(text) => return Ok(Entered::Line(self.goes_on.meant(&text))),
                Signal::HostCommand(name) if name == CYCLE_MODE => cycle_mode(),
                Signal::HostCommand(name) if name == INTERRUPT && !self.editor.current_buffer_contents().is_empty() => {
                    self.editor.run_edit_commands(&[EditCommand::Clear]);
                }
                Signal::HostCommand(_) | Signal::CtrlC if was_leaving => {
                    // The editor takes itself for suspended, and left the cursor in its line.
                    stderr_line("");
                    return Ok(Entered::Leave);
                }
                Signal::HostCommand(_) | Signal::CtrlC => leaving = true,
                // Ctrl-D, a wish from outside, and whatever a later editor may say.
                _ => return Ok(Entered::Leave),
            }
        }
    }
}

impl Watch<'_> {
    /// The next key, if one comes soon enough.
    pub(super) fn next(&mut self, patience: Duration) -> io::Result<Option<Key>> {
        match &mut *self.0 {
            Keyboard::Keys(_) => next(patience),
            Keyboard::Lines(lines) => Ok(lines.next(patience)),
        }
    }

    /// Reads the answer to a page that has just been shown. What is typed until the keyboard has been quiet for so long is none,
    /// unless it rejects.
    pub(super) fn dialog(&mut self, settle: Duration, is_over: &dyn Fn() -> bool) -> io::Result<Dialog<'_>> {
        let early = match &mut *self.0 {
            Keyboard::Keys(_) => drop_until_quiet(next, settle, is_over)?,
            Keyboard::Lines(lines) => {
                lines.forget(settle, is_over);
                None
            }
        };
        Ok(Dialog { keyboard: self.0, early })
    }
}

impl Dialog<'_> {
    /// The next key, if one comes soon enough.
    pub(super) fn next(&mut self, patience: Duration) -> io::Result<Option<Key>> {
        if let Some(early) = self.early.take() {
            return Ok(Some(early));
        }
        match &mut *self.keyboard {
            Keyboard::Keys(_) => next(patience),
            Keyboard::Lines(lines) => Ok(lines.next_answer(patience)),
        }
    }

    /// An answer is waited for. Where nothing can be drawn anew, the words before it are written here, once.
    pub(super) fn begins(&self, mark: &str) {
        match self.keyboard {
            Keyboard::Keys(_) => {}
            Keyboard::Lines(_) => stderr_piece(mark),
        }
    }

    /// Whether what is typed stays to be seen without being said again.
    pub(super) fn has_echo(&self) -> bool {
        match self.keyboard {
            Keyboard::Keys(_) => false,
            Keyboard::Lines(_) => true,
        }
    }
}

/// Drops keys until none has come for so long. Gives one that rejects at once.
fn drop_until_quiet(
    mut next: impl FnMut(Duration) -> io::Result<Option<Key>>,
    settle: Duration,
    is_over: &dyn Fn() -> bool,
) -> io::Result<Option<Key>> {
    let mut quiet_since = Instant::now();
    while quiet_since.elapsed() < settle && !is_over() {
        match next(settle.saturating_sub(quiet_since.elapsed()).min(GLANCE))? {
            Some(key @ (Key::Escape | Key::Interrupt)) => return Ok(Some(key)),
            Some(Key::Resized) | None => {}
            Some(Key::Edit(_) | Key::Enter | Key::Up | Key::CycleMode | Key::EndOfInput) => quiet_since = Instant::now(),
        }
    }
    Ok(None)
}

fn next(patience: Duration) -> io::Result<Option<Key>> {
    if poll(patience)? { Ok(key(read()?)) } else { Ok(None) }
}

fn key(event: Event) -> Option<Key> {
    match event {
        Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press | KeyEventKind::Repeat, .. }) => pressed(code, modifiers),
        Event::Paste(text) => Some(Key::Edit(Edit::Insert(text.replace("\r\n", "\n").replace('\r', "\n")))),
        Event::Resize(..) => Some(Key::Resized),
        Event::Key(_) | Event::FocusGained | Event::FocusLost | Event::Mouse(_) => None,
    }
}

fn pressed(code: KeyCode, modifiers: KeyModifiers) -> Option<Key> {
    let control = modifiers.contains(KeyModifiers::CONTROL);
    let alt = modifiers.contains(KeyModifiers::ALT);
    let edit = |edit| Some(Key::Edit(edit));
    match code {
        KeyCode::Enter if alt || modifiers.contains(KeyModifiers::SHIFT) => edit(Edit::Insert("\n".into())),
        KeyCode::Enter => Some(Key::Enter),
        KeyCode::Esc => Some(Key::Escape),
        KeyCode::BackTab => Some(Key::CycleMode),
        KeyCode::Up => Some(Key::Up),
        KeyCode::Left => edit(Edit::Left),
        KeyCode::Right => edit(Edit::Right),
        KeyCode::Home => edit(Edit::Start),
        KeyCode::End => edit(Edit::End),
        KeyCode::Backspace if alt => edit(Edit::DeleteWord),
        KeyCode::Backspace => edit(Edit::Backspace),
        KeyCode::Delete => edit(Edit::Delete),
        KeyCode::Char(c) if control => match c {
            'c' => Some(Key::Interrupt),
            'd' => Some(Key::EndOfInput),
            'w' => edit(Edit::DeleteWord),
            'u' => edit(Edit::DeleteToStart),
            'a' => edit(Edit::Start),
            'e' => edit(Edit::End),
            'h' => edit(Edit::Backspace),
            _ => None,
        },
        KeyCode::Char(_) if alt => None,
        KeyCode::Char(c) => edit(Edit::Insert(c.to_string())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r042_keys_are_dropped_until_the_keyboard_is_quiet() {
        let settle = Duration::from_millis(100);
        let burst = |keys: usize, last: Key| {
            let mut typed = 0;
            move |patience: Duration| {
                typed += 1;
                std::thread::sleep(if typed > keys { patience } else { Duration::from_millis(10) });
                Ok((typed <= keys).then(|| if typed == keys { last.clone() } else { Key::Enter }))
            }
        };
        let begun = Instant::now();
        assert_eq!(drop_until_quiet(burst(30, Key::Enter), settle, &|| false).expect("it reads"), None);
        assert!(begun.elapsed() >= 30 * Duration::from_millis(10) + settle, "{:?}", begun.elapsed());
        for rejects in [Key::Escape, Key::Interrupt] {
            assert_eq!(drop_until_quiet(burst(3, rejects.clone()), settle, &|| false).expect("it reads"), Some(rejects));
        }
        assert_eq!(drop_until_quiet(|_| Ok(Some(Key::Enter)), settle, &|| true).expect("it reads"), None, "nobody waits any more");
    }

    #[test]
    fn pasted_line_breaks_are_no_enter() {
        let pasted = key(Event::Paste("1\r\n2\r3\n".into()));
        assert_eq!(pasted, Some(Key::Edit(Edit::Insert("1\n2\n3\n".into()))));
        assert_eq!(pressed(KeyCode::Enter, KeyModifiers::ALT), Some(Key::Edit(Edit::Insert("\n".into()))));
        assert_eq!(pressed(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Interrupt));
        assert_eq!(pressed(KeyCode::Char('x'), KeyModifiers::CONTROL), None);
    }
}
