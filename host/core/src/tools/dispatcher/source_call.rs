//! Runs one call of a tool of a source, in bounded time and with a bounded output.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Dispatcher, ReadyCall};
use crate::agent::events::{AgentEvent, Observer};
use crate::sandbox::{CallFailure, CallLimits, CallOutput, CallReport, ProgressSink, SourceOutput};
use crate::terminal_escape::escape_line;
use crate::tools::approval::CallDecisions;
use crate::tools::settler;
use crate::tools::tool_source::{SourceBackend, SourceCall};

/// How long a source may take to end a call that was cancelled or exceeded its time limit. A
/// cancelled request has to end within a second.
const STOP_TIMEOUT: Duration = Duration::from_millis(700);
/// The longest message of progress or notice, in characters.
const MAX_MESSAGE_LEN: usize = 400;

/// A message of a source for the user.
enum SourceMessage {
    Progress(String),
    Notice(String),
}

/// Returns a receiver of messages. If the channel is full, a message is dropped.
fn message_sink(
    messages: &mpsc::Sender<SourceMessage>,
    kind: impl Fn(String) -> SourceMessage + Send + Sync + 'static,
) -> ProgressSink {
    let messages = messages.clone();
    Arc::new(move |line: &str| {
        let _ = messages.try_send(kind(escape_line(line, MAX_MESSAGE_LEN)));
    })
}

impl Dispatcher {
    /// Runs a call of a tool of a source.
    pub(super) async fn run_source(
        &self,
        ready: &ReadyCall<'_>,
        backend: &SourceBackend,
        verdicts: &Arc<Mutex<CallDecisions>>,
        observer: &dyn Observer,
        cancel: &CancellationToken,
    ) -> CallReport {
        let started = Instant::now();
        let server = self.approvals.server_access(
            (&ready.identity, verdicts),
            &self.workspace,
            &self.settings.commands,
            self.settler.history.as_ref(),
        );
        let files = backend.source.description().files;
        if let Err(denial) = server.check_mode(files) {
            return CallReport::not_started(settler::denied_failure(denial));
        }
        // The arguments were built from a value, so they are one.
        let arguments = match serde_json::from_str(&ready.input) {
            Ok(arguments) => arguments,
            Err(error) => {
                return CallReport::not_started(CallFailure::Host(error.to_string()));
            }
        };
        let limits = self.settings.limits.clone().with_caps(&ready.tool.caps);
        let (messages, mut waiting) = mpsc::channel(8);
        let stop = cancel.child_token();
        // The task ends if this future is dropped.
        let _stop_on_drop = stop.clone().drop_guard();
        let call = SourceCall {
            tool: backend.tool.clone(),
            arguments,
            limits: limits.clone(),
            progress: message_sink(&messages, SourceMessage::Progress),
            notices: message_sink(&messages, SourceMessage::Notice),
            server: server.clone(),
            cancellation: stop.clone(),
        };
        drop(messages);
        let source = Arc::clone(&backend.source);
        // A panic of the source ends this call, and nothing else.
        let mut running = tokio::spawn(async move { source.call(call).await });
        let deadline = tokio::time::sleep(limits.time);
        tokio::pin!(deadline);
        let show = |message| match message {
            SourceMessage::Progress(message) => {
                observer
                    .observe(&AgentEvent::CallProgress { call: &ready.call, message: &message });
            }
            SourceMessage::Notice(text) => observer.observe(&AgentEvent::Notice(&text)),
        };
        let result = loop {
            tokio::select! {
                result = &mut running => break flatten(result),
                Some(message) = waiting.recv() => show(message),
                () = cancel.cancelled() => {
                    stop.cancel();
                    let _ = tokio::time::timeout(STOP_TIMEOUT, &mut running).await;
                    running.abort();
                    break Err(CallFailure::Cancelled);
                }
                () = &mut deadline => {
                    stop.cancel();
                    let _ = tokio::time::timeout(STOP_TIMEOUT, &mut running).await;
                    running.abort();
                    break Err(CallFailure::LimitExceeded(format!(
                        "the call exceeded its time limit of {} seconds",
                        limits.time.as_secs_f64()
                    )));
                }
            }
        };
        while let Ok(message) = waiting.try_recv() {
            show(message);
        }
        CallReport {
            result: result.and_then(|output| check_output(output, &limits)),
            active_time: started.elapsed(),
            commands: server.take_records(),
            ..CallReport::not_started(CallFailure::Cancelled)
        }
    }
}

/// Merges the failure of a task with that of its call.
fn flatten(
    result: Result<Result<SourceOutput, CallFailure>, tokio::task::JoinError>,
) -> Result<SourceOutput, CallFailure> {
    result.unwrap_or_else(|error| {
        let what = if error.is_panic() { "panicked during the call" } else { "dropped the call" };
        Err(CallFailure::Host(format!("the source of the tool {what}")))
    })
}

fn check_output(output: SourceOutput, limits: &CallLimits) -> Result<CallOutput, CallFailure> {
    CallOutput::from_source(output, limits).map_err(CallFailure::InvalidResult)
}
