//! Policy files of the real program: what they allow, and what the model and the user are told.

use cofferdam_tests::program::TestHome;
use cofferdam_tests::wire::{both_providers, call_reply, text_reply};
use serde_json::{Value, json};

use super::new_home;
use super::policy_explain::EXPLAIN_CASES;

pub(crate) const USER_POLICY: &str = "config/cofferdam/policy.toml";
const PROJECT_POLICY: &str = "workspace/.cofferdam/policy.toml";

pub(crate) fn home_with_policy(file: &str, text: &str) -> TestHome {
    let home = new_home();
    home.write_file(file, text);
    home
}

/// What a text says, with the paths of this home made those of every home.
pub(crate) fn normalize_paths(home: &TestHome, text: &str) -> String {
    let real = home.path().canonicalize().expect("it is there");
    text.replace(&*real.to_string_lossy(), "~").replace(&*home.path().to_string_lossy(), "~")
}

#[test]
fn r036_the_model_is_told_rule_file_and_line() {
    for provider in both_providers() {
        let home = home_with_policy(USER_POLICY, "# Mine.\n\n[commands]\ndeny = [\"touch *\"]\n");
        let server = provider
            .serve([call_reply("bash", json!({"command": "touch ran"})), text_reply("Then not.")]);
        home.run_task(&server, &["--mode", "auto"]).expect_answer("Then not.");
        let [denied] =
            server.last_request().tool_results().try_into().expect("there is one result");
        let text = normalize_paths(&home, &denied.text);
        assert!(
            denied.is_error && text.contains("denied (policy): bash may not run `touch ran`"),
            "{text}"
        );
        assert!(
            text.contains(
                "the rule deny `touch *` of [commands] at \
            ~/config/cofferdam/policy.toml:4:9 covers it"
            ),
            "{text}"
        );
        assert!(
            text.contains("The user can change that rule in ~/config/cofferdam/policy.toml"),
            "{text}"
        );
        assert!(!home.has_file("ran"));
    }
}

#[test]
fn r037_a_rule_allows_where_nobody_can_be_asked_and_nothing_more_than_it_says() {
    for provider in both_providers() {
        let home = home_with_policy(USER_POLICY, "[commands]\nallow = [\"touch one *\"]\n");
        let all = call_reply("bash", json!({"command": "touch one two"}))
            .with_call("bash", json!({"command": "touch one; touch three"}))
            .with_call("bash", json!({"command": "touch four"}));
        let server = provider.serve([all, text_reply("Done.")]);
        home.run_task(&server, &[]).expect_answer("Done.");
        let [one, opaque, other] =
            server.last_request().tool_results().try_into().expect("there are three results");
        assert!(!one.is_error, "{one:?}");
        for denied in [opaque, other] {
            let text = normalize_paths(&home, &denied.text);
            assert!(denied.is_error && text.contains("denied (nobody-to-ask)"), "{text}");
            assert!(
                text.contains(
                    "the `allow` list of [commands] at ~/config/cofferdam/policy.toml:2:9 does \
                        not contain it"
                ),
                "{text}"
            );
        }
        assert!(
            home.has_file("one")
                && home.has_file("two")
                && !home.has_file("three")
                && !home.has_file("four")
        );
    }
}

#[test]
fn a_project_cannot_grant_itself_bash() {
    let greedy =
        "[commands]\nallow = [\"*\"]\n[tools.bash]\nuse = \"allow\"\ngrants = [\"run-commands\"]\n";
    for provider in both_providers() {
        let home = home_with_policy(PROJECT_POLICY, greedy);
        let serve = || {
            provider
                .serve([call_reply("bash", json!({"command": "touch ran"})), text_reply("Done.")])
        };
        let server = serve();
        home.run_task(&server, &[]).expect_answer("Done.");
        assert!(server.last_request().tool_results()[0].text.contains("denied (nobody-to-ask)"));
        assert!(!home.has_file("ran"));
        // The same file, trusted: now it counts.
        let shown = home.run(&["trust", "--show"]);
        let digest =
            shown.stdout.trim().rsplit("sha256:").next().expect("it tells the digest").to_owned();
        assert!(shown.exit_code == 1 && shown.stdout.contains("NOT trusted"), "{shown:?}");
        assert_eq!(home.run(&["trust", "--digest", &digest]).exit_code, 0);
        home.run_task(&serve(), &[]).expect_answer("Done.");
        assert!(home.has_file("ran"));
    }
}

#[test]
fn a_broken_policy_stops_everything_with_its_place() {
    for file in [USER_POLICY, PROJECT_POLICY] {
        let home = home_with_policy(file, "[commands]\nallow = [\n  \"ls\",\n  \"ls | wc\",\n]\n");
        let place = format!("{file}:4:3: `ls | wc` is not a command pattern: '|' is not allowed");
        for args in [
            &["tools", "list"][..],
            &["tools", "call", "read_file", "{}"],
            &["policy", "show"],
            &["policy", "check"],
            &["doctor"],
        ] {
            let ran = home.run(args);
            assert!(
                ran.exit_code == 78 && ran.stderr.contains(&place) && ran.stdout.is_empty(),
                "{args:?}: {ran:?}"
            );
        }
        let report = home
            .run(&["run", "The task.", "--model", "replay:none", "--output", "json"])
            .expect_outcome("not-started", 78);
        assert!(report["error"].as_str().is_some_and(|error| error.contains(&place)), "{report}");
    }
}

#[test]
fn a_failing_test_of_a_rule_is_found_by_check() {
    let home = new_home();
    home.write_file(
        "mine.toml",
        "[commands]\nallow = [{ pattern = \"ls *\", match = [\"ls \
        -la\"], not-match = [\"ls\"] }]\n",
    );
    let path = home.path().join("mine.toml");
    let ran = home.run(&["policy", "check", &path.to_string_lossy()]);
    assert!(
        ran.exit_code == 78
            && ran.stderr.contains(
                "mine.toml:2:10: a test of the rule failed: `ls *` should not cover \
                    `ls`"
            ),
        "{ran:?}"
    );
    home.write_file(
        "mine.toml",
        "[commands]\nallow = [{ pattern = \"ls *\", match = [\"ls -la\"] }]\n",
    );
    let ran = home.run(&["policy", "check", &path.to_string_lossy()]);
    assert!(ran.exit_code == 0 && ran.stdout.contains("valid, 1 rules"), "{ran:?}");
}

#[test]
fn what_is_said_of_a_tool_that_is_not_there_is_told() {
    let home = home_with_policy(
        USER_POLICY,
        "[tools.bsah]\nuse = \"deny\"\n[tools.Bash]\nuse = \"deny\"\n",
    );
    home.write_file(
        "config/cofferdam/config.toml",
        "[tools.grpe.limits]\nseconds = 5\n[tools.GREP.limits]\nseconds = 7\n[limits]\nseconds = \
            9\n",
    );
    for args in [&["policy", "check"][..], &["policy", "show"], &["doctor"]] {
        let told = home.run(args).stdout;
        assert!(told.contains("policy.toml:1:8: there is no tool `bsah`"), "{told}");
        assert!(
            told.contains("[tools.grpe] in the configuration: there is no tool `grpe`"),
            "{told}"
        );
        assert!(!told.contains("no tool `Bash`") && !told.contains("no tool `GREP`"), "{told}");
    }
    let ran = home.run(&["tools", "call", "bash", r#"{"command":"true"}"#, "--mode", "auto"]);
    assert!(ran.stderr.contains("the rule deny `Bash` of [tools]"), "{ran:?}");
    assert!(home.run(&["tools", "show", "grep"]).stdout.contains("limits      seconds 7;"));
    assert!(home.run(&["doctor"]).stdout.contains("per call: seconds 9,"));
}

#[test]
fn a_project_file_is_one_wherever_it_is_checked_from() {
    let home = home_with_policy(PROJECT_POLICY, "profile = \"develop\"\n");
    let mut command = home.command(&["policy", "check", "policy.toml"]);
    command.current_dir(home.workspace().join(".cofferdam"));
    let ran = home.start(command).wait_for_exit();
    assert!(
        ran.exit_code == 78
            && ran.stderr.contains(
                "the policy file of a project cannot choose a \
            profile"
            ),
        "{ran:?}"
    );
}

#[test]
fn a_configuration_that_is_not_to_be_believed_stops_everything() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = new_home();
    home.write_file("config/cofferdam/config.toml", "[commands]\nwrite = [\"~/.cache\", \"~\"]\n");
    for args in
        [&["tools", "list"][..], &["tools", "call", "bash", r#"{"command":"true"}"#], &["doctor"]]
    {
        let ran = home.run(args);
        assert!(
            ran.exit_code == 78
                && ran
                    .stderr
                    .contains("config.toml:2:22: commands.write = \"~\" would let commands change"),
            "{ran:?}"
        );
    }
    let path = home.path().join("config/cofferdam/config.toml");
    home.write_file("config/cofferdam/config.toml", "");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("it is ours");
    let ran = home.run(&["tools", "list"]);
    assert!(
        ran.exit_code == 78
            && ran.stderr.contains(
                "other users can write this configuration; run `chmod go-w` on \
                it"
            ),
        "{ran:?}"
    );
}

#[test]
fn show_tells_everything_that_is_in_force() {
    let home = home_with_policy(USER_POLICY, EXPLAIN_CASES);
    home.write_file(
        PROJECT_POLICY,
        "[commands]\nallow = [\"make *\"]\n[protected]\nhidden = [\"*.sqlite\"]\nshown = \
            [\"*.pem\"]\n[limits]\nseconds = 20\n",
    );
    let ran = home.run(&["policy", "show"]);
    let text = normalize_paths(&home, &ran.stdout);
    let (text, _) = text.split_once("\nBuilt-in list").expect("the lists are shown too");
    insta::assert_snapshot!(text);
}

#[test]
fn r014_a_denied_tool_is_not_offered_and_does_not_run() {
    for provider in both_providers() {
        let home = home_with_policy(USER_POLICY, "[tools.bash]\nuse = \"deny\"\n");
        let server = provider
            .serve([call_reply("bash", json!({"command": "touch ran"})), text_reply("No.")]);
        home.run_task(&server, &["--mode", "auto"]).expect_answer("No.");
        let request = server.last_request();
        let said = &request.tool_results()[0].text;
        assert!(
            said.contains("denied (policy): bash cannot run: the rule deny `bash` of [tools]"),
            "{said}"
        );
        assert!(
            !request.tool_names().contains(&"bash".to_owned())
                && request.tool_names().contains(&"grep".to_owned()),
            "{:?}",
            request.tool_names()
        );
        assert!(!home.has_file("ran"));
    }
}

#[test]
fn a_profile_is_a_policy_too() {
    let home = new_home();
    let ran = home.run(&["tools", "list", "--json", "--profile", "read-only"]);
    let list: Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
    for tool in list["tools"].as_array().into_iter().flatten() {
        assert!(
            tool["grants"]["files"] != "read-write" && tool["grants"]["commands"] == false,
            "{tool}"
        );
    }
    let refused = home.run(&[
        "run",
        "The task.",
        "--profile",
        "read-only",
        "--mode",
        "auto",
        "--model",
        "replay:none",
    ]);
    assert!(
        refused.exit_code == 78
            && refused
                .stderr
                .contains("profile read-only:3:9: mode `auto` is not allowed by this policy"),
        "{refused:?}"
    );
    let unknown = home.run(&["tools", "list", "--profile", "yolo"]);
    assert!(
        unknown.exit_code == 2 && unknown.stderr.contains("use read-only, develop or locked-down"),
        "{unknown:?}"
    );
    for profile in ["read-only", "develop", "locked-down"] {
        let shown = home.run(&["policy", "show", "--profile", profile]);
        assert!(shown.exit_code == 0 && shown.stdout.starts_with("# "), "{shown:?}");
    }
}

#[test]
fn a_mode_of_the_configuration_is_lowered_to_what_the_policy_leaves() {
    let home = home_with_policy(USER_POLICY, "modes = [\"plan\"]\n");
    home.write_file("config/cofferdam/config.toml", "mode = \"auto\"\n");
    let ran = home.run(&["tools", "call", "bash", r#"{"command": "touch ran"}"#]);
    assert!(
        ran.exit_code == 1 && ran.stderr.contains("mode `plan` denies") && !home.has_file("ran"),
        "{ran:?}"
    );
    let none = home_with_policy(USER_POLICY, "modes = []\n").run(&["tools", "list"]);
    assert!(
        none.exit_code == 78 && none.stderr.contains("policy.toml:1:9: this policy allows no mode"),
        "{none:?}"
    );
}

#[test]
fn r095_what_the_model_is_shown_is_capped_by_tool_and_the_policy_lowers_the_cap() {
    let shown = |policy: &str| {
        let home = home_with_policy(USER_POLICY, policy)
            .with_file("long.txt", "0123456789\n".repeat(2000));
        home.write_file(
            "config/cofferdam/config.toml",
            "[limits]\nshown_bytes = 30000\n[tools.read_file.limits]\nshown_bytes = 5000\n",
        );
        let ran = home.run(&["tools", "call", "read_file", r#"{"path": "long.txt"}"#]);
        assert!(ran.exit_code == 0 && ran.stdout.contains("bytes omitted"), "{ran:?}");
        ran.stdout.len()
    };
    assert!((4000..=5000).contains(&shown("")));
    assert!((1000..=2000).contains(&shown("[tools.read_file.limits]\nshown_bytes = 2000\n")));
    assert!((4000..=5000).contains(&shown("[limits]\nshown_bytes = 9000\n")));
}

#[test]
fn r098_a_cap_that_was_chosen_holds() {
    let home = new_home().with_file("a.txt", "some text\n");
    home.write_file("config/cofferdam/config.toml", "[tools.read_file.limits]\nmemory_mib = 1\n");
    let ran = home.run(&["tools", "call", "read_file", r#"{"path": "a.txt"}"#]);
    assert!(ran.exit_code == 1 && ran.stderr.contains("1 MiB"), "{ran:?}");
    home.write_file("config/cofferdam/config.toml", "[limits]\nmemory_mib = 100000\n");
    let ran = home.run(&["tools", "list"]);
    assert!(
        ran.exit_code == 78
            && ran.stderr.contains("config.toml:2:14: memory_mib = 100000 is out of range"),
        "{ran:?}"
    );
}
