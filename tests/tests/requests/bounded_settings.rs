//! Settings that a policy bounds: the configuration, the environment, flags and a resumed session
//! are all below it.

use cofferdam_tests::program::TestHome;
use cofferdam_tests::wire::{Provider, ProviderServer, call_reply, text_reply};
use serde_json::json;

use super::new_home;

const USER_POLICY: &str = "config/cofferdam/policy.toml";
const CONFIG: &str = "config/cofferdam/config.toml";

fn home_with_policy(policy: &str) -> TestHome {
    let home = new_home();
    home.write_file(USER_POLICY, policy);
    home
}

/// A server that nothing is sent to.
fn idle_server() -> ProviderServer {
    Provider::Anthropic.serve(std::iter::empty())
}

/// How many audit logs there are.
fn count_audit_logs(home: &TestHome) -> usize {
    std::fs::read_dir(home.path().join("state/cofferdam/audit")).map_or(0, |folder| {
        folder
            .flatten()
            .filter(|entry| entry.path().extension().is_some_and(|ending| ending == "jsonl"))
            .count()
    })
}

#[test]
fn an_audit_log_that_the_policy_demands_is_kept_whatever_the_configuration_says() {
    for (policy, kept) in [
        ("", 0),
        ("[audit]\nenabled = true\n", 1),
        ("[audit]\nrequired = true\n", 1),
        ("[audit]\nenabled = false\n", 0),
    ] {
        let home = home_with_policy(policy);
        home.write_file(CONFIG, "[audit]\nenabled = false\n");
        let server = Provider::Anthropic.serve([text_reply("Done.")]);
        home.run_task(&server, &[]).expect_answer("Done.");
        assert_eq!(count_audit_logs(&home), kept, "{policy}");
        // What calls no tool is on record too.
        home.write_file("workspace/.cofferdam/policy.toml", "");
        let before = count_audit_logs(&home);
        let show = home.run(&["trust", "--show"]);
        let digest = show.stdout.rsplit("sha256:").next().unwrap_or_default().trim().to_owned();
        let ran = home.run(&["trust", "--digest", &format!("sha256:{digest}")]);
        assert_eq!(
            (ran.exit_code, count_audit_logs(&home) > before),
            (0, kept == 1),
            "{policy}: {ran:?}"
        );
    }
}

#[test]
fn a_model_that_the_policy_does_not_allow_is_reached_by_no_way() {
    let home = home_with_policy(
        "[models]\nproviders = ['anthropic']\nbase_urls = ['https://gateway.example.com']\n",
    );
    let evil = idle_server();
    let by_flag = home.start(home.model_command(&evil, &[])).wait_for_exit();
    let place = format!(
        "{}:3:13: the policy does not allow the model URL",
        home.path().join(USER_POLICY).display()
    );
    assert!(
        by_flag.exit_code == 78
            && by_flag.stderr.contains(&place)
            && by_flag.stderr.contains("hint: "),
        "{by_flag:?}"
    );
    let model = evil.provider().model();
    let mut by_variable = home.command(&["run", "The task."]);
    by_variable
        .env("COFFERDAM_MODEL", model)
        .env("COFFERDAM_BASE_URL", evil.base_url())
        .env(evil.provider().key_variable(), evil.key());
    let by_variable = home.start(by_variable).wait_for_exit();
    assert!(by_variable.exit_code == 78 && by_variable.stderr.contains(&place), "{by_variable:?}");
    home.write_file(
        CONFIG,
        format!("model = \"{model}\"\n[provider]\nbase_url = \"{}\"\n", evil.base_url()),
    );
    let by_configuration = home.run(&["run", "The task."]);
    assert!(
        by_configuration.exit_code == 78 && by_configuration.stderr.contains(&place),
        "{by_configuration:?}"
    );
    let shown = home.run(&["policy", "show"]).stdout;
    assert!(shown.contains("NOT ALLOWED by") && shown.contains("config.toml:1:9"), "{shown}");
    let other = home.run(&[
        "run",
        "The task.",
        "--model",
        "ollama:x",
        "--base-url",
        "https://gateway.example.com",
    ]);
    assert!(
        other.exit_code == 78
            && other
                .stderr
                .contains("does not allow the model provider `ollama` (allowed: anthropic)"),
        "{other:?}"
    );
    assert!(evil.requests().is_empty(), "nothing was sent");
}

#[test]
fn a_resumed_session_is_bound_too() {
    let home = new_home();
    let server = Provider::Anthropic.serve([text_reply("One.")]);
    home.run_task(&server, &[]).expect_answer("One.");
    home.write_file(USER_POLICY, "[models]\nproviders = ['anthropic']\n");
    let mut resume = home.command(&["run", "The task.", "--continue"]);
    resume.env(server.provider().key_variable(), server.key());
    let ran = home.start(resume).wait_for_exit();
    assert!(ran.exit_code == 78 && ran.stderr.contains("only at its default URL"), "{ran:?}");
    assert_eq!(server.requests().len(), 1, "nothing more was sent");
}

#[test]
fn sessions_are_kept_or_not_as_the_policy_says() {
    let server = || Provider::Anthropic.serve([text_reply("Done.")]);
    let required = home_with_policy("[sessions]\nrequired = true\n");
    let ran =
        required.start(required.model_command(&idle_server(), &["--no-session"])).wait_for_exit();
    assert!(
        ran.exit_code == 78
            && ran.stderr.contains("policy.toml:2:12")
            && ran.stderr.contains("`--no-session` is not allowed"),
        "{ran:?}"
    );
    required.run_task(&server(), &[]).expect_answer("Done.");
    assert!(required.path().join("state/cofferdam/sessions").exists());
    let unkept = home_with_policy("[sessions]\nkeep = false\n");
    unkept.run_task(&server(), &[]).expect_answer("Done.");
    assert!(!unkept.path().join("state/cofferdam/sessions").exists());
    for args in [&["--continue"][..], &["--record", "said.jsonl"]] {
        let ran = unkept.start(unkept.model_command(&idle_server(), args)).wait_for_exit();
        assert!(
            ran.exit_code == 78
                && ran.stderr.contains("policy.toml:2:8: the policy does not allow saved sessions"),
            "{ran:?}"
        );
    }
}

#[test]
fn a_plugin_that_the_policy_does_not_allow_is_neither_added_nor_loaded() {
    let home = home_with_policy("[plugins]\ndigests = []\n");
    let plugin = home.path().join("p.wasm");
    std::fs::write(&plugin, b"\0asm\x0d\0\x01\0").expect("it is written");
    let path = plugin.display().to_string();
    let list = home.run(&["tools", "list", "--plugin", &path]);
    let told = "policy.toml:2:11: the policy does not allow a plugin with the digest sha256:";
    assert!(list.stdout.contains(told) || list.stderr.contains(told), "{list:?}");
    let add = home.run(&["plugin", "add", &path, "--yes"]);
    assert!(add.exit_code == 78 && add.stderr.contains(told), "{add:?}");
}

#[test]
fn commands_have_no_network_and_no_more_paths_than_the_policy_leaves() {
    let home = home_with_policy("[commands]\nnetwork = false\nread = []\nwrite = []\n");
    home.write_file("secret/data", "zirconium");
    home.write_file(
        CONFIG,
        format!(
            "[commands]\nnetwork = true\nread = [\"{0}\"]\nwrite = [\"{0}\"]\n",
            home.path().join("secret").display()
        ),
    );
    let line = format!("cat {}", home.path().join("secret/data").display());
    let server = Provider::Anthropic
        .serve([call_reply("bash", json!({"command": line})), text_reply("Done.")]);
    home.run_task(&server, &["--mode", "auto"]).expect_answer("Done.");
    let text = &server.last_request().tool_results()[0].text;
    assert!(!text.contains("zirconium"), "{text}");
    let shown = home.run(&["policy", "show"]).stdout;
    let part = |text: &str| assert!(shown.contains(text), "{text}: {shown}");
    part("commands.network = false  (by ");
    part("overrides true at ");
    part("commands.read = not allowed");
    part("commands.write = not allowed");
    let check = home.run(&["policy", "check"]);
    assert!(
        check.exit_code == 0 && check.stdout.contains("overridden: commands.network = false"),
        "{check:?}"
    );
}

#[test]
fn a_rule_about_settings_that_is_not_understood_stops_everything() {
    let home = home_with_policy("[models]\nproviders = ['opneai']\n");
    for args in [&["policy", "check"][..], &["tools", "list"], &["undo", "--list"]] {
        let ran = home.run(args);
        assert!(
            ran.exit_code == 78
                && ran
                    .stderr
                    .contains("policy.toml:2:14: unknown provider \"opneai\": use anthropic"),
            "{ran:?}"
        );
    }
}
