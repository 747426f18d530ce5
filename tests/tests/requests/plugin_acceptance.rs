//! Plugins of strangers: accepted as what they are, at a terminal or beforehand.

use std::path::PathBuf;

use cofferdam::policy::Capability;
use cofferdam_tests::guests::{GuestTool, TestGuest};
use cofferdam_tests::program::TestHome;
use cofferdam_tests::terminal::TestTerminal;

use super::new_home;

/// A plugin with a tool that answers with its argument `text`.
pub(crate) fn echo_plugin(home: &TestHome, file: &str, tool: &GuestTool) -> PathBuf {
    let path = home.path().join(file);
    std::fs::write(&path, TestGuest::from_file("good").with_tools([tool.clone()]).component())
        .expect("it can be written");
    path
}

fn call_args<'a>(plugin: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["tools", "call", "echo", r#"{"text":"let in"}"#, "--plugin", plugin], more].concat()
}

#[test]
fn a_plugin_that_cannot_be_accepted_says_so() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let home = new_home();
    mknodat(CWD, home.path().join("fifo.wasm"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        .expect("a FIFO");
    let ran = home.run(&["lock", "--yes", "--plugin", "../fifo.wasm"]);
    assert!(
        ran.exit_code == 1
            && ran.stdout.contains("it is a FIFO, but a plugin must be a regular file"),
        "{ran:?}"
    );
    assert!(
        ran.stderr.contains("hint: a plugin that is invalid") && !ran.stderr.contains("Written"),
        "{ran:?}"
    );
    let ran = home.run(&["tools", "call", "todo", "{}", "--plugin", "../fifo.wasm"]);
    assert!(ran.exit_code == 78 && ran.stderr.contains("it is a FIFO"), "{ran:?}");
}

#[test]
fn a_key_of_the_cache_that_was_replaced_is_named() {
    let cache = tempfile::tempdir().expect("a folder");
    let home = TestHome::with_cache(super::PROGRAM, cache.path());
    let call = || home.run(&["tools", "call", "todo", r#"{"items": null}"#]);
    assert!(!call().stderr.contains("cannot use cached code"));
    home.write_file("state/cofferdam/keys/cache", "not a key");
    let ran = call();
    assert!(
        ran.exit_code == 0
            && ran.stderr.contains("or the authentication key of the cache was changed"),
        "{ran:?}"
    );
    assert!(!call().stderr.contains("cannot use cached code"));
}

#[test]
fn a_workspace_that_is_not_utf_8_is_named_as_the_reason() {
    use std::os::unix::ffi::OsStrExt as _;
    let home = new_home();
    let workspace = home.path().join(std::ffi::OsStr::from_bytes(b"w\xff"));
    std::fs::create_dir(&workspace).expect("it can be made");
    let mut command =
        home.command(&["tools", "call", "bash", r#"{"command": "true"}"#, "--mode", "auto", "-C"]);
    command.arg(&workspace);
    let ran = home.start(command).wait_for_exit();
    assert!(
        ran.exit_code == 1
            && ran.stderr.contains("the path of the workspace is not UTF-8; rename the directory"),
        "{ran:?}"
    );
}

#[test]
fn a_new_plugin_is_refused_where_nobody_can_be_asked() {
    let home = new_home();
    let plugin = echo_plugin(
        &home,
        "echo.wasm",
        &GuestTool::new("echo").with_requested(&[Capability::ReadFiles]),
    );
    let plugin = plugin.to_str().expect("it is text");
    let ran = home.run(&call_args(plugin, &[]));
    assert!(
        ran.exit_code == 78
            && ran
                .stderr
                .contains("it is not accepted yet, and there is no terminal for confirmation"),
        "{ran:?}"
    );
    let locked = home.run(&call_args(plugin, &["--locked"]));
    assert!(
        locked.exit_code == 78
            && locked.stderr.contains("echo.wasm is refused: it is not accepted yet"),
        "{locked:?}"
    );
    let asked = home.run(&["lock", "--plugin", plugin]);
    assert!(asked.exit_code == 1 && asked.stderr.contains("use `--yes`"), "{asked:?}");
    assert_eq!(home.run(&["lock", "--check", "--plugin", plugin]).exit_code, 1);
    // Looking calls nothing, and so asks nobody.
    assert_eq!(home.run(&["tools", "show", "echo", "--plugin", plugin]).exit_code, 0);

    let accepted = home.run(&["lock", "--yes", "--plugin", plugin]);
    assert!(
        accepted.exit_code == 0
            && accepted.stderr.contains("requests permission to read files of the workspace"),
        "{accepted:?}"
    );
    assert_eq!(home.run(&["lock", "--check", "--plugin", plugin]).exit_code, 0);
    for more in [&[][..], &["--locked"]] {
        let ran = home.run(&call_args(plugin, more));
        assert_eq!((ran.exit_code, ran.stdout.as_str()), (0, "let in\n"), "{ran:?}");
    }
}

#[test]
fn no_tool_is_called_in_place_of_one_that_was_not_let_in() {
    let home = new_home();
    let call = |plugin: &str, tool: &str| {
        home.run(&["tools", "call", tool, r#"{"text":"x","items":null}"#, "--plugin", plugin])
    };
    // Another tool runs, and somebody knows of the plugin.
    let plugin = echo_plugin(&home, "echo.wasm", &GuestTool::new("echo"));
    let ran = call(plugin.to_str().expect("it is text"), "todo");
    assert!(ran.stderr.contains("echo.wasm`: it is not accepted yet"), "{ran:?}");
    // The name of a built-in tool.
    let plugin = echo_plugin(&home, "todo.wasm", &GuestTool::new("todo"));
    let ran = call(plugin.to_str().expect("it is text"), "todo");
    assert!(ran.exit_code == 78 && ran.stderr.contains("cannot use plugin `"), "{ran:?}");
}

#[test]
fn a_plugin_of_another_content_is_another_plugin() {
    let home = new_home();
    let mild = GuestTool::new("echo").with_requested(&[Capability::ReadFiles]);
    let plugin = echo_plugin(&home, "echo.wasm", &mild);
    let plugin = plugin.to_str().expect("it is text");
    assert_eq!(home.run(&["lock", "--yes", "--plugin", plugin]).exit_code, 0);
    let table = [
        (
            mild.clone().with_description("Another."),
            "its content changed since you accepted it, and it requests no new permissions",
        ),
        (
            mild.clone().with_requested(&[Capability::ReadFiles, Capability::RunCommands]),
            "it changed since you accepted it: echo now requests permission to run commands",
        ),
    ];
    for (tool, expected) in table {
        echo_plugin(&home, "echo.wasm", &tool);
        let ran = home.run(&call_args(plugin, &[]));
        assert!(ran.exit_code == 78 && ran.stderr.contains(expected), "{ran:?}");
        let ran = home.run(&call_args(plugin, &["--locked"]));
        assert!(ran.exit_code == 78 && ran.stderr.contains(expected), "{ran:?}");
        let ran = home.run(&["lock", "--check", "--plugin", plugin]);
        assert!(ran.exit_code == 1 && ran.stdout.contains(expected), "{ran:?}");
    }
    // The accepted content in another place is another plugin too.
    let moved = echo_plugin(&home, "moved.wasm", &mild);
    let ran = home.run(&call_args(moved.to_str().expect("it is text"), &[]));
    assert!(ran.exit_code == 78 && ran.stderr.contains("not accepted yet"), "{ran:?}");
}

#[test]
fn somebody_at_the_terminal_sees_what_it_asks_for() {
    let home = new_home();
    let tool =
        GuestTool::new("echo").with_requested(&[Capability::Fetch(vec!["api.example.com".into()])]);
    let plugin = echo_plugin(&home, "echo.wasm", &tool);
    let plugin = plugin.to_str().expect("it is text");
    let mut terminal = TestTerminal::start(&home.command(&call_args(plugin, &[])), None);
    terminal.wait_for_output("it is not accepted yet");
    terminal.wait_for_output("api.example.com");
    terminal.wait_for_output("[y/N]");
    terminal.type_keys("\n");
    terminal.wait_for_output("you rejected it");
    assert_eq!(terminal.wait_for_exit(), 78);
    let mut terminal =
        TestTerminal::start(&home.command(&call_args(plugin, &["--mode", "auto"])), None);
    terminal.wait_for_output("[y/N]");
    terminal.type_keys("y\n");
    terminal.wait_for_output("let in");
    assert_eq!(terminal.wait_for_exit(), 0);
    // What was accepted is not asked again.
    let ran = home.run(&call_args(plugin, &["--locked", "--mode", "auto"]));
    assert_eq!((ran.exit_code, ran.stdout.as_str()), (0, "let in\n"), "{ran:?}");
}

#[test]
fn two_plugins_with_a_tool_of_one_name_are_both_named() {
    let home = new_home();
    let one = echo_plugin(&home, "one.wasm", &GuestTool::new("echo"));
    let two = echo_plugin(&home, "two.wasm", &GuestTool::new("ECHO"));
    let args = [
        "--plugin",
        one.to_str().expect("it is text"),
        "--plugin",
        two.to_str().expect("it is text"),
    ];
    let ran = home.run(&[&["tools", "list"], &args[..]].concat());
    let expected = format!(
        "broken: {}: the tool name echo is already used by {}",
        two.display(),
        one.display()
    );
    assert!(ran.stdout.contains(&expected), "{ran:?}");
}

#[test]
fn a_plugin_that_was_named_and_cannot_be_loaded_stops_what_would_use_it() {
    let home = new_home();
    home.write_file("text.wasm", "hello, I am a text\nof two lines");
    home.write_file("module.wasm", b"\0asm\x01\0\0\0");
    let path = |name: &str| home.path().join(name).display().to_string();
    let table = [
        (path("text.wasm"), "it is not WebAssembly (it begins with `hello, I`)"),
        (path("module.wasm"), "a plugin must be a component"),
        (path("nothing.wasm"), "No such file or directory"),
    ];
    for (plugin, reason) in &table {
        let named = ["--plugin", plugin];
        let commands = [&["run", "Hello?"][..], &["chat"], &["tools", "call", "list_dir", "{}"]];
        for command in commands {
            let ran = home.run(&[command, &named[..]].concat());
            let expected = format!("cofferdam: cannot load plugin {plugin}: ");
            assert!(
                ran.exit_code == 78 && ran.stderr.starts_with(&expected),
                "{command:?}: {ran:?}"
            );
            assert!(
                ran.stderr.contains(reason) && ran.stderr.lines().count() == 1,
                "{command:?}: {ran:?}"
            );
        }
        for command in [&["tools", "list"][..], &["doctor"]] {
            let ran = home.run(&[command, &named[..]].concat());
            let line = ran.stdout.lines().find(|line| line.trim().starts_with("broken"));
            assert!(
                ran.exit_code == 0
                    && line.is_some_and(|line| line.contains(plugin) && line.contains(reason)),
                "{command:?}: {ran:?}"
            );
        }
    }
    home.write_file("config/cofferdam/config.toml", format!("plugins = [{:?}]\n", table[0].0));
    let ran = home.run(&["tools", "call", "list_dir", "{}"]);
    assert!(
        ran.exit_code == 78 && ran.stderr.contains("text.wasm: it is not WebAssembly"),
        "{ran:?}"
    );
    // The demo has all that it needs.
    assert_eq!(home.run(&["demo", "--fast"]).exit_code, 0);
}

#[test]
fn a_broken_lock_stops_what_would_use_it() {
    let home = new_home();
    home.write_file("config/cofferdam/cofferdam.lock", "version = 1\n[plugin.x]\ndigest = 1\n");
    let ran = home.run(&["tools", "call", "read_file", "{}"]);
    assert!(ran.exit_code == 78 && ran.stderr.contains("cofferdam.lock: "), "{ran:?}");
    home.write_file("config/cofferdam/cofferdam.lock", "version = 2\n");
    let ran = home.run(&["tools", "call", "read_file", "{}"]);
    assert!(ran.exit_code == 78 && ran.stderr.contains("format 2"), "{ran:?}");
}
