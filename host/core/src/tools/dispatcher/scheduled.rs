//! Runs calls that arrive at any time, in the order of a scheduler.

use tokio_util::sync::CancellationToken;

use super::{Dispatcher, ReadyCall};
use crate::agent::events::Observer;
use crate::conversation::OpenTurn;
use crate::policy::WorkspacePath;
use crate::tools::call_queue::CallNeeds;
use crate::tools::call_scheduler::SchedulerClient;
use crate::tools::schedule::{PlannedCall, TouchedFiles};
use crate::tools::{CatalogTool, ToolBackend};

/// Returns the files that a call may touch. A server can touch others than those that its schema
/// marks.
pub(super) fn touched_files(tool: &CatalogTool, paths: &[WorkspacePath]) -> TouchedFiles {
    match &tool.backend {
        ToolBackend::Component(_) => TouchedFiles::from_grants(&tool.grants, paths),
        ToolBackend::Source(_) => TouchedFiles::from_grants(&tool.grants, &[]),
    }
}

impl ReadyCall<'_> {
    fn needs(&self) -> CallNeeds {
        let PlannedCall { tier, touched_files, stateful_tool } = self.to_planned();
        CallNeeds { tier, touched_files, stateful_tool: stateful_tool.map(str::to_owned) }
    }
}

impl Dispatcher {
    /// Runs the calls of a turn, each as soon as the scheduler lets it run. A call that cannot wait
    /// gets an error as its result.
    pub(crate) async fn run_scheduled(
        &self,
        turn: &mut OpenTurn,
        queue: &SchedulerClient,
        observer: &dyn Observer,
        cancel: &CancellationToken,
    ) {
        let Some(ready) = self.prepare(turn, observer, cancel).await else { return };
        for call in ready {
            let place = tokio::select! {
                biased;
                () = cancel.cancelled() => return,
                place = queue.wait_turn(call.needs(), call.input.len()) => place,
            };
            match place {
                Ok(place) => {
                    self.run_parallel(vec![call], turn, observer, cancel).await;
                    drop(place);
                }
                Err(overflow) => {
                    let text = format!("the call did not run: {overflow}. Try again later.");
                    self.refuse_call(call.index, &call.call, text.into(), turn, observer);
                }
            }
        }
    }
}
