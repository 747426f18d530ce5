//! Tests of errors in policy files and their locations.

use super::*;
use crate::{Action, CapName, PatternMatch, PolicyError, Verdict};

fn parse(level: PolicyLevel, text: &str) -> Result<PolicyLayer, String> {
    PolicyLayer::parse(level, "p.toml", text).map_err(|error: PolicyError| error.to_string())
}

#[test]
fn invalid_files_are_errors_with_a_location() {
    let table = [
        ("modes = [\"yolo\"]", "p.toml:1:10: unknown variant `yolo`"),
        ("modles = []", "p.toml:1:1: unknown field `modles`"),
        ("[commands]\nalow = []", "p.toml:2:1: unknown field `alow`"),
        (
            "[commands]\nallow = [\n  \"git status\",\n  \"git status; x\",\n]",
            "p.toml:4:3: `git status; x` is not a command pattern: ';' is not allowed",
        ),
        ("[commands]\nallow = \"ls\"", "p.toml:2:9: invalid type: string"),
        (
            "[commands]\nallow = [7]",
            "p.toml:2:10: invalid type: integer `7`, expected a pattern, or a table with",
        ),
        ("[plugins]\ndigests = [\"sha256:12\"]", "p.toml:2:12: a digest is"),
        ("[models]\nproviders = [\"acme\"]", "p.toml:2:14: unknown provider \"acme\""),
        ("[commands]\nread = [\"a/b\"]", "p.toml:2:9: \"a/b\" is not an absolute path"),
        ("[commands]\nallow = [{ pattern = \"ls\", metods = [] }]", "p.toml:2:"),
        (
            "[commands]\nallow = [{ pattern = \"ls\", methods = [] }]",
            "p.toml:2:10: `methods` is not allowed in [commands]",
        ),
        ("[commands]\nallow = [{ tool = \"bash\" }]", "p.toml:2:10: the pattern is empty"),
        (
            "[commands]\nallow = [{ pattern = \"ls\", tool = \"b\u{430}sh\" }]",
            "p.toml:2:10: \"b\u{430}sh\" is not a tool",
        ),
        ("[read]\nask = []", "p.toml:2:1: unknown field `ask`"),
        (
            "[read]\ndeny = [{ pattern = \"a\", tool = \"grep\" }]",
            "p.toml:2:9: `tool` is not allowed in [read]",
        ),
        ("[protected]\nhidden = [\"ok\", \"/etc\"]", "p.toml:2:17: `/etc` is not a pattern"),
        ("[commands]\nminimum = \"strong\"", "p.toml:2:11: unknown variant `strong`"),
        ("[write]\nminimum = \"full\"", "p.toml:2:1: unknown field `minimum`"),
        (
            "[protected]\nwritable = [\".nope\"]",
            "p.toml:2:13: this pattern is not in the built-in lists",
        ),
        (
            "[write]\ndeny = [\"../x\"]",
            "p.toml:2:9: `../x` is not a path pattern: `..` is not \
            allowed",
        ),
        (
            "[fetch]\ndeny = [\"https://x.org\"]",
            "p.toml:2:9: `https://x.org` is not a host pattern: remove the scheme",
        ),
        (
            "[fetch]\ndeny = [{ pattern = \"x.org\", methods = [] }]",
            "p.toml:2:9: `methods` is empty",
        ),
        (
            "[fetch]\ndeny = [{ pattern = \"x.org\", methods = [\"GET,POST\"] }]",
            "p.toml:2:9: \"GET,POST\" is not a method",
        ),
        (
            "[commands]\ndeny = [\"git push **\"]",
            "p.toml:2:9: `git push **` is not a command pattern: `**` is",
        ),
        ("[tools.bash]\nuse = \"never\"", "p.toml:2:7: unknown variant `never`"),
        ("[tools.bash]\ngrants = [\"root\"]", "p.toml:2:11: unknown variant `root`"),
        ("[tools.\"sha256:12\"]\nuse = \"ask\"", "p.toml:1:8: a digest is"),
        ("[limits]\nseconds = 0", "p.toml:2:11: seconds = 0 is out of range: use 1 to 3600"),
        ("[limits]\nsecond = 1", "p.toml:2:1: unknown variant `second`"),
        ("[tools.bash.limits]\nmemory_mib = -1", "p.toml:2:14: invalid value"),
        ("x = ", "p.toml:1:5: "),
    ];
    for (text, expected) in table {
        let problem = parse(PolicyLevel::User, text).expect_err(text);
        assert!(problem.starts_with(expected), "{text}\n{problem}");
    }
}

#[test]
fn a_capability_that_no_longer_exists_is_ignored() {
    let text = "[tools.bash]\ngrants = [\"read-environment\"]\n\
        deny = [\"fetch\", \"read-environment\"]";
    let layer = parse(PolicyLevel::User, text).expect("the file stays valid");
    let rule = &layer.grants[0];
    let kinds = |list: &Option<(BTreeSet<CapabilityKind>, SourceLocation)>| {
        list.as_ref().map(|(kinds, _)| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>())
    };
    // The list `grants` stays a list that allows nothing else.
    assert_eq!(kinds(&rule.allowed), Some(vec![]));
    assert_eq!(kinds(&rule.denied), Some(vec!["fetch"]));
}

#[test]
fn a_project_cannot_choose_a_profile() {
    assert!(
        parse(PolicyLevel::Project, "profile = \"develop\"")
            .unwrap_err()
            .starts_with("p.toml:1:11: the policy file of a project cannot choose a profile")
    );
    assert_eq!(
        parse(PolicyLevel::User, "profile = \"read-only\"").unwrap().profile.unwrap().0,
        PolicyProfile::ReadOnly
    );
}

#[test]
fn the_tests_of_rules_are_run() {
    let good = r#"
[commands]
allow = [{ pattern = "cargo test *", match = ["cargo test --lib"], not-match = [
    "cargo test; x",
    "cargo publish",
] }]
deny = [{ pattern = "git push *", match = ["true; git push"], not-match = ["git pull"] }]
[write]
allow = [{ pattern = "src/**", match = ["src/a.rs"], not-match = ["src2/a.rs"] }]
"#;
    assert_eq!(parse(PolicyLevel::User, good).map(|layer| layer.rules.len()), Ok(3));
    let problem = parse(
        PolicyLevel::User,
        "[commands]\nallow = [{ pattern = \"ls\", match = [\"ls -la\"] }]",
    )
    .unwrap_err();
    assert_eq!(
        problem,
        "p.toml:2:10: a test of the rule failed: `ls` should cover `ls -la`, but does not"
    );
    let problem = parse(
        PolicyLevel::User,
        "[commands]\nallow = [{ pattern = \"ls *\", not-match = [\"ls -la\"] }]",
    )
    .unwrap_err();
    assert_eq!(
        problem,
        "p.toml:2:10: a test of the rule failed: `ls *` should not cover `ls -la`, but does"
    );
}

#[test]
fn every_section_of_a_file_is_parsed() {
    let digest = "0".repeat(64);
    let text = format!(
        r#"
profile = "locked-down"
modes = ["plan", "ask"]
[commands]
allow = ["ls *", {{ pattern = "make", tool = "bash" }}]
ask = ["git push *"]
minimum = "full"
[read]
deny = ["**/*.pem"]
[protected]
hidden = ["secrets"]
writable = [".vscode"]
[fetch]
allow = [{{ pattern = "docs.rs", methods = ["GET"] }}]
[tools.word_count]
use = "ask"
grants = ["read-files"]
limits = {{ seconds = 5 }}
[tools."sha256:{digest}"]
deny = ["fetch"]
[limits]
memory_mib = 128
"#
    );
    let layer = parse(PolicyLevel::System, &text).unwrap();
    assert_eq!(layer.rules.len(), 6);
    assert_eq!(
        layer.allow_lists.keys().copied().collect::<Vec<_>>(),
        [ActionKind::Commands, ActionKind::Fetch]
    );
    assert_eq!(layer.allow_lists[&ActionKind::Commands].to_string(), "p.toml:5:9");
    assert_eq!(
        layer.max_caps.iter().map(|(_, caps, _)| caps.value(CapName::Seconds)).collect::<Vec<_>>(),
        [60, 5]
    );
    assert_eq!(layer.grants.len(), 2);
    assert_eq!(
        layer.minimum_sandbox.map(|(level, place)| format!("{level} {place}")).as_deref(),
        Some("full p.toml:7:11")
    );
}

#[test]
fn a_denied_method_is_denied_in_whatever_letters_and_an_allowed_one_is_not() {
    let text = "[fetch]\ndeny = [{ pattern = \"x.org\", methods = [\"delete\"] }]\nallow = [{ \
        pattern = \"y.org\", methods = [\"GET\"] }]";
    let layer = parse(PolicyLevel::User, text).unwrap();
    let on = |rule: usize, host: &str, method: &str| {
        let host = crate::HostAddress::parse(host).unwrap();
        layer.rules[rule].matches(ToolId::new("t", ""), &Action::Fetch { host: &host, method })
    };
    let written: Vec<&str> =
        layer.rules.iter().map(|rule| rule.source_rule.text.as_str()).collect();
    assert_eq!(written, ["GET y.org", "DELETE x.org"], "the methods are told with the rule");
    let (allow, deny) =
        if layer.rules[0].source_rule.verdict == Verdict::Allow { (0, 1) } else { (1, 0) };
    for method in ["DELETE", "delete", "Delete"] {
        assert_eq!(on(deny, "x.org", method), PatternMatch::Yes, "{method}");
    }
    assert_eq!(
        (on(allow, "y.org", "GET"), on(allow, "y.org", "get")),
        (PatternMatch::Yes, PatternMatch::No)
    );
}

#[test]
fn tool_names_ignore_case() {
    let layer = parse(
        PolicyLevel::User,
        "[tools.Bash]\nuse = \"deny\"\n[commands]\nallow = [{ pattern = \"ls\", tool = \"GREP\" }]",
    )
    .unwrap();
    assert!(
        layer
            .rules
            .iter()
            .any(|rule| rule.matches(ToolId::new("bash", ""), &Action::Use) == PatternMatch::Yes)
    );
    let named: Vec<String> =
        layer.named_tools.iter().map(|(subject, place)| format!("{subject} {place}")).collect();
    assert_eq!(named, ["GREP p.toml:4:10", "Bash p.toml:1:8"]);
}

#[test]
fn r098_a_project_has_no_more_patterns_than_can_be_tried_on_every_path() {
    let hidden = |count: usize| {
        format!(
            "[protected]\nhidden = [{}]",
            (0..count).map(|n| format!("\"f{n}\"")).collect::<Vec<_>>().join(",")
        )
    };
    let denied = |count: usize| {
        format!(
            "[commands]\ndeny = [{}]",
            (0..count).map(|n| format!("\"f{n}\"")).collect::<Vec<_>>().join(",")
        )
    };
    for text in [hidden(1_001), denied(1_001), format!("{}\n{}", hidden(600), denied(600))] {
        let problem =
            PolicyLayer::parse(PolicyLevel::Project, "p.toml", &text).unwrap_err().to_string();
        assert!(problem.contains("are too many for a project policy"), "{problem}");
        assert!(PolicyLayer::parse(PolicyLevel::User, "p.toml", &text).is_ok());
    }
    assert!(PolicyLayer::parse(PolicyLevel::Project, "p.toml", &hidden(1_000)).is_ok());
}

#[test]
fn r098_a_pattern_of_a_project_has_a_size() {
    let stars = |count: usize| format!("[commands]\ndeny = [\"x{}\"]", " *a".repeat(count));
    let long =
        |section: &str, length: usize| format!("[{section}]\ndeny = [\"{}\"]", "a".repeat(length));
    let hidden = format!("[protected]\nhidden = [\"{}b\"]", "*a".repeat(17));
    assert_eq!(parse(PolicyLevel::Project, &stars(16)).map(|layer| layer.rules.len()), Ok(1));
    let problem = parse(PolicyLevel::Project, &stars(17)).unwrap_err();
    assert!(
        problem.contains(
            "p.toml:2:9: a pattern with 17 stars is too complex for a project policy: use at most \
                16"
        ),
        "{problem}"
    );
    for section in ["commands", "read", "write"] {
        assert!(parse(PolicyLevel::Project, &long(section, 512)).is_ok(), "{section}");
        let problem = parse(PolicyLevel::Project, &long(section, 513)).unwrap_err();
        assert!(
            problem.contains(
                "a pattern of 513 characters is too long for a project policy: use at most 512"
            ),
            "{problem}"
        );
    }
    assert!(parse(PolicyLevel::Project, &hidden).unwrap_err().contains("17 stars"));
    let both = format!("[write]\ndeny = [\"{}{}\"]", "*a".repeat(17), "a".repeat(478));
    assert!(parse(PolicyLevel::Project, &both).unwrap_err().contains("17 stars"));
    let many = |length: usize| {
        let patterns: Vec<String> =
            (0..100).map(|number| format!("\"*{number:03}{}\"", "a".repeat(length - 4))).collect();
        format!("[protected]\nhidden = [{}]", patterns.join(", "))
    };
    assert!(parse(PolicyLevel::Project, &many(100)).is_ok());
    let problem = parse(PolicyLevel::Project, &many(101)).unwrap_err();
    assert!(
        problem.contains("10100 characters in words and names with a star are too many"),
        "{problem}"
    );
    // Users have no size limits beyond the work budget of a decision.
    assert!(
        parse(PolicyLevel::User, &stars(60)).is_ok()
            && parse(PolicyLevel::User, &long("write", 600)).is_ok()
    );
}

#[test]
fn a_digest_has_64_lower_case_digits() {
    for digits in ["g".repeat(64), "A".repeat(64), "a".repeat(63), "a".repeat(65)] {
        for text in [
            format!("[plugins]\ndigests = [\"sha256:{digits}\"]"),
            format!("[tools.\"sha256:{digits}\"]\nuse = \"ask\""),
        ] {
            let problem = parse(PolicyLevel::User, &text).expect_err(&text);
            assert!(problem.contains("a digest is"), "{problem}");
        }
    }
}

#[test]
fn a_write_to_an_unknown_path_might_be_covered_and_is_never_allowed_by_a_rule() {
    for (verdict, expected) in
        [("allow", PatternMatch::No), ("ask", PatternMatch::Maybe), ("deny", PatternMatch::Maybe)]
    {
        let text = format!("[write]\n{verdict} = [\"**\"]");
        let layer = parse(PolicyLevel::User, &text).expect("a policy");
        let found = layer.rules[0].matches(ToolId::new("t", ""), &Action::Write(None));
        assert_eq!(found, expected, "{verdict}");
    }
}
