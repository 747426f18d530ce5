//! `cofferdam tools`: the same sandbox without a model.

use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::{Value, json};

use super::new_home;

#[test]
fn tools_list_tells_tier_and_power() {
    let ran = new_home().run(&["tools", "list"]);
    assert_eq!(ran.exit_code, 0, "{ran:?}");
    insta::assert_snapshot!(ran.stdout);
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_utf_8_is_named_and_not_its_directory() {
    use std::os::unix::ffi::OsStrExt as _;
    let home = new_home().with_file("a.txt", "text").with_file("below/b.txt", "text");
    for folder in ["", "below"] {
        let place = home.workspace().join(folder).join(std::ffi::OsStr::from_bytes(b"gr\xfcn.txt"));
        std::fs::write(place, "").expect("the disk takes it");
    }
    let ran = home.run(&["tools", "call", "list_dir", r#"{"depth":2}"#]);
    assert!(
        ran.exit_code == 0 && ran.stdout.contains("a.txt") && ran.stdout.contains("below/b.txt"),
        "{ran:?}"
    );
    for named in [
        ": cannot open `gr\\xfcn.txt`: its name is not UTF-8",
        ": below: cannot open `gr\\xfcn.txt`: its name is not UTF-8",
    ] {
        assert!(ran.stdout.contains(named), "{named}: {ran:?}");
    }
    assert!(!ran.stdout.contains(".: "), "{ran:?}");
}

#[test]
fn r014_the_tier_follows_from_the_grants() {
    let list: Value = serde_json::from_str(&new_home().run(&["tools", "list", "--json"]).stdout)
        .expect("it is JSON");
    for tool in list["tools"].as_array().into_iter().flatten() {
        let grants = &tool["grants"];
        // What a request does at its other end nobody knows here.
        let can_change = grants["files"] == "read-write"
            || grants["commands"] == true
            || grants["plans"] == true
            || grants["fetch"] != json!([]);
        assert_eq!(tool["tier"] == "write", can_change, "{tool}");
    }
    assert_eq!(list["refused"], json!([]));
}

#[test]
fn tools_show_holds_everything_that_decides() {
    let shown: Value =
        serde_json::from_str(&new_home().run(&["tools", "show", "read_file", "--json"]).stdout)
            .expect("it is JSON");
    for key in [
        "name",
        "title",
        "origin",
        "digest",
        "size",
        "description",
        "tier",
        "asks",
        "grants",
        "imports",
        "input_schema",
        "output_schema",
    ] {
        assert!(shown.get(key).is_some(), "{key} is missing in {shown:#}");
    }
    assert_eq!(
        (&shown["name"], &shown["tier"], &shown["asks"]),
        (&json!("read_file"), &json!("read-only"), &json!(["read-files"]))
    );
    assert_eq!(new_home().run(&["tools", "show", "no_such_tool"]).exit_code, 1);
}

#[test]
fn tools_call_runs_a_tool_without_a_model() {
    let home = new_home().with_file("a.txt", "one\ntwo\n");
    let ran = home.run(&["tools", "call", "read_file", r#"{"path": "a.txt", "offset": 2}"#]);
    assert_eq!((ran.exit_code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "     2\ttwo\n", ""));
    let ran = home.run(&["tools", "call", "read_file", r#"{"path": "a.txt"}"#, "--json"]);
    assert_eq!(
        (&ran.json_lines()[0]["status"], &ran.json_lines()[0]["tool"]),
        (&json!("ok"), &json!("read_file"))
    );
    assert_eq!(ran.json_lines()[0].get("structured"), Some(&Value::Null));
}

#[test]
fn r123_no_path_leaves_the_workspace() {
    let home = new_home();
    home.write_file("secret.txt", "outside\n");
    symlink(home.path().join("secret.txt"), home.workspace().join("link.txt"))
        .expect("it can be made");
    symlink(home.path(), home.workspace().join("up")).expect("it can be made");
    let table = [
        ("../secret.txt", "denied (outside-workspace)"),
        ("../../etc/passwd", "denied (outside-workspace)"),
        ("/etc/passwd", "is an absolute path"),
        ("link.txt", "denied (outside-workspace)"),
        ("up/secret.txt", "denied (outside-workspace)"),
    ];
    for (path, expected) in table {
        let ran = home.run(&["tools", "call", "read_file", &json!({"path": path}).to_string()]);
        assert_eq!((ran.exit_code, ran.stdout.as_str()), (1, ""), "{path}: {ran:?}");
        assert!(ran.stderr.contains(expected), "{path}: {ran:?}");
    }
    let ran = home.run(&[
        "tools",
        "call",
        "grep",
        r#"{"pattern": "outside", "no_ignore": true, "hidden": true}"#,
    ]);
    assert!(!ran.stdout.contains("secret.txt") && !ran.stdout.contains("link.txt"), "{ran:?}");
}

#[test]
fn r123_no_tool_touches_what_the_program_itself_believes() {
    let home = new_home();
    // The workspace is the home folder, so that the program's own folders lie in it.
    let root = home.path().display().to_string();
    let policy = "[write]\ndeny = [\"**\"]\n";
    for path in
        ["config/cofferdam/policy.toml", "state/cofferdam/trust.json", "config/cofferdam.txt"]
    {
        let input = json!({"path": path, "content": policy}).to_string();
        let ran = home.run(&["-C", &root, "tools", "call", "write_file", &input, "--mode", "auto"]);
        let denied =
            ran.exit_code == 1 && ran.stderr.contains("cofferdam, which keeps its own files there");
        assert_eq!(denied, path.contains("cofferdam/"), "{path}: {ran:?}");
        assert_eq!(home.path().join(path).exists(), !denied, "{path}: {ran:?}");
    }
    // Nor is any of them moved away with what it lies in, or worked in.
    let inside = home.path().join("state/cofferdam").display().to_string();
    let ran = home.run(&["-C", &inside, "tools", "call", "list_dir", "{}"]);
    assert!(
        ran.exit_code == 78 && ran.stderr.contains("as the workspace: cofferdam stores"),
        "{ran:?}"
    );
}

#[test]
fn a_folder_that_is_none_is_told_as_that() {
    let home = new_home().with_file("notes.txt", "");
    let commands: [&[&str]; 8] = [
        &["run", "Hello?"],
        &["tools", "call", "list_dir", "{}"],
        &["tools", "list"],
        &["policy", "show"],
        &["doctor"],
        &["trust", "--show"],
        &["undo"],
        &["sessions", "list"],
    ];
    for folder in ["notes.txt", "/nowhere"] {
        for command in commands {
            let ran = home.run(&[&["-C", folder], command].concat());
            let expected = format!("cofferdam: cannot use {folder} as the workspace: ");
            assert!(
                ran.exit_code == 78 && ran.stderr.starts_with(&expected),
                "{command:?}: {ran:?}"
            );
        }
    }
    let ran = home.run(&["--config", "/nowhere", "tools", "list"]);
    assert!(
        ran.exit_code == 78
            && ran.stderr.contains(
                "/nowhere: the configuration file does not \
            exist"
            ),
        "{ran:?}"
    );
}

#[test]
fn r041_a_command_needs_the_mode_that_allows_it() {
    let home = new_home();
    let ran = home.run(&["tools", "call", "bash", r#"{"command": "touch ran"}"#]);
    assert!(
        ran.exit_code == 1
            && ran.stderr.contains("denied (nobody-to-ask)")
            && !home.has_file("ran"),
        "{ran:?}"
    );
    let ran = home.run(&[
        "tools",
        "call",
        "bash",
        r#"{"command": "touch ran; echo done"}"#,
        "--mode",
        "auto",
    ]);
    assert!(ran.exit_code == 0 && ran.stdout == "done\n" && home.has_file("ran"), "{ran:?}");
}

#[test]
fn r022_a_bad_call_fails_with_its_reason() {
    for (tool, input, expected) in [
        ("no_such_tool", "{}", "unknown tool"),
        ("grep", "{", "not valid JSON"),
        ("grep", "{}", "required"),
    ] {
        let ran = new_home().run(&["tools", "call", tool, input]);
        assert!(
            ran.exit_code == 1 && ran.stderr.contains(expected) && ran.stdout.is_empty(),
            "{ran:?}"
        );
    }
}

#[test]
fn r121_grep_finds_what_ripgrep_finds() {
    let code = "use std::fs;\n\nfn main() {\n    fs::read(\"x\");\n}\n";
    let home = new_home()
        .with_file("src/main.rs", code)
        .with_file("src/bin/other.rs", code)
        .with_file("src/lib.rs", "// no fn main here? yes: fn main\n")
        .with_file("b.txt", "no such line\n")
        .with_file(".hidden/main.rs", code)
        .with_file("target/main.rs", code)
        .with_file("image.bin", b"fn main\0\x01")
        .with_file(".ignore", "target/\n");
    let ours = home.run(&["tools", "call", "grep", r#"{"pattern": "fn main"}"#]);
    let mut ripgrep = Command::new("rg");
    home.configure(&mut ripgrep);
    match ripgrep.args(["--no-heading", "-n", "--sort", "path", "fn main"]).output() {
        Ok(theirs) => assert_eq!(ours.stdout, String::from_utf8_lossy(&theirs.stdout)),
        Err(error) => eprintln!("skipped, since rg is not there: {error}"),
    }
    assert_eq!(ours.exit_code, 0, "{ours:?}");
}

#[test]
fn r121_a_name_in_what_grep_finds_is_one_line_without_control_characters() {
    let home = new_home().with_file("a\u{1b}[2J\nb.txt", "a needle\n");
    let ran = home.run(&["tools", "call", "grep", r#"{"pattern": "needle"}"#]);
    assert_eq!(
        (ran.exit_code, ran.stdout.as_str()),
        (0, "a\\u{1b}[2J\\nb.txt:1:a needle\n"),
        "{ran:?}"
    );
}
