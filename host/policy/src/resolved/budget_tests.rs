//! Tests of the work budget of one decision, in steps.

use super::tests::layer;
use super::*;
use crate::pattern::MOST_STEPS;

/// Returns a section whose patterns differ only by a number.
fn largest(section: &str, count: usize, pattern: impl Fn(usize) -> String) -> String {
    let patterns: Vec<String> =
        (0..count).map(|number| format!("\"{}\"", pattern(number))).collect();
    format!("[{section}]\ndeny = [{}]", patterns.join(", "))
}

fn steps(policy: &Policy, act: &Action<'_>) -> u64 {
    let text = ActionText::of(act);
    let input = RuleMatchInput::new("bash".into(), act, &text);
    let _ = RuleMatches::of(policy, &input);
    input.steps()
}

fn policy(user: &str, project: &str) -> Policy {
    let mut policy = Policy::default();
    for (level, text) in [(PolicyLevel::User, user), (PolicyLevel::Project, project)] {
        policy.add_layer(layer(level, text));
    }
    policy
}

#[test]
fn r098_a_usual_line_takes_a_small_part_of_the_work_that_a_decision_may_take() {
    let project =
        largest("commands", 990, |number| format!("git push --force origin branch-{number} *"));
    let policy = policy("[commands]\ndeny = [\"rm -rf *\"]", &project);
    let line = "env -u A git -C some/directory --no-pager log --oneline --stat --since=yesterday \
        --author someone -- src/main.rs src/lib.rs";
    let used = steps(&policy, &Action::Command(line));
    assert!(used < MOST_STEPS, "{used}");
    assert_eq!(
        policy.verdict(ApprovalMode::Auto, "bash".into(), &Action::Command(line)).verdict,
        Verdict::Allow
    );
}

#[test]
fn r098_the_largest_policy_takes_no_more_work_than_a_decision_may_take() {
    let stars = |number: usize| format!("*b{number} *");
    let behind = |number: usize| format!("git {} x{number} *", "*a ".repeat(12));
    let lines = [
        "a".repeat(100_000),
        "a ".repeat(50_000),
        "git ".repeat(30_000),
        "-a".repeat(60_000),
        "git -a ".repeat(1_000),
        "a=".repeat(50_000),
    ];
    for project in [largest("commands", 990, stars), largest("commands", 400, behind)] {
        let policy = policy("[commands]\ndeny = [\"rm -rf *\"]", &project);
        for line in &lines {
            for line in [line.clone(), format!("{line}; x"), format!("{line} rm")] {
                let used = steps(&policy, &Action::Command(&line));
                assert!(used <= MOST_STEPS, "{used}");
                // A rule of the user still denies, even if the project uses up the rest of the
                // budget.
                let denied = format!("rm -rf {line}");
                assert_eq!(
                    policy
                        .verdict(ApprovalMode::Auto, "bash".into(), &Action::Command(&denied))
                        .verdict,
                    Verdict::Deny
                );
            }
        }
    }
}

#[test]
fn r098_without_work_left_a_rule_might_cover_what_is_done() {
    // A long part between two stars, which can start at every position and never ends.
    let project = largest("commands", 45, |number| format!("*{}b{number} *", "a".repeat(200)));
    let line = "a".repeat(100_000);
    let stuck = policy("", &project);
    assert_eq!(steps(&stuck, &Action::Command(&line)), MOST_STEPS);
    assert_eq!(
        stuck.verdict(ApprovalMode::Auto, "bash".into(), &Action::Command(&line)).verdict,
        Verdict::Ask
    );
    let project = largest("write", 45, |number| format!("**/*{}b{number}/x", "a".repeat(200)));
    let path = WorkspacePath::parse(&"a".repeat(4_000), None).expect("a path");
    let stuck = policy("", &project);
    assert_eq!(steps(&stuck, &Action::Write(Some(&path))), MOST_STEPS);
    assert_eq!(
        stuck.verdict(ApprovalMode::Auto, "edit".into(), &Action::Write(Some(&path))).verdict,
        Verdict::Ask
    );
}

#[test]
fn r098_without_work_left_rules_of_another_kind_do_not_cover_what_is_done() {
    let project = largest("commands", 45, |number| format!("*{}b{number} *", "a".repeat(200)));
    let line = "a".repeat(100_000);
    let act = Action::Command(&line);
    let text = ActionText::of(&act);
    let input = RuleMatchInput::new("bash".into(), &act, &text);
    let _ = RuleMatches::of(&policy("", &project), &input);
    assert_eq!(input.steps(), MOST_STEPS);
    for (section, verdict, expected) in [
        ("commands", "deny", PatternMatch::Maybe),
        ("commands", "ask", PatternMatch::Maybe),
        ("commands", "allow", PatternMatch::No),
        ("read", "deny", PatternMatch::No),
        ("write", "deny", PatternMatch::No),
        ("fetch", "deny", PatternMatch::No),
    ] {
        let rule = layer(PolicyLevel::User, &format!("[{section}]\n{verdict} = [\"x\"]"));
        assert_eq!(rule.rules[0].matches_input(&input), expected, "{section} {verdict}");
    }
}
