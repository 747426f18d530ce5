//! Which hosts commands may connect to under the rules of several levels.

use super::*;
use crate::{Action, ApprovalMode, PolicyLayer, PolicyLevel};

use PolicyLevel::{Project, System, User};

/// Parses the lines below `[commands.network]` of each level. A trusted project has the last flag.
fn policy(layers: &[(PolicyLevel, &str)], is_trusted: bool) -> Policy {
    let mut policy = Policy::default();
    for (level, lines) in layers {
        let text = format!("[commands.network]\n{lines}");
        let layer = PolicyLayer::parse(*level, &format!("{level}.toml"), &text)
            .unwrap_or_else(|error| panic!("{error}"));
        if is_trusted { policy.add_trusted_layer(layer) } else { policy.add_layer(layer) }
    }
    policy
}

fn verdict(policy: &Policy, host: &str) -> Verdict {
    let host = HostAddress::parse(host).expect(host);
    let verdicts = ApprovalMode::ALL
        .map(|mode| policy.verdict(mode, "bash".into(), &Action::Connect(&host)).verdict);
    assert!(verdicts.iter().all(|verdict| *verdict == verdicts[0]), "the mode decides");
    verdicts[0]
}

#[test]
fn lists_of_hosts_open_exact_hosts_and_ports() {
    let lines = "allow = [\"docs.rs\", \"*.example.com\", \"git.example.org:22\", \"*:9999\"]\n\
        deny = [\"secret.example.com\"]";
    let policy = policy(&[(User, lines)], false);
    for (host, expected) in [
        ("DOCS.rs.", Verdict::Allow),
        ("docs.rs:80", Verdict::Deny),
        ("a.example.com", Verdict::Allow),
        ("example.com", Verdict::Deny),
        ("secret.example.com", Verdict::Deny),
        ("secret.example.com:9999", Verdict::Deny),
        ("git.example.org:22", Verdict::Allow),
        ("git.example.org", Verdict::Deny),
        ("other.example.net:9999", Verdict::Allow),
    ] {
        assert_eq!(verdict(&policy, host), expected, "{host}");
    }
}

/// Policy files by level, and the verdicts about two hosts.
type HostCase<'a> = (&'a [(PolicyLevel, &'a str)], [Verdict; 2]);

#[test]
fn the_strictest_level_decides_about_a_host() {
    let allow = "allow = [\"a.org\"]";
    let more = "allow = [\"a.org\", \"b.org\"]";
    let ask = "ask = [\"a.org\"]";
    let asking = "unlisted = \"ask\"";
    let all = "unlisted = \"allow\"";
    use Verdict::{Allow, Ask, Deny};
    // The levels, and the verdicts about a.org and b.org.
    let table: &[HostCase<'_>] = &[
        (&[], [Deny, Deny]),
        (&[(User, "deny = [\"b.org\"]")], [Deny, Deny]),
        (&[(User, allow)], [Allow, Deny]),
        (&[(User, ask)], [Ask, Deny]),
        (&[(User, asking)], [Ask, Ask]),
        (&[(User, "unlisted = \"ask\"\nallow = [\"a.org\"]")], [Allow, Ask]),
        (&[(User, "unlisted = \"ask\"\ndeny = [\"a.org\"]")], [Deny, Ask]),
        (&[(User, all)], [Allow, Allow]),
        (&[(User, "unlisted = \"allow\"\ndeny = [\"a.org\"]")], [Deny, Allow]),
        // Two files of the user count as one.
        (&[(User, allow), (User, asking)], [Allow, Ask]),
        (&[(User, allow), (User, "allow = [\"b.org\"]")], [Allow, Allow]),
        (&[(User, asking), (User, "unlisted = \"deny\"")], [Deny, Deny]),
        // A list of the system opens hosts, and bounds what the user opens.
        (&[(System, allow)], [Allow, Deny]),
        (&[(System, allow), (User, more)], [Allow, Deny]),
        (&[(System, allow), (User, all)], [Allow, Deny]),
        (&[(System, allow), (User, asking)], [Ask, Deny]),
        (&[(System, allow), (User, "ask = [\"b.org\"]")], [Allow, Deny]),
        (&[(System, asking), (User, allow)], [Ask, Deny]),
        (&[(System, ask), (User, more)], [Ask, Allow]),
        (&[(System, "deny = [\"a.org\"]"), (User, more)], [Deny, Allow]),
        (&[(System, "allow = []"), (User, more)], [Deny, Deny]),
        (&[(System, more), (User, allow)], [Allow, Deny]),
        // An untrusted project only tightens.
        (&[(Project, allow)], [Deny, Deny]),
        (&[(Project, asking)], [Deny, Deny]),
        (&[(Project, all)], [Deny, Deny]),
        (&[(User, more), (Project, allow)], [Allow, Deny]),
        (&[(User, more), (Project, ask)], [Ask, Allow]),
        (&[(User, allow), (Project, more)], [Allow, Deny]),
        (&[(User, asking), (Project, more)], [Ask, Ask]),
        (&[(User, more), (Project, asking)], [Ask, Ask]),
        (&[(User, more), (Project, "deny = [\"a.org\"]")], [Deny, Allow]),
    ];
    for (layers, [first, second]) in table {
        let policy = policy(layers, false);
        assert_eq!(verdict(&policy, "a.org"), *first, "a.org: {layers:?}");
        assert_eq!(verdict(&policy, "b.org"), *second, "b.org: {layers:?}");
    }
}

#[test]
fn a_trusted_project_opens_hosts_within_the_bounds_of_the_system() {
    let project = (Project, "allow = [\"a.org\", \"b.org\"]");
    assert_eq!(verdict(&policy(&[project], true), "a.org"), Verdict::Allow);
    let bounded = policy(&[project, (System, "allow = [\"b.org\"]")], true);
    assert_eq!(verdict(&bounded, "a.org"), Verdict::Deny);
    assert_eq!(verdict(&bounded, "b.org"), Verdict::Allow);
}

#[test]
fn a_switch_of_any_level_closes_listed_hosts() {
    for level in [System, User, Project] {
        let mut policy = policy(&[(User, "allow = [\"a.org\"]")], false);
        let text = "[commands]\nnetwork = false";
        policy.add_layer(PolicyLayer::parse(level, "closed.toml", text).expect("it parses"));
        assert_eq!(verdict(&policy, "a.org"), Verdict::Deny, "{level}");
    }
}

#[test]
fn only_a_rule_for_an_address_names_it() {
    let rules = [
        (User, "allow = [\"10.0.0.1:443\", \"*\"]\nask = [\"10.0.0.5\"]\ndeny = [\"10.0.0.2\"]"),
        (Project, "allow = [\"10.0.0.4\"]"),
    ];
    let policy = policy(&rules, false);
    let names = |text: &str| policy.names_address(&HostAddress::parse(text).expect(text));
    assert!(names("10.0.0.1") && names("10.0.0.5"));
    assert!(!names("10.0.0.3"), "a star covers no special address");
    assert!(!names("10.0.0.1:80") && !names("10.0.0.2") && !names("10.0.0.4"));
}

#[test]
fn a_remedy_names_who_can_change_the_decision() {
    let advice = |layers: &[(PolicyLevel, &str)]| {
        let policy = policy(layers, false);
        let host = HostAddress::parse("b.org").expect("a host");
        let act = Action::Connect(&host);
        let found = policy.verdict(ApprovalMode::Auto, "bash".into(), &act);
        policy.remedy("bash".into(), ApprovalMode::Auto, &act, &found)
    };
    let own = "The user can allow it in their policy file: `allow = [\"b.org\"]` under \
        [commands.network].";
    let allow = "allow = [\"a.org\"]";
    for (layers, expected) in [
        (&[(User, allow)][..], own),
        (&[], own),
        (
            &[(System, allow), (User, allow)],
            "Only the administrator of this machine can change that list in system.toml.",
        ),
        (
            &[(User, "unlisted = \"allow\""), (Project, allow)],
            "The user can change that list in project.toml.",
        ),
        (
            &[(User, "unlisted = \"ask\"")],
            "The user can run cofferdam in a terminal, or allow it in their policy file: `allow = \
                [\"b.org\"]` under [commands.network].",
        ),
    ] {
        assert_eq!(advice(layers), expected, "{layers:?}");
    }
    assert!(advice(&[(Project, "allow = [\"b.org\"]")]).contains("cofferdam trust"));
}
