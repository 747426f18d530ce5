//! Processes of servers that answer tool calls, such as MCP servers, in the sandbox of commands.
//!
//! A [`ServerAccess`] belongs to one call. With it, a source of tools starts a [`ServerProcess`] or
//! commits what the process has changed. A process outlives its calls. It sees the workspace as its
//! permissions say: not at all, read-only, or as a private view whose changes the host judges and
//! commits at the end of each call, as at a checkpoint of a background command.

mod access;
mod spec;
mod task;

pub use access::{ServerAccess, ServerStartError};
pub(crate) use access::{ServerAccessParts, ServerConnectionJudge, ServerPermitSource};
pub use spec::ServerSpec;

use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::command_changes::{CommandChangeContext, SettledCommand};
use super::egress::{CommandConnection, EgressProxy};
use super::jobs::JobRecorder;
use crate::policy::ComponentDigest;
use cofferdam_confine::process::shorten;

/// The bytes of the standard error of a server that are kept, the newest ones.
const MAX_ERROR_LEN: usize = 8 << 10;

/// The running process of a server. Dropping it ends the server with all of its processes, and
/// discards the changes that no call committed.
pub struct ServerProcess {
    requests: mpsc::Sender<ServerCommit>,
    stop: CancellationToken,
    shared: Arc<SharedProcess>,
    line_sha256: ComponentDigest,
    /// Whether the server can change the workspace.
    writes: bool,
}

/// The host's ends of the standard streams of a server.
#[derive(Debug)]
pub struct ServerPipes {
    /// What the server reads.
    pub input: Sender,
    /// What the server writes.
    pub output: Receiver,
}

/// A request to decide on the changes of a server.
pub(super) struct ServerCommit {
    context: CommandChangeContext,
    reply: oneshot::Sender<Result<SettledCommand, String>>,
    /// Records changes that were committed after the call ended, for example because it was
    /// cancelled meanwhile.
    late_recorder: JobRecorder,
    line_sha256: ComponentDigest,
}

/// The state of a server that its task and its calls share.
struct SharedProcess {
    errors: Mutex<Vec<u8>>,
    /// Why the server has ended; `None` while it runs.
    end: watch::Sender<Option<String>>,
    proxy: Option<EgressProxy>,
    /// The number of connections that are recorded already.
    recorded_connections: Mutex<usize>,
    /// The empty workspace of a server without access to files.
    _empty: Option<tempfile::TempDir>,
}

impl ServerProcess {
    /// Waits until the server has ended, and returns the reason as the end of a sentence.
    pub async fn wait_for_end(&self) -> String {
        let mut end = self.shared.end.subscribe();
        let ended = end.wait_for(Option::is_some).await;
        let reason = ended.ok().and_then(|reason| reason.clone());
        reason.unwrap_or_else(|| "its end was lost".to_owned())
    }

    /// Returns whether the server has ended.
    pub fn has_ended(&self) -> bool {
        self.shared.end.borrow().is_some()
    }

    /// Ends the server with all of its processes. Changes that no call committed are discarded.
    pub fn request_stop(&self) {
        self.stop.cancel();
    }

    /// Returns the newest text that the server wrote to standard error, at most `most` bytes.
    pub fn error_text(&self, most: usize) -> String {
        let errors = self.shared.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::from_utf8_lossy(&errors).into_owned();
        drop(errors);
        let start = text.ceil_char_boundary(text.len().saturating_sub(most));
        text.drain(..start);
        text
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl std::fmt::Debug for ServerProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerProcess")
            .field("line_sha256", &self.line_sha256)
            .field("writes", &self.writes)
            .field("has_ended", &self.has_ended())
            .finish_non_exhaustive()
    }
}

impl SharedProcess {
    fn push_errors(&self, bytes: &[u8]) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        errors.extend_from_slice(bytes);
        let surplus = errors.len().saturating_sub(MAX_ERROR_LEN);
        errors.drain(..surplus);
    }

    /// Returns the connections since the last call.
    fn take_connections(&self) -> Vec<CommandConnection> {
        let Some(proxy) = &self.proxy else { return Vec::new() };
        let mut all = proxy.connections();
        let mut recorded = self.recorded_connections.lock().unwrap_or_else(PoisonError::into_inner);
        let new = all.split_off((*recorded).min(all.len()));
        *recorded += new.len();
        new
    }

    /// Describes why the server ended, with the end of what it wrote to standard error.
    fn describe_end(&self, reason: &str) -> String {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::from_utf8_lossy(&errors).trim().to_owned();
        drop(errors);
        shorten(&mut text, 2000);
        match text.is_empty() {
            true => reason.to_owned(),
            false => format!("{reason}; its last errors:\n{text}"),
        }
    }
}
