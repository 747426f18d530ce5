//! Tests of decisions and approvals, also after a change of the mode.

use proptest::prelude::*;

use super::super::resolved::tests::any_layer;
use super::super::{
    ChangeKind, ChangeSet, ContentDigest, FileChange, HostAddress, PolicyLayer, PolicyLevel,
    WorkspacePath,
};
use super::*;

fn command(line: &str) -> Effect {
    Effect::Command {
        line: line.into(),
        directory: WorkspacePath::parse("", None).unwrap(),
        background: false,
    }
}

fn write(path: &str) -> Effect {
    let after = ContentDigest { size: 1, digest: "0".into() };
    let change = FileChange {
        path: WorkspacePath::parse(path, None).unwrap(),
        kind: ChangeKind::Create { after },
        diff: None,
    };
    Effect::Write { changes: ChangeSet::new(vec![change]), confirm: false }
}

fn fetch(host: &str) -> Effect {
    let host = HostAddress::parse(host).unwrap();
    Effect::Fetch { method: "GET".into(), url: format!("https://{host}/?q=SECRET"), host }
}

fn word(decision: &Authorization) -> &'static str {
    match decision {
        Authorization::Allow(..) => "allow",
        Authorization::Ask(_) => "ask",
        Authorization::Deny(_) => "deny",
    }
}

#[test]
fn r035_modes_decide_by_effect() {
    let table = [
        (ApprovalMode::Ask, "ask", "ask"),
        (ApprovalMode::Plan, "deny", "deny"),
        (ApprovalMode::AutoEdit, "ask", "allow"),
        (ApprovalMode::Auto, "allow", "allow"),
    ];
    for (mode, on_command, on_write) in table {
        let auth = Authorizer::new(mode, true);
        assert_eq!(
            word(&auth.authorize("bash", "{}", command("ls"))),
            on_command,
            "{mode}: command"
        );
        assert_eq!(
            word(&auth.authorize("write_file", "{}", write("a"))),
            on_write,
            "{mode}: write"
        );
    }
}

#[test]
fn r041_without_an_approver_effects_that_need_approval_are_denied() {
    let Authorization::Deny(denial) =
        Authorizer::new(ApprovalMode::Ask, false).authorize("bash", "{}", command("ls"))
    else {
        panic!("not denied")
    };
    assert_eq!(denial.code, DenialCode::NobodyToAsk);
    assert!(denial.to_string().contains("--mode auto"));
    assert_eq!(
        word(&Authorizer::new(ApprovalMode::Auto, false).authorize("bash", "{}", command("ls"))),
        "allow"
    );
}

#[test]
fn r039_an_approved_scope_is_not_asked_again_and_covers_nothing_else() {
    let mut auth = Authorizer::new(ApprovalMode::Ask, true);
    let Authorization::Ask(question) = auth.authorize("bash", "{}", command("git status")) else {
        panic!("not asked")
    };
    let (permit, approval) = auth.approve_scope(question).expect("it is approved");
    auth.remember(approval.expect("it has a scope"));
    assert_eq!(permit.into_effect(), command("git status"));
    assert_eq!(word(&auth.authorize("bash", "{}", command("git status --short"))), "allow");
    assert_eq!(word(&auth.authorize("bash", "{}", command("git status; curl x"))), "ask");
    assert_eq!(word(&auth.authorize("write_file", "{}", write("git status"))), "ask");
}

#[test]
fn r039_a_write_scope_contains_the_changed_paths() {
    let mut auth = Authorizer::new(ApprovalMode::Ask, true);
    let Authorization::Ask(question) = auth.authorize("write_file", "{}", write("src/a")) else {
        panic!("not asked")
    };
    assert_eq!(
        question.question().scope.as_ref().map(ToString::to_string).as_deref(),
        Some("write_file writing src/a")
    );
    let (_, approval) = auth.approve_scope(question).expect("it is approved");
    auth.remember(approval.expect("it has a scope"));
    assert_eq!(word(&auth.authorize("write_file", "{}", write("src/a"))), "allow");
    assert_eq!(word(&auth.authorize("write_file", "{}", write("src/ab"))), "ask");
    assert_eq!(word(&auth.authorize("other", "{}", write("src/a"))), "ask");
    let path = WorkspacePath::parse("src/a", None).unwrap();
    let delete = ChangeSet::new(vec![FileChange {
        path,
        kind: ChangeKind::Delete { before: 1 },
        diff: None,
    }]);
    let Authorization::Ask(question) =
        auth.authorize("write_file", "{}", Effect::Write { changes: delete, confirm: false })
    else {
        panic!("not asked")
    };
    assert_eq!(question.question().scope, None, "a deletion is asked each time");
}

#[test]
fn r042_approving_once_approves_once() {
    let auth = Authorizer::new(ApprovalMode::Ask, true);
    let Authorization::Ask(question) = auth.authorize("bash", "{}", command("git status")) else {
        panic!("not asked")
    };
    let permit = auth.approve(question).expect("it is approved");
    assert_eq!(permit.effect(), &command("git status"));
    assert_eq!(word(&auth.authorize("bash", "{}", command("git status"))), "ask");
}

fn under(text: &str, mode: ApprovalMode, someone: bool) -> Authorizer {
    let mut policy = Policy::default();
    policy.add_layer(PolicyLayer::parse(PolicyLevel::User, "p.toml", text).unwrap());
    Authorizer::new(mode, someone).with_policy(Arc::new(policy))
}

#[test]
fn r036_a_denial_names_rule_file_line_and_remedy() {
    let auth = under("[commands]\ndeny = [\"git push *\"]", ApprovalMode::Auto, true);
    let Authorization::Deny(denial) = auth.authorize("bash", "{}", command("git push -f")) else {
        panic!("not denied")
    };
    insta::assert_snapshot!(denial, @"denied (policy): bash may not run `git push -f`: the rule \
        deny `git push *` of [commands] at p.toml:2:9 covers it. The user can change that rule in \
        p.toml; no other rule overrides it.");
    assert_eq!(denial.place.map(|place| (place.file, place.line)), Some(("p.toml".into(), 2)));
    let auth = under("[commands]\nask = [\"git push *\"]", ApprovalMode::Auto, false);
    let Authorization::Deny(denial) = auth.authorize("bash", "{}", command("git push -f")) else {
        panic!("not denied")
    };
    insta::assert_snapshot!(denial, @"denied (nobody-to-ask): bash needs approval to run `git \
        push -f`, and there is no terminal to ask for it: the rule ask `git push *` of [commands] \
        at \
        p.toml:2:8 covers it. The user can change that rule in p.toml; no other rule overrides \
        it.");
}

#[test]
fn r039_an_ask_rule_asks_each_time() {
    let mut auth = under("[commands]\nask = [\"git push *\"]", ApprovalMode::Auto, true);
    auth.approved_scopes.extend(command("git push").scope("bash"));
    let Authorization::Ask(question) = auth.authorize("bash", "{}", command("git push")) else {
        panic!("not asked")
    };
    assert_eq!(question.question().scope, None);
}

#[test]
fn r037_a_rule_allows_without_asking() {
    let auth = under(
        "[commands]\nallow = [\"git status *\"]\n[write]\nallow = [\"src/**\"]",
        ApprovalMode::Ask,
        false,
    );
    assert_eq!(word(&auth.authorize("bash", "{}", command("git status -s"))), "allow");
    assert_eq!(word(&auth.authorize("bash", "{}", command("git status; x"))), "deny");
    assert_eq!(word(&auth.authorize("write_file", "{}", write("src/a"))), "allow");
    assert_eq!(word(&auth.authorize("write_file", "{}", write("docs/a"))), "deny");
    let (Effect::Write { changes: one, .. }, Effect::Write { changes: other, .. }) =
        (write("src/a"), write("docs/a"))
    else {
        panic!()
    };
    let changes = ChangeSet::new(one.iter().chain(&other).cloned().collect());
    let both = Effect::Write { changes, confirm: false };
    assert_eq!(word(&auth.authorize("write_file", "{}", both)), "deny");
}

#[test]
fn a_new_mode_applies_to_later_effects() {
    let mut auth = Authorizer::new(ApprovalMode::Ask, true);
    let words = [ApprovalMode::Plan, ApprovalMode::AutoEdit, ApprovalMode::Auto, ApprovalMode::Ask]
        .map(|mode| {
            auth.set_mode(mode);
            (
                word(&auth.authorize("bash", "{}", command("ls"))),
                word(&auth.authorize("write_file", "{}", write("a"))),
            )
        });
    assert_eq!(words, [("deny", "deny"), ("ask", "allow"), ("allow", "allow"), ("ask", "ask")]);
}

#[test]
fn a_mode_that_the_policy_denies_does_not_apply() {
    let mut auth = under("modes = [\"plan\", \"ask\"]", ApprovalMode::Auto, true);
    assert_eq!(auth.mode(), ApprovalMode::Ask);
    auth.set_mode(ApprovalMode::AutoEdit);
    assert_eq!(auth.mode(), ApprovalMode::Ask);
    auth.set_mode(ApprovalMode::Plan);
    assert_eq!(auth.mode(), ApprovalMode::Plan);
}

fn plan(then: ApprovalMode) -> Effect {
    Effect::Plan { text: "1. Mend it.".into(), then }
}

#[test]
fn r126_an_accepted_plan_restores_the_previous_mode() {
    for (before, after) in [
        (None, ApprovalMode::Ask),
        (Some(ApprovalMode::AutoEdit), ApprovalMode::AutoEdit),
        (Some(ApprovalMode::Auto), ApprovalMode::Auto),
    ] {
        let mut auth = Authorizer::new(before.unwrap_or(ApprovalMode::Plan), true);
        auth.set_mode(ApprovalMode::Plan);
        auth.set_mode(ApprovalMode::Plan);
        // The mode that the tool proposes has no effect.
        let Authorization::Ask(question) =
            auth.authorize("present_plan", "{}", plan(ApprovalMode::Auto))
        else {
            panic!("not asked")
        };
        assert_eq!(
            (&question.question().effect, &question.question().scope),
            (&plan(after), &None)
        );
        assert_eq!(auth.mode(), ApprovalMode::Plan, "asking changes nothing");
        let permit = auth.approve(question).expect("it is approved");
        assert_eq!(permit.effect(), &plan(after));
        assert_eq!((auth.end_plan_mode(permit), auth.mode()), (after, after));
    }
}

#[test]
fn r126_a_plan_outside_of_plan_mode_is_denied() {
    for mode in [ApprovalMode::Ask, ApprovalMode::AutoEdit, ApprovalMode::Auto] {
        let Authorization::Deny(denial) =
            Authorizer::new(mode, true).authorize("present_plan", "{}", plan(mode))
        else {
            panic!("{mode}")
        };
        assert!(denial.to_string().contains("only accepted in plan mode"), "{denial}");
    }
}

#[test]
fn r126_without_an_approver_the_plan_becomes_the_answer() {
    let Authorization::Deny(denial) = Authorizer::new(ApprovalMode::Plan, false).authorize(
        "present_plan",
        "{}",
        plan(ApprovalMode::Ask),
    ) else {
        panic!()
    };
    assert_eq!(denial.code, DenialCode::NobodyToAsk);
    assert!(denial.to_string().contains("as your answer"), "{denial}");
}

#[test]
fn r126_an_accepted_plan_stays_within_the_policy() {
    for (modes, then) in [("\"plan\", \"ask\"", Some(ApprovalMode::Ask)), ("\"plan\"", None)] {
        let mut auth = Authorizer::new(ApprovalMode::Auto, true);
        auth.set_mode(ApprovalMode::Plan);
        let mut policy = Policy::default();
        policy.add_layer(
            PolicyLayer::parse(PolicyLevel::User, "p.toml", &format!("modes = [{modes}]")).unwrap(),
        );
        let asked = match auth.with_policy(Arc::new(policy)).authorize(
            "present_plan",
            "{}",
            plan(ApprovalMode::Auto),
        ) {
            Authorization::Ask(pending) => match pending.question().effect {
                Effect::Plan { then, .. } => Some(then),
                _ => panic!("{pending:?}"),
            },
            Authorization::Allow(..) | Authorization::Deny(_) => None,
        };
        assert_eq!(asked, then, "{modes}");
    }
}

#[test]
fn r126_an_approval_does_not_apply_in_plan_mode() {
    let mut auth = Authorizer::new(ApprovalMode::Plan, true);
    auth.approved_scopes.extend(command("git status").scope("bash"));
    assert_eq!(word(&auth.authorize("bash", "{}", command("git status"))), "deny");
}

#[test]
fn r122_a_request_needs_approval_unless_a_rule_allows_it() {
    for mode in ApprovalMode::ALL {
        assert_eq!(
            word(&Authorizer::new(mode, true).authorize("web_fetch", "{}", fetch("docs.rs"))),
            "ask",
            "{mode}"
        );
        let Authorization::Deny(denial) =
            Authorizer::new(mode, false).authorize("web_fetch", "{}", fetch("docs.rs:8080"))
        else {
            panic!("{mode}")
        };
        assert_eq!(denial.code, DenialCode::NobodyToAsk);
        // The remedy of the denial is a policy rule that allows exactly this request.
        let rule = denial
            .remedy
            .as_deref()
            .and_then(|text| text.split('`').nth(1))
            .expect("a rule")
            .to_owned();
        let auth = under(&format!("[fetch]\n{rule}"), mode, false);
        assert_eq!(
            word(&auth.authorize("web_fetch", "{}", fetch("docs.rs:8080"))),
            "allow",
            "{mode}: {rule}"
        );
        for other in ["docs.rs", "evil.example"] {
            assert_eq!(
                word(&auth.authorize("web_fetch", "{}", fetch(other))),
                "deny",
                "{mode}: {other}"
            );
        }
    }
    // An approval for one host covers no other host.
    let mut auth = Authorizer::new(ApprovalMode::Auto, true);
    let Authorization::Ask(pending) = auth.authorize("web_fetch", "{}", fetch("docs.rs")) else {
        panic!("not asked")
    };
    let (_, approval) = auth.approve_scope(pending).expect("it is approved");
    auth.remember(approval.expect("it has a scope"));
    assert_eq!(word(&auth.authorize("web_fetch", "{}", fetch("docs.rs"))), "allow");
    assert_eq!(word(&auth.authorize("web_fetch", "{}", fetch("evil.example"))), "ask");
    // An untrusted project cannot allow requests.
    let mut policy = Policy::default();
    policy.add_layer(
        PolicyLayer::parse(PolicyLevel::Project, "p.toml", "[fetch]\nallow = [\"*\"]").unwrap(),
    );
    let auth = Authorizer::new(ApprovalMode::Auto, true).with_policy(Arc::new(policy));
    assert_eq!(word(&auth.authorize("web_fetch", "{}", fetch("evil.example"))), "ask");
}

#[test]
fn r042_an_approval_is_valid_only_for_its_authorizer() {
    let (strict, loose) =
        (Authorizer::new(ApprovalMode::Ask, true), Authorizer::new(ApprovalMode::Ask, true));
    let Authorization::Ask(pending) = strict.authorize("bash", "{}", command("git status")) else {
        panic!("not asked")
    };
    let denial = loose.approve(pending).expect_err("another authorizer asked");
    assert!(denial.reason.contains("another session"), "{denial}");
    let Authorization::Ask(pending) = strict.authorize("bash", "{}", command("git status")) else {
        panic!("not asked")
    };
    assert!(loose.approve_scope(pending).is_err());
    let Authorization::Ask(pending) = strict.authorize("bash", "{}", command("git status")) else {
        panic!("not asked")
    };
    // The authorizer keeps its identity with another policy, and applies the new rules.
    let mut policy = Policy::default();
    policy.add_layer(
        PolicyLayer::parse(PolicyLevel::User, "p.toml", "[commands]\ndeny = [\"git *\"]").unwrap(),
    );
    let denial =
        strict.with_policy(Arc::new(policy)).approve(pending).expect_err("a rule denies it");
    assert_eq!(denial.code, DenialCode::Policy);
}

#[test]
fn r035_an_approval_does_not_survive_a_stricter_mode() {
    let mut auth = Authorizer::new(ApprovalMode::Ask, true);
    let Authorization::Ask(pending) = auth.authorize("bash", "{}", command("ls")) else {
        panic!("not asked")
    };
    auth.set_mode(ApprovalMode::Plan);
    assert_eq!(
        auth.approve(pending).expect_err("plan mode changes nothing").code,
        DenialCode::Mode
    );
    // An accepted plan leads to the mode that it was shown with, or to a denial.
    let Authorization::Ask(shown) = auth.authorize("present_plan", "{}", plan(ApprovalMode::Auto))
    else {
        panic!("not asked")
    };
    auth.set_mode(ApprovalMode::AutoEdit);
    auth.set_mode(ApprovalMode::Plan);
    assert_eq!(auth.approve(shown).expect_err("another mode applies").code, DenialCode::Mode);
    let Authorization::Ask(shown) = auth.authorize("present_plan", "{}", plan(ApprovalMode::Auto))
    else {
        panic!("not asked")
    };
    auth.set_mode(ApprovalMode::Ask);
    assert_eq!(auth.approve(shown).expect_err("not in plan mode").code, DenialCode::Mode);
}

#[test]
fn an_allowed_effect_names_its_basis() {
    let mut auth = Authorizer::new(ApprovalMode::Ask, true);
    let basis = |auth: &Authorizer| match auth.authorize("bash", "{}", command("git status -s")) {
        Authorization::Allow(_, basis) => Some(basis),
        Authorization::Ask(_) | Authorization::Deny(_) => None,
    };
    assert_eq!(basis(&auth), None);
    let Authorization::Ask(pending) = auth.authorize("bash", "{}", command("git status")) else {
        panic!("not asked")
    };
    let (_, approval) = auth.approve_scope(pending).expect("it is approved");
    let approval = approval.expect("it has a scope");
    let scope = approval.scope().clone();
    auth.remember(approval);
    let asked =
        ReasonedVerdict { verdict: Verdict::Ask, reason: VerdictReason::Mode(ApprovalMode::Ask) };
    assert_eq!(basis(&auth), Some(AllowBasis::EarlierApproval { scope, verdict: asked }));
    auth.set_mode(ApprovalMode::Auto);
    assert_eq!(
        basis(&auth),
        Some(AllowBasis::Rules(ReasonedVerdict {
            verdict: Verdict::Allow,
            reason: VerdictReason::Mode(ApprovalMode::Auto)
        }))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn explanations_match_decisions(
        layers in (any_layer(), any_layer(), any_layer()),
        mode in prop::sample::select(ApprovalMode::ALL.to_vec()),
        someone in any::<bool>(),
        remembered in
            prop::collection::vec(prop::sample::select(vec!["a", "a b", "git status"]), 0..3),
        confirm in any::<bool>(),
    ) {
        let mut policy = Policy::default();
        let (system, user, project) = layers;
        for (level, text) in [
            (PolicyLevel::System, system),
            (PolicyLevel::User, user),
            (PolicyLevel::Project, project),
        ] {
            policy.add_layer(PolicyLayer::parse(level, "p.toml", &text).unwrap());
        }
        let policy = Arc::new(policy);
        let mut auth = Authorizer::new(mode, someone).with_policy(Arc::clone(&policy));
        let approved = remembered.iter().filter_map(|line| command(line).scope("bash"));
        auth.approved_scopes.extend(approved);
        let lines =
            ["a", "a b", "a b c", "a b; c", "env a b", "a -x b", "git -C x a", "git status -s"];
        let mut effects: Vec<Effect> = lines.map(command).to_vec();
        effects.extend(["x", "x/y", "z"].map(write));
        if let Effect::Write { changes, .. } = write("x/y") {
            effects.push(Effect::Write { changes, confirm });
        }
        effects.extend([fetch("docs.rs"), Effect::Confirmed, plan(ApprovalMode::Auto)]);
        for effect in effects {
            let explained = auth.explain("bash", &effect);
            // The explanation lists the checks in order. Only the last one has a finding.
            for evaluation in &explained.evaluations {
                let (last, before) = evaluation.steps.split_last().expect("a check");
                prop_assert_eq!(last.finding.as_ref(), Some(&evaluation.finding));
                prop_assert!(before.iter().all(|step| step.finding.is_none()));
                let verdict = policy.verdict(auth.mode(), "bash".into(), &evaluation.action);
                prop_assert_eq!(&verdict, &evaluation.finding);
            }
            match (auth.authorize("bash", "{}", effect.clone()), explained.outcome) {
                (Authorization::Allow(permit, basis), DecisionOutcome::Allow(explained)) => {
                    prop_assert_eq!(permit.into_effect(), effect);
                    prop_assert_eq!(basis, explained);
                }
                (Authorization::Ask(pending), DecisionOutcome::Ask { scope }) => {
                    prop_assert!(someone);
                    prop_assert_eq!(&pending.question().scope, &scope);
                    prop_assert!(auth.approve(pending).is_ok(), "nothing has changed");
                }
                (Authorization::Deny(denial), DecisionOutcome::Deny(explained)) => {
                    prop_assert_eq!(denial, explained)
                }
                (decided, explained) => {
                    prop_assert!(false, "{:?}, and explained as {:?}", decided, explained)
                }
            }
        }
    }
}

#[test]
fn input_of_a_background_command_follows_the_mode_and_strict_rules_but_no_allow_rule() {
    let rules = "[commands]\nallow = [\"python3 *\", \"echo *\"]\nask = [\"make *\"]\n\
        deny = [\"git push *\"]\n";
    let layer = PolicyLayer::parse(PolicyLevel::User, "p.toml", rules).unwrap();
    let mut policy = Policy::default();
    policy.add_layer(layer);
    let policy = Arc::new(policy);
    for (mode, text, expected) in [
        (ApprovalMode::Ask, "echo x\n", Verdict::Ask),
        (ApprovalMode::AutoEdit, "echo x\n", Verdict::Ask),
        (ApprovalMode::Plan, "echo x\n", Verdict::Deny),
        // The `allow` list does not contain it, so it needs approval in every mode.
        (ApprovalMode::Auto, "echo x\n", Verdict::Ask),
        (ApprovalMode::Auto, "make all\n", Verdict::Ask),
        (ApprovalMode::Auto, "git push origin\n", Verdict::Deny),
        (ApprovalMode::Auto, "cd x\ngit -C . push\n", Verdict::Deny),
    ] {
        let authorizer = Authorizer::new(mode, true).with_policy(Arc::clone(&policy));
        let (text, ruled) = (text.to_owned(), text.trim_end().to_owned());
        let effect = Effect::Input { line: "python3 -i".into(), text, ruled };
        let explanation = authorizer.explain(ToolId::new("jobs", ""), &effect);
        assert_eq!(explanation.outcome.verdict(), expected, "{mode} {effect:?}");
        assert_eq!(effect.scope("jobs"), None, "each input needs its own approval");
    }
    // With an `allow` list nothing else is allowed; without one, a rule that denies might be about
    // words that an earlier input has given another meaning.
    let rules = "[commands]\ndeny = [\"git push *\"]\n";
    let mut policy = Policy::default();
    policy.add_layer(PolicyLayer::parse(PolicyLevel::User, "p.toml", rules).unwrap());
    let strict = Authorizer::new(ApprovalMode::Auto, true).with_policy(Arc::new(policy));
    for (text, expected) in [("git push\n", Verdict::Deny), ("gp\n", Verdict::Ask)] {
        let (text, ruled) = (text.to_owned(), text.trim_end().to_owned());
        let effect = Effect::Input { line: "sh".into(), text, ruled };
        let outcome = strict.explain(ToolId::new("jobs", ""), &effect).outcome;
        assert_eq!(outcome.verdict(), expected, "{effect:?}");
    }
    let free = Authorizer::new(ApprovalMode::Auto, true);
    let (text, ruled) = ("rm x\n".to_owned(), "rm x".to_owned());
    let effect = Effect::Input { line: "sh".into(), text, ruled };
    let outcome = free.explain(ToolId::new("jobs", ""), &effect).outcome;
    assert_eq!(outcome.verdict(), Verdict::Allow);
}
