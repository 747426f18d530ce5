//! Tests of the combination of layers: examples, and properties of random policies.

use proptest::prelude::*;

use super::*;
use crate::CommandRules;
use crate::pattern::HostAddress;
use crate::{PathProtection, WorkspacePath};

pub(super) fn layer(level: PolicyLevel, text: &str) -> PolicyLayer {
    PolicyLayer::parse(level, &format!("{level}.toml"), text)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn policy(system: &str, user: &str, project: &str) -> Policy {
    let mut policy = Policy::default();
    for (level, text) in
        [(PolicyLevel::System, system), (PolicyLevel::User, user), (PolicyLevel::Project, project)]
    {
        policy.add_layer(layer(level, text));
    }
    policy
}

fn on(policy: &Policy, mode: ApprovalMode, line: &str) -> Verdict {
    policy.verdict(mode, "bash".into(), &Action::Command(line)).verdict
}

const ALLOW: &str = r#"[commands]
allow = ["git status *", "cargo test *"]"#;
const EMPTY: &str = "[commands]\nallow = []";
const ASK: &str = r#"[commands]
ask = ["git status *"]"#;
const DENY: &str = r#"[commands]
deny = ["git *"]"#;

#[test]
fn r035_the_strictest_of_all_matching_rules_decides() {
    use Verdict::{Allow, Ask, Deny};
    // system, user, project (untrusted) → `git status` in the modes `ask` and `auto`
    let table = [
        ("", "", "", Ask, Allow),
        ("", ALLOW, "", Allow, Allow),
        (ALLOW, "", "", Allow, Allow),
        // An untrusted project allows nothing, and can restrict what the mode allows.
        ("", "", ALLOW, Ask, Allow),
        ("", "", EMPTY, Ask, Ask),
        ("", ALLOW, EMPTY, Ask, Ask),
        // An absent list restricts nothing; an empty list allows nothing.
        ("", EMPTY, "", Ask, Ask),
        (EMPTY, ALLOW, "", Ask, Ask),
        // deny > ask > allow, in any layer.
        (ALLOW, ASK, "", Ask, Ask),
        (ASK, ALLOW, "", Ask, Ask),
        ("", ALLOW, ASK, Ask, Ask),
        (DENY, ALLOW, "", Deny, Deny),
        (ALLOW, DENY, "", Deny, Deny),
        (ALLOW, ALLOW, DENY, Deny, Deny),
        (ASK, DENY, "", Deny, Deny),
    ];
    for (system, user, project, in_ask, in_auto) in table {
        let policy = policy(system, user, project);
        let found = (
            on(&policy, ApprovalMode::Ask, "git status"),
            on(&policy, ApprovalMode::Auto, "git status"),
        );
        assert_eq!(found, (in_ask, in_auto), "system: {system}\nuser: {user}\nproject: {project}");
        assert_eq!(
            on(&policy, ApprovalMode::Plan, "git status"),
            Deny,
            "mode plan denies every command"
        );
    }
}

#[test]
fn r039_a_line_beyond_an_allowed_command_needs_approval() {
    let policy = policy("", ALLOW, "");
    assert_eq!(on(&policy, ApprovalMode::Ask, "git status --short"), Verdict::Allow);
    for line in
        ["git status; x", "git status && x", "git status | x", "git status $(x)", "git push"]
    {
        assert_eq!(on(&policy, ApprovalMode::Ask, line), Verdict::Ask, "{line}");
        assert_eq!(
            on(&policy, ApprovalMode::Auto, line),
            Verdict::Ask,
            "the list is all that is allowed: {line}"
        );
    }
}

#[test]
fn a_project_cannot_grant_itself_a_tool() {
    let greedy =
        "[tools.bash]\nuse = \"allow\"\ngrants = [\"run-commands\"]\n[commands]\nallow = [\"*\"]";
    assert_eq!(on(&policy("", "", greedy), ApprovalMode::Ask, "ls"), Verdict::Ask);
    let mut trusted = Policy::default();
    trusted.add_trusted_layer(layer(PolicyLevel::Project, greedy));
    assert_eq!(on(&trusted, ApprovalMode::Ask, "ls"), Verdict::Allow);
}

#[test]
fn the_lists_of_the_user_and_of_a_trusted_project_are_combined() {
    let mut policy = policy("", ALLOW, "");
    policy.add_trusted_layer(layer(PolicyLevel::Project, "[commands]\nallow = [\"make *\"]"));
    for line in ["make all", "git status", "cargo test"] {
        assert_eq!(on(&policy, ApprovalMode::Ask, line), Verdict::Allow, "{line}");
    }
    assert_eq!(on(&policy, ApprovalMode::Ask, "ls"), Verdict::Ask);
}

#[test]
fn rules_can_be_about_one_tool_by_name_or_digest() {
    let digest = "a".repeat(64);
    let text = format!("[tools.bash]\nuse = \"deny\"\n[tools.\"sha256:{digest}\"]\nuse = \"ask\"");
    let policy = policy("", &text, "");
    let other = ToolId::new("other", &digest);
    let used = |tool: ToolId<'_>| policy.verdict(ApprovalMode::Auto, tool, &Action::Use).verdict;
    assert_eq!(
        (used("bash".into()), used(other), used("third".into())),
        (Verdict::Deny, Verdict::Ask, Verdict::Allow)
    );
    assert_eq!(policy.tool_verdict("third".into()), None);
    let verdict = |tool: ToolId<'_>| policy.tool_verdict(tool).map(|found| found.verdict);
    assert_eq!(verdict("bash".into()), Some(Verdict::Deny));
    assert_eq!(verdict(other), Some(Verdict::Ask));
    // Denying a tool denies its reads too. Asking about a tool does not affect its reads.
    let path = WorkspacePath::parse("a", None).unwrap();
    let reads =
        |tool: ToolId<'_>| policy.verdict(ApprovalMode::Auto, tool, &Action::Read(&path)).verdict;
    assert_eq!((reads("bash".into()), reads(other)), (Verdict::Deny, Verdict::Allow));
}

#[test]
fn reading_is_allowed_or_denied_and_never_asked() {
    let path = |text: &str| WorkspacePath::parse(text, None).unwrap();
    let deny = policy("", "[read]\ndeny = [\"secrets/**\"]", "");
    assert_eq!(
        deny.verdict(ApprovalMode::Ask, "grep".into(), &Action::Read(&path("Secrets/key"))).verdict,
        Verdict::Deny
    );
    assert_eq!(
        deny.verdict(ApprovalMode::Ask, "grep".into(), &Action::Read(&path("src/a"))).verdict,
        Verdict::Allow
    );
    for project in ["", "[protected]\nshown = [\"*.pem\"]\nwritable = [\".vscode\"]"] {
        let protected = policy(
            "",
            "[read]\ndeny = [\"secrets/**\"]\n[protected]\nhidden = [\"*.sqlite\"]",
            project,
        )
        .protected_paths();
        let of = |text: &str| protected.protection(&path(text));
        for hidden in ["secrets", "Secrets/key", "a/b.sqlite", "tls/server.pem"] {
            assert_eq!(of(hidden), Some(PathProtection::Hidden), "{hidden}");
        }
        assert_eq!((of(".vscode/x"), of("a/secrets")), (Some(PathProtection::ReadOnly), None));
    }
    let user = policy("", "[protected]\nshown = [\"tests/*.pem\"]\nwritable = [\".vscode\"]", "")
        .protected_paths();
    assert_eq!(
        (user.protection(&path("tests/a.pem")), user.protection(&path(".vscode/x"))),
        (None, None)
    );
}

#[test]
fn other_layers_can_only_raise_the_minimum_sandbox() {
    let demands = |level: &str| {
        if level.is_empty() { String::new() } else { format!("[commands]\nminimum = \"{level}\"") }
    };
    let table = [
        (["", "", ""], SandboxLevel::Kernel, None),
        (["full", "", ""], SandboxLevel::Full, Some("system.toml:2:11")),
        (["full", "none", "kernel"], SandboxLevel::Full, Some("system.toml:2:11")),
        (["kernel", "", "full"], SandboxLevel::Full, Some("project.toml:2:11")),
        (["full", "full", "full"], SandboxLevel::Full, Some("system.toml:2:11")),
        // The default of the user's own configuration is `kernel`.
        (["", "none", ""], SandboxLevel::Kernel, None),
    ];
    for (layers, minimum, place) in table {
        let [system, user, project] = layers.map(demands);
        let rules = CommandRules::default().with_policy(&policy(&system, &user, &project));
        let demanded = rules.required_by.map(|place| place.to_string());
        assert_eq!((rules.minimum, demanded.as_deref()), (minimum, place), "{layers:?}");
    }
}

#[test]
fn a_write_to_an_unknown_path_needs_approval_if_rules_exist() {
    let rule = policy("", "[write]\ndeny = [\"secrets/**\"]", "");
    assert_eq!(
        rule.verdict(ApprovalMode::Auto, "patch".into(), &Action::Write(None)).verdict,
        Verdict::Ask
    );
    assert_eq!(
        policy("", "", "")
            .verdict(ApprovalMode::Auto, "patch".into(), &Action::Write(None))
            .verdict,
        Verdict::Allow
    );
    let allow = policy("", "[write]\nallow = [\"**\"]", "");
    assert_eq!(
        allow.verdict(ApprovalMode::Ask, "patch".into(), &Action::Write(None)).verdict,
        Verdict::Ask
    );
}

#[test]
fn requests_are_decided_by_host_port_and_method() {
    let text = r#"[fetch]
allow = ["docs.rs", { pattern = "*.example.com", methods = ["get"], match = [
    "a.example.com",
], not-match = [
    "POST a.example.com",
] }]
deny = ["evil.example.com"]"#;
    let policy = policy("", text, "");
    let found = |host: &str, method| {
        policy
            .verdict(
                ApprovalMode::Auto,
                "web".into(),
                &Action::Fetch { host: &HostAddress::parse(host).unwrap(), method },
            )
            .verdict
    };
    assert_eq!(found("docs.rs", "POST"), Verdict::Allow);
    assert_eq!(found("a.example.com", "GET"), Verdict::Allow);
    assert_eq!(found("a.example.com", "POST"), Verdict::Ask);
    assert_eq!(found("docs.rs:8080", "GET"), Verdict::Ask);
    assert_eq!(found("evil.example.com", "GET"), Verdict::Deny);
}

#[test]
fn denied_modes_are_lowered() {
    let policy = policy(
        "modes = [\"plan\", \"auto-edit\"]",
        "modes = [\"plan\", \"ask\", \"auto-edit\"]",
        "",
    );
    assert_eq!(
        policy.mode_denied_by(ApprovalMode::Auto).map(ToString::to_string).as_deref(),
        Some("system.toml:1:9")
    );
    assert_eq!(policy.nearest_mode(ApprovalMode::Auto), Some(ApprovalMode::AutoEdit));
    assert_eq!(policy.nearest_mode(ApprovalMode::Ask), Some(ApprovalMode::Plan));
    assert_eq!(self::policy("modes = []", "", "").nearest_mode(ApprovalMode::Auto), None);
}

#[test]
fn r014_a_permission_needs_the_consent_of_every_layer() {
    let system = "[tools.\"*\"]\ndeny = [\"fetch\"]";
    let policy = policy(
        system,
        "[tools.patch]\ngrants = [\"read-files\"]",
        "[tools.patch]\ngrants = [\"write-files\", \"fetch\"]",
    );
    let withheld = |tool: &str, capability| {
        policy.capability_denied_by(tool.into(), &capability).map(|place| place.file.clone())
    };
    assert_eq!(withheld("other", Capability::Fetch(vec![])).as_deref(), Some("system.toml"));
    assert_eq!(withheld("other", Capability::WriteFiles), None);
    assert_eq!(withheld("patch", Capability::WriteFiles).as_deref(), Some("user.toml"));
    assert_eq!(withheld("patch", Capability::ReadFiles).as_deref(), Some("project.toml"));
    // A tool that cannot read cannot write either. Other capabilities are independent.
    let unread = self::policy("[tools.patch]\ndeny = [\"read-files\"]", "", "");
    for (capability, expected) in [
        (Capability::ReadFiles, true),
        (Capability::WriteFiles, true),
        (Capability::RunCommands, false),
        (Capability::Fetch(vec![]), false),
    ] {
        let denied = unread.capability_denied_by("patch".into(), &capability).is_some();
        assert_eq!(denied, expected, "{capability:?}");
    }
}

#[test]
fn r098_the_smallest_maximum_holds() {
    use crate::CapName;
    let policy = policy(
        "[limits]\nseconds = 100",
        "[tools.slow.limits]\nseconds = 50",
        "[limits]\nseconds = 3000",
    );
    let mut chosen = Caps::default();
    chosen.set(CapName::Seconds, 600).unwrap();
    assert_eq!(policy.effective_caps("slow".into(), &chosen).value(CapName::Seconds), 50);
    assert_eq!(policy.effective_caps("fast".into(), &chosen).value(CapName::Seconds), 100);
    assert_eq!(policy.effective_caps("fast".into(), &Caps::default()).value(CapName::Seconds), 60);
}

/// Returns a random policy with few different words, so that many rules match.
pub(crate) fn any_layer() -> impl Strategy<Value = String> {
    let command = prop::sample::select(vec!["a", "a b", "a *", "a b *", "b *", "*", "a c", "* b"]);
    let path = prop::sample::select(vec!["x", "x/**", "**/y", "x/y", "*", "**"]);
    let list = |pattern: prop::sample::Select<&'static str>| {
        prop::option::of(prop::collection::vec(pattern, 0..3))
    };
    let section = |pattern: prop::sample::Select<&'static str>| {
        (list(pattern.clone()), list(pattern.clone()), list(pattern))
    };
    let used = prop::option::of(prop::sample::select(vec!["allow", "ask", "deny"]));
    let tool = prop::sample::select(vec!["bash", "\"*\"", "other"]);
    let host = prop::sample::select(vec!["a.org", "*.b.org", "a.org:22", "*"]);
    let unlisted = used.clone();
    let all = (section(command), section(path), section(host), unlisted, used, tool);
    all.prop_map(|(commands, write, hosts, unlisted, used, tool)| {
        let mut text = String::new();
        for (name, (allow, ask, deny)) in
            [("commands", commands), ("write", write), ("commands.network", hosts)]
        {
            text += &format!("[{name}]\n");
            for (key, list) in [("allow", allow), ("ask", ask), ("deny", deny)] {
                text += &list.map(|list| format!("{key} = {list:?}\n")).unwrap_or_default();
            }
        }
        text += &unlisted.map(|value| format!("unlisted = \"{value}\"\n")).unwrap_or_default();
        text + &used.map(|used| format!("[tools.{tool}]\nuse = \"{used}\"\n")).unwrap_or_default()
    })
}

const LINES: [&str; 8] = ["a", "a b", "a b c", "a c", "b", "c", "a b; c", "env a b"];
const PATHS: [&str; 5] = ["x", "x/y", "z", "z/y", "X/Y"];

/// Returns the verdicts of a policy about all test actions, in a fixed order.
fn answers(policy: &Policy) -> Vec<ReasonedVerdict> {
    let paths = PATHS.map(|text| WorkspacePath::parse(text, None).unwrap());
    let mut acts: Vec<Action<'_>> = LINES.iter().map(|line| Action::Command(line)).collect();
    acts.extend(paths.iter().map(|path| Action::Write(Some(path))));
    acts.extend(paths.iter().map(Action::Read));
    acts.extend([Action::Write(None), Action::Use]);
    let all = ApprovalMode::ALL
        .into_iter()
        .flat_map(|mode| acts.iter().map(move |act| policy.verdict(mode, "bash".into(), act)));
    all.collect()
}

/// Returns the verdicts of a policy about connections to test hosts, in a fixed order.
fn host_answers(policy: &Policy) -> Vec<ReasonedVerdict> {
    let hosts = ["a.org", "x.b.org", "a.org:22", "c.org:80", "10.0.0.1"];
    let hosts = hosts.map(|text| HostAddress::parse(text).unwrap());
    let act = |host| policy.verdict(ApprovalMode::Auto, "bash".into(), &Action::Connect(host));
    hosts.iter().map(act).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn an_untrusted_project_never_loosens(
        system in any_layer(),
        user in any_layer(),
        project in any_layer(),
    ) {
        let mut without = Policy::default();
        without.add_layer(layer(PolicyLevel::System, &system));
        without.add_layer(layer(PolicyLevel::User, &user));
        let mut with = without.clone();
        with.add_layer(layer(PolicyLevel::Project, &project));
        for (before, after) in answers(&without).iter().zip(&answers(&with)) {
            prop_assert!(after.verdict >= before.verdict, "{before:?} became {after:?}");
        }
        for (before, after) in host_answers(&without).iter().zip(&host_answers(&with)) {
            prop_assert!(after.verdict >= before.verdict, "{before:?} became {after:?}");
        }
    }

    #[test]
    fn a_level_bounds_the_hosts_of_the_levels_below(
        system in any_layer(),
        user in any_layer(),
    ) {
        let mut bounded = Policy::default();
        bounded.add_layer(layer(PolicyLevel::System, &system));
        bounded.add_layer(layer(PolicyLevel::User, "[commands.network]\nunlisted = \"allow\""));
        let mut both = Policy::default();
        both.add_layer(layer(PolicyLevel::System, &system));
        both.add_layer(layer(PolicyLevel::User, &user));
        for (most, found) in host_answers(&bounded).iter().zip(&host_answers(&both)) {
            prop_assert!(found.verdict >= most.verdict, "{most:?} became {found:?}");
        }
    }

    #[test]
    fn a_layer_loosens_only_by_its_allow_rules(
        system in any_layer(),
        user in any_layer(),
        added in any_layer(),
    ) {
        let mut without = Policy::default();
        without.add_layer(layer(PolicyLevel::System, &system));
        without.add_layer(layer(PolicyLevel::User, &user));
        let mut with = without.clone();
        with.add_trusted_layer(layer(PolicyLevel::Project, &added));
        for (before, after) in answers(&without).iter().zip(&answers(&with)) {
            if after.verdict < before.verdict {
                let by_own_allow = matches!(
                    &after.reason,
                    VerdictReason::Rule(rule) if rule.place.file == "project.toml"
                );
                prop_assert!(by_own_allow, "{before:?} became {after:?}");
                // The question came from the mode or from the user's own list. It never came from a
                // rule or from the system.
                let was_open = match &before.reason {
                    VerdictReason::Mode(mode) => {
                        *mode != ApprovalMode::Plan || before.verdict == Verdict::Ask
                    }
                    VerdictReason::NotListed(_, place, _)
                    | VerdictReason::UnlistedHost(place, _) => place.file == "user.toml",
                    VerdictReason::NoNetwork(place) => place.is_none(),
                    VerdictReason::Rule(_)
                    | VerdictReason::Perhaps(_)
                    | VerdictReason::Listed(_)
                    | VerdictReason::Reading => false,
                };
                prop_assert!(was_open, "{before:?} became {after:?}");
            }
        }
    }

    #[test]
    fn the_order_of_layers_does_not_matter(
        one in any_layer(),
        other in any_layer(),
        third in any_layer(),
    ) {
        let layers = [
            layer(PolicyLevel::System, &one),
            layer(PolicyLevel::User, &other),
            layer(PolicyLevel::Project, &third),
        ];
        let mut forth = Policy::default();
        let mut back = Policy::default();
        layers.iter().cloned().for_each(|layer| forth.add_layer(layer));
        layers.into_iter().rev().for_each(|layer| back.add_layer(layer));
        let verdicts = |policy| {
            answers(policy).into_iter().map(|finding| finding.verdict).collect::<Vec<_>>()
        };
        prop_assert_eq!(verdicts(&forth), verdicts(&back));
    }
}

#[test]
fn r122_a_place_of_this_machine_is_named_by_the_user_and_reached_by_who_asks_for_every_host() {
    let text = "fetch.local = ['localhost:3000', '127.0.0.1:3000']";
    let everywhere = Capability::Fetch(vec!["GET *".into(), "docs.rs".into()]);
    let mut policy = Policy::default();
    policy.add_layer(layer(PolicyLevel::Project, text));
    assert_eq!(
        policy.with_local_hosts(&everywhere),
        everywhere,
        "a project nobody trusts has no say in it"
    );
    policy.add_layer(layer(PolicyLevel::User, text));
    let given = ["GET *", "docs.rs", "GET localhost:3000", "GET 127.0.0.1:3000"]
        .map(str::to_owned)
        .to_vec();
    assert_eq!(policy.with_local_hosts(&everywhere), Capability::Fetch(given));
    let one = Capability::Fetch(vec!["docs.rs".into(), "*.example.com".into()]);
    assert_eq!(policy.with_local_hosts(&one), one);
    for (text, problem) in [
        ("fetch.local = ['*:3000']", "labels of 1 to 63"),
        ("fetch.local = ['http://localhost']", "scheme"),
    ] {
        let error =
            PolicyLayer::parse(PolicyLevel::User, "policy.toml", text).expect_err(text).to_string();
        assert!(error.contains(problem), "{error}");
    }
}
