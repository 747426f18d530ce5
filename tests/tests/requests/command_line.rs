//! The command line itself: help, completions, and what is refused before anything starts.

use cofferdam_tests::wire::{both_providers, text_reply};
use serde_json::json;

use super::new_home;

#[test]
fn help_names_every_command_and_shows_examples() {
    let ran = new_home().run(&["--help"]);
    assert_eq!(ran.exit_code, 0, "{ran:?}");
    for word in ["run", "demo", "tools", "doctor", "completions", "Examples:", "cofferdam demo"] {
        assert!(ran.stdout.contains(word), "{word}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("compile-component"), "{}", ran.stdout);
}

#[test]
fn every_command_has_help() {
    for command in [
        &["run"][..],
        &["demo"],
        &["tools"],
        &["tools", "list"],
        &["tools", "show"],
        &["tools", "call"],
        &["doctor"],
        &["completions"],
        &["policy"],
        &["policy", "show"],
        &["policy", "check"],
        &["policy", "explain"],
        &["trust"],
        &["lock"],
    ] {
        let ran = new_home().run(&[command, &["--help"]].concat());
        assert!(ran.exit_code == 0 && ran.stdout.contains("Usage:"), "{command:?}: {ran:?}");
    }
}

#[test]
fn r132_run_tells_its_exit_codes() {
    let help =
        new_home().run(&["run", "--help"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for code in [
        "0 answered",
        "3 turn limit reached",
        "4 empty answer",
        "5 tool call rejected",
        "7 provider error",
        "78 invalid configuration",
        "130 aborted",
    ] {
        assert!(help.contains(code), "{code}: {help}");
    }
}

#[test]
fn completions_are_there_for_each_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ran = new_home().run(&["completions", shell]);
        assert!(ran.exit_code == 0 && ran.stdout.contains("cofferdam"), "{shell}: {ran:?}");
    }
}

#[test]
fn r018_bad_values_of_flags_are_refused_with_a_reason() {
    let table = [
        (["--max-parallel", "0"], "'0'"),
        (["--max-parallel", "-1"], "-1"),
        (["--max-parallel", "many"], "many"),
        (["--max-parallel", "65"], "65"),
        (["--max-tool-iterations", "0"], "use a whole number of at least 1"),
        (["--mode", "yolo"], "use ask, plan, auto-edit or auto"),
        (["--no-such-flag", "x"], "--no-such-flag"),
    ];
    for (args, expected) in table {
        let ran = new_home().run(&[&["run", "The task."], &args[..]].concat());
        assert!(
            ran.exit_code == 2 && ran.stderr.contains(expected) && ran.stdout.is_empty(),
            "{args:?}: {ran:?}"
        );
    }
}

#[test]
fn r018_a_bad_limit_in_the_environment_is_refused() {
    let home = new_home();
    let mut command = home.command(&["tools", "list"]);
    command.env("COFFERDAM_MAX_PARALLEL", "none");
    let ran = home.start(command).wait_for_exit();
    assert!(ran.exit_code == 78 && ran.stderr.contains("COFFERDAM_MAX_PARALLEL"), "{ran:?}");
}

#[test]
fn an_unknown_key_of_the_configuration_is_an_error_with_its_place() {
    let home = new_home();
    home.write_file(
        "config/cofferdam/config.toml",
        "mode = \"ask\"\n\n[dispatch]\nmax_paralel = 2\n",
    );
    let place = format!(
        "{}:4:1: unknown field `max_paralel`",
        home.path().join("config/cofferdam/config.toml").display()
    );
    let ran = home.run(&["tools", "list"]);
    assert!(ran.exit_code == 78 && ran.stderr.contains(&place), "{ran:?}");
}

#[test]
fn r132_what_does_not_start_is_reported_as_json_too() {
    let home = new_home();
    home.write_file("config/cofferdam/config.toml", "mode = \"yolo\"\n");
    for output in ["json", "stream-json"] {
        let report = home
            .run(&["run", "The task.", "--model", "replay:none", "--output", output])
            .expect_outcome("not-started", 78);
        assert!(
            report["error"].as_str().is_some_and(|error| error.contains("config.toml:1:8")),
            "{report}"
        );
    }
}

/// The names of the fields of an object.
fn fields(object: &serde_json::Value) -> Vec<String> {
    object.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
}

#[test]
fn r132_a_report_has_the_same_fields_whatever_happened() {
    let home = new_home();
    let [provider, _] = both_providers();
    let server = provider.serve([text_reply("Hello.")]);
    let whole = home.run_task(&server, &[]).expect_outcome("answered", 0);
    for (args, code, problem) in [
        (&["run", "x", "--model", "nobody:x", "--output", "json"][..], 78, "nobody"),
        (&["run", "x", "--no-such-flag", "--output", "json"], 2, "--no-such-flag"),
        (&["run", "--output=stream-json"], 2, "<PROMPT>"),
        (&["--mode", "plan", "run", "x", "--output", "json"], 2, "after the command"),
    ] {
        let ran = home.run(args);
        let report = ran.expect_outcome("not-started", code);
        assert_eq!(fields(&report), fields(&whole), "{args:?}");
        assert_eq!(
            (&report["calls"], &report["turns"], &report["session"]),
            (&json!([]), &json!(0), &json!(null)),
            "{args:?}"
        );
        assert!(
            report["error"]
                .as_str()
                .is_some_and(|error| error.contains(problem) && !error.contains("Usage")),
            "{report}"
        );
        assert!(ran.stderr.contains(problem), "people are told too: {ran:?}");
    }
    assert_eq!(
        home.run(&["run", "--help", "--output", "json"])
            .stdout
            .lines()
            .next()
            .map(|line| line.starts_with('{')),
        Some(false)
    );
    let call = |args: &[&str]| home.run(&[&["tools", "call"], args, &["--json"]].concat()).report();
    let whole = call(&["todo", r#"{"items": null}"#]);
    for (args, problem) in [
        (&["todo", "{}", "--plugin", "no-such-file"][..], "no-such-file"),
        (&["todo", "{}", "--no-such-flag"], "--no-such-flag"),
    ] {
        let result = call(args);
        assert_eq!(
            (fields(&result), &result["status"]),
            (fields(&whole), &json!("not-started")),
            "{result}"
        );
        assert!(result["error"].as_str().is_some_and(|error| error.contains(problem)), "{result}");
    }
}

#[test]
fn a_task_or_an_input_without_an_end_is_not_read() {
    let home = new_home();
    let endless = |args: &[&str]| {
        let zeros = std::fs::File::open("/dev/zero").expect("there is one");
        home.command(args).stdin(zeros).output().expect("it starts")
    };
    for args in [&["run", "-", "--model", "replay:none"][..], &["tools", "call", "todo", "-"]] {
        let output = endless(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(1) && said.contains("longer than 8 MiB\nhint: "),
            "{args:?}: {said}"
        );
    }
    home.write_file("model.jsonl", "{\"cofferdam_recording\": 1, \"model\": \"m\"}\n");
    let model = format!("replay:{}", home.path().join("model.jsonl").display());
    let output = endless(&["chat", "--model", &model]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(1)
            && said.contains("cannot read a line of standard input: it is longer than 8 MiB"),
        "{said}"
    );
}

#[test]
fn without_a_model_every_way_to_one_is_told() {
    let home = new_home();
    // An address with nobody behind it keeps a model server of this machine out of the test.
    let ran = home.run(&["run", "The task.", "--base-url", "http://127.0.0.1:1/v1"]);
    assert!(ran.exit_code == 78 && ran.stderr.contains("no model is selected"), "{ran:?}");
}

#[test]
fn an_empty_task_is_refused() {
    let ran = new_home().run(&["run", " \n", "--model", "replay:none"]);
    assert!(ran.exit_code == 1 && ran.stderr.contains("the prompt is empty"), "{ran:?}");
}

#[test]
fn r018_a_flag_wins_over_the_configuration() {
    let [provider, _] = both_providers();
    let home = new_home();
    home.write_file("config/cofferdam/config.toml", "mode = \"plan\"\nmax_tool_iterations = 1\n");
    let touch = || cofferdam_tests::wire::call_reply("bash", json!({"command": "touch ran"}));
    let server = provider.serve([touch(), touch(), cofferdam_tests::wire::text_reply("Done.")]);
    home.run_task(&server, &["--mode", "auto", "--max-tool-iterations", "5"])
        .expect_answer("Done.");
    assert!(home.has_file("ran"));
}
