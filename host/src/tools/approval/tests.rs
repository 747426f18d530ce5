//! What is remembered, what is on record, and which decision counts.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::agent::events::Tier;
use crate::policy::{
    AllowBasis, Grants, PolicyLayer, PolicyLevel, ReasonedVerdict, Verdict, VerdictReason,
    WorkspacePath,
};
use crate::sandbox::ComponentDigest;
use crate::tools::PluginProvenance;

/// Says yes to everything of the kind, and counts how often it was asked.
#[derive(Default)]
struct ApproveForScope(AtomicU32);

impl Approver for ApproveForScope {
    fn ask_pages<'a>(&'a self, _: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(ApprovalAnswer::YesForScope))
    }
}

/// A ledger that has to be had, on a disk that is full or not.
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
    }
}

#[test]
fn r108_a_scope_that_could_not_be_put_on_record_is_not_remembered() {
    let (approver, disk) =
        (Arc::new(ApproveForScope::default()), Arc::new(DiskAuditSink::default()));
    let approvals =
        SessionApprovals::new(ApprovalMode::Ask, Some(Arc::clone(&approver) as Arc<dyn Approver>))
            .with_audit_sink(Arc::clone(&disk) as Arc<dyn AuditSink>);
    let subject = call_identity();
    let rule = || {
        let effect = command_effect("git status");
        let (cancel, verdicts) = (CancellationToken::new(), Mutex::default());
        futures_util::FutureExt::now_or_never(
            approvals.authorize(&subject, effect, &cancel, &verdicts),
        )
        .expect("nothing waits")
    };
    disk.is_full.store(true, Ordering::Relaxed);
    assert!(matches!(rule(), GateRuling::Denied(denial) if denial.code == DenialCode::NotRecorded));
    disk.is_full.store(false, Ordering::Relaxed);
    for asked in [2, 2] {
        assert!(matches!(rule(), GateRuling::Permitted(_)));
        assert_eq!(
            approver.0.load(Ordering::Relaxed),
            asked,
            "asked again once, and then remembered"
        );
    }
}

/// Keeps what was decided.
#[derive(Default)]
struct DecisionLog(Mutex<Vec<RecordedOutcome>>);

impl AuditSink for DecisionLog {
    fn check_ready(&self) -> Result<(), RecordFailure> {
        Ok(())
    }
    fn record_decision(
        &self,
        _: &CallIdentity,
        decided: &DecisionRecord,
    ) -> Result<Option<u64>, RecordFailure> {
        lock(&self.0).push(decided.outcome.clone());
        Ok(None)
    }
    fn record_change(&self, _: &AuthorityChange<'_>) -> Result<(), RecordFailure> {
        Ok(())
    }
    fn record_end(&self, _: &CallIdentity, _: &FinishedCallRecord) {}
    fn record_refusal(&self, _: &ToolCall, _: &str) {}
}

/// Answers when it is let, and counts how often it was asked.
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

/// Two commands of which one waits for the dialog of the other, and the mode that is chosen
/// meanwhile.
fn decisions_across_mode_change(to: ApprovalMode) -> (Vec<RecordedOutcome>, u32) {
    let (approver, notes) = (Arc::new(HeldApprover::default()), Arc::new(DecisionLog::default()));
    let approvals =
        SessionApprovals::new(ApprovalMode::Ask, Some(Arc::clone(&approver) as Arc<dyn Approver>))
            .with_audit_sink(Arc::clone(&notes) as Arc<dyn AuditSink>);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (subject, cancel, verdicts) =
            (call_identity(), CancellationToken::new(), Mutex::default());
        let rule =
            |line: &str| approvals.authorize(&subject, command_effect(line), &cancel, &verdicts);
        let meanwhile = async {
            while approver.ask_count.load(Ordering::Relaxed) == 0 {
                tokio::task::yield_now().await;
            }
            approvals.set_mode(to);
            approver.answer_allowed.notify_one();
        };
        drop(tokio::join!(rule("one"), rule("two"), meanwhile));
    });
    let decided = lock(&notes.0).clone();
    (decided, approver.ask_count.load(Ordering::Relaxed))
}

#[test]
fn r035_what_is_decided_while_a_dialog_is_waited_for_is_on_record_with_its_own_reason() {
    let by_mode = |mode| {
        RecordedOutcome::Allowed(DecisionBasis::Policy(AllowBasis::Rules(ReasonedVerdict {
            verdict: Verdict::Allow,
            reason: VerdictReason::Mode(mode),
        })))
    };
    // The first is the user's yes; the second needs none by now, and nobody has approved its like.
    assert_eq!(
        decisions_across_mode_change(ApprovalMode::Auto),
        (vec![RecordedOutcome::Allowed(DecisionBasis::UserOnce), by_mode(ApprovalMode::Auto)], 1)
    );
    // In plan mode neither happens, although the user said yes to the first.
    let (decided, asked) = decisions_across_mode_change(ApprovalMode::Plan);
    assert_eq!((decided.len(), asked), (2, 1));
    assert!(decided.iter().all(|ruled| matches!(ruled, RecordedOutcome::Denied(denial) if denial.code == DenialCode::Mode)), "{decided:?}");
}

#[test]
fn r035_a_rule_for_a_component_counts_whoever_has_loaded_it() {
    // The policy has never heard of the tool: what calls it brings its digest along.
    let digest = ComponentDigest::compute(b"bash");
    let text = format!("[tools.\"sha256:{digest}\"]\nuse = \"deny\"");
    let mut policy = Policy::default();
    policy.add_layer(PolicyLayer::parse(PolicyLevel::User, "p.toml", &text).expect("it parses"));
    let approvals = SessionApprovals::new(ApprovalMode::Auto, None).with_policy(Arc::new(policy));
    let rule = |subject: &CallIdentity| {
        let (cancel, verdicts) = (CancellationToken::new(), Mutex::default());
        futures_util::FutureExt::now_or_never(approvals.authorize(
            subject,
            command_effect("ls"),
            &cancel,
            &verdicts,
        ))
        .expect("nothing waits")
    };
    assert!(
        matches!(rule(&call_identity()), GateRuling::Denied(denial) if denial.code == DenialCode::Policy)
    );
    let other = CallIdentity { digest: ComponentDigest::compute(b"another"), ..call_identity() };
    assert!(matches!(rule(&other), GateRuling::Permitted(_)));
}
