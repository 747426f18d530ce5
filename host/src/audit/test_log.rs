//! Logs for the tests of this room.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Audit, Begin, Store};
use crate::agent::events::Tier;
use crate::conversation::ResultStatus;
use crate::policy::{Act, Basis, Because, Change, Changes, Content, Effect, Finding, Grants, Mode, SandboxLevel, Verdict, WorkspacePath};
use crate::sandbox::{CommandEnding, Digest, RanCommand};
use crate::tools::{Contacts, Decided, Ended, Ground, Origin, Ruled, Subject, Touched};

/// What the user was told.
pub(super) type Told = Arc<Mutex<Vec<String>>>;

pub(super) fn store(folder: &Path) -> Store {
    Store::new(folder.join("audit"))
}

pub(super) fn begin(store: &Store, required: bool) -> (Audit, Told) {
    let told = Told::default();
    let notices = Arc::clone(&told);
    let begin = Begin {
        session: None,
        workspace: "/home/me/pro ject".into(),
        mode: Mode::Auto,
        policy: None,
        model: Some("script:script".into()),
        least_command_sandbox: SandboxLevel::Kernel,
        required,
    };
    let notify = move |text: &str| notices.lock().expect("not poisoned").push(text.to_owned());
    let redact = |text: &str| text.replace("sk-secret", "[key redacted]");
    (Audit::begin(store, &begin, Box::new(redact), Box::new(notify)).expect("it begins"), told)
}

pub(super) fn subject() -> Subject {
    Subject {
        call: "c1".into(),
        tool: "bash".into(),
        arguments: "{}".into(),
        digest: Digest::of(b"a component"),
        origin: Origin::BuiltIn("bash"),
        tier: Tier::Write,
        grants: Grants { commands: true, ..Grants::default() },
    }
}

pub(super) fn allowed(line: &str) -> Decided {
    let directory = WorkspacePath::parse("src", None).expect("a path");
    Decided {
        effect: Effect::Command { line: line.into(), directory },
        ruled: Ruled::Allowed(Ground::Standing(Basis::Rules(Finding { verdict: Verdict::Allow, because: Because::Mode(Mode::Auto) }))),
        waited: Duration::ZERO,
    }
}

/// A write to these paths.
pub(super) fn write(paths: &[String]) -> Effect {
    let change = |path: &String| Change {
        path: WorkspacePath::parse(path, None).expect("a path"),
        act: Act::Modify { before: 1, after: Content { size: 2, digest: "0".repeat(64) } },
        diff: Some("+the content".into()),
    };
    Effect::Write { changes: Changes::new(paths.iter().map(change).collect()), confirm: false }
}

pub(super) fn ended(decisions: &[u64]) -> Ended {
    Ended {
        status: ResultStatus::Ok,
        failure: None,
        decisions: decisions.to_vec(),
        more_denials: 0,
        commands: vec![RanCommand {
            line_sha256: Digest::of(b"cargo test\nrm x"),
            level: SandboxLevel::Full,
            ending: Some(CommandEnding::Exited(3)),
            remarks: Vec::new(),
            changed: Vec::new(),
        }],
        active: Duration::from_millis(7),
        waited: Duration::ZERO,
        wall: Duration::from_millis(9),
        input: 2,
        output: 30,
        memory: 1 << 20,
        log: 0,
        touched: Touched::default(),
        contacts: Contacts::default(),
    }
}
