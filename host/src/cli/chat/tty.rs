//! The terminal, borrowed for the length of a chat and given back on every way out: the end, an error, a panic, a signal.

use std::io::{self, IsTerminal as _};
use std::sync::{Mutex, Once, PoisonError};

use rustix::termios::{InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use crate::cli::print::stderr_piece;

/// How the terminal was before; `None` while it is not ours.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Pasted text arrives as such, and no line break in it is an Enter.
const PASTE_ON: &str = "\u{1b}[?2004h";
/// No marks around pasted text, the cursor visible, plain colours.
const AS_BEFORE: &str = "\u{1b}[?2004l\u{1b}[?25h\u{1b}[0m";

/// The terminal while it is ours: keys come one by one, unseen, and Ctrl-C is a key like any other. What is written goes
/// through the terminal's own line endings.
#[derive(Debug)]
pub(super) struct Tty(());

/// Whether somebody sits here who can talk: input, output and what is said beside it all belong to a terminal.
pub(in crate::cli) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal()
}

impl Tty {
    /// Borrows the terminal.
    pub(super) fn borrow() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let next = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                next(panic);
            }));
        });
        let before = tcgetattr(io::stdin())?;
        let mut ours = before.clone();
        ours.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
        ours.input_modes -= InputModes::ICRNL | InputModes::IXON;
        ours.special_codes[SpecialCodeIndex::VMIN] = 1;
        ours.special_codes[SpecialCodeIndex::VTIME] = 0;
        *lock() = Some(before);
        tcsetattr(io::stdin(), OptionalActions::Now, &ours)?;
        Ok(Self(()))
    }

    /// From now on pasted text is marked, also after an editor that switched it off.
    pub(super) fn mark_pasted_text(&self) {
        stderr_piece(PASTE_ON);
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        give_back();
    }
}

/// Makes the terminal what it was. The second time it does nothing.
pub(super) fn give_back() {
    let Some(before) = lock().take() else { return };
    stderr_piece(AS_BEFORE);
    // With what was typed and not read: it was meant for this program, not for the shell.
    let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &before);
}

fn lock() -> std::sync::MutexGuard<'static, Option<Termios>> {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}
