//! Ctrl-C handling: the first stops the request, the second saves and exits.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::print::eprint_line;
use cofferdam::session::ShutdownRecorder;

/// Time until all commands are dead. The first Ctrl-C asks them to end, and then kills the
/// remaining ones, so that none remains.
const KILL_TIMEOUT: Duration = Duration::from_millis(400);

/// Maximum time to write the final records. A disk that does not respond, such as a network disk,
/// must not block the exit.
pub(super) const SHUTDOWN_RECORD_TIMEOUT: Duration = Duration::from_secs(2);

/// Starts a task that handles SIGINT, SIGTERM and SIGHUP.
pub(super) fn watch_signals(
    cancel: CancellationToken,
    recorder: Option<ShutdownRecorder>,
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
                if let Some(recorder) = &recorder {
                    recorder.finish_within(SHUTDOWN_RECORD_TIMEOUT);
                }
                tokio::time::sleep(KILL_TIMEOUT).await;
                #[expect(
                    clippy::exit,
                    reason = "the second Ctrl-C exits immediately; the records are complete"
                )]
                std::process::exit(130);
            }
            cancel.cancel();
            eprint_line("\nstopping … (Ctrl-C again exits immediately)");
        }
    });
    Ok(())
}
