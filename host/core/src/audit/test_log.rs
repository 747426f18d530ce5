//! Helpers that create logs for the tests of the audit log.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{AuditRunStart, AuditStore, AuditWriter, Principal};
use crate::conversation::ResultStatus;
use crate::policy::{
    AllowBasis, ApprovalMode, ChangeKind, ChangeSet, ContentDigest, Effect, FileChange, Grants,
    ReasonedVerdict, SandboxLevel, Tier, Verdict, VerdictReason, WorkspacePath,
};
use crate::sandbox::{CommandEnding, ComponentDigest, HostEnvironment, RanCommand};
use crate::tools::{
    CallIdentity, DecisionBasis, DecisionRecord, FinishedCallRecord, HttpContacts,
    PluginProvenance, RecordedOutcome, TouchedPaths,
};

/// The notices that the user got.
pub(super) type NoticeCollector = Arc<Mutex<Vec<String>>>;

pub(super) fn new_store(directory: &Path) -> AuditStore {
    AuditStore::new(directory.join("audit"))
}

pub(super) fn begin_log(store: &AuditStore, required: bool) -> (AuditWriter, NoticeCollector) {
    let collector = NoticeCollector::default();
    let notices = Arc::clone(&collector);
    let begin = AuditRunStart {
        principal: Principal::new(&HostEnvironment::default()),
        session: None,
        workspace: "/home/me/pro ject".into(),
        mode: ApprovalMode::Auto,
        policy: None,
        model: Some("script:script".into()),
        least_command_sandbox: SandboxLevel::Kernel,
        required,
    };
    let notify = move |text: &str| notices.lock().expect("not poisoned").push(text.to_owned());
    let redact = |text: &str| text.replace("sk-secret", "[key redacted]");
    (
        AuditWriter::begin(store, &begin, Box::new(redact), Box::new(notify)).expect("it begins"),
        collector,
    )
}

pub(super) fn call_identity() -> CallIdentity {
    CallIdentity {
        call: "c1".into(),
        tool: "bash".into(),
        arguments: "{}".into(),
        digest: ComponentDigest::compute(b"a component"),
        origin: PluginProvenance::BuiltIn("bash"),
        tier: Tier::Write,
        grants: Grants { commands: true, ..Grants::default() },
    }
}

pub(super) fn allowed_command(line: &str) -> DecisionRecord {
    let directory = WorkspacePath::parse("src", None).expect("a path");
    DecisionRecord {
        effect: Effect::Command { line: line.into(), directory, background: false },
        outcome: RecordedOutcome::Allowed(DecisionBasis::Policy(AllowBasis::Rules(
            ReasonedVerdict {
                verdict: Verdict::Allow,
                reason: VerdictReason::Mode(ApprovalMode::Auto),
            },
        ))),
        waited: Duration::ZERO,
    }
}

/// Returns a write effect for these paths.
pub(super) fn write_effect(paths: &[String]) -> Effect {
    let change = |path: &String| FileChange {
        path: WorkspacePath::parse(path, None).expect("a path"),
        kind: ChangeKind::Modify {
            before: 1,
            after: ContentDigest { size: 2, digest: "0".repeat(64) },
        },
        diff: Some("+the content".into()),
    };
    Effect::Write { changes: ChangeSet::new(paths.iter().map(change).collect()), confirm: false }
}

pub(super) fn call_end(decisions: &[u64]) -> FinishedCallRecord {
    FinishedCallRecord {
        status: ResultStatus::Ok,
        failure_kind: None,
        decision_records: decisions.to_vec(),
        unrecorded_denials: 0,
        commands: vec![RanCommand {
            line_sha256: ComponentDigest::compute(b"cargo test\nrm x"),
            level: SandboxLevel::Full,
            ending: Some(CommandEnding::Exited(3)),
            remarks: Vec::new(),
            connections: Vec::new(),
            changes: Vec::new(),
            more_changes: 0,
            changed_files: Vec::new(),
        }],
        active: Duration::from_millis(7),
        waited: Duration::ZERO,
        wall: Duration::from_millis(9),
        input_bytes: 2,
        output_bytes: 30,
        memory_bytes: 1 << 20,
        log_bytes: 0,
        touched: TouchedPaths::default(),
        contacts: HttpContacts::default(),
    }
}
