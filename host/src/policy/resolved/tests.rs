//! The algebra in examples, and its laws over random policies.

use proptest::prelude::*;

use super::*;
use crate::policy::CommandRules;
use crate::policy::pattern::HostAddress;
use crate::policy::{Protected, WorkspacePath};

pub(super) fn layer(level: Level, text: &str) -> Layer {
    Layer::parse(level, &format!("{level}.toml"), text).unwrap_or_else(|error| panic!("{error}"))
}

fn policy(system: &str, user: &str, project: &str) -> Policy {
    let mut policy = Policy::default();
    for (level, text) in [(Level::System, system), (Level::User, user), (Level::Project, project)] {
        policy.add(layer(level, text));
    }
    policy
}

fn on(policy: &Policy, mode: Mode, line: &str) -> Verdict {
    policy.find(mode, "bash".into(), &Deed::Command(line)).verdict
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
    // system, user, project (not trusted) → `git status` in the modes ask and auto
    let table = [
        ("", "", "", Ask, Allow),
        ("", ALLOW, "", Allow, Allow),
        (ALLOW, "", "", Allow, Allow),
        // An untrusted project allows nothing, and bounds what the mode would allow.
        ("", "", ALLOW, Ask, Allow),
        ("", "", EMPTY, Ask, Ask),
        ("", ALLOW, EMPTY, Ask, Ask),
        // An absent list bounds nothing, an empty one allows nothing.
        ("", EMPTY, "", Ask, Ask),
        (EMPTY, ALLOW, "", Ask, Ask),
        // deny > ask > allow, wherever they stand.
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
        let found = (on(&policy, Mode::Ask, "git status"), on(&policy, Mode::Auto, "git status"));
        assert_eq!(found, (in_ask, in_auto), "system: {system}\nuser: {user}\nproject: {project}");
        assert_eq!(on(&policy, Mode::Plan, "git status"), Deny, "mode plan denies every command");
    }
}

#[test]
fn r039_what_is_more_than_an_allowed_command_is_asked() {
    let policy = policy("", ALLOW, "");
    assert_eq!(on(&policy, Mode::Ask, "git status --short"), Verdict::Allow);
    for line in ["git status; x", "git status && x", "git status | x", "git status $(x)", "git push"] {
        assert_eq!(on(&policy, Mode::Ask, line), Verdict::Ask, "{line}");
        assert_eq!(on(&policy, Mode::Auto, line), Verdict::Ask, "the list is all that is allowed: {line}");
    }
}

#[test]
fn a_project_cannot_grant_itself_a_tool() {
    let greedy = "[tools.bash]\nuse = \"allow\"\ngrants = [\"run-commands\"]\n[commands]\nallow = [\"*\"]";
    assert_eq!(on(&policy("", "", greedy), Mode::Ask, "ls"), Verdict::Ask);
    let mut trusted = Policy::default();
    trusted.add_trusted(layer(Level::Project, greedy));
    assert_eq!(on(&trusted, Mode::Ask, "ls"), Verdict::Allow);
}

#[test]
fn lists_of_the_user_and_of_a_trusted_project_are_one_list() {
    let mut policy = policy("", ALLOW, "");
    policy.add_trusted(layer(Level::Project, "[commands]\nallow = [\"make *\"]"));
    for line in ["make all", "git status", "cargo test"] {
        assert_eq!(on(&policy, Mode::Ask, line), Verdict::Allow, "{line}");
    }
    assert_eq!(on(&policy, Mode::Ask, "ls"), Verdict::Ask);
}

#[test]
fn rules_can_be_about_one_tool_by_name_or_digest() {
    let digest = "a".repeat(64);
    let text = format!("[tools.bash]\nuse = \"deny\"\n[tools.\"sha256:{digest}\"]\nuse = \"ask\"");
    let policy = policy("", &text, "");
    let other = ToolId::new("other", &digest);
    let used = |tool: ToolId<'_>| policy.find(Mode::Auto, tool, &Deed::Use).verdict;
    assert_eq!((used("bash".into()), used(other), used("third".into())), (Verdict::Deny, Verdict::Ask, Verdict::Allow));
    assert_eq!(policy.on_tool("third".into()), None);
    // Who denies a tool denies it its reading too; who asks about it does not ask about reading.
    let path = WorkspacePath::parse("a", None).unwrap();
    let reads = |tool: ToolId<'_>| policy.find(Mode::Auto, tool, &Deed::Read(&path)).verdict;
    assert_eq!((reads("bash".into()), reads(other)), (Verdict::Deny, Verdict::Allow));
}

#[test]
fn reading_is_allowed_or_denied_and_never_asked() {
    let path = |text: &str| WorkspacePath::parse(text, None).unwrap();
    let deny = policy("", "[read]\ndeny = [\"secrets/**\"]", "");
    assert_eq!(deny.find(Mode::Ask, "grep".into(), &Deed::Read(&path("Secrets/key"))).verdict, Verdict::Deny);
    assert_eq!(deny.find(Mode::Ask, "grep".into(), &Deed::Read(&path("src/a"))).verdict, Verdict::Allow);
    for project in ["", "[protected]\nshown = [\"*.pem\"]\nwritable = [\".vscode\"]"] {
        let protected = policy("", "[read]\ndeny = [\"secrets/**\"]\n[protected]\nhidden = [\"*.sqlite\"]", project).protected();
        let of = |text: &str| protected.of(&path(text));
        for hidden in ["secrets", "Secrets/key", "a/b.sqlite", "tls/server.pem"] {
            assert_eq!(of(hidden), Some(Protected::Hidden), "{hidden}");
        }
        assert_eq!((of(".vscode/x"), of("a/secrets")), (Some(Protected::ReadOnly), None));
    }
    let user = policy("", "[protected]\nshown = [\"tests/*.pem\"]\nwritable = [\".vscode\"]", "").protected();
    assert_eq!((user.of(&path("tests/a.pem")), user.of(&path(".vscode/x"))), (None, None));
}

#[test]
fn a_sandbox_that_a_layer_demands_can_only_be_raised_by_others() {
    let demands = |level: &str| if level.is_empty() { String::new() } else { format!("[commands]\nminimum = \"{level}\"") };
    let table = [
        (["", "", ""], SandboxLevel::Kernel, None),
        (["full", "", ""], SandboxLevel::Full, Some("system.toml:2:11")),
        (["full", "none", "kernel"], SandboxLevel::Full, Some("system.toml:2:11")),
        (["kernel", "", "full"], SandboxLevel::Full, Some("project.toml:2:11")),
        (["full", "full", "full"], SandboxLevel::Full, Some("system.toml:2:11")),
        // The user's own configuration says `kernel` where it says nothing.
        (["", "none", ""], SandboxLevel::Kernel, None),
    ];
    for (layers, minimum, place) in table {
        let [system, user, project] = layers.map(demands);
        let rules = CommandRules::default().under(&policy(&system, &user, &project));
        let demanded = rules.demanded_at.map(|place| place.to_string());
        assert_eq!((rules.minimum, demanded.as_deref()), (minimum, place), "{layers:?}");
    }
}

#[test]
fn where_a_write_goes_is_not_known_rules_about_writing_ask() {
    let rule = policy("", "[write]\ndeny = [\"secrets/**\"]", "");
    assert_eq!(rule.find(Mode::Auto, "patch".into(), &Deed::Write(None)).verdict, Verdict::Ask);
    assert_eq!(policy("", "", "").find(Mode::Auto, "patch".into(), &Deed::Write(None)).verdict, Verdict::Allow);
    let allow = policy("", "[write]\nallow = [\"**\"]", "");
    assert_eq!(allow.find(Mode::Ask, "patch".into(), &Deed::Write(None)).verdict, Verdict::Ask);
}

#[test]
fn requests_are_decided_by_host_port_and_method() {
    let text = r#"[fetch]
allow = ["docs.rs", { pattern = "*.example.com", methods = ["get"], match = ["a.example.com"], not-match = ["POST a.example.com"] }]
deny = ["evil.example.com"]"#;
    let policy = policy("", text, "");
    let found = |host: &str, method| {
        policy.find(Mode::Auto, "web".into(), &Deed::Fetch { host: &HostAddress::parse(host).unwrap(), method }).verdict
    };
    assert_eq!(found("docs.rs", "POST"), Verdict::Allow);
    assert_eq!(found("a.example.com", "GET"), Verdict::Allow);
    assert_eq!(found("a.example.com", "POST"), Verdict::Ask);
    assert_eq!(found("docs.rs:8080", "GET"), Verdict::Ask);
    assert_eq!(found("evil.example.com", "GET"), Verdict::Deny);
}

#[test]
fn modes_that_are_not_listed_are_lowered() {
    let policy = policy("modes = [\"plan\", \"auto-edit\"]", "modes = [\"plan\", \"ask\", \"auto-edit\"]", "");
    assert_eq!(policy.forbids(Mode::Auto).map(ToString::to_string).as_deref(), Some("system.toml:1:9"));
    assert_eq!(policy.nearest(Mode::Auto), Some(Mode::AutoEdit));
    assert_eq!(policy.nearest(Mode::Ask), Some(Mode::Plan));
    assert_eq!(self::policy("modes = []", "", "").nearest(Mode::Auto), None);
}

#[test]
fn r014_what_a_tool_is_given_is_what_every_layer_leaves() {
    let system = "[tools.\"*\"]\ndeny = [\"fetch\"]";
    let policy = policy(system, "[tools.patch]\ngrants = [\"read-files\"]", "[tools.patch]\ngrants = [\"write-files\", \"fetch\"]");
    let withheld = |tool: &str, capability| policy.withholds(tool.into(), &capability).map(|place| place.file.clone());
    assert_eq!(withheld("other", Capability::Fetch(vec![])).as_deref(), Some("system.toml"));
    assert_eq!(withheld("other", Capability::WriteFiles), None);
    assert_eq!(withheld("patch", Capability::WriteFiles).as_deref(), Some("user.toml"));
    assert_eq!(withheld("patch", Capability::ReadFiles).as_deref(), Some("project.toml"));
}

#[test]
fn r098_the_smallest_maximum_holds() {
    use crate::policy::Cap;
    let policy = policy("[limits]\nseconds = 100", "[tools.slow.limits]\nseconds = 50", "[limits]\nseconds = 3000");
    let mut chosen = Caps::default();
    chosen.set(Cap::Seconds, 600).unwrap();
    assert_eq!(policy.caps("slow".into(), &chosen).value(Cap::Seconds), 50);
    assert_eq!(policy.caps("fast".into(), &chosen).value(Cap::Seconds), 100);
    assert_eq!(policy.caps("fast".into(), &Caps::default()).value(Cap::Seconds), 60);
}

/// A random policy over few words, so that rules and acts meet often.
pub(in crate::policy) fn any_layer() -> impl Strategy<Value = String> {
    let command = prop::sample::select(vec!["a", "a b", "a *", "a b *", "b *", "*", "a c", "* b"]);
    let path = prop::sample::select(vec!["x", "x/**", "**/y", "x/y", "*", "**"]);
    let list = |pattern: prop::sample::Select<&'static str>| prop::option::of(prop::collection::vec(pattern, 0..3));
    let section = |pattern: prop::sample::Select<&'static str>| (list(pattern.clone()), list(pattern.clone()), list(pattern));
    let used = prop::option::of(prop::sample::select(vec!["allow", "ask", "deny"]));
    let tool = prop::sample::select(vec!["bash", "\"*\"", "other"]);
    (section(command), section(path), used, tool).prop_map(|(commands, write, used, tool)| {
        let mut text = String::new();
        for (name, (allow, ask, deny)) in [("commands", commands), ("write", write)] {
            text += &format!("[{name}]\n");
            for (key, list) in [("allow", allow), ("ask", ask), ("deny", deny)] {
                text += &list.map(|list| format!("{key} = {list:?}\n")).unwrap_or_default();
            }
        }
        text + &used.map(|used| format!("[tools.{tool}]\nuse = \"{used}\"\n")).unwrap_or_default()
    })
}

const LINES: [&str; 8] = ["a", "a b", "a b c", "a c", "b", "c", "a b; c", "env a b"];
const PATHS: [&str; 5] = ["x", "x/y", "z", "z/y", "X/Y"];

/// Every answer of a policy that these tests look at, in one order.
fn answers(policy: &Policy) -> Vec<Finding> {
    let paths = PATHS.map(|text| WorkspacePath::parse(text, None).unwrap());
    let mut acts: Vec<Deed<'_>> = LINES.iter().map(|line| Deed::Command(line)).collect();
    acts.extend(paths.iter().map(|path| Deed::Write(Some(path))));
    acts.extend(paths.iter().map(Deed::Read));
    acts.extend([Deed::Write(None), Deed::Use]);
    let all = Mode::ALL.into_iter().flat_map(|mode| acts.iter().map(move |act| policy.find(mode, "bash".into(), act)));
    all.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn an_untrusted_project_never_loosens(system in any_layer(), user in any_layer(), project in any_layer()) {
        let mut without = Policy::default();
        without.add(layer(Level::System, &system));
        without.add(layer(Level::User, &user));
        let mut with = without.clone();
        with.add(layer(Level::Project, &project));
        for (before, after) in answers(&without).iter().zip(&answers(&with)) {
            prop_assert!(after.verdict >= before.verdict, "{before:?} became {after:?}");
        }
    }

    #[test]
    fn no_layer_loosens_more_than_its_own_allow_says(system in any_layer(), user in any_layer(), added in any_layer()) {
        let mut without = Policy::default();
        without.add(layer(Level::System, &system));
        without.add(layer(Level::User, &user));
        let mut with = without.clone();
        with.add_trusted(layer(Level::Project, &added));
        for (before, after) in answers(&without).iter().zip(&answers(&with)) {
            if after.verdict < before.verdict {
                let by_own_allow = matches!(&after.because, Because::Rule(rule) if rule.place.file == "project.toml");
                prop_assert!(by_own_allow, "{before:?} became {after:?}");
                // What was a question of the mode or of the user's own list, and never a rule's or the system's.
                let was_open = match &before.because {
                    Because::Mode(mode) => *mode != Mode::Plan || before.verdict == Verdict::Ask,
                    Because::NotListed(_, place, _) => place.file == "user.toml",
                    Because::Rule(_) | Because::Perhaps(_) | Because::Listed(_) | Because::Reading => false,
                };
                prop_assert!(was_open, "{before:?} became {after:?}");
            }
        }
    }

    #[test]
    fn the_order_of_layers_means_nothing(one in any_layer(), other in any_layer(), third in any_layer()) {
        let layers = [layer(Level::System, &one), layer(Level::User, &other), layer(Level::Project, &third)];
        let mut forth = Policy::default();
        let mut back = Policy::default();
        layers.iter().cloned().for_each(|layer| forth.add(layer));
        layers.into_iter().rev().for_each(|layer| back.add(layer));
        let verdicts = |policy| answers(policy).into_iter().map(|finding| finding.verdict).collect::<Vec<_>>();
        prop_assert_eq!(verdicts(&forth), verdicts(&back));
    }
}

#[test]
fn r122_a_place_of_this_machine_is_named_by_the_user_and_reached_by_who_asks_for_every_host() {
    let text = "fetch.local = ['localhost:3000', '127.0.0.1:3000']";
    let everywhere = Capability::Fetch(vec!["GET *".into(), "docs.rs".into()]);
    let mut policy = Policy::default();
    policy.add(layer(Level::Project, text));
    assert_eq!(policy.with_local(&everywhere), everywhere, "a project nobody trusts has no say in it");
    policy.add(layer(Level::User, text));
    let given = ["GET *", "docs.rs", "GET localhost:3000", "GET 127.0.0.1:3000"].map(str::to_owned).to_vec();
    assert_eq!(policy.with_local(&everywhere), Capability::Fetch(given));
    let one = Capability::Fetch(vec!["docs.rs".into(), "*.example.com".into()]);
    assert_eq!(policy.with_local(&one), one);
    for (text, problem) in [("fetch.local = ['*:3000']", "names of 1 to 63"), ("fetch.local = ['http://localhost']", "scheme")] {
        let error = Layer::parse(Level::User, "policy.toml", text).expect_err(text).to_string();
        assert!(error.contains(problem), "{error}");
    }
}
