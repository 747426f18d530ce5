//! The functions by which the sandbox asks for decisions about a running call.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{CallDecisions, SessionApprovals, lock};
use crate::policy::{ApprovalMode, ChangeSet, ComponentDigest, Denial, DenialCode, Effect};
use crate::sandbox::{
    CommandChangeJudge, CommandSandbox, ConnectionDecision, ConnectionJudge, DenialRecorder, Gate,
    GateRuling, HostPermitSource, JobRecorder, ModeSource, PlanApprovalGate, ServerAccess,
    ServerAccessParts, ServerConnectionJudge, ServerPermitSource, UndoHistory, Workspace,
};
use crate::tools::audit_sink::{CallIdentity, DecisionRecord, RecordedOutcome};

impl SessionApprovals {
    /// Creates the gate that decides on the effects of a running call. It denies every effect once
    /// the call is cancelled.
    pub(in crate::tools) fn gate(
        self: &Arc<Self>,
        subject: &Arc<CallIdentity>,
        verdicts: &Arc<Mutex<CallDecisions>>,
        cancel: &CancellationToken,
    ) -> Gate {
        let (approvals, subject, verdicts, cancel) =
            (Arc::clone(self), Arc::clone(subject), Arc::clone(verdicts), cancel.clone());
        Arc::new(move |effect| {
            let (approvals, subject) = (Arc::clone(&approvals), Arc::clone(&subject));
            let (verdicts, cancel) = (Arc::clone(&verdicts), cancel.clone());
            Box::pin(async move {
                match cancel.is_cancelled() {
                    true => GateRuling::Denied(Denial::without_remedy(
                        DenialCode::Cancelled,
                        "the user cancelled the request.",
                    )),
                    false => approvals.authorize(&subject, effect, &cancel, &verdicts).await,
                }
            })
        })
    }

    /// Creates what a call of a tool of a source may do with the process of its server.
    pub(in crate::tools) fn server_access(
        self: &Arc<Self>,
        (subject, verdicts): (&Arc<CallIdentity>, &Arc<Mutex<CallDecisions>>),
        workspace: &Arc<Workspace>,
        commands: &Arc<CommandSandbox>,
        history: Option<&Arc<UndoHistory>>,
    ) -> ServerAccess {
        let (permitting, permitted) = (Arc::clone(self), Arc::clone(subject));
        let permit: ServerPermitSource = Arc::new(move |line, files| {
            lock(&permitting.authorizer).permit_server(permitted.tool_id(), line, files)
        });
        let (judging, judged) = (Arc::clone(self), Arc::clone(subject));
        let connections: ServerConnectionJudge = Arc::new(move |host, allowed| {
            lock(&judging.authorizer).judge_server_connection(judged.tool_id(), host, allowed)
        });
        let (permitting, permitted) = (Arc::clone(self), Arc::clone(subject));
        let http_hosts: HostPermitSource = Arc::new(move |host| {
            lock(&permitting.authorizer).permit_server_requests(permitted.tool_id(), host)
        });
        ServerAccess::new(ServerAccessParts {
            tool: subject.tool.clone(),
            workspace: Arc::clone(workspace),
            commands: Arc::clone(commands),
            permit,
            connections,
            http_hosts,
            change_judge: self.change_judge(subject),
            denial_recorder: self.denial_recorder(subject, verdicts),
            mode: self.mode_source(),
            history: history.cloned(),
            late_recorder: self.job_recorder(subject),
            records: Mutex::default(),
        })
    }

    /// Creates the access to the process of a server for somebody who only inspects it, without a
    /// call. Its changes are never committed.
    pub(crate) fn server_access_for_inspection(
        self: &Arc<Self>,
        (source, digest): (&str, &ComponentDigest),
        workspace: &Arc<Workspace>,
        commands: &Arc<CommandSandbox>,
    ) -> ServerAccess {
        let subject = Arc::new(CallIdentity::for_source(source, digest.clone()));
        let verdicts = Arc::new(Mutex::new(CallDecisions::default()));
        self.server_access((&subject, &verdicts), workspace, commands, None)
    }

    /// Creates the receiver of the records of background commands that a call starts.
    pub(in crate::tools) fn job_recorder(
        self: &Arc<Self>,
        subject: &Arc<CallIdentity>,
    ) -> JobRecorder {
        let (approvals, subject) = (Arc::clone(self), Arc::clone(subject));
        Arc::new(move |stage, ran| {
            if let Some(sink) = approvals.audit_sink.get() {
                sink.record_background_command(&subject, stage, ran);
            }
        })
    }

    /// Returns what reads the mode in force.
    pub(in crate::tools) fn mode_source(self: &Arc<Self>) -> ModeSource {
        let approvals = Arc::clone(self);
        Arc::new(move || approvals.mode())
    }

    /// Creates the judge of the changes that the commands of a call make.
    pub(in crate::tools) fn change_judge(
        self: &Arc<Self>,
        subject: &Arc<CallIdentity>,
    ) -> CommandChangeJudge {
        let (approvals, subject) = (Arc::clone(self), Arc::clone(subject));
        Arc::new(move |change| {
            lock(&approvals.authorizer).judge_command_change(subject.tool_id(), change)
        })
    }

    /// Creates the receiver of the denied changes of commands. They share the limit of recorded
    /// denials of their call.
    pub(in crate::tools) fn denial_recorder(
        self: &Arc<Self>,
        subject: &Arc<CallIdentity>,
        verdicts: &Arc<Mutex<CallDecisions>>,
    ) -> DenialRecorder {
        let (approvals, subject, verdicts) =
            (Arc::clone(self), Arc::clone(subject), Arc::clone(verdicts));
        Arc::new(move |changes, denial| {
            approvals.record_denied_changes((&subject, &verdicts), changes, denial);
        })
    }

    /// Records changes that are denied without a decision of the policy, and thus discarded.
    pub(in crate::tools) fn record_denied_changes(
        &self,
        (subject, verdicts): (&CallIdentity, &Mutex<CallDecisions>),
        changes: ChangeSet,
        denial: Denial,
    ) {
        let effect = Effect::Write { changes, confirm: false };
        let outcome = RecordedOutcome::Denied(denial);
        let decision = DecisionRecord { effect, outcome, waited: Duration::ZERO };
        // The changes are discarded in any case.
        let _ = self.record_decision(subject, &decision, verdicts);
    }

    /// Creates the judge of the hosts that the commands of a call connect to.
    pub(in crate::tools) fn connection_judge(
        self: &Arc<Self>,
        subject: &Arc<CallIdentity>,
    ) -> ConnectionJudge {
        let (approvals, subject) = (Arc::clone(self), Arc::clone(subject));
        Arc::new(move |host| {
            let authorizer = lock(&approvals.authorizer);
            ConnectionDecision {
                verdict: authorizer.judge_connection(subject.tool_id(), host),
                names_address: authorizer.names_address(host),
            }
        })
    }

    /// Creates the gate that shows the plan of a running call. It ends plan mode if the user
    /// accepts the plan.
    pub(in crate::tools) fn plan_gate(
        self: &Arc<Self>,
        subject: &Arc<CallIdentity>,
        verdicts: &Arc<Mutex<CallDecisions>>,
        cancel: &CancellationToken,
    ) -> PlanApprovalGate {
        let (approvals, gate) = (Arc::clone(self), self.gate(subject, verdicts, cancel));
        Arc::new(move |text| {
            // The authorizer replaces `then` with the mode that follows; the guest cannot choose
            // it.
            let (approvals, decision) = (
                Arc::clone(&approvals),
                gate(Effect::Plan { text, then: ApprovalMode::default() }),
            );
            Box::pin(async move {
                match decision.await {
                    GateRuling::Permitted(permit) => {
                        Ok(lock(&approvals.authorizer).end_plan_mode(permit))
                    }
                    GateRuling::Denied(denial) => Err(denial),
                }
            })
        })
    }
}
