//! The terminal, borrowed for the length of a chat and given back on every way out: the end, an
//! error, a panic, a signal.

use std::io::{self, IsTerminal as _};
use std::sync::{Mutex, Once, PoisonError};

use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use crate::cli::print::eprint_text;

/// How the terminal was before; `None` while it is not ours.
static SAVED_TERMIOS: Mutex<Option<Termios>> = Mutex::new(None);

/// Pasted text arrives as such, and no line break in it is an Enter.
const ENABLE_BRACKETED_PASTE: &str = "\u{1b}[?2004h";
/// No marks around pasted text, the cursor visible, plain colours.
const RESET_SEQUENCE: &str = "\u{1b}[?2004l\u{1b}[?25h\u{1b}[0m";

/// The terminal while it is ours: keys come one by one, unseen, and Ctrl-C is a key like any other.
/// What is written goes through the terminal's own line endings.
#[derive(Debug)]
pub(super) struct RawTerminal(());

/// Whether somebody sits here who can talk: input, output and what is said beside it all belong to
/// a terminal.
pub(in crate::cli) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal()
}

impl RawTerminal {
    /// Borrows the terminal.
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

    /// From now on pasted text is marked, also after an editor that switched it off.
    pub(super) fn enable_bracketed_paste(&self) {
        eprint_text(ENABLE_BRACKETED_PASTE);
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Makes the terminal what it was. The second time it does nothing.
pub(super) fn restore() {
    let Some(before) = lock_saved_termios().take() else { return };
    eprint_text(RESET_SEQUENCE);
    // With what was typed and not read: it was meant for this program, not for the shell.
    let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &before);
}

fn lock_saved_termios() -> std::sync::MutexGuard<'static, Option<Termios>> {
    SAVED_TERMIOS.lock().unwrap_or_else(PoisonError::into_inner)
}
