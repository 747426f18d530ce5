//! Raw mode of the terminal. It is restored on every exit path: the end, an error, a panic, a
//! signal.

use std::io::{self, IsTerminal as _};
use std::sync::{Mutex, Once, PoisonError};

use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use crate::print::eprint_text;

/// The terminal settings before raw mode; `None` outside raw mode.
static SAVED_TERMIOS: Mutex<Option<Termios>> = Mutex::new(None);

/// Marks pasted text, so that its line breaks do not count as Enter.
const ENABLE_BRACKETED_PASTE: &str = "\u{1b}[?2004h";
/// Disables bracketed paste, shows the cursor, resets colours.
const RESET_SEQUENCE: &str = "\u{1b}[?2004l\u{1b}[?25h\u{1b}[0m";

/// The terminal in raw mode: keys arrive one by one without echo, and Ctrl-C is a key. Output
/// processing stays on.
#[derive(Debug)]
pub(super) struct RawTerminal(());

/// Returns whether standard input, output and error are all terminals.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal()
}

impl RawTerminal {
    /// Enters raw mode, and installs a panic hook that leaves it.
    pub(super) fn acquire() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let next = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                next(panic);
            }));
        });
        let before = tcgetattr(io::stdin())?;
        let mut ours = before.clone();
        ours.local_modes -=
            LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
        ours.input_modes -= InputModes::ICRNL | InputModes::IXON;
        ours.special_codes[SpecialCodeIndex::VMIN] = 1;
        ours.special_codes[SpecialCodeIndex::VTIME] = 0;
        *lock_saved_termios() = Some(before);
        tcsetattr(io::stdin(), OptionalActions::Now, &ours)?;
        Ok(Self(()))
    }

    /// Enables bracketed paste, also after an editor has disabled it.
    pub(super) fn enable_bracketed_paste(&self) {
        eprint_text(ENABLE_BRACKETED_PASTE);
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal. Does nothing outside raw mode.
pub(super) fn restore() {
    let Some(before) = lock_saved_termios().take() else { return };
    eprint_text(RESET_SEQUENCE);
    // Flushes unread input: it was meant for this program, not for the shell.
    let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &before);
}

fn lock_saved_termios() -> std::sync::MutexGuard<'static, Option<Termios>> {
    SAVED_TERMIOS.lock().unwrap_or_else(PoisonError::into_inner)
}
