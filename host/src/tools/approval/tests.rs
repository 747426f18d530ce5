//! What is remembered, what is on record, and which decision counts.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::agent::events::Tier;
use crate::policy::{Basis, Because, Finding, Grants, Layer, Level, Verdict, WorkspacePath};
use crate::sandbox::Digest;
use crate::tools::Origin;

/// Says yes to everything of the kind, and counts how often it was asked.
#[derive(Default)]
struct Generous(AtomicU32);

impl Approver for Generous {
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Answer> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(Answer::YesForScope))
    }
}

/// A ledger that has to be had, on a disk that is full or not.
#[derive(Default)]
struct Disk {
    full: AtomicBool,
}

impl Disk {
    fn write(&self) -> Result<(), Unrecorded> {
        if self.full.load(Ordering::Relaxed) { Err(Unrecorded("no room".into())) } else { Ok(()) }
    }
}

impl Ledger for Disk {
    fn ready(&self) -> Result<(), Unrecorded> {
        self.write()
    }
    fn decided(&self, _: &Subject, _: &Decided) -> Result<Option<u64>, Unrecorded> {
        self.write().map(|()| Some(1))
    }
    fn changed(&self, _: &Change<'_>) -> Result<(), Unrecorded> {
        self.write()
    }
    fn ended(&self, _: &Subject, _: &Ended) {}
    fn refused(&self, _: &Call, _: &str) {}
}

fn subject() -> Subject {
    Subject {
        call: "c".into(),
        tool: "bash".into(),
        arguments: "{}".into(),
        digest: Digest::of(b"bash"),
        origin: Origin::BuiltIn("bash"),
        tier: Tier::Write,
        grants: Grants::default(),
    }
}

fn command(line: &str) -> Effect {
    Effect::Command { line: line.into(), directory: WorkspacePath::parse("", None).expect("a path") }
}

#[test]
fn r108_a_scope_that_could_not_be_put_on_record_is_not_remembered() {
    let (approver, disk) = (Arc::new(Generous::default()), Arc::new(Disk::default()));
    let approvals =
        Approvals::new(Mode::Ask, Some(Arc::clone(&approver) as Arc<dyn Approver>)).recorded_by(Arc::clone(&disk) as Arc<dyn Ledger>);
    let subject = subject();
    let rule = || {
        let effect = command("git status");
        let (cancel, verdicts) = (CancellationToken::new(), Mutex::default());
        futures_util::FutureExt::now_or_never(approvals.rule(&subject, effect, &cancel, &verdicts)).expect("nothing waits")
    };
    disk.full.store(true, Ordering::Relaxed);
    assert!(matches!(rule(), Ruling::Denied(denial) if denial.code == Code::NotRecorded));
    disk.full.store(false, Ordering::Relaxed);
    for asked in [2, 2] {
        assert!(matches!(rule(), Ruling::Permitted(_)));
        assert_eq!(approver.0.load(Ordering::Relaxed), asked, "asked again once, and then remembered");
    }
}

/// Keeps what was decided.
#[derive(Default)]
struct Notes(Mutex<Vec<Ruled>>);

impl Ledger for Notes {
    fn ready(&self) -> Result<(), Unrecorded> {
        Ok(())
    }
    fn decided(&self, _: &Subject, decided: &Decided) -> Result<Option<u64>, Unrecorded> {
        lock(&self.0).push(decided.ruled.clone());
        Ok(None)
    }
    fn changed(&self, _: &Change<'_>) -> Result<(), Unrecorded> {
        Ok(())
    }
    fn ended(&self, _: &Subject, _: &Ended) {}
    fn refused(&self, _: &Call, _: &str) {}
}

/// Answers when it is let, and counts how often it was asked.
#[derive(Default)]
struct Patient {
    asked: AtomicU32,
    answers: tokio::sync::Notify,
}

impl Approver for Patient {
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Answer> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {
            self.answers.notified().await;
            Answer::Yes
        })
    }
}

/// Two commands of which one waits for the dialog of the other, and the mode that is chosen meanwhile.
fn with_a_change_of_mode(to: Mode) -> (Vec<Ruled>, u32) {
    let (approver, notes) = (Arc::new(Patient::default()), Arc::new(Notes::default()));
    let approvals =
        Approvals::new(Mode::Ask, Some(Arc::clone(&approver) as Arc<dyn Approver>)).recorded_by(Arc::clone(&notes) as Arc<dyn Ledger>);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (subject, cancel, verdicts) = (subject(), CancellationToken::new(), Mutex::default());
        let rule = |line: &str| approvals.rule(&subject, command(line), &cancel, &verdicts);
        let meanwhile = async {
            while approver.asked.load(Ordering::Relaxed) == 0 {
                tokio::task::yield_now().await;
            }
            approvals.set_mode(to);
            approver.answers.notify_one();
        };
        drop(tokio::join!(rule("one"), rule("two"), meanwhile));
    });
    let decided = lock(&notes.0).clone();
    (decided, approver.asked.load(Ordering::Relaxed))
}

#[test]
fn r035_what_is_decided_while_a_dialog_is_waited_for_is_on_record_with_its_own_reason() {
    let by_mode = |mode| Ruled::Allowed(Ground::Standing(Basis::Rules(Finding { verdict: Verdict::Allow, because: Because::Mode(mode) })));
    // The first is the user's yes; the second needs none by now, and nobody has approved its like.
    assert_eq!(with_a_change_of_mode(Mode::Auto), (vec![Ruled::Allowed(Ground::User), by_mode(Mode::Auto)], 1));
    // In plan mode neither happens, although the user said yes to the first.
    let (decided, asked) = with_a_change_of_mode(Mode::Plan);
    assert_eq!((decided.len(), asked), (2, 1));
    assert!(decided.iter().all(|ruled| matches!(ruled, Ruled::Denied(denial) if denial.code == Code::Mode)), "{decided:?}");
}

#[test]
fn r035_a_rule_for_a_component_counts_whoever_has_loaded_it() {
    // The policy has never heard of the tool: what calls it brings its digest along.
    let digest = Digest::of(b"bash");
    let text = format!("[tools.\"sha256:{digest}\"]\nuse = \"deny\"");
    let mut policy = Policy::default();
    policy.add(Layer::parse(Level::User, "p.toml", &text).expect("it parses"));
    let approvals = Approvals::new(Mode::Auto, None).under(Arc::new(policy));
    let rule = |subject: &Subject| {
        let (cancel, verdicts) = (CancellationToken::new(), Mutex::default());
        futures_util::FutureExt::now_or_never(approvals.rule(subject, command("ls"), &cancel, &verdicts)).expect("nothing waits")
    };
    assert!(matches!(rule(&subject()), Ruling::Denied(denial) if denial.code == Code::Policy));
    let other = Subject { digest: Digest::of(b"another"), ..subject() };
    assert!(matches!(rule(&other), Ruling::Permitted(_)));
}
