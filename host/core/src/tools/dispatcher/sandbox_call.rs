//! Runs one call in its sandbox, with the approval before it and the retries after it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Dispatcher, ReadyCall};
use crate::agent::events::{AgentEvent, Observer};
use crate::policy::{Effect, Tier};
use crate::random;
use crate::sandbox::{self, CallFailure, CallReport, GateRuling, LoadedPlugin};
use crate::tools::ToolBackend;
use crate::tools::approval::CallDecisions;
use crate::tools::confirmation::ConfirmationRule;
use crate::tools::delegation;
use crate::tools::parallel::ParallelCallSlot;
use crate::tools::settler;

impl Dispatcher {
    /// Gets the approvals that are needed before a call starts. Its effects are decided on when
    /// they are known.
    pub(super) async fn authorize_start(
        &self,
        ready: &ReadyCall<'_>,
        verdicts: &Mutex<CallDecisions>,
        cancel: &CancellationToken,
    ) -> Result<(), CallFailure> {
        if cancel.is_cancelled() {
            return Err(CallFailure::Cancelled);
        }
        self.approvals.check_ready().map_err(settler::denied_failure)?;
        if ready.tool.confirmation_rule() != ConfirmationRule::BeforeStart {
            return Ok(());
        }
        match self.approvals.authorize(&ready.identity, Effect::Confirmed, cancel, verdicts).await {
            GateRuling::Permitted(_) => Ok(()),
            GateRuling::Denied(denial) => Err(settler::denied_failure(denial)),
        }
    }

    /// Runs a call, and retries it if the machine lacked a resource for a moment.
    pub(super) async fn run_with_retries(
        &self,
        ready: &ReadyCall<'_>,
        verdicts: &Arc<Mutex<CallDecisions>>,
        observer: &dyn Observer,
        (slot, cancel): (&ParallelCallSlot, &CancellationToken),
    ) -> CallReport {
        let mut pause = Duration::from_millis(500);
        let mut attempts_left = if ready.tool.tier == Tier::Write { 0 } else { 2 };
        loop {
            let report = match &ready.tool.backend {
                ToolBackend::Component(plugin) => {
                    let called = (ready, plugin);
                    self.run_in_sandbox(called, verdicts, observer, (slot, cancel)).await
                }
                ToolBackend::Source(backend) => {
                    self.run_source(ready, backend, verdicts, observer, cancel).await
                }
            };
            if attempts_left == 0 || !matches!(report.result, Err(CallFailure::Unavailable(_))) {
                return report;
            }
            attempts_left -= 1;
            tokio::select! {
                () = tokio::time::sleep(random::jitter(pause)) => {
                    pause = (pause * 2).min(Duration::from_secs(5));
                }
                () = cancel.cancelled() => return report,
            }
        }
    }

    async fn run_in_sandbox(
        &self,
        (ready, plugin): (&ReadyCall<'_>, &Arc<LoadedPlugin>),
        verdicts: &Arc<Mutex<CallDecisions>>,
        observer: &dyn Observer,
        (slot, cancel): (&ParallelCallSlot, &CancellationToken),
    ) -> CallReport {
        let (lines, mut progress) = tokio::sync::mpsc::channel::<String>(8);
        let (delegation, tasks) = delegation::task_channel();
        let call = sandbox::PluginCall {
            tool: ready.tool.declaration.name.clone(),
            input: ready.input.clone(),
            grants: ready.tool.grants.clone(),
            limits: self.settings.limits.clone().with_caps(&ready.tool.caps),
            workspace: Arc::clone(&self.workspace),
            commands: Arc::clone(&self.settings.commands),
            gate: self.approvals.gate(&ready.identity, verdicts, cancel),
            change_judge: self.approvals.change_judge(&ready.identity),
            denial_recorder: self.approvals.denial_recorder(&ready.identity, verdicts),
            mode: self.approvals.mode_source(),
            connection_judge: self.approvals.connection_judge(&ready.identity),
            history: self.settler.history.clone(),
            jobs: self.session_state.jobs().cloned(),
            job_recorder: self.approvals.job_recorder(&ready.identity),
            plan_gate: self.approvals.plan_gate(&ready.identity, verdicts, cancel),
            tool_state: self
                .session_state
                .tool_state(plugin.digest(), &ready.tool.declaration.name),
            delegation,
            // If the channel is full, the line is dropped: old progress is worthless.
            progress: Arc::new(move |line| {
                let _ = lines.try_send(line.to_owned());
            }),
            credentials: Arc::clone(&self.settings.credentials),
            cancellation: cancel.clone(),
        };
        let called = plugin.call(&self.sandbox, call);
        let running =
            tasks.run_until(called, &self.sub_agents, &ready.call, observer, (slot, cancel));
        tokio::pin!(running);
        loop {
            tokio::select! {
                report = &mut running => return report,
                Some(message) = progress.recv() => {
                    let event = AgentEvent::CallProgress { call: &ready.call, message: &message };
                    observer.observe(&event);
                }
            }
        }
    }
}
