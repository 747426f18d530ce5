//! Termination signals: the request is cancelled, the session is saved, and the terminal is
//! restored.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use super::tty;

/// Time after a signal until the process exits even if the chat does not.
const EXIT_GRACE_PERIOD: Duration = Duration::from_secs(4);

/// The signals that this process has received.
#[derive(Clone, Debug, Default)]
pub(super) struct ProcessSignals {
    /// The exit code for the signal; 0 if there was none.
    exit_code: Arc<AtomicU8>,
    /// Becomes true to end the prompt.
    prompt_break: Arc<AtomicBool>,
    /// Number of interrupts that were not handled yet.
    interrupts: Arc<AtomicUsize>,
}

/// The meaning of SIGINT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InterruptKind {
    /// Ctrl-C is read as a key, so SIGINT comes from outside and ends the program.
    Key,
    /// Ctrl-C arrives as SIGINT.
    Signal,
}

impl ProcessSignals {
    /// Installs the signal handlers.
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

    /// Takes one unhandled interrupt. Always false if Ctrl-C is a key.
    pub(super) fn take_interrupt(&self) -> bool {
        self.interrupts
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| count.checked_sub(1))
            .is_ok()
    }

    /// Returns whether a signal asked the program to exit.
    pub(super) fn should_exit(&self) -> bool {
        self.exit_code.load(Ordering::SeqCst) != 0
    }

    /// Returns the flag that ends the prompt when it becomes true.
    pub(super) fn prompt_break(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.prompt_break)
    }

    /// Returns the exit code that a shell reports for the signal.
    pub(super) fn exit_code(&self) -> Option<ExitCode> {
        match self.exit_code.load(Ordering::SeqCst) {
            0 => None,
            code => Some(ExitCode::from(code)),
        }
    }
}
