//! Writing plugins, as an author does it, up to where a toolchain is needed; `tests/languages/run`
//! goes on from there.

#![expect(clippy::expect_used, reason = "what a test cannot set up, it cannot test")]

mod added;
mod downloaded;
mod file_server;
mod released_contracts;
mod updated;

use std::path::Path;

use serde_json::{Value, json};

use cofferdam::policy::Capability;
use cofferdam_tests::guests::{GuestTool, TestGuest};
use cofferdam_tests::program::{ProgramOutput, TestHome};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

fn new_home() -> TestHome {
    TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"))
}

fn embedded_component(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../host/core/embedded/{name}.wasm"))
        .display()
        .to_string()
}

/// `plugin test` on a component, with these cases.
fn run_plugin_test(home: &TestHome, component: &str, cases: &Value) -> ProgramOutput {
    home.write_file("cases.json", cases.to_string());
    let cases = home.path().join("cases.json").display().to_string();
    home.run(&["plugin", "test", component, "--cases", &cases])
}

fn write_guest(home: &TestHome, guest: &TestGuest) -> String {
    home.write_file("guest.wasm", guest.component());
    home.path().join("guest.wasm").display().to_string()
}

/// The checks that failed, without the tool's name, each with what was found.
fn failed_checks(ran: &ProgramOutput) -> Vec<(String, String)> {
    let mut lines = ran.stdout.lines();
    let mut failed = Vec::new();
    while let Some(line) = lines.next() {
        if let Some((_, check)) =
            line.strip_prefix("FAILED ").and_then(|rest| rest.split_once(": "))
        {
            failed.push((check.to_owned(), lines.next().unwrap_or_default().trim().to_owned()));
        }
    }
    failed
}

#[test]
fn the_built_in_tools_stand_what_every_tool_has_to_stand() {
    let file = json!({"a.txt": "one\ntwo\n"});
    let table = [
        (
            "read_file",
            json!([{
                "says": "reads", "tool": "read_file", "files": file,
                "input": {"path": "a.txt"}, "with": ["one"],
            }]),
        ),
        (
            "grep",
            json!([{
                "says": "finds", "tool": "grep", "files": file,
                "input": {"pattern": "tw"}, "with": ["a.txt:2:two"],
            }]),
        ),
        (
            "glob",
            json!([{
                "says": "lists", "tool": "glob", "files": file,
                "input": {"pattern": "*.txt"}, "with": ["a.txt"],
            }]),
        ),
        (
            "list_dir",
            json!([{
                "says": "lists", "tool": "list_dir", "files": file,
                "input": {}, "with": ["a.txt"],
            }]),
        ),
        (
            "submit",
            json!([{
                "says": "confirms", "tool": "submit",
                "input": {"summary": "done"}, "with": ["done"],
            }]),
        ),
    ];
    let home = new_home();
    for (name, cases) in table {
        let ran = run_plugin_test(&home, &embedded_component(name), &cases);
        assert_eq!((ran.exit_code, failed_checks(&ran)), (0, vec![]), "{name}: {}", ran.stdout);
        assert!(ran.stdout.contains(": case: "), "{name}: {}", ran.stdout);
    }
}

#[test]
fn a_case_that_does_not_come_true_is_named_with_what_came() {
    let case = |more: Value| {
        let mut case = json!({
            "says": "it", "tool": "read_file", "files": {"a.txt": "one"},
            "input": {"path": "a.txt"},
        });
        case.as_object_mut()
            .expect("it is one")
            .extend(more.as_object().expect("it is one").clone());
        json!([case])
    };
    let table = [
        (json!({"answers": "two"}), "the result is "),
        (json!({"with": ["two"]}), "the result does not contain \"two\": "),
        (json!({"fails": "not-found"}), "the result is "),
        (json!({"input": {"path": "b.txt"}}), "the call failed: "),
        (
            json!({"input": {"path": "b.txt"}, "fails": "denied"}),
            "the call failed with another kind of error: ",
        ),
        (json!({"leaves": {"b.txt": "x"}}), "after the call, b.txt does not exist"),
        (json!({"leaves": {"a.txt": "x"}}), "after the call, a.txt contains \"one\""),
        (json!({"tool": "nothing"}), "the component has no tool `nothing`"),
    ];
    let home = new_home();
    for (more, problem) in table {
        let ran = run_plugin_test(&home, &embedded_component("read_file"), &case(more.clone()));
        let first = failed_checks(&ran).into_iter().next().unwrap_or_default();
        assert_eq!((ran.exit_code, first.0.as_str()), (1, "case: it"), "{more}: {}", ran.stdout);
        assert!(first.1.starts_with(problem), "{more}: {}", first.1);
    }
}

#[test]
fn a_tool_that_cannot_stand_it_is_told_what_it_did() {
    let text = r#"{"type":"object","properties":{"text":{"type":"string"}}}"#;
    let path =
        r#"{"type":"object","properties":{"path":{"type":"string","format":"workspace-path"}}}"#;
    // Whatever it is called by and given, it answers.
    let yes = || TestGuest::from_source("yes", "(func $call (result i32) (call $text @\"yes\"))");
    let table = [
        (
            yes(),
            "the declaration is stable, and calls to undeclared tools fail",
            "the plugin accepts calls to the undeclared tool `not_yes`",
        ),
        (
            TestGuest::from_file("divide-by-zero"),
            "the declaration is stable, and calls to undeclared tools fail",
            "the tool crashed",
        ),
        (
            yes().with_requested(&[Capability::ReadFiles]),
            "without permissions it does not crash",
            "the call succeeded",
        ),
        (
            TestGuest::from_file("divide-by-zero")
                .with_tools([GuestTool::new("t").with_schema(text)]),
            "text in many scripts",
            "the tool crashed",
        ),
        (
            TestGuest::from_file("divide-by-zero")
                .with_tools([GuestTool::new("t").with_schema(text)]),
            "256 KiB of input",
            "the tool crashed",
        ),
        (
            yes().with_tools([GuestTool::new("t").with_schema(path)]),
            "a link out of the workspace is an error",
            "the result is",
        ),
    ];
    let home = new_home();
    for (made, check, problem) in table {
        let ran = run_plugin_test(&home, &write_guest(&home, &made), &json!([]));
        let found = failed_checks(&ran);
        let is_found = found.iter().any(|(name, what)| name == check && what.contains(problem));
        assert!(ran.exit_code == 1 && is_found, "{}: {check}: {found:?}", made.name());
    }
}

#[test]
fn inspecting_shows_what_a_component_is_and_not_what_it_says() {
    let home = new_home();
    let tool = GuestTool::new("harmless")
        .with_description("I only read.\u{1b}[2K")
        .with_requested(&[Capability::ReadFiles, Capability::RunCommands]);
    let made = TestGuest::from_file("borrow").with_tools([tool]);
    let ran = home.run(&["plugin", "inspect", &write_guest(&home, &made)]);
    assert_eq!(ran.exit_code, 0, "{ran:?}");
    for part in [
        "run commands; needs a permission, and each command line is checked separately",
        "requests    read files of the workspace; run commands",
        "tier        write: it can change state; it runs alone",
        "I only read.\\u{1b}[2K",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let json = home.run(&["plugin", "inspect", &embedded_component("read_file"), "--json"]);
    let value: Value = serde_json::from_str(&json.stdout).expect("it is JSON");
    assert_eq!(
        (&value["tools"][0]["name"], &value["tools"][0]["tier"]),
        (&json!("read_file"), &json!("read-only"))
    );
    assert_eq!(value["digest"].as_str().map(str::len), Some(64));
    let refused = home.run(&["plugin", "inspect", "nothing.wasm"]);
    assert!(
        refused.exit_code == 1 && refused.stderr.contains("cannot read nothing.wasm"),
        "{refused:?}"
    );
}

#[test]
fn what_a_run_refuses_is_refused_by_test_and_inspect_too() {
    let home = new_home();
    let takes = |schema: &'static str| {
        TestGuest::from_file("good").with_tools([GuestTool::new("other").with_schema(schema)])
    };
    let table = [
        (
            takes(r#"{"type":"object","properties":{"a":{"type":"strng"}}}"#),
            "the input schema of `other` cannot be used",
        ),
        (
            takes(r#"{"type":"object","properties":{"a":{"type":"string","minLength":-1}}}"#),
            "the input schema of `other` cannot be used",
        ),
        (
            TestGuest::from_file("good").with_tools([GuestTool::new("grep")]),
            "the tool name grep is already used by built-in grep",
        ),
    ];
    for (made, problem) in table {
        let file = write_guest(&home, &made);
        let listed = home.run(&["tools", "list", "--plugin", &file]);
        assert!(
            listed.stdout.contains("broken: ") && listed.stdout.contains(problem),
            "{listed:?}"
        );
        for refused in
            [home.run(&["plugin", "inspect", &file]), run_plugin_test(&home, &file, &json!([]))]
        {
            let is_refused = refused.exit_code == 1
                && refused.stderr.contains("cannot use plugin `")
                && refused.stderr.contains(problem);
            assert!(is_refused, "{problem}: {refused:?}");
        }
    }
    let fine =
        write_guest(&home, &takes(r#"{"type":"object","properties":{"a":{"type":"string"}}}"#));
    assert_eq!(home.run(&["plugin", "inspect", &fine]).exit_code, 0);
}

#[test]
fn a_build_leaves_a_cache_that_is_believed_afterwards() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let cache = folder.path().join("cache");
    let home = TestHome::with_cache(PROGRAM, &cache);
    assert_eq!(home.run(&["plugin", "new", "early", "--lang", "c"]).exit_code, 0);
    // Without any program there is no toolchain: it ends before anything is fetched.
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "umask 022; PATH=/nowhere exec \"$0\" plugin build early", PROGRAM]);
    home.configure(&mut shell);
    let ran = home.start(shell).wait_for_exit();
    assert_eq!(ran.exit_code, 1, "{ran:?}");
    let mode = std::fs::metadata(cache.join("cofferdam")).expect("it is made").permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "{ran:?}");
}

#[test]
fn the_command_that_a_refusal_names_accepts_the_plugin() {
    let home = new_home();
    home.write_file(
        "my plugins/it.wasm",
        TestGuest::from_file("good").with_tools([GuestTool::new("other")]).component(),
    );
    let file = home.path().join("my plugins/it.wasm").display().to_string();
    let call = || home.run(&["--plugin", &file, "tools", "call", "other", r#"{"text":"x"}"#]);
    let refused = call();
    let (_, rest) = refused
        .stderr
        .split_once("accept it with `")
        .unwrap_or_else(|| panic!("no hint: {refused:?}"));
    let hint = rest.split('`').next().expect("it ends").to_owned();
    assert!(
        refused.exit_code != 0 && hint.starts_with("cofferdam lock --yes --plugin '"),
        "{hint}"
    );
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &hint.replacen("cofferdam", "\"$0\"", 1), PROGRAM]);
    home.configure(&mut shell);
    let accepted = home.start(shell).wait_for_exit();
    assert_eq!(accepted.exit_code, 0, "{accepted:?}");
    let called = call();
    assert_eq!((called.exit_code, called.stdout.trim()), (0, "x"), "{called:?}");
}

#[test]
fn a_plugin_that_the_policy_forbids_is_not_tested() {
    let home = new_home();
    let guest = TestGuest::from_file("good").with_tools([GuestTool::new("echo")]);
    let component = write_guest(&home, &guest);
    let tested = run_plugin_test(&home, &component, &json!([]));
    assert!(tested.stdout.contains(" passed, "), "{tested:?}");
    home.write_file("config/cofferdam/policy.toml", "[plugins]\ndigests = []\n");
    let refused = run_plugin_test(&home, &component, &json!([]));
    assert_eq!((refused.exit_code, refused.stdout.as_str()), (78, ""), "{refused:?}");
    assert!(refused.stderr.contains("the policy does not allow a plugin"), "{refused:?}");
}

#[test]
fn a_plugin_begins_from_a_template_and_nothing_is_overwritten() {
    let home = new_home();
    for language in ["rust", "python", "javascript", "c", "go"] {
        let name = format!("in_{language}");
        let ran = home.run(&["plugin", "new", &name, "--lang", language]);
        assert_eq!(ran.exit_code, 0, "{ran:?}");
        assert!(
            home.has_file(&format!("{name}/plugin.toml"))
                && home.has_file(&format!("{name}/cases.json"))
        );
        let again = home.run(&["plugin", "new", &name, "--lang", language]);
        assert!(again.exit_code == 1 && again.stderr.contains("already exists"), "{again:?}");
        let early = home.run(&["plugin", "test", &name]);
        assert!(
            early.exit_code == 1 && early.stderr.contains("run `cofferdam plugin build` first"),
            "{early:?}"
        );
    }
    for (args, problem) in [
        (["plugin", "new", "Upper", "--lang", "rust"], "invalid plugin name"),
        (["plugin", "new", "fine", "--lang", "cobol"], "no template for language `cobol`"),
    ] {
        let ran = home.run(&args);
        assert!(ran.exit_code == 2 && ran.stderr.contains(problem), "{ran:?}");
    }
    let nowhere = home.run(&["plugin", "build"]);
    assert!(nowhere.exit_code == 1 && nowhere.stderr.contains("has no plugin.toml"), "{nowhere:?}");
}

#[test]
fn what_a_tool_printed_is_shown_beside_the_case_that_it_failed() {
    let home = new_home();
    let component = write_guest(&home, &TestGuest::from_file("panic"));
    let ran = run_plugin_test(
        &home,
        &component,
        &json!([{"says": "works", "tool": "panic", "input": {}, "with": ["fine"]}]),
    );
    assert!(ran.stdout.contains("output:\n           | "), "{}", ran.stdout);
}
