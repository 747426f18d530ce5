//! One call: a world with what was granted, an instance in it, an answer, and nothing left.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::bindings::exports::cofferdam::plugin::tools as wit;
use super::call_state::CallState;
use super::clock::{CallClock, CallStopReason};
use super::commands::RanCommand;
use super::confine::CommandSandbox;
use super::engine::WasmSandbox;
use super::failure::CallFailure;
use super::files::{FilesReport, TouchedPaths};
use super::gate::{DelegateTask, Gate, PlanApprovalGate, ProgressSink};
use super::http::{HostCredential, HttpContacts};
use super::limits::CallLimits;
use super::load::LoadedPlugin;
use super::output::CallOutput;
use super::stage::Staged;
use super::tool_state::ToolState;
use super::workspace::Workspace;
use crate::policy::{Denial, Grants};

/// Everything that one call is and may do.
pub struct PluginCall {
    /// A tool of the plugin.
    pub tool: String,
    /// The JSON text of its input, already validated.
    pub input: String,
    /// What this tool holds for this call.
    pub grants: Grants,
    /// What it may use.
    pub limits: CallLimits,
    /// Where the files are.
    pub workspace: Arc<Workspace>,
    /// Who decides on effects.
    pub gate: Gate,
    /// Who shows its plans to the user.
    pub plan_gate: PlanApprovalGate,
    /// How commands run.
    pub commands: Arc<CommandSandbox>,
    /// Who hears of progress.
    pub progress: ProgressSink,
    /// What the tool keeps between its calls.
    pub tool_state: ToolState,
    /// Who works on tasks that it hands over.
    pub delegation: DelegateTask,
    /// What is added to requests.
    pub credentials: Arc<[HostCredential]>,
    /// Ends the call from outside.
    pub cancellation: CancellationToken,
}

/// How a call went.
#[derive(Debug)]
pub struct CallReport {
    /// The answer, or why there is none.
    pub result: Result<CallOutput, CallFailure>,
    /// Time in the guest and in what it called, without approvals and commands.
    pub active_time: Duration,
    /// The most memory it had, in bytes.
    pub peak_memory: usize,
    /// What the guest wrote to its standard output and standard error.
    pub log: String,
    /// The commands that it ran, in order.
    pub commands: Vec<RanCommand>,
    /// Which files it has touched.
    pub touched: TouchedPaths,
    /// Whom it has sent requests to.
    pub contacts: HttpContacts,
    /// What it was refused although it was granted. WASI has no words for that, so that the tool
    /// cannot tell.
    pub denials: Vec<Denial>,
    /// What it would change, if it ended well and wrote anything. Nothing has changed yet.
    pub staged: Option<Staged>,
}

impl CallReport {
    /// Of a call that was not let start.
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

/// A call that does not react to being stopped sits in a system call that does not return, such as
/// opening a dead network mount. Its thread is left behind, so that the request can go on.
const STUCK_CALL_TIMEOUT: Duration = Duration::from_millis(700);

/// How long what a cancelled call waits for may take to end: longer than the grace of a command,
/// and within the patience.
const CANCEL_GRACE_PERIOD: Duration = Duration::from_millis(500);

impl LoadedPlugin {
    /// Runs one call on a thread of its own. It always comes back: with an answer, at its time
    /// limit, or within a second of being cancelled.
    pub async fn call(
        self: &Arc<Self>,
        sandbox: &Arc<WasmSandbox>,
        call: PluginCall,
    ) -> CallReport {
        let clock = Arc::new(CallClock::start(call.limits.time, call.cancellation.clone()));
        let (plugin, sandbox, on_thread) =
            (Arc::clone(self), Arc::clone(sandbox), Arc::clone(&clock));
        let limits = call.limits.clone();
        let runtime = tokio::runtime::Handle::current();
        let mut running = tokio::task::spawn_blocking(move || {
            // Loading may compile, which is not this call's time.
            let ready = {
                let _loading = on_thread.pause();
                plugin.instance_pre(&sandbox).map(drop)
            };
            match ready {
                Ok(()) => runtime.block_on(plugin.run(&sandbox, call, &on_thread)),
                Err(error) => failure_report(&on_thread, CallFailure::Host(error.to_string())),
            }
        });
        let stuck = async {
            let stop = clock.wait_for_stop().await;
            tokio::time::sleep(STUCK_CALL_TIMEOUT).await;
            stop
        };
        tokio::select! {
            joined = &mut running => joined.unwrap_or_else(|error| {
                let what = if error.is_panic() { "it panicked during the call" } else { "the call was dropped" };
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
        let state = CallState::for_call(&call, Arc::clone(clock));
        let PluginCall { tool, input, .. } = call;
        let mut store = sandbox.new_store(state, &limits);
        let mut answering = Box::pin(async {
            let instance = ready.instantiate_async(&mut store).await?;
            instance.cofferdam_plugin_tools().call_call_tool(&mut store, &tool, &input).await
        });
        let answer: Result<wasmtime::Result<Result<wit::Output, wit::ToolError>>, CallStopReason> = tokio::select! {
            answer = &mut answering => Ok(answer),
            stop = clock.wait_for_stop() => {
                // What it waits for ends by itself then: a command has TERM before KILL. Nothing of
                // the answer counts.
                if stop == CallStopReason::Cancelled {
                    drop(tokio::time::timeout(CANCEL_GRACE_PERIOD, &mut answering).await);
                }
                Err(stop)
            }
        };
        drop(answering);
        let mut result = match answer {
            Ok(Ok(Ok(output))) => {
                CallOutput::from_wit(output, &limits).map_err(CallFailure::InvalidResult)
            }
            Ok(Ok(Err(error))) => Err(error.into()),
            Ok(Err(error)) => Err(CallFailure::from_wasmtime(&error, store.data(), &limits)),
            Err(stop) => Err(CallFailure::from_stop(stop, &limits)),
        };
        // With the store goes everything that could still write.
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
        let commands = state.commands.map(|lent| lent.records).unwrap_or_default();
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
