//! Tests of remembered scopes, audit records, and the decision that counts.

use std::sync::atomic::AtomicBool;

use futures_util::future::BoxFuture;

use super::*;
use crate::policy::ApprovalQuestion;
use crate::policy::{
    AllowBasis, Grants, PolicyLayer, PolicyLevel, ReasonedVerdict, Tier, Verdict, VerdictReason,
    WorkspacePath,
};
use crate::sandbox::{ComponentDigest, JobStage, RanCommand};
use crate::tools::PluginProvenance;

/// An approver that approves the scope of every question, and counts the questions.
#[derive(Default)]
struct ApproveForScope(AtomicU32);

impl Approver for ApproveForScope {
    fn ask_pages<'a>(&'a self, _: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(ApprovalAnswer::YesForScope))
    }
}

/// An audit sink whose disk can be full. Its records are required.
#[derive(Default)]
struct DiskAuditSink {
    is_full: AtomicBool,
}

impl DiskAuditSink {
    fn check_space(&self) -> Result<(), RecordFailure> {
        if self.is_full.load(Ordering::Relaxed) {
            Err(RecordFailure("no room".into()))
        } else {
            Ok(())
        }
    }
}

impl AuditSink for DiskAuditSink {
    fn check_ready(&self) -> Result<(), RecordFailure> {
        self.check_space()
    }
    fn record_decision(
        &self,
        _: &CallIdentity,
        _: &DecisionRecord,
    ) -> Result<Option<u64>, RecordFailure> {
        self.check_space().map(|()| Some(1))
    }
    fn record_change(&self, _: &AuthorityChange<'_>) -> Result<(), RecordFailure> {
        self.check_space()
    }
    fn record_end(&self, _: &CallIdentity, _: &FinishedCallRecord) {}
    fn record_background_command(&self, _: &CallIdentity, _: JobStage, _: &RanCommand) {}
    fn record_refusal(&self, _: &ToolCall, _: &str) {}
}

fn call_identity() -> CallIdentity {
    CallIdentity {
        call: "c".into(),
        tool: "bash".into(),
        arguments: "{}".into(),
        digest: ComponentDigest::compute(b"bash"),
        origin: PluginProvenance::BuiltIn("bash"),
        tier: Tier::Write,
        grants: Grants::default(),
    }
}

fn command_effect(line: &str) -> Effect {
    Effect::Command {
        line: line.into(),
        directory: WorkspacePath::parse("", None).expect("a path"),
        background: false,
    }
}

#[test]
fn r108_a_scope_is_not_remembered_if_its_record_fails() {
    let (approver, disk) =
        (Arc::new(ApproveForScope::default()), Arc::new(DiskAuditSink::default()));
    let approvals =
        SessionApprovals::new(ApprovalMode::Ask, Some(Arc::clone(&approver) as Arc<dyn Approver>))
            .with_audit_sink(Arc::clone(&disk) as Arc<dyn AuditSink>);
    let subject = call_identity();
    let authorize = || {
        let effect = command_effect("git status");
        let (cancel, verdicts) = (CancellationToken::new(), Mutex::default());
        futures_util::FutureExt::now_or_never(
            approvals.authorize(&subject, effect, &cancel, &verdicts),
        )
        .expect("completes at once")
    };
    disk.is_full.store(true, Ordering::Relaxed);
    let GateRuling::Denied(denial) = authorize() else { panic!("it was allowed") };
    assert_eq!(denial.code, DenialCode::NotRecorded);
    disk.is_full.store(false, Ordering::Relaxed);
    for asked in [2, 2] {
        assert!(matches!(authorize(), GateRuling::Permitted(_)));
        assert_eq!(
            approver.0.load(Ordering::Relaxed),
            asked,
            "the user is asked once more, then the scope is remembered"
        );
    }
}

/// An audit sink that stores the outcome of each decision.
#[derive(Default)]
struct DecisionLog(Mutex<Vec<RecordedOutcome>>);

impl AuditSink for DecisionLog {
    fn check_ready(&self) -> Result<(), RecordFailure> {
        Ok(())
    }
    fn record_decision(
        &self,
        _: &CallIdentity,
        decision: &DecisionRecord,
    ) -> Result<Option<u64>, RecordFailure> {
        lock(&self.0).push(decision.outcome.clone());
        Ok(None)
    }
    fn record_change(&self, _: &AuthorityChange<'_>) -> Result<(), RecordFailure> {
        Ok(())
    }
    fn record_end(&self, _: &CallIdentity, _: &FinishedCallRecord) {}
    fn record_background_command(&self, _: &CallIdentity, _: JobStage, _: &RanCommand) {}
    fn record_refusal(&self, _: &ToolCall, _: &str) {}
}

/// An approver that answers once it is allowed to, and counts the questions.
#[derive(Default)]
struct HeldApprover {
    ask_count: AtomicU32,
    answer_allowed: tokio::sync::Notify,
}

impl Approver for HeldApprover {
    fn ask_pages<'a>(&'a self, _: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        self.ask_count.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {
            self.answer_allowed.notified().await;
            ApprovalAnswer::Yes
        })
    }
}

/// Runs two commands, of which one waits for the dialog of the other, and changes the mode
/// meanwhile. Returns the recorded outcomes and the number of dialogs.
fn decisions_across_mode_change(to: ApprovalMode) -> (Vec<RecordedOutcome>, u32) {
    let (approver, log) = (Arc::new(HeldApprover::default()), Arc::new(DecisionLog::default()));
    let approvals =
        SessionApprovals::new(ApprovalMode::Ask, Some(Arc::clone(&approver) as Arc<dyn Approver>))
            .with_audit_sink(Arc::clone(&log) as Arc<dyn AuditSink>);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (subject, cancel, verdicts) =
            (call_identity(), CancellationToken::new(), Mutex::default());
        let authorize =
            |line: &str| approvals.authorize(&subject, command_effect(line), &cancel, &verdicts);
        let meanwhile = async {
            while approver.ask_count.load(Ordering::Relaxed) == 0 {
                tokio::task::yield_now().await;
            }
            approvals.set_mode(to);
            approver.answer_allowed.notify_one();
        };
        let _ = tokio::join!(authorize("one"), authorize("two"), meanwhile);
    });
    let decisions = lock(&log.0).clone();
    (decisions, approver.ask_count.load(Ordering::Relaxed))
}

#[test]
fn r035_a_decision_that_waited_for_a_dialog_is_recorded_with_its_own_basis() {
    let by_mode = |mode| {
        RecordedOutcome::Allowed(DecisionBasis::Policy(AllowBasis::Rules(ReasonedVerdict {
            verdict: Verdict::Allow,
            reason: VerdictReason::Mode(mode),
        })))
    };
    // The user approves the first command. The second needs no approval in the new mode, and no
    // scope was approved.
    assert_eq!(
        decisions_across_mode_change(ApprovalMode::Auto),
        (vec![RecordedOutcome::Allowed(DecisionBasis::UserOnce), by_mode(ApprovalMode::Auto)], 1)
    );
    // In plan mode both are denied, although the user approved the first.
    let (decisions, asked) = decisions_across_mode_change(ApprovalMode::Plan);
    assert_eq!((decisions.len(), asked), (2, 1));
    let is_denied_by_mode = |outcome: &RecordedOutcome| match outcome {
        RecordedOutcome::Denied(denial) => denial.code == DenialCode::Mode,
        RecordedOutcome::Allowed(_) => false,
    };
    assert!(decisions.iter().all(is_denied_by_mode), "{decisions:?}");
}

#[test]
fn r035_a_rule_for_a_digest_applies_however_the_plugin_was_loaded() {
    // The policy does not know the tool by name. The call carries the digest of its component.
    let digest = ComponentDigest::compute(b"bash");
    let text = format!("[tools.\"sha256:{digest}\"]\nuse = \"deny\"");
    let mut policy = Policy::default();
    policy.add_layer(PolicyLayer::parse(PolicyLevel::User, "p.toml", &text).expect("valid policy"));
    let approvals = SessionApprovals::new(ApprovalMode::Auto, None).with_policy(Arc::new(policy));
    let authorize = |subject: &CallIdentity| {
        let (cancel, verdicts) = (CancellationToken::new(), Mutex::default());
        futures_util::FutureExt::now_or_never(approvals.authorize(
            subject,
            command_effect("ls"),
            &cancel,
            &verdicts,
        ))
        .expect("completes at once")
    };
    let GateRuling::Denied(denial) = authorize(&call_identity()) else {
        panic!("the rule does not apply");
    };
    assert_eq!(denial.code, DenialCode::Policy);
    let other = CallIdentity { digest: ComponentDigest::compute(b"another"), ..call_identity() };
    assert!(matches!(authorize(&other), GateRuling::Permitted(_)));
}
