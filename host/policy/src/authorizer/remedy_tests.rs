//! Tests of the remedy of a denial, of the evaluation that decides, and of links.

use super::*;
use crate::{ChangeKind, ChangeSet, ContentDigest, FileChange, PolicyLayer, PolicyLevel};

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text, None).expect("a path")
}

fn write(paths: &[&str]) -> Effect {
    let after = ContentDigest { size: 1, digest: "0".into() };
    let change = |at: &&str| FileChange {
        path: path(at),
        kind: ChangeKind::Create { after: after.clone() },
        diff: None,
    };
    Effect::Write { changes: ChangeSet::new(paths.iter().map(change).collect()), confirm: false }
}

fn under(text: &str, mode: ApprovalMode, has_approver: bool) -> Authorizer {
    let mut policy = Policy::default();
    policy.add_layer(PolicyLayer::parse(PolicyLevel::User, "p.toml", text).expect(text));
    Authorizer::new(mode, has_approver).with_policy(Arc::new(policy))
}

#[test]
fn r036_the_remedy_of_a_denial_names_only_modes_that_the_policy_allows() {
    let remedy =
        |text: &str, mode| match under(text, mode, false).authorize("edit", "{}", write(&["a"])) {
            Authorization::Deny(denial) => denial.remedy.expect("a remedy"),
            other => panic!("{other:?}"),
        };
    let without_auto = "modes = [\"plan\", \"ask\", \"auto-edit\"]";
    assert!(remedy("", ApprovalMode::Ask).contains("`--mode auto`"));
    assert!(remedy(without_auto, ApprovalMode::Ask).contains("`--mode auto-edit`"));
    assert_eq!(
        remedy(without_auto, ApprovalMode::Plan),
        "The user can choose another mode (allowed: ask, auto-edit)."
    );
}

#[test]
fn the_first_of_the_strictest_evaluations_decides() {
    let decisive = |text: &str, paths: &[&str]| {
        let effect = write(paths);
        let auth = under(text, ApprovalMode::Ask, true);
        let explained = auth.explain("edit", &effect);
        explained.decisive().map(|evaluation| evaluation.action.to_string())
    };
    let rules = "[write]\nask = [\"asked/*\"]\ndeny = [\"denied/*\"]";
    // The question of an `ask` rule is stricter, because its answer cannot be remembered.
    let table = [
        (vec!["a", "b"], "write a"),
        (vec!["a", "asked/x", "asked/y", "b"], "write asked/x"),
        (vec!["a", "asked/x", "denied/x", "denied/y"], "write denied/x"),
    ];
    for (paths, expected) in table {
        assert_eq!(decisive(rules, &paths).as_deref(), Some(expected), "{paths:?}");
    }
}

#[test]
fn the_target_of_a_link_that_was_found_later_needs_approval() {
    let mut auth = Authorizer::new(ApprovalMode::Auto, true);
    let asks = |auth: &Authorizer| {
        matches!(auth.authorize("edit", "{}", write(&["target"])), Authorization::Ask(_))
    };
    assert!(!asks(&auth));
    auth.learn_aliases([(&path("target"), &path("AGENTS.md"))].into_iter(), true);
    assert!(asks(&auth));
}

#[test]
fn an_approval_in_plan_mode_is_valid_for_effects_other_than_plans() {
    let host = crate::HostAddress::parse("docs.rs").expect("a host");
    let fetch = Effect::Fetch { method: "GET".into(), url: "https://docs.rs/".into(), host };
    let auth = Authorizer::new(ApprovalMode::Plan, true);
    let Authorization::Ask(pending) = auth.authorize("web", "{}", fetch) else {
        panic!("not asked")
    };
    assert!(auth.approve(pending).is_ok());
}
