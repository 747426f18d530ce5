//! Running the calls of one turn.
//!
//! Each call leaves here with one result: refused before it ran, answered by its tool, rejected by the user, or failed.
//! What this leaves unanswered (since the request was cancelled, or the user took over) is settled by closing the turn.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio_util::sync::CancellationToken;

use super::answer::{self, Keeping};
use super::approval::{Approvals, Verdicts, lock, rejected_text};
use super::catalog::{Catalog, Tool};
use super::confirmation::Confirmation;
use super::delegation::{self, SubAgents};
use super::denied::{self, CallRefusal};
use super::dispatcher_settings::DispatcherSettings;
use super::instruction_record;
use super::ledger::{Ended, Subject};
use super::lookup;
use super::memory::Memory;
use super::parallel::Slot;
use super::repetition::Repetition;
use super::schedule::{self, Planned, Step, Touches};
use super::settle::{self, Settling};
use super::summary;
use crate::agent::ActiveTime;
use crate::agent::events::{DeniedCall, Event, Observer, Remembered, Tier, View};
use crate::agent::ports::{Ran, ToolDefinition, Tools};
use crate::chance;
use crate::conversation::{Call, Content, OpenTurn, ResultStatus, ToolResult};
use crate::policy::{Cap, Effect, FileGrant, WorkspacePath};
use crate::sandbox::{self, CallReport, Failure, History, Ruling, Sandbox, Workspace};

/// Runs calls in their enclosures.
pub struct Dispatcher {
    sandbox: Arc<Sandbox>,
    catalog: Arc<Catalog>,
    workspace: Arc<Workspace>,
    approvals: Arc<Approvals>,
    settings: DispatcherSettings,
    repetition: Mutex<Repetition>,
    settling: Settling,
    memory: Arc<Memory>,
    sub_agents: SubAgents,
}

/// A call that may run.
struct Ready<'a> {
    index: usize,
    call: Call,
    tool: &'a Tool,
    subject: Arc<Subject>,
    summary: String,
    input: String,
    paths: Vec<WorkspacePath>,
    touches: Touches,
}

/// What a call came to.
struct Done<'a> {
    ready: Ready<'a>,
    result: ToolResult,
    view: Option<View>,
    duration: Duration,
    remembered: Option<Remembered>,
    denied: Option<DeniedCall>,
    exit_code: Option<i32>,
    hand_back: bool,
}

impl Ready<'_> {
    fn planned(&self) -> Planned<'_> {
        let keeps = self.tool.grants.state.then_some(self.tool.declared.name.as_str());
        Planned { tier: self.tool.tier, touches: self.touches.clone(), keeps }
    }
}

impl Tools for Dispatcher {
    fn definitions(&self) -> &[ToolDefinition] {
        self.catalog.definitions()
    }

    fn time(&self) -> &ActiveTime {
        self.approvals.time()
    }

    fn run<'a>(&'a self, turn: &'a mut OpenTurn, observer: &'a dyn Observer, cancel: &'a CancellationToken) -> BoxFuture<'a, Ran> {
        Box::pin(self.run_calls(turn, observer, cancel))
    }
}

impl Dispatcher {
    /// A dispatcher for one session.
    pub fn new(
        sandbox: Arc<Sandbox>,
        catalog: Arc<Catalog>,
        workspace: Arc<Workspace>,
        approvals: Arc<Approvals>,
        settings: DispatcherSettings,
    ) -> Self {
        let (repetition, memory, sub_agents) = (Mutex::default(), Arc::default(), SubAgents::NoModel);
        Self { sandbox, catalog, workspace, approvals, settings, repetition, settling: Settling::default(), memory, sub_agents }
    }

    /// With a place where what was there before a change is kept, to be had back.
    #[must_use]
    pub fn keeping(self, history: Arc<History>) -> Self {
        Self { settling: Settling { history: Some(history) }, ..self }
    }

    /// With what earlier calls of the same session have left.
    #[must_use]
    pub fn with_memory(self, memory: Arc<Memory>) -> Self {
        Self { memory, ..self }
    }

    /// With somebody who works on tasks that tools hand over.
    #[must_use]
    pub fn with_sub_agents(self, sub_agents: SubAgents) -> Self {
        Self { sub_agents, ..self }
    }

    async fn run_calls(&self, turn: &mut OpenTurn, observer: &dyn Observer, cancel: &CancellationToken) -> Ran {
        let Some(ready) = self.prepare(turn, observer, cancel).await else { return Ran::Aborted };
        let mut ready: Vec<Option<Ready<'_>>> = ready.into_iter().map(Some).collect();
        let planned: Vec<Planned<'_>> = ready.iter().flatten().map(Ready::planned).collect();
        for step in schedule::steps(&planned, self.settings.reorder) {
            if cancel.is_cancelled() {
                return Ran::Aborted;
            }
            let calls = match step {
                Step::Together(calls) => calls,
                Step::Alone(call) => vec![call],
            };
            let calls = calls.into_iter().filter_map(|i| ready.get_mut(i)?.take()).collect();
            if self.run_together(calls, turn, observer, cancel).await {
                return Ran::HandedBack;
            }
        }
        if cancel.is_cancelled() { Ran::Aborted } else { Ran::Finished }
    }

    /// Refuses what cannot run, each with its own result, and returns the rest; `None` if it was cancelled meanwhile.
    async fn prepare(&self, turn: &mut OpenTurn, observer: &dyn Observer, cancel: &CancellationToken) -> Option<Vec<Ready<'_>>> {
        let checked: Vec<_> = turn.calls().enumerate().map(|(index, (call, _))| (index, self.check(index, call.clone()))).collect();
        let paths = |ready: &Ready<'_>| (ready.paths.clone(), ready.tool.grants.files);
        let paths = checked.iter().map(|(_, checked)| checked.as_ref().map_or((Vec::new(), FileGrant::None), paths)).collect();
        let refusals = lookup::refusals(&self.workspace, paths, cancel).await?;
        let mut ready = Vec::with_capacity(checked.len());
        for ((index, checked), refusal) in checked.into_iter().zip(refusals) {
            match (checked, refusal) {
                (Ok(call), None) => ready.push(call),
                (Ok(Ready { call, .. }), Some(refusal)) => self.refuse(index, &call, refusal.into(), turn, observer),
                (Err((call, refusal)), _) => self.refuse(index, &call, refusal, turn, observer),
            }
        }
        Some(ready)
    }

    fn refuse(&self, index: usize, call: &Call, refusal: CallRefusal, turn: &mut OpenTurn, observer: &dyn Observer) {
        let problem = summary::of_refusal(refusal.problem);
        self.approvals.refused(call, &problem);
        let mut result = ToolResult::error(problem);
        result.content.extend(self.remark(call, &result));
        let schema = self.catalog.find(call.name.trim()).map(|tool| &tool.declared.input_schema);
        let summary = summary::of(schema.unwrap_or(&serde_json::Value::Null), &call.arguments);
        observer.observe(&Event::CallFinished {
            call,
            tier: None,
            summary: &summary,
            result: &result,
            view: None,
            duration: Duration::ZERO,
            remembered: None,
            denied: refusal.denied.as_deref(),
            exit_code: None,
        });
        turn.answer(index, result);
    }

    fn remark(&self, call: &Call, result: &ToolResult) -> Option<Content> {
        let remark = || lock(&self.repetition).remark(call.name.trim(), &call.arguments, result);
        self.settings.repetition.then(remark).flatten().map(Content::Text)
    }

    fn check(&self, index: usize, call: Call) -> Result<Ready<'_>, (Call, CallRefusal)> {
        let Some(tool) = self.catalog.find(call.name.trim()) else {
            let problem = self.catalog.unknown(call.name.trim());
            return Err((call, problem.into()));
        };
        if let Some(denial) = &tool.forbidden {
            return Err((call, denial.clone().into()));
        }
        let checked = match tool.arguments.check(&call.arguments, &self.workspace) {
            Ok(checked) => checked,
            Err(problem) => return Err((call, problem.into())),
        };
        let touches = Touches::of(&tool.grants, &checked.paths);
        let summary = summary::of(&tool.declared.input_schema, &call.arguments);
        let subject = Arc::new(Subject::of(&call, tool));
        Ok(Ready { index, tool, subject, summary, input: checked.value.to_string(), paths: checked.paths, touches, call })
    }

    /// Runs calls side by side, in turn order as slots get free. Says whether the request goes back to the user.
    async fn run_together<'a>(
        &'a self,
        calls: Vec<Ready<'a>>,
        turn: &mut OpenTurn,
        observer: &'a dyn Observer,
        cancel: &'a CancellationToken,
    ) -> bool {
        let mut waiting = calls.into_iter();
        let mut running = FuturesUnordered::new();
        let mut hand_back = false;
        loop {
            let is_more = waiting.len() > 0 && running.len() < self.settings.parallel.limit() && !hand_back && !cancel.is_cancelled();
            let mut done = tokio::select! {
                biased;
                slot = self.settings.parallel.take(), if is_more => {
                    let Some(ready) = waiting.next() else { continue };
                    turn.start(ready.index);
                    observer.observe(&Event::CallStarted { call: &ready.call, tier: ready.tool.tier, summary: &ready.summary });
                    running.push(self.run_one(ready, slot, observer, cancel));
                    continue;
                }
                Some(done) = running.next() => done,
                () = cancel.cancelled(), if is_more => continue,
                else => return hand_back,
            };
            let remark = self.remark(&done.ready.call, &done.result);
            done.result.content.extend(remark);
            let finished = Event::CallFinished {
                call: &done.ready.call,
                tier: Some(done.ready.tool.tier),
                summary: &done.ready.summary,
                result: &done.result,
                view: done.view.as_ref(),
                duration: done.duration,
                remembered: done.remembered.as_ref(),
                denied: done.denied.as_ref(),
                exit_code: done.exit_code,
            };
            observer.observe(&finished);
            turn.answer(done.ready.index, done.result);
            hand_back |= done.hand_back;
        }
    }

    async fn run_one<'a>(&'a self, ready: Ready<'a>, slot: Slot, observer: &'a dyn Observer, cancel: &'a CancellationToken) -> Done<'a> {
        let verdicts = Arc::new(Mutex::new(Verdicts::default()));
        let started = Instant::now();
        let mut report = match self.admit(&ready, &verdicts, cancel).await {
            Ok(()) => self.attempt(&ready, &verdicts, observer, (&slot, cancel)).await,
            Err(failure) => CallReport::without_a_run(failure),
        };
        let subject = (ready.tool, ready.subject.as_ref());
        if report.staged.is_some()
            && let Some(listed) = self.workspace.look_for_new_links().await
        {
            self.approvals.learn_links(&listed);
        }
        let changed = self.settling.settle(&mut report, subject, &self.memory, &self.approvals, (cancel, &verdicts)).await;
        if changed.as_ref().is_some_and(|changed| !changed.changes.only_write()) {
            self.workspace.links_may_change();
        }
        let by = (ready.tool.plugin.digest(), ready.tool.declared.name.as_str());
        let remembered = self.memory.remember_call(by, &report, changed.as_ref().map(|changed| changed.made.as_slice()));
        let changes = (changed.as_ref().map(|changed| &changed.changes), report.commands.as_slice());
        instruction_record::note(self.settings.instructions.as_ref(), by.1, changes, self.catalog.policy(), observer);
        let CallReport { result: report, active, memory, log, commands, touched, contacts, denials, staged: _ } = report;
        let (wall, verdicts) = (started.elapsed(), std::mem::take(&mut *lock(&verdicts)));
        let duration = wall.saturating_sub(verdicts.waited);
        let mut ended = Ended {
            status: ResultStatus::Ok,
            failure: report.as_ref().err().map(Failure::kind),
            more_denials: verdicts.more_denials(),
            active,
            waited: verdicts.waited,
            wall,
            input: ready.input.len(),
            output: report.as_ref().map_or(0, sandbox::Output::size),
            memory,
            log: log.len(),
            commands,
            touched,
            contacts,
            decisions: verdicts.records,
        };
        let denied = denied::of_call(&report, verdicts.rejected.is_some(), verdicts.last_denial.or_else(|| denials.last().cloned()));
        let (result, view, hand_back) = match verdicts.rejected {
            // Whatever the tool makes of a no, the model hears it from the host.
            Some(rejection) => {
                let text = rejected_text(&ready.tool.declared.name, &rejection, &verdicts.permitted);
                let enough = self.approvals.rejections_in_a_row() >= self.settings.rejections;
                (ToolResult::with(ResultStatus::Rejected, text), None, rejection.guidance.is_none() || enough)
            }
            // What a tool makes of its being stopped says nothing of what it had done by then, such as half a command.
            None if matches!(report, Err(Failure::Cancelled)) || report.is_err() && cancel.is_cancelled() => {
                (ToolResult::interrupted(), None, false)
            }
            None => {
                let cap = ready.tool.caps.get(Cap::ShownBytes).and_then(|bytes| usize::try_from(bytes).ok());
                let keeping = Keeping { cap: cap.unwrap_or(self.settings.output_cap), outputs: self.settings.outputs.as_ref() };
                let (mut result, view) = answer::to_result(report, keeping, &ready.tool.declared.name);
                settle::remark(&mut result, &denials, &ended);
                // What has really changed, whatever the tool says.
                (result, changed.map(|changed| View::Diff(changed.changes.diff())).or(view), false)
            }
        };
        ended.status = result.status;
        self.approvals.ended(&ready.subject, &ended);
        Done { ready, result, view, duration, remembered, denied, exit_code: denied::exit_code(&ended.commands), hand_back }
    }

    /// Asks for what has to be settled before a call starts; its effects are decided on when they are known.
    async fn admit(&self, ready: &Ready<'_>, verdicts: &Mutex<Verdicts>, cancel: &CancellationToken) -> Result<(), Failure> {
        (!cancel.is_cancelled()).then_some(()).ok_or(Failure::Cancelled)?;
        self.approvals.ready().map_err(settle::denied)?;
        if ready.tool.confirmation() != Confirmation::BeforeStart {
            return Ok(());
        }
        match self.approvals.rule(&ready.subject, Effect::Confirmed, cancel, verdicts).await {
            Ruling::Permitted(_for_this_start) => Ok(()),
            Ruling::Denied(denial) => Err(settle::denied(denial)),
        }
    }

    /// Runs a call, and again if the machine lacked something for a moment.
    async fn attempt(
        &self,
        ready: &Ready<'_>,
        verdicts: &Arc<Mutex<Verdicts>>,
        observer: &dyn Observer,
        (slot, cancel): (&Slot, &CancellationToken),
    ) -> CallReport {
        let mut pause = Duration::from_millis(500);
        let mut attempts_left = if ready.tool.tier == Tier::Write { 0 } else { 2 };
        loop {
            let report = self.enclosed(ready, verdicts, observer, (slot, cancel)).await;
            if attempts_left == 0 || !matches!(report.result, Err(Failure::Unavailable(_))) {
                return report;
            }
            attempts_left -= 1;
            tokio::select! {
                () = tokio::time::sleep(chance::jittered(pause)) => pause = (pause * 2).min(Duration::from_secs(5)),
                () = cancel.cancelled() => return report,
            }
        }
    }

    async fn enclosed(
        &self,
        ready: &Ready<'_>,
        verdicts: &Arc<Mutex<Verdicts>>,
        observer: &dyn Observer,
        (slot, cancel): (&Slot, &CancellationToken),
    ) -> CallReport {
        let (lines, mut progress) = tokio::sync::mpsc::channel::<String>(8);
        let (delegation, tasks) = delegation::tasks();
        let call = sandbox::Call {
            tool: ready.tool.declared.name.clone(),
            input: ready.input.clone(),
            grants: ready.tool.grants.clone(),
            limits: self.settings.limits.clone().with(&ready.tool.caps),
            workspace: Arc::clone(&self.workspace),
            commands: Arc::clone(&self.settings.commands),
            gate: self.approvals.gate(&ready.subject, verdicts, cancel),
            plans: self.approvals.plan_gate(&ready.subject, verdicts, cancel),
            notebook: self.memory.notebook(ready.tool.plugin.digest(), &ready.tool.declared.name),
            delegation,
            // A line that finds the channel full is dropped: progress is for now or never.
            progress: Arc::new(move |line| drop(lines.try_send(line.to_owned()))),
            credentials: Arc::clone(&self.settings.credentials),
            cancel: cancel.clone(),
        };
        let called = ready.tool.plugin.call(&self.sandbox, call);
        let running = tasks.work_until(called, &self.sub_agents, &ready.call, observer, (slot, cancel));
        tokio::pin!(running);
        loop {
            tokio::select! {
                report = &mut running => return report,
                Some(message) = progress.recv() => observer.observe(&Event::CallProgress { call: &ready.call, message: &message }),
            }
        }
    }
}
