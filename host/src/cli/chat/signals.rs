//! Being told to end from outside: the request is stopped, what was said is saved, the terminal is
//! given back.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use super::tty;

/// After so long a chat that does not end by itself is ended.
const EXIT_GRACE_PERIOD: Duration = Duration::from_secs(4);

/// What this process was told.
#[derive(Clone, Debug, Default)]
pub(super) struct ProcessSignals {
    /// As an exit code; 0 while there is none.
    exit_code: Arc<AtomicU8>,
    /// Ends the prompt.
    prompt_break: Arc<AtomicBool>,
    /// How often Ctrl-C was pressed and not looked at.
    interrupts: Arc<AtomicUsize>,
}

/// What SIGINT is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InterruptKind {
    /// Ctrl-C is read as a key, so that the signal comes from outside: it is time to go.
    Key,
    /// It is how Ctrl-C arrives.
    Signal,
}

impl ProcessSignals {
    /// Listens from now on.
    pub(super) fn listen(
        runtime: &tokio::runtime::Runtime,
        ctrl_c: InterruptKind,
    ) -> io::Result<Self> {
        let signals = Self::default();
        let _entered = runtime.enter();
        let mut ends = vec![(SignalKind::terminate(), 143), (SignalKind::hangup(), 129)];
        match ctrl_c {
            InterruptKind::Key => ends.push((SignalKind::interrupt(), 130)),
            InterruptKind::Signal => {
                let (mut listener, interrupts) =
                    (signal(SignalKind::interrupt())?, Arc::clone(&signals.interrupts));
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
                    signals.exit_code.store(code, Ordering::SeqCst);
                    signals.prompt_break.store(true, Ordering::SeqCst);
                    tokio::time::sleep(EXIT_GRACE_PERIOD).await;
                    tty::restore();
                    std::process::exit(code.into());
                }
            });
        }
        Ok(signals)
    }

    /// Whether Ctrl-C was pressed since the last time, where it is a signal. Each is told once.
    pub(super) fn take_interrupt(&self) -> bool {
        self.interrupts
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| count.checked_sub(1))
            .is_ok()
    }

    /// Whether it is time to go.
    pub(super) fn should_exit(&self) -> bool {
        self.exit_code.load(Ordering::SeqCst) != 0
    }

    /// For the prompt, which ends when this becomes true.
    pub(super) fn prompt_break(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.prompt_break)
    }

    /// What a shell reports of a program that such a signal ended.
    pub(super) fn exit_code(&self) -> Option<ExitCode> {
        match self.exit_code.load(Ordering::SeqCst) {
            0 => None,
            code => Some(ExitCode::from(code)),
        }
    }
}
