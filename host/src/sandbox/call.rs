//! One call: a world with what was granted, an instance in it, an answer, and nothing left.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::bindings::exports::cofferdam::plugin::tools as wit;
use super::clock::{Clock, Stop};
use super::engine::Sandbox;
use super::failure::Failure;
use super::gate::{Gate, ProgressSink};
use super::http::Credential;
use super::limits::Limits;
use super::load::Plugin;
use super::output::Output;
use super::state::State;
use super::workspace::Workspace;
use crate::policy::Grants;

/// Everything that one call is and may do.
pub struct Call {
    /// A tool of the plugin.
    pub tool: String,
    /// The JSON text of its input, already validated.
    pub input: String,
    /// What this tool holds for this call.
    pub grants: Grants,
    /// What it may use.
    pub limits: Limits,
    /// Where the files are.
    pub workspace: Arc<Workspace>,
    /// Who decides on effects.
    pub gate: Gate,
    /// Who hears of progress.
    pub progress: ProgressSink,
    /// What is added to requests.
    pub credentials: Arc<[Credential]>,
    /// Ends the call from outside.
    pub cancel: CancellationToken,
}

/// How a call went.
#[derive(Debug)]
pub struct CallReport {
    /// The answer, or why there is none.
    pub result: Result<Output, Failure>,
    /// Time in the guest and in what it called, without approvals and commands.
    pub active: Duration,
    /// The most memory it had, in bytes.
    pub memory: usize,
    /// What the guest wrote to its standard output and standard error.
    pub log: String,
}

impl CallReport {
    /// Of a call that was not let start.
    pub fn without_a_run(failure: Failure) -> Self {
        Self { result: Err(failure), active: Duration::ZERO, memory: 0, log: String::new() }
    }
}

/// A call that does not react to being stopped sits in a system call that does not return, such as opening a dead
/// network mount. Its thread is left behind, so that the request can go on.
const PATIENCE: Duration = Duration::from_millis(700);

impl Plugin {
    /// Runs one call on a thread of its own. It always comes back: with an answer, at its time limit, or within a
    /// second of being cancelled.
    pub async fn call(self: &Arc<Self>, sandbox: &Arc<Sandbox>, call: Call) -> CallReport {
        let clock = Arc::new(Clock::start(call.limits.time, call.cancel.clone()));
        let (plugin, sandbox, on_thread) = (Arc::clone(self), Arc::clone(sandbox), Arc::clone(&clock));
        let limits = call.limits.clone();
        let runtime = tokio::runtime::Handle::current();
        let mut running = tokio::task::spawn_blocking(move || {
            // Loading may compile, which is not this call's time.
            let ready = {
                let _loading = on_thread.pause();
                plugin.ready(&sandbox).map(drop)
            };
            match ready {
                Ok(()) => runtime.block_on(plugin.run(&sandbox, call, &on_thread)),
                Err(error) => report(&on_thread, Err(Failure::Host(error.to_string()))),
            }
        });
        let stuck = async {
            let stop = clock.stopped().await;
            tokio::time::sleep(PATIENCE).await;
            stop
        };
        tokio::select! {
            joined = &mut running => joined.unwrap_or_else(|error| {
                let what = if error.is_panic() { "it panicked during the call" } else { "the call was dropped" };
                report(&clock, Err(Failure::Host(what.into())))
            }),
            stop = stuck => report(&clock, Err(Failure::stopped(stop, &limits))),
        }
    }

    async fn run(&self, sandbox: &Sandbox, call: Call, clock: &Arc<Clock>) -> CallReport {
        let Call { tool, input, grants, limits, workspace, gate, progress, credentials, cancel: _ } = call;
        let ready = match self.ready(sandbox) {
            Ok(ready) => ready,
            Err(error) => return report(clock, Err(Failure::Host(error.to_string()))),
        };
        let state = match State::granted(&limits, Arc::clone(clock), &grants, &workspace, gate, progress, credentials) {
            Ok(state) => state,
            Err(error) => return report(clock, Err(Failure::Unavailable(format!("the workspace cannot be opened: {error:#}")))),
        };
        let mut store = sandbox.store(state, &limits);
        let answer: Result<wasmtime::Result<Result<wit::Output, wit::ToolError>>, Stop> = tokio::select! {
            answer = async {
                let instance = ready.instantiate_async(&mut store).await?;
                instance.cofferdam_plugin_tools().call_call_tool(&mut store, &tool, &input).await
            } => Ok(answer),
            stop = clock.stopped() => Err(stop),
        };
        let result = match answer {
            Ok(Ok(Ok(output))) => Output::check(output, &limits).map_err(Failure::BadAnswer),
            Ok(Ok(Err(error))) => Err(error.into()),
            Ok(Err(error)) => Err(Failure::from_wasmtime(&error, store.data(), &limits)),
            Err(stop) => Err(Failure::stopped(stop, &limits)),
        };
        let state = store.data();
        let log = [state.stdout.text(), state.stderr.text()].concat();
        CallReport { result, active: clock.counted(), memory: state.meter.peak_memory(), log }
    }
}

fn report(clock: &Clock, result: Result<Output, Failure>) -> CallReport {
    CallReport { result, active: clock.counted(), memory: 0, log: String::new() }
}
