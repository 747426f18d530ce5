//! Being told to end from outside: the request is stopped, what was said is saved, the terminal is given back.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use super::tty;

/// After so long a chat that does not end by itself is ended.
const GRACE: Duration = Duration::from_secs(4);

/// What this process was told.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    /// As an exit code; 0 while there is none.
    told: Arc<AtomicU8>,
    /// Ends the prompt.
    end_prompt: Arc<AtomicBool>,
    /// How often Ctrl-C was pressed and not looked at.
    interrupts: Arc<AtomicUsize>,
}

/// What SIGINT is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CtrlC {
    /// Ctrl-C is read as a key, so that the signal comes from outside: it is time to go.
    Key,
    /// It is how Ctrl-C arrives.
    Signal,
}

impl Signals {
    /// Listens from now on.
    pub(super) fn listen(runtime: &tokio::runtime::Runtime, ctrl_c: CtrlC) -> io::Result<Self> {
        let signals = Self::default();
        let _entered = runtime.enter();
        let mut ends = vec![(SignalKind::terminate(), 143), (SignalKind::hangup(), 129)];
        match ctrl_c {
            CtrlC::Key => ends.push((SignalKind::interrupt(), 130)),
            CtrlC::Signal => {
                let (mut listener, interrupts) = (signal(SignalKind::interrupt())?, Arc::clone(&signals.interrupts));
                runtime.spawn(async move {
                    while listener.recv().await.is_some() {
                        interrupts.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        }
        for (kind, code) in ends {
            let (mut listener, signals) = (signal(kind)?, signals.clone());
            runtime.spawn(async move {
                if listener.recv().await.is_some() {
                    signals.told.store(code, Ordering::SeqCst);
                    signals.end_prompt.store(true, Ordering::SeqCst);
                    tokio::time::sleep(GRACE).await;
                    tty::give_back();
                    std::process::exit(code.into());
                }
            });
        }
        Ok(signals)
    }

    /// Whether Ctrl-C was pressed since the last time, where it is a signal. Each is told once.
    pub(super) fn was_interrupted(&self) -> bool {
        self.interrupts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| count.checked_sub(1)).is_ok()
    }

    /// Whether it is time to go.
    pub(super) fn leave(&self) -> bool {
        self.told.load(Ordering::SeqCst) != 0
    }

    /// For the prompt, which ends when this becomes true.
    pub(super) fn end_prompt(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.end_prompt)
    }

    /// What a shell reports of a program that such a signal ended.
    pub(super) fn exit_code(&self) -> Option<ExitCode> {
        match self.told.load(Ordering::SeqCst) {
            0 => None,
            code => Some(ExitCode::from(code)),
        }
    }
}
