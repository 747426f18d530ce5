//! One call: a world with what was granted, an instance in it, an answer, and nothing left.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::bindings::exports::cofferdam::plugin::tools as wit;
use super::clock::{Clock, Stop};
use super::commands::RanCommand;
use super::confine::Commands;
use super::engine::Sandbox;
use super::failure::Failure;
use super::files::{Touched, Used};
use super::gate::{Delegation, Gate, PlanGate, ProgressSink};
use super::http::{Contacts, Credential};
use super::limits::Limits;
use super::load::Plugin;
use super::notebook::Notebook;
use super::output::Output;
use super::stage::Staged;
use super::state::State;
use super::workspace::Workspace;
use crate::policy::{Denial, Grants};

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
    /// Who shows its plans to the user.
    pub plans: PlanGate,
    /// How commands run.
    pub commands: Arc<Commands>,
    /// Who hears of progress.
    pub progress: ProgressSink,
    /// What the tool keeps between its calls.
    pub notebook: Notebook,
    /// Who works on tasks that it hands over.
    pub delegation: Delegation,
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
    /// The commands that it ran, in order.
    pub commands: Vec<RanCommand>,
    /// Which files it has touched.
    pub touched: Touched,
    /// Whom it has sent requests to.
    pub contacts: Contacts,
    /// What it was refused although it was granted. WASI has no words for that, so that the tool cannot tell.
    pub denials: Vec<Denial>,
    /// What it would change, if it ended well and wrote anything. Nothing has changed yet.
    pub staged: Option<Staged>,
}

impl CallReport {
    /// Of a call that was not let start.
    pub fn without_a_run(failure: Failure) -> Self {
        Self {
            result: Err(failure),
            active: Duration::ZERO,
            memory: 0,
            log: String::new(),
            commands: Vec::new(),
            touched: Touched::default(),
            contacts: Contacts::default(),
            denials: Vec::new(),
            staged: None,
        }
    }
}

/// A call that does not react to being stopped sits in a system call that does not return, such as opening a dead
/// network mount. Its thread is left behind, so that the request can go on.
const PATIENCE: Duration = Duration::from_millis(700);

/// How long what a cancelled call waits for may take to end: longer than the grace of a command, and within the patience.
const LAST_MOMENTS: Duration = Duration::from_millis(500);

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
                Err(error) => report(&on_thread, Failure::Host(error.to_string())),
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
                report(&clock, Failure::Host(what.into()))
            }),
            stop = stuck => report(&clock, Failure::stopped(stop, &limits)),
        }
    }

    async fn run(&self, sandbox: &Sandbox, call: Call, clock: &Arc<Clock>) -> CallReport {
        let ready = match self.ready(sandbox) {
            Ok(ready) => ready,
            Err(error) => return report(clock, Failure::Host(error.to_string())),
        };
        let limits = call.limits.clone();
        let state = State::granted(&call, Arc::clone(clock));
        let Call { tool, input, .. } = call;
        let mut store = sandbox.store(state, &limits);
        let mut answering = Box::pin(async {
            let instance = ready.instantiate_async(&mut store).await?;
            instance.cofferdam_plugin_tools().call_call_tool(&mut store, &tool, &input).await
        });
        let answer: Result<wasmtime::Result<Result<wit::Output, wit::ToolError>>, Stop> = tokio::select! {
            answer = &mut answering => Ok(answer),
            stop = clock.stopped() => {
                // What it waits for ends by itself then: a command has TERM before KILL. Nothing of the answer counts.
                if stop == Stop::Cancelled {
                    drop(tokio::time::timeout(LAST_MOMENTS, &mut answering).await);
                }
                Err(stop)
            }
        };
        drop(answering);
        let mut result = match answer {
            Ok(Ok(Ok(output))) => Output::check(output, &limits).map_err(Failure::BadAnswer),
            Ok(Ok(Err(error))) => Err(error.into()),
            Ok(Err(error)) => Err(Failure::from_wasmtime(&error, store.data(), &limits)),
            Err(stop) => Err(Failure::stopped(stop, &limits)),
        };
        // With the store goes everything that could still write.
        let mut state = store.into_data();
        let Used { view, denials, touched } = std::mem::take(&mut state.files).over();
        let finished = view.filter(|_| result.is_ok()).map(|view| view.finish(&|| clock.stop().is_some()));
        let staged = finished.transpose().unwrap_or_else(|error| {
            result = Err(match clock.stop() {
                Some(stop) => Failure::stopped(stop, &limits),
                None => Failure::LimitExceeded(error.to_string()),
            });
            None
        });
        let contacts = state.http.contacts();
        let log = [state.stdout.text(), state.stderr.text()].concat();
        let commands = state.commands.map(|lent| lent.ran).unwrap_or_default();
        CallReport {
            result,
            active: clock.counted(),
            memory: state.meter.peak_memory(),
            log,
            commands,
            touched,
            contacts,
            denials,
            staged: staged.flatten(),
        }
    }
}

fn report(clock: &Clock, failure: Failure) -> CallReport {
    CallReport { active: clock.counted(), ..CallReport::without_a_run(failure) }
}
