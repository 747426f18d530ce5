//! Settings that a policy bounds: the configuration, the environment, flags and a resumed session are all below it.

use cofferdam_tests::program::Home;
use cofferdam_tests::wire::{Provider, Server, calls, says};
use serde_json::json;

use super::home;

const USER: &str = "config/cofferdam/policy.toml";
const CONFIG: &str = "config/cofferdam/config.toml";

fn under(policy: &str) -> Home {
    let home = home();
    home.write(USER, policy);
    home
}

/// A server that nothing is sent to.
fn idle() -> Server {
    Provider::Anthropic.serve(std::iter::empty())
}

/// How many audit logs there are.
fn logs(home: &Home) -> usize {
    std::fs::read_dir(home.path().join("state/cofferdam/audit"))
        .map_or(0, |folder| folder.flatten().filter(|entry| entry.path().extension().is_some_and(|ending| ending == "jsonl")).count())
}

#[test]
fn an_audit_log_that_the_policy_demands_is_kept_whatever_the_configuration_says() {
    for (policy, kept) in [("", 0), ("[audit]\nenabled = true\n", 1), ("[audit]\nrequired = true\n", 1), ("[audit]\nenabled = false\n", 0)]
    {
        let home = under(policy);
        home.write(CONFIG, "[audit]\nenabled = false\n");
        let server = Provider::Anthropic.serve([says("Done.")]);
        home.ask(&server, &[]).answered("Done.");
        assert_eq!(logs(&home), kept, "{policy}");
        // What calls no tool is on record too.
        home.write("workspace/.cofferdam/policy.toml", "");
        let before = logs(&home);
        let show = home.run(&["trust", "--show"]);
        let digest = show.stdout.rsplit("sha256:").next().unwrap_or_default().trim().to_owned();
        let ran = home.run(&["trust", "--digest", &format!("sha256:{digest}")]);
        assert_eq!((ran.code, logs(&home) > before), (0, kept == 1), "{policy}: {ran:?}");
    }
}

#[test]
fn a_model_that_the_policy_does_not_allow_is_reached_by_no_way() {
    let home = under("[models]\nproviders = ['anthropic']\nbase_urls = ['https://gateway.example.com']\n");
    let evil = idle();
    let by_flag = home.start(home.task(&evil, &[])).wait();
    let place = format!("{}:3:13: the policy does not allow the model address", home.path().join(USER).display());
    assert!(by_flag.code == 78 && by_flag.stderr.contains(&place) && by_flag.stderr.contains("hint: "), "{by_flag:?}");
    let model = evil.provider().model();
    let mut by_variable = home.command(&["run", "The task."]);
    by_variable.env("COFFERDAM_MODEL", model).env("COFFERDAM_BASE_URL", evil.base_url()).env(evil.provider().key_variable(), evil.key());
    let by_variable = home.start(by_variable).wait();
    assert!(by_variable.code == 78 && by_variable.stderr.contains(&place), "{by_variable:?}");
    home.write(CONFIG, format!("model = \"{model}\"\n[provider]\nbase_url = \"{}\"\n", evil.base_url()));
    let by_configuration = home.run(&["run", "The task."]);
    assert!(by_configuration.code == 78 && by_configuration.stderr.contains(&place), "{by_configuration:?}");
    let shown = home.run(&["policy", "show"]).stdout;
    assert!(shown.contains("NOT ALLOWED by") && shown.contains("config.toml:1:9"), "{shown}");
    let other = home.run(&["run", "The task.", "--model", "ollama:x", "--base-url", "https://gateway.example.com"]);
    assert!(other.code == 78 && other.stderr.contains("does not allow the model provider `ollama` (allowed: anthropic)"), "{other:?}");
    assert!(evil.requests().is_empty(), "nothing was sent");
}

#[test]
fn a_resumed_session_is_bound_too() {
    let home = home();
    let server = Provider::Anthropic.serve([says("One.")]);
    home.ask(&server, &[]).answered("One.");
    home.write(USER, "[models]\nproviders = ['anthropic']\n");
    let mut resume = home.command(&["run", "The task.", "--continue"]);
    resume.env(server.provider().key_variable(), server.key());
    let ran = home.start(resume).wait();
    assert!(ran.code == 78 && ran.stderr.contains("at its own address only"), "{ran:?}");
    assert_eq!(server.requests().len(), 1, "nothing more was sent");
}

#[test]
fn sessions_are_kept_or_not_as_the_policy_says() {
    let server = || Provider::Anthropic.serve([says("Done.")]);
    let required = under("[sessions]\nrequired = true\n");
    let ran = required.start(required.task(&idle(), &["--no-session"])).wait();
    assert!(ran.code == 78 && ran.stderr.contains("policy.toml:2:12") && ran.stderr.contains("--no-session is not allowed"), "{ran:?}");
    required.ask(&server(), &[]).answered("Done.");
    assert!(required.path().join("state/cofferdam/sessions").exists());
    let unkept = under("[sessions]\nkeep = false\n");
    unkept.ask(&server(), &[]).answered("Done.");
    assert!(!unkept.path().join("state/cofferdam/sessions").exists());
    for args in [&["--continue"][..], &["--record", "said.jsonl"]] {
        let ran = unkept.start(unkept.task(&idle(), args)).wait();
        assert!(ran.code == 78 && ran.stderr.contains("policy.toml:2:8: the policy does not let sessions be kept"), "{ran:?}");
    }
}

#[test]
fn a_plugin_that_the_policy_does_not_allow_is_neither_added_nor_loaded() {
    let home = under("[plugins]\ndigests = []\n");
    let plugin = home.path().join("p.wasm");
    std::fs::write(&plugin, b"\0asm\x0d\0\x01\0").expect("it is written");
    let path = plugin.display().to_string();
    let list = home.run(&["tools", "list", "--plugin", &path]);
    let told = "policy.toml:2:11: the policy does not allow a plugin with the digest sha256:";
    assert!(list.stdout.contains(told) || list.stderr.contains(told), "{list:?}");
    let add = home.run(&["plugin", "add", &path, "--yes"]);
    assert!(add.code == 78 && add.stderr.contains(told), "{add:?}");
}

#[test]
fn commands_have_no_network_and_no_more_paths_than_the_policy_leaves() {
    let home = under("[commands]\nnetwork = false\nread = []\nwrite = []\n");
    home.write("secret/data", "zirconium");
    home.write(CONFIG, format!("[commands]\nnetwork = true\nread = [\"{0}\"]\nwrite = [\"{0}\"]\n", home.path().join("secret").display()));
    let line = format!("cat {}", home.path().join("secret/data").display());
    let server = Provider::Anthropic.serve([calls("bash", json!({"command": line})), says("Done.")]);
    home.ask(&server, &["--mode", "auto"]).answered("Done.");
    let text = &server.last_request().results()[0].text;
    assert!(!text.contains("zirconium"), "{text}");
    let shown = home.run(&["policy", "show"]).stdout;
    let part = |text: &str| assert!(shown.contains(text), "{text}: {shown}");
    part("commands.network = false  (by ");
    part("which overrules true at ");
    part("commands.read = not open");
    part("commands.write = not open");
    let check = home.run(&["policy", "check"]);
    assert!(check.code == 0 && check.stdout.contains("overruled: commands.network = false"), "{check:?}");
}

#[test]
fn a_rule_about_settings_that_is_not_understood_stops_everything() {
    let home = under("[models]\nproviders = ['opneai']\n");
    for args in [&["policy", "check"][..], &["tools", "list"], &["undo", "--list"]] {
        let ran = home.run(args);
        assert!(ran.code == 78 && ran.stderr.contains("policy.toml:2:14: \"opneai\" is not a provider: use anthropic"), "{ran:?}");
    }
}
