//! Ctrl-C: the first stops the request, the second leaves at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::print::stderr_line;

/// Watches for SIGINT and SIGTERM from now on.
pub(super) fn watch(cancel: CancellationToken) -> std::io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                Some(()) = interrupt.recv() => {}
                Some(()) = terminate.recv() => {}
                else => return,
            }
            if cancel.is_cancelled() {
                #[expect(clippy::exit, reason = "the user asked twice; there is nothing left to save")]
                std::process::exit(130);
            }
            cancel.cancel();
            stderr_line("\nstopping … (Ctrl-C again to leave at once)");
        }
    });
    Ok(())
}
