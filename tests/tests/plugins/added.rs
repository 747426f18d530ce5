//! Plugins that are added by name: seen, agreed to, kept and pinned.

use std::fs;
use std::path::PathBuf;

use cofferdam::policy::Capability;
use cofferdam::sandbox::ComponentDigest;
use cofferdam_tests::guests::{GuestTool, TestGuest};
use cofferdam_tests::program::{ProgramOutput, TestHome};
use cofferdam_tests::terminal::TestTerminal;
use serde_json::{Value, json};

use super::new_home;

/// A component with a tool that answers with its argument `text`.
pub(crate) fn echo_plugin(tool: &GuestTool) -> Vec<u8> {
    TestGuest::from_file("good").with_tools([tool.clone()]).component()
}

pub(crate) fn reading_tool() -> GuestTool {
    GuestTool::new("echo").with_requested(&[Capability::ReadFiles])
}

pub(crate) fn command_tool() -> GuestTool {
    GuestTool::new("echo").with_requested(&[Capability::ReadFiles, Capability::RunCommands])
}

pub(crate) fn write_component(home: &TestHome, name: &str, component: &[u8]) -> String {
    home.write_file(name, component);
    home.path().join(name).display().to_string()
}

/// What runs when a model calls the tool, with nobody to ask about plugins.
pub(crate) fn call_tool(home: &TestHome) -> ProgramOutput {
    home.run(&["tools", "call", "echo", r#"{"text":"let in"}"#, "--locked", "--mode", "auto"])
}

pub(crate) fn list_plugins(home: &TestHome) -> Vec<Value> {
    let ran = home.run(&["plugin", "list", "--json"]);
    let value: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    value["plugins"].as_array().expect("it is a list").clone()
}

/// The names of the files in the folder of added plugins.
pub(crate) fn stored_files(home: &TestHome) -> Vec<String> {
    let folder = home.path().join("config/cofferdam/plugins");
    let mut names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

pub(crate) fn stored_name(name: &str, component: &[u8]) -> String {
    format!("{name}-{}.wasm", ComponentDigest::compute(component).short())
}

pub(crate) fn read_lock_file(home: &TestHome) -> String {
    fs::read_to_string(home.path().join("config/cofferdam/cofferdam.lock")).unwrap_or_default()
}

#[test]
fn a_plugin_is_added_by_who_has_seen_what_it_is() {
    let home = new_home();
    let component = echo_plugin(&reading_tool());
    let path = write_component(&home, "echo.wasm", &component);
    let ran = home.run(&["plugin", "add", &path]);
    assert_eq!(ran.exit_code, 1, "{ran:?}");
    for part in [
        "requests    read files of the workspace",
        "tier        read-only",
        "no plugin was added: there is no terminal for confirmation",
    ] {
        assert!(ran.stderr.contains(part), "{part}: {ran:?}");
    }
    assert!(
        ran.stderr
            .contains(&format!("--yes --digest sha256:{}", ComponentDigest::compute(&component))),
        "{ran:?}"
    );
    assert_eq!(
        (stored_files(&home), read_lock_file(&home)),
        (vec![], String::new()),
        "and nothing is left of it"
    );

    let ran = home.run(&["plugin", "add", &path, "--yes"]);
    assert!(ran.exit_code == 0 && ran.stdout.contains("Added echo: "), "{ran:?}");
    assert_eq!(stored_files(&home), [stored_name("echo", &component)]);
    // What it was made from may go.
    fs::remove_file(&path).expect("it is there");
    let ran = call_tool(&home);
    assert_eq!((ran.exit_code, ran.stdout.as_str()), (0, "let in\n"), "{ran:?}");
    assert_eq!(home.run(&["lock", "--check"]).exit_code, 0);

    let listed = list_plugins(&home);
    let [plugin] = listed.as_slice() else { panic!("{listed:?}") };
    let digest = ComponentDigest::compute(&component).to_string();
    assert_eq!(
        [&plugin["name"], &plugin["source"], &plugin["state"], &plugin["digest"]],
        ["echo", &path, "pinned", &digest]
    );
    assert_eq!(
        plugin["tools"][0],
        json!({
            "name": "echo", "tier": "read-only", "asks": ["read-files"],
            "grants": plugin["tools"][0]["grants"],
        })
    );
    let text = home.run(&["plugin", "list"]).stdout;
    for part in [
        "echo  sha256:",
        "  pinned\n",
        &format!("from   {path}"),
        "tool   echo  read-only, requests permission to read files of the workspace",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn somebody_at_the_terminal_is_asked_and_only_a_yes_adds_it() {
    let home = new_home();
    let path = write_component(
        &home,
        "echo.wasm",
        &echo_plugin(&reading_tool().with_description("Harmless.\u{1b}[2K")),
    );
    for (answer, code, files) in [("\n", 1, 0), ("n\n", 1, 0), ("y\n", 0, 1)] {
        let mut terminal = TestTerminal::start(&home.command(&["plugin", "add", &path]), None);
        // It is longer than the screen: each page is turned, and none of them takes a yes.
        terminal.wait_for_output("Enter shows more");
        terminal.wait_for_output("> ");
        terminal.type_keys("y\n");
        terminal.wait_for_output("There are more pages.");
        terminal.type_keys("\n");
        let screen = || terminal.raw_output();
        assert!(screen().contains("Harmless.\\u{1b}[2K"), "{}", screen());
        terminal.wait_for_output("Add this plugin as echo?");
        terminal.wait_for_output("[y/N]");
        terminal.type_keys(answer);
        assert_eq!(
            (terminal.wait_for_exit(), stored_files(&home).len()),
            (code, files),
            "{answer:?}: {}",
            terminal.raw_output()
        );
    }
    assert_eq!(call_tool(&home).exit_code, 0);
}

#[test]
fn names_that_are_taken_are_told_with_both_files() {
    let home = new_home();
    let (one, two) = (
        write_component(&home, "one.wasm", &echo_plugin(&reading_tool())),
        write_component(&home, "two.wasm", &echo_plugin(&GuestTool::new("ECHO"))),
    );
    assert_eq!(home.run(&["plugin", "add", &one, "--yes"]).exit_code, 0);
    let kept_one = home
        .path()
        .join("config/cofferdam/plugins")
        .join(stored_name("one", &echo_plugin(&reading_tool())));
    let builtin = write_component(&home, "mine.wasm", &echo_plugin(&GuestTool::new("Grep")));
    let odd = write_component(&home, "Mine-1.2.wasm", &echo_plugin(&GuestTool::new("mine")));
    let table: [(&[&str], String); 4] = [
        (&[&one], format!("plugin one already exists: {}, from {one}", kept_one.display())),
        (
            &[&two],
            format!(
                "cannot add {two}: the tool name echo is already used by {}",
                kept_one.display()
            ),
        ),
        (
            &[&builtin],
            format!("cannot add {builtin}: the tool name grep is already used by built-in grep"),
        ),
        (&[&odd], "invalid plugin name `Mine-1.2`".to_owned()),
    ];
    for (args, problem) in table {
        let ran = home.run(&[&["plugin", "add", "--yes"], args].concat());
        assert!(ran.exit_code == 1 && ran.stderr.contains(&problem), "{problem}: {ran:?}");
    }
    let ran = home.run(&["plugin", "add", "--yes", &odd, "--name", "mine"]);
    assert_eq!(ran.exit_code, 0, "{ran:?}");
    assert_eq!(
        list_plugins(&home).iter().map(|plugin| plugin["name"].clone()).collect::<Vec<_>>(),
        ["mine", "one"]
    );
}

#[test]
fn what_is_no_plugin_is_not_added() {
    let home = new_home();
    let bad = write_component(&home, "bad.wasm", b"not a component");
    let more = write_component(&home, "more.wasm", &TestGuest::from_file("borrow").component());
    for (path, problem) in [
        (bad.as_str(), "it is not WebAssembly (it begins with `not a co`)"),
        (&more, "but none of its tools requests the capability"),
        ("nothing.wasm", "cannot read "),
        ("http://example.org/a.wasm", "use an https URL or the path of a file"),
        ("https://me:key@example.org/a.wasm", "contains a user name or password"),
        ("file:///a.wasm", "the path of a file"),
    ] {
        let ran = home.run(&["plugin", "add", path, "--yes"]);
        assert!(ran.exit_code == 1 && ran.stderr.contains(problem), "{path}: {ran:?}");
        assert!(!ran.stderr.contains("key@"), "{ran:?}");
    }
    let ran = home.run(&["plugin", "add", &bad, "--digest", "sha256:12"]);
    assert!(
        ran.exit_code == 2
            && ran.stderr.contains(
                "a digest is `sha256:` and 64 lower-case \
            hexadecimal digits"
            ),
        "{ran:?}"
    );
    assert_eq!((stored_files(&home), read_lock_file(&home)), (vec![], String::new()));
}

#[test]
fn what_a_crash_has_left_is_nobodys_and_goes() {
    let home = new_home();
    let path = write_component(&home, "echo.wasm", &echo_plugin(&reading_tool()));
    // A component that was written before the lock was, a temporary file, and something of the
    // user's own.
    for name in [
        stored_name("echo", &echo_plugin(&command_tool())),
        ".new-Ab3xyz".to_owned(),
        "notes.txt".to_owned(),
    ] {
        home.write_file(&format!("config/cofferdam/plugins/{name}"), echo_plugin(&command_tool()));
    }
    assert_eq!(list_plugins(&home), [json!(null); 0]);
    assert_eq!(home.run(&["plugin", "add", &path, "--yes"]).exit_code, 0);
    assert_eq!(
        stored_files(&home),
        [stored_name("echo", &echo_plugin(&reading_tool())), "notes.txt".to_owned()]
    );
    assert_eq!(call_tool(&home).exit_code, 0);
}

#[test]
fn plugins_that_are_added_at_once_are_all_there() {
    let home = new_home();
    let names = ["one", "two", "three", "four"];
    let paths: Vec<String> = names
        .iter()
        .map(|name| {
            write_component(&home, &format!("{name}.wasm"), &echo_plugin(&GuestTool::new(name)))
        })
        .collect();
    let running: Vec<_> = paths
        .iter()
        .map(|path| home.start(home.command(&["plugin", "add", path, "--yes"])))
        .collect();
    for running in running {
        let ran = running.wait_for_exit();
        assert_eq!(ran.exit_code, 0, "{ran:?}");
    }
    let mut listed: Vec<String> = list_plugins(&home)
        .iter()
        .filter_map(|plugin| Some(plugin["name"].as_str()?.to_owned()))
        .collect();
    listed.sort();
    assert_eq!(listed, ["four", "one", "three", "two"]);
}

#[test]
fn a_configuration_has_plugins_of_its_own() {
    let home = new_home();
    let path = write_component(&home, "echo.wasm", &echo_plugin(&reading_tool()));
    home.write_file("other/cofferdam.toml", "");
    let config: PathBuf = home.path().join("other/cofferdam.toml");
    let config = config.to_str().expect("it is text");
    assert_eq!(home.run(&["plugin", "add", &path, "--yes", "--config", config]).exit_code, 0);
    assert!(
        home.path()
            .join("other/plugins")
            .join(stored_name("echo", &echo_plugin(&reading_tool())))
            .exists()
    );
    assert_eq!(list_plugins(&home), [json!(null); 0]);
    let args = ["tools", "call", "echo", r#"{"text":"let in"}"#, "--locked"];
    assert_eq!(home.run(&args).exit_code, 1);
    assert_eq!(home.run(&[&args[..], &["--config", config]].concat()).exit_code, 0);
}
