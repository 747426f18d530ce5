//! Ctrl-C: the first stops the request, the second saves and leaves.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::print::eprint_line;
use crate::session::ShutdownRecorder;

/// The first Ctrl-C has asked all commands to end; by then those that did not are killed, and none
/// is left behind.
const KILL_TIMEOUT: Duration = Duration::from_millis(400);

/// How long the last words may take. A disk that does not answer, such as a network's, must not
/// keep anybody.
pub(super) const SHUTDOWN_RECORD_TIMEOUT: Duration = Duration::from_secs(2);

/// Watches for SIGINT, SIGTERM, and a terminal that goes away, from now on.
pub(super) fn watch_signals(
    cancel: CancellationToken,
    last_words: Option<ShutdownRecorder>,
) -> std::io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                Some(()) = interrupt.recv() => {}
                Some(()) = terminate.recv() => {}
                Some(()) = hang_up.recv() => {}
                else => return,
            }
            if cancel.is_cancelled() {
                if let Some(last_words) = &last_words {
                    last_words.finish_within(SHUTDOWN_RECORD_TIMEOUT);
                }
                tokio::time::sleep(KILL_TIMEOUT).await;
                #[expect(clippy::exit, reason = "the user asked twice, and everything is saved")]
                std::process::exit(130);
            }
            cancel.cancel();
            eprint_line("\nstopping … (Ctrl-C again to leave at once)");
        }
    });
    Ok(())
}
