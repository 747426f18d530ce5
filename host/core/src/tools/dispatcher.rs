//! Runs the tool calls of one turn.
//!
//! Each call gets one result: refused before it ran, returned by its tool, rejected by the user, or
//! failed. Calls without a result, because the request was cancelled or the user took over, are
//! settled when the turn is closed.

mod sandbox_call;
mod scheduled;
mod source_call;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, info, info_span};

use super::approval::{CallDecisions, SessionApprovals, lock, rejection_text};
use super::audit_sink::{CallIdentity, FinishedCallRecord};
use super::catalog::{CatalogTool, ToolCatalog};
use super::delegation::SubAgentRunner;
use super::dispatcher_settings::DispatcherSettings;
use super::instruction_record;
use super::output::{self, OutputRetention};
use super::parallel::ParallelCallSlot;
use super::path_checks;
use super::refusal::{self, CallRefusal};
use super::repetition::RepetitionTracker;
use super::schedule::{self, PlannedCall, ScheduleStep, TouchedFiles};
use super::session_state::SessionState;
use super::settler::{self, ChangeSettler};
use super::summary;
use serde_json::Value;

use crate::agent::ActiveTime;
use crate::agent::events::{AgentEvent, DeniedCallSummary, Observer, ToolStateDelta, ToolView};
use crate::agent::ports::{RunOutcome, ToolDefinition, ToolRunner};
use crate::conversation::{OpenTurn, ResultContent, ResultStatus, ToolCall, ToolResult};
use crate::policy::{CapName, FileGrant, WorkspacePath};
use crate::sandbox::{self, CallFailure, CallReport, UndoHistory, WasmSandbox, Workspace};

/// Runs the tool calls of a session in their sandboxes.
pub struct Dispatcher {
    sandbox: Arc<WasmSandbox>,
    catalog: Arc<ToolCatalog>,
    workspace: Arc<Workspace>,
    approvals: Arc<SessionApprovals>,
    settings: DispatcherSettings,
    repetition: Mutex<RepetitionTracker>,
    settler: ChangeSettler,
    session_state: Arc<SessionState>,
    sub_agents: SubAgentRunner,
}

/// A call that passed all checks.
struct ReadyCall<'a> {
    index: usize,
    call: ToolCall,
    tool: &'a CatalogTool,
    identity: Arc<CallIdentity>,
    summary: String,
    input: String,
    paths: Vec<WorkspacePath>,
    touched_files: TouchedFiles,
}

/// The outcome of one call.
struct CallResult<'a> {
    call: ReadyCall<'a>,
    result: ToolResult,
    view: Option<ToolView>,
    structured: Option<Value>,
    duration: Duration,
    state_delta: Option<ToolStateDelta>,
    denied_call: Option<DeniedCallSummary>,
    exit_code: Option<i32>,
    returns_to_user: bool,
}

impl ReadyCall<'_> {
    fn to_planned(&self) -> PlannedCall<'_> {
        let stateful_tool = self.tool.grants.state.then_some(self.tool.declaration.name.as_str());
        PlannedCall {
            tier: self.tool.tier,
            touched_files: self.touched_files.clone(),
            stateful_tool,
        }
    }
}

impl ToolRunner for Dispatcher {
    fn definitions(&self) -> &[ToolDefinition] {
        self.catalog.definitions()
    }

    fn active_time(&self) -> &ActiveTime {
        self.approvals.active_time()
    }

    fn run<'a>(
        &'a self,
        turn: &'a mut OpenTurn,
        observer: &'a dyn Observer,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, RunOutcome> {
        Box::pin(self.run_calls(turn, observer, cancel))
    }
}

impl Dispatcher {
    /// Creates a dispatcher for one session, without an undo history and without sub-agents.
    pub fn new(
        sandbox: Arc<WasmSandbox>,
        catalog: Arc<ToolCatalog>,
        workspace: Arc<Workspace>,
        approvals: Arc<SessionApprovals>,
        settings: DispatcherSettings,
    ) -> Self {
        let (repetition, session_state, sub_agents) =
            (Mutex::default(), Arc::default(), SubAgentRunner::NoModel);
        Self {
            sandbox,
            catalog,
            workspace,
            approvals,
            settings,
            repetition,
            settler: ChangeSettler::default(),
            session_state,
            sub_agents,
        }
    }

    /// Sets the history that backs up files before a change, for undo.
    #[must_use]
    pub fn with_history(self, history: Arc<UndoHistory>) -> Self {
        Self { settler: ChangeSettler { history: Some(history) }, ..self }
    }

    /// Sets the state that earlier calls of the same session left.
    #[must_use]
    pub fn with_session_state(self, memory: Arc<SessionState>) -> Self {
        Self { session_state: memory, ..self }
    }

    /// Sets the runner of the tasks that tools delegate.
    #[must_use]
    pub fn with_sub_agents(self, sub_agents: SubAgentRunner) -> Self {
        Self { sub_agents, ..self }
    }

    /// Adds no notice to a repeated call. For calls that no loop of this host makes.
    #[must_use]
    pub fn without_repetition_notices(mut self) -> Self {
        self.settings.detect_repetition = false;
        self
    }

    async fn run_calls(
        &self,
        turn: &mut OpenTurn,
        observer: &dyn Observer,
        cancel: &CancellationToken,
    ) -> RunOutcome {
        let Some(ready) = self.prepare(turn, observer, cancel).await else {
            return RunOutcome::Aborted;
        };
        let mut ready: Vec<Option<ReadyCall<'_>>> = ready.into_iter().map(Some).collect();
        let planned: Vec<PlannedCall<'_>> =
            ready.iter().flatten().map(ReadyCall::to_planned).collect();
        for step in schedule::plan_steps(&planned, self.settings.reorder) {
            if cancel.is_cancelled() {
                return RunOutcome::Aborted;
            }
            let calls = match step {
                ScheduleStep::Parallel(calls) => calls,
                ScheduleStep::Exclusive(call) => vec![call],
            };
            let calls = calls.into_iter().filter_map(|i| ready.get_mut(i)?.take()).collect();
            if self.run_parallel(calls, turn, observer, cancel).await {
                return RunOutcome::Rejected;
            }
        }
        if cancel.is_cancelled() { RunOutcome::Aborted } else { RunOutcome::Finished }
    }

    /// Checks all calls, answers those that cannot run, and returns the others. Returns `None` if
    /// the request was cancelled meanwhile.
    async fn prepare(
        &self,
        turn: &mut OpenTurn,
        observer: &dyn Observer,
        cancel: &CancellationToken,
    ) -> Option<Vec<ReadyCall<'_>>> {
        let checked: Vec<_> = turn
            .calls()
            .enumerate()
            .map(|(index, (call, _))| (index, self.check_call(index, call.clone())))
            .collect();
        let paths = |ready: &ReadyCall<'_>| (ready.paths.clone(), ready.tool.grants.files);
        let paths = checked
            .iter()
            .map(|(_, checked)| checked.as_ref().map_or((Vec::new(), FileGrant::None), paths))
            .collect();
        let refusals = path_checks::find_path_denials(&self.workspace, paths, cancel).await?;
        let mut ready = Vec::with_capacity(checked.len());
        for ((index, checked), refusal) in checked.into_iter().zip(refusals) {
            match (checked, refusal) {
                (Ok(call), None) => ready.push(call),
                (Ok(ReadyCall { call, .. }), Some(refusal)) => {
                    self.refuse_call(index, &call, refusal.into(), turn, observer)
                }
                (Err((call, refusal)), _) => {
                    self.refuse_call(index, &call, refusal, turn, observer)
                }
            }
        }
        Some(ready)
    }

    fn refuse_call(
        &self,
        index: usize,
        call: &ToolCall,
        refusal: CallRefusal,
        turn: &mut OpenTurn,
        observer: &dyn Observer,
    ) {
        let problem = summary::truncate_refusal(refusal.message);
        self.approvals.record_refusal(call, &problem);
        let mut result = ToolResult::error(problem);
        result.content.extend(self.repetition_notice(call, &result));
        let schema = self.catalog.find(call.name.trim()).map(|tool| &tool.declaration.input_schema);
        let summary = summary::summarize_arguments(
            schema.unwrap_or(&serde_json::Value::Null),
            &call.arguments,
        );
        observer.observe(&AgentEvent::CallFinished {
            call,
            tier: None,
            summary: &summary,
            result: &result,
            view: None,
            structured: None,
            duration: Duration::ZERO,
            state_delta: None,
            denied: refusal.denied_call.as_deref(),
            exit_code: None,
        });
        turn.answer(index, result);
    }

    fn repetition_notice(&self, call: &ToolCall, result: &ToolResult) -> Option<ResultContent> {
        let remark =
            || lock(&self.repetition).record_call(call.name.trim(), &call.arguments, result);
        self.settings.detect_repetition.then(remark).flatten().map(ResultContent::Text)
    }

    fn check_call(
        &self,
        index: usize,
        call: ToolCall,
    ) -> Result<ReadyCall<'_>, (ToolCall, CallRefusal)> {
        let Some(tool) = self.catalog.find(call.name.trim()) else {
            let problem = self.catalog.unknown_tool_error(call.name.trim());
            return Err((call, problem.into()));
        };
        if let Some(denial) = &tool.denial {
            return Err((call, denial.clone().into()));
        }
        let checked = match tool.arguments.check_text(&call.arguments, &self.workspace) {
            Ok(checked) => checked,
            Err(problem) => return Err((call, problem.into())),
        };
        let touches = scheduled::touched_files(tool, &checked.paths);
        let summary = summary::summarize_arguments(&tool.declaration.input_schema, &call.arguments);
        let subject = Arc::new(CallIdentity::new(&call, tool));
        Ok(ReadyCall {
            index,
            tool,
            identity: subject,
            summary,
            input: checked.value.to_string(),
            paths: checked.paths,
            touched_files: touches,
            call,
        })
    }

    /// Runs calls in parallel; they start in turn order as slots become free. Returns whether
    /// control goes back to the user.
    async fn run_parallel<'a>(
        &'a self,
        calls: Vec<ReadyCall<'a>>,
        turn: &mut OpenTurn,
        observer: &'a dyn Observer,
        cancel: &'a CancellationToken,
    ) -> bool {
        let mut waiting = calls.into_iter();
        let mut running = FuturesUnordered::new();
        let mut returns_to_user = false;
        loop {
            let is_more = waiting.len() > 0
                && running.len() < self.settings.call_slots.limit()
                && !returns_to_user
                && !cancel.is_cancelled();
            let mut done = tokio::select! {
                biased;
                slot = self.settings.call_slots.acquire(), if is_more => {
                    let Some(ready) = waiting.next() else { continue };
                    turn.start(ready.index);
                    observer.observe(&AgentEvent::CallStarted {
                        call: &ready.call,
                        tier: ready.tool.tier,
                        summary: &ready.summary,
                    });
                    // The ID of the call is text of the provider, and may be a secret.
                    let (tool, number) = (ready.tool.declaration.name.as_str(), ready.index + 1);
                    let span = info_span!("call", tool, number, tier = ready.tool.tier.name());
                    running.push(self.run_one(ready, slot, observer, cancel).instrument(span));
                    continue;
                }
                Some(done) = running.next() => done,
                () = cancel.cancelled(), if is_more => continue,
                else => return returns_to_user,
            };
            let notice = self.repetition_notice(&done.call.call, &done.result);
            done.result.content.extend(notice);
            let finished = AgentEvent::CallFinished {
                call: &done.call.call,
                tier: Some(done.call.tool.tier),
                summary: &done.call.summary,
                result: &done.result,
                view: done.view.as_ref(),
                structured: done.structured.as_ref(),
                duration: done.duration,
                state_delta: done.state_delta.as_ref(),
                denied: done.denied_call.as_ref(),
                exit_code: done.exit_code,
            };
            observer.observe(&finished);
            turn.answer(done.call.index, done.result);
            returns_to_user |= done.returns_to_user;
        }
    }

    async fn run_one<'a>(
        &'a self,
        ready: ReadyCall<'a>,
        slot: ParallelCallSlot,
        observer: &'a dyn Observer,
        cancel: &'a CancellationToken,
    ) -> CallResult<'a> {
        let verdicts = Arc::new(Mutex::new(CallDecisions::default()));
        let started = Instant::now();
        let mut report = match self.authorize_start(&ready, &verdicts, cancel).await {
            Ok(()) => self.run_with_retries(&ready, &verdicts, observer, (&slot, cancel)).await,
            Err(failure) => CallReport::not_started(failure),
        };
        let structured = ready.tool.structured.check(&mut report);
        let subject = (ready.tool, ready.identity.as_ref());
        if report.staged.is_some()
            && let Some(listed) = self.workspace.look_for_new_links().await
        {
            self.approvals.learn_links(&listed);
        }
        let changed = self
            .settler
            .settle(&mut report, subject, &self.session_state, &self.approvals, (cancel, &verdicts))
            .await;
        if changed.as_ref().is_some_and(|changed| !changed.changes.has_only_writes()) {
            self.workspace.links_may_change();
        }
        let by = (ready.tool.backend.digest(), ready.tool.declaration.name.as_str());
        let state_delta = self.session_state.record_call(
            by,
            &report,
            changed.as_ref().map(|changed| changed.applied.as_slice()),
        );
        let changes =
            (changed.as_ref().map(|changed| &changed.changes), report.commands.as_slice());
        instruction_record::record_changes(
            self.settings.instruction_record.as_ref(),
            by.1,
            changes,
            self.catalog.policy(),
            observer,
        );
        let CallReport {
            result: report,
            active_time: active,
            peak_memory: memory,
            log,
            commands,
            mut touched,
            contacts,
            denials,
            staged: _,
        } = report;
        let failure_kind = report.as_ref().err().map(CallFailure::kind);
        let has_discarded_writes =
            settler::discard_unmade_writes(&mut touched, changed.is_some(), failure_kind);
        let (wall, verdicts) = (started.elapsed(), std::mem::take(&mut *lock(&verdicts)));
        let duration = wall.saturating_sub(verdicts.waited);
        let mut ended = FinishedCallRecord {
            status: ResultStatus::Ok,
            failure_kind,
            unrecorded_denials: verdicts.unrecorded_denials(),
            active,
            waited: verdicts.waited,
            wall,
            input_bytes: ready.input.len(),
            output_bytes: report.as_ref().map_or(0, sandbox::CallOutput::size),
            memory_bytes: memory,
            log_bytes: log.len(),
            commands,
            touched,
            contacts,
            decision_records: verdicts.record_numbers,
        };
        let denied = refusal::denied_call(
            &report,
            verdicts.rejection.is_some(),
            verdicts.last_denial.or_else(|| denials.last().cloned()),
        );
        let (result, view, returns_to_user) = match verdicts.rejection {
            // The host reports a rejection to the model itself, whatever the tool returned.
            Some(rejection) => {
                let text =
                    rejection_text(&ready.tool.declaration.name, &rejection, &verdicts.permitted);
                let enough =
                    self.approvals.consecutive_rejections() >= self.settings.max_rejections;
                (
                    ToolResult::new(ResultStatus::Rejected, text),
                    None,
                    rejection.guidance.is_none() || enough,
                )
            }
            // The error of a stopped tool does not say what it had already done, such as half of a
            // command.
            None if matches!(report, Err(CallFailure::Cancelled))
                || report.is_err() && cancel.is_cancelled() =>
            {
                (ToolResult::interrupted(), None, false)
            }
            None => {
                let cap = ready
                    .tool
                    .caps
                    .get(CapName::ShownBytes)
                    .and_then(|bytes| usize::try_from(bytes).ok());
                let keeping = OutputRetention {
                    limit: cap.unwrap_or(self.settings.output_limit),
                    files: self.settings.output_files.as_ref(),
                };
                let (mut result, view) = output::to_result(report, keeping, &ready.tool.model_name);
                settler::add_host_notices(&mut result, &denials, has_discarded_writes);
                // The diff shows the real changes, whatever view the tool returned.
                (
                    result,
                    changed.map(|changed| ToolView::Diff(changed.changes.diff())).or(view),
                    false,
                )
            }
        };
        ended.status = result.status;
        info!(
            status = ?ended.status,
            failure = ended.failure_kind,
            wall_ms = millis(ended.wall),
            active_ms = millis(ended.active),
            waited_ms = millis(ended.waited),
            memory_bytes = ended.memory_bytes,
            output_bytes = ended.output_bytes,
            "call finished"
        );
        self.approvals.record_end(&ready.identity, &ended);
        CallResult {
            call: ready,
            // A call whose changes were not committed has no result.
            structured: structured.filter(|_| result.status == ResultStatus::Ok),
            result,
            view,
            duration,
            state_delta,
            denied_call: denied,
            exit_code: refusal::last_exit_code(&ended.commands),
            returns_to_user,
        }
    }
}

/// Returns a duration in whole milliseconds.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
