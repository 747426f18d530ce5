//! Runs one tool call: a fresh instance with the granted permissions, a result, and nothing left
//! behind.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::call_state::CallState;
use super::clock::{CallClock, CallStopReason};
use super::commands::RanCommand;
use super::engine::WasmSandbox;
use super::failure::CallFailure;
use super::files::{FilesReport, TouchedPaths};
use super::gate::{
    CommandChangeJudge, ConnectionJudge, DelegateTask, DenialRecorder, Gate, ModeSource,
    PlanApprovalGate, ProgressSink,
};
use super::http::{HostCredential, HttpContacts};
use super::jobs::{JobRecorder, JobTable};
use super::limits::CallLimits;
use super::load::LoadedPlugin;
use super::output::{CallOutput, ReturnedOutput};
use super::stage::{Staged, UndoHistory};
use super::tool_state::ToolState;
use super::workspace::Workspace;
use crate::policy::{Denial, Grants};
use cofferdam_confine::CommandSandbox;

/// A call of one tool, with everything that it may use.
pub struct PluginCall {
    /// The name of a tool of the plugin.
    pub tool: String,
    /// The JSON text of the input, already validated.
    pub input: String,
    /// The permissions of the tool for this call.
    pub grants: Grants,
    /// The resource limits of the call.
    pub limits: CallLimits,
    /// The workspace whose files the call may access.
    pub workspace: Arc<Workspace>,
    /// The gate that decides on effects.
    pub gate: Gate,
    /// The judge of the changes that commands made.
    pub change_judge: CommandChangeJudge,
    /// The receiver of the changes of commands that are denied.
    pub denial_recorder: DenialRecorder,
    /// The approval mode in force.
    pub mode: ModeSource,
    /// The judge of the hosts that commands connect to.
    pub connection_judge: ConnectionJudge,
    /// The history that makes the changes of commands undoable; `None` without undo.
    pub history: Option<Arc<UndoHistory>>,
    /// The gate that shows plans to the user.
    pub plan_gate: PlanApprovalGate,
    /// The sandbox that runs commands.
    pub commands: Arc<CommandSandbox>,
    /// The background commands of the session; `None` without a session.
    pub jobs: Option<Arc<JobTable>>,
    /// The receiver of records of background commands that the call starts.
    pub job_recorder: JobRecorder,
    /// The receiver of progress messages.
    pub progress: ProgressSink,
    /// The key-value storage of the tool.
    pub tool_state: ToolState,
    /// The function that runs delegated tasks.
    pub delegation: DelegateTask,
    /// The credentials that the host adds to HTTP requests.
    pub credentials: Arc<[HostCredential]>,
    /// Stops the call when it is cancelled.
    pub cancellation: CancellationToken,
}

/// The outcome of a call, with everything the host observed.
#[derive(Debug)]
#[non_exhaustive]
pub struct CallReport {
    /// The output of the tool, or why there is none.
    pub result: Result<CallOutput, CallFailure>,
    /// The time in the guest and in the host functions that it called, without approvals and
    /// commands.
    pub active_time: Duration,
    /// The largest memory of the guest, in bytes.
    pub peak_memory: usize,
    /// The text that the guest wrote to standard output and standard error.
    pub log: String,
    /// The commands that the call ran, in order.
    pub commands: Vec<RanCommand>,
    /// The paths that the call touched.
    pub touched: TouchedPaths,
    /// The hosts that the call sent requests to.
    pub contacts: HttpContacts,
    /// The denials of file operations. WASI error codes cannot carry a reason, so the tool cannot
    /// report them.
    pub denials: Vec<Denial>,
    /// The staged changes of a successful call. Nothing has changed in the workspace yet.
    pub staged: Option<Staged>,
}

impl CallReport {
    /// Creates the report of a call that was not allowed to start.
    pub fn not_started(failure: CallFailure) -> Self {
        Self {
            result: Err(failure),
            active_time: Duration::ZERO,
            peak_memory: 0,
            log: String::new(),
            commands: Vec::new(),
            touched: TouchedPaths::default(),
            contacts: HttpContacts::default(),
            denials: Vec::new(),
            staged: None,
        }
    }
}

/// How long to wait for a call that does not react to its stop. Such a call is blocked in a system
/// call, for example on a dead network mount. Its thread is left behind, so that the request can
/// continue.
const STUCK_CALL_TIMEOUT: Duration = Duration::from_millis(700);

/// How long a cancelled call may take to end what it waits for. Longer than the grace period of a
/// command, and shorter than [`STUCK_CALL_TIMEOUT`].
const CANCEL_GRACE_PERIOD: Duration = Duration::from_millis(500);

/// The result of the guest function `call-tool`.
type ToolAnswer = wasmtime::Result<Result<ReturnedOutput, CallFailure>>;

impl LoadedPlugin {
    /// Runs one call on its own thread. Always returns: with a result, at the time limit, or within
    /// a second of its cancellation.
    pub async fn call(
        self: &Arc<Self>,
        sandbox: &Arc<WasmSandbox>,
        call: PluginCall,
    ) -> CallReport {
        let clock = Arc::new(CallClock::start(call.limits.time, call.cancellation.clone()));
        let (plugin, sandbox, thread_clock) =
            (Arc::clone(self), Arc::clone(sandbox), Arc::clone(&clock));
        let limits = call.limits.clone();
        let runtime = tokio::runtime::Handle::current();
        let span = tracing::Span::current();
        let mut running = tokio::task::spawn_blocking(move || {
            let _entered = span.enter();
            // Loading may compile the component, which does not count as time of the call.
            let ready = {
                let _loading = thread_clock.pause();
                plugin.instance_pre(&sandbox).map(drop)
            };
            match ready {
                Ok(()) => runtime.block_on(plugin.run(&sandbox, call, &thread_clock)),
                Err(error) => failure_report(&thread_clock, CallFailure::Host(error.to_string())),
            }
        });
        let stuck = async {
            let stop = clock.wait_for_stop().await;
            tokio::time::sleep(STUCK_CALL_TIMEOUT).await;
            stop
        };
        tokio::select! {
            joined = &mut running => joined.unwrap_or_else(|error| {
                let what = if error.is_panic() {
                    "the sandbox panicked during the call"
                } else {
                    "the call was dropped"
                };
                failure_report(&clock, CallFailure::Host(what.into()))
            }),
            stop = stuck => failure_report(&clock, CallFailure::from_stop(stop, &limits)),
        }
    }

    async fn run(
        &self,
        sandbox: &WasmSandbox,
        call: PluginCall,
        clock: &Arc<CallClock>,
    ) -> CallReport {
        let ready = match self.instance_pre(sandbox) {
            Ok(ready) => ready,
            Err(error) => return failure_report(clock, CallFailure::Host(error.to_string())),
        };
        let limits = call.limits.clone();
        let state = CallState::for_call(&call, self.digest(), Arc::clone(clock));
        let PluginCall { tool, input, .. } = call;
        let mut store = sandbox.new_store(state, &limits);
        let mut answering = Box::pin(async {
            let instance = ready.instantiate_async(&mut store).await?;
            let answer =
                instance.cofferdam_plugin_tools().call_call_tool(&mut store, &tool, &input).await?;
            Ok(answer.map(ReturnedOutput::from).map_err(CallFailure::from))
        });
        let answer: Result<ToolAnswer, CallStopReason> = tokio::select! {
            answer = &mut answering => Ok(answer),
            stop = clock.wait_for_stop() => {
                // Waits for pending host functions to end: a command gets TERM before KILL. The
                // answer is discarded.
                if stop == CallStopReason::Cancelled {
                    let _ = tokio::time::timeout(CANCEL_GRACE_PERIOD, &mut answering).await;
                }
                Err(stop)
            }
        };
        drop(answering);
        let mut result = match answer {
            Ok(Ok(Ok(output))) => {
                CallOutput::check(output, &limits).map_err(CallFailure::InvalidResult)
            }
            Ok(Ok(Err(failure))) => Err(failure),
            Ok(Err(error)) => Err(CallFailure::from_wasmtime(&error, store.data(), &limits)),
            Err(stop) => Err(CallFailure::from_stop(stop, &limits)),
        };
        // Dropping the store drops everything that could still write.
        let mut state = store.into_data();
        let FilesReport { view, denials, touched } = std::mem::take(&mut state.files).finish();
        let finished = view
            .filter(|_| result.is_ok())
            .map(|view| view.finish(&|| clock.stop_reason().is_some()));
        let staged = finished.transpose().unwrap_or_else(|error| {
            result = Err(match clock.stop_reason() {
                Some(stop) => CallFailure::from_stop(stop, &limits),
                None => CallFailure::LimitExceeded(error.to_string()),
            });
            None
        });
        let contacts = state.http.contacts();
        let log = [state.stdout.text(), state.stderr.text()].concat();
        let commands = state.commands.records;
        CallReport {
            result,
            active_time: clock.elapsed(),
            peak_memory: state.meter.peak_memory(),
            log,
            commands,
            touched,
            contacts,
            denials,
            staged: staged.flatten(),
        }
    }
}

fn failure_report(clock: &CallClock, failure: CallFailure) -> CallReport {
    CallReport { active_time: clock.elapsed(), ..CallReport::not_started(failure) }
}
