//! Ctrl-C: the first stops the request, the second saves and leaves.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::print::stderr_line;
use crate::session::LastWords;

/// The first Ctrl-C has asked all commands to end; by then those that did not are killed, and none is left behind.
const UNTIL_KILLED: Duration = Duration::from_millis(400);

/// Watches for SIGINT, SIGTERM, and a terminal that goes away, from now on.
pub(super) fn watch(cancel: CancellationToken, last_words: Option<LastWords>) -> std::io::Result<()> {
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
                    last_words.write();
                }
                tokio::time::sleep(UNTIL_KILLED).await;
                #[expect(clippy::exit, reason = "the user asked twice, and everything is saved")]
                std::process::exit(130);
            }
            cancel.cancel();
            stderr_line("\nstopping … (Ctrl-C again to leave at once)");
        }
    });
    Ok(())
}
