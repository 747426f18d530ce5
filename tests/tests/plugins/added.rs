//! Plugins that are added by name: seen, agreed to, kept, pinned, updated and taken away.

use std::fs;
use std::path::PathBuf;

use cofferdam::policy::Capability;
use cofferdam::sandbox::ComponentDigest;
use cofferdam_tests::guests::{GuestTool, TestGuest};
use cofferdam_tests::program::{ProgramOutput, TestHome, wait_until};
use cofferdam_tests::terminal::TestTerminal;
use serde_json::{Value, json};

use super::file_server::FileServer;
use super::new_home;

/// A component with a tool that answers with its argument `text`.
fn echo_plugin(tool: &GuestTool) -> Vec<u8> {
    TestGuest::from_file("good").with_tools([tool.clone()]).component()
}

fn reading_tool() -> GuestTool {
    GuestTool::new("echo").with_requested(&[Capability::ReadFiles])
}

fn command_tool() -> GuestTool {
    GuestTool::new("echo").with_requested(&[Capability::ReadFiles, Capability::RunCommands])
}

fn write_component(home: &TestHome, name: &str, component: &[u8]) -> String {
    home.write_file(name, component);
    home.path().join(name).display().to_string()
}

/// What runs when a model calls the tool, with nobody to ask about plugins.
fn call_tool(home: &TestHome) -> ProgramOutput {
    home.run(&["tools", "call", "echo", r#"{"text":"let in"}"#, "--locked", "--mode", "auto"])
}

fn list_plugins(home: &TestHome) -> Vec<Value> {
    let ran = home.run(&["plugin", "list", "--json"]);
    let value: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    value["plugins"].as_array().expect("it is a list").clone()
}

/// The names of the files in the folder of added plugins.
fn stored_files(home: &TestHome) -> Vec<String> {
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

fn stored_name(name: &str, component: &[u8]) -> String {
    format!("{name}-{}.wasm", ComponentDigest::compute(component).short())
}

fn read_lock_file(home: &TestHome) -> String {
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
        terminal.wait_for_output("Add this plugin as echo? [y/N]");
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
            && ran.stderr.contains("a digest is `sha256:` and 64 lower-case hexadecimal digits"),
        "{ran:?}"
    );
    assert_eq!((stored_files(&home), read_lock_file(&home)), (vec![], String::new()));
}

#[test]
fn an_update_tells_what_is_different_and_asks_where_it_is_more() {
    let home = new_home();
    let path = write_component(&home, "echo.wasm", &echo_plugin(&reading_tool()));
    assert_eq!(home.run(&["plugin", "add", &path, "--yes"]).exit_code, 0);
    let ran = home.run(&["plugin", "update"]);
    assert!(ran.exit_code == 0 && ran.stdout.contains("echo: up to date"), "{ran:?}");

    // Less is taken at the command's word.
    let less = echo_plugin(
        &GuestTool::new("echo")
            .with_schema(r#"{"type":"object","properties":{"text":{"type":"string"},"b":{}}}"#),
    );
    write_component(&home, "echo.wasm", &less);
    let ran = home.run(&["plugin", "update", "echo"]);
    assert!(ran.exit_code == 0 && ran.stdout.contains("echo: updated to sha256:"), "{ran:?}");
    for part in [
        "echo no longer requests permission to read files of the workspace",
        "echo has a different input schema",
        "it requests no new permissions",
    ] {
        assert!(ran.stderr.contains(part), "{part}: {ran:?}");
    }
    assert_eq!(
        (stored_files(&home), call_tool(&home).exit_code),
        (vec![stored_name("echo", &less)], 0)
    );

    // More is not, unless somebody says so.
    let more = echo_plugin(&command_tool());
    write_component(&home, "echo.wasm", &more);
    let before = read_lock_file(&home);
    let ran = home.run(&["plugin", "update"]);
    assert!(
        ran.exit_code == 1
            && ran.stderr.contains(
                "  + echo now requests permission to run \
            commands"
            ),
        "{ran:?}"
    );
    assert!(
        ran.stderr
            .contains("there is no terminal for confirmation, so the current version was kept"),
        "{ran:?}"
    );
    assert_eq!(
        (read_lock_file(&home), stored_files(&home)),
        (before, vec![stored_name("echo", &less)])
    );
    for (answer, code, file) in [("\n", 1, &less), ("y\n", 0, &more)] {
        let mut terminal = TestTerminal::start(&home.command(&["plugin", "update", "echo"]), None);
        terminal.wait_for_output("+ echo now requests permission to run commands");
        terminal.wait_for_output("[y/N]");
        terminal.type_keys(answer);
        assert_eq!(
            (terminal.wait_for_exit(), stored_files(&home)),
            (code, vec![stored_name("echo", file)]),
            "{}",
            terminal.raw_output()
        );
    }
    assert_eq!(call_tool(&home).exit_code, 0);

    // One that cannot be had does not keep the others back.
    let other = write_component(&home, "other.wasm", &echo_plugin(&GuestTool::new("other")));
    assert_eq!(home.run(&["plugin", "add", &other, "--yes"]).exit_code, 0);
    fs::remove_file(&path).expect("it is there");
    let ran = home.run(&["plugin", "update"]);
    assert!(
        ran.exit_code == 1
            && ran.stderr.contains("echo: ")
            && ran.stdout.contains("other: up to date"),
        "{ran:?}"
    );
}

#[test]
fn what_is_removed_is_named_and_gone() {
    let home = new_home();
    let path = write_component(&home, "echo.wasm", &echo_plugin(&reading_tool()));
    assert_eq!(home.run(&["plugin", "add", &path, "--yes"]).exit_code, 0);
    let ran = home.run(&["plugin", "remove", "nothing"]);
    assert!(
        ran.exit_code == 1
            && ran.stderr.contains("no added plugin is named nothing; added plugins: echo"),
        "{ran:?}"
    );
    let ran = home.run(&["plugin", "remove", "echo"]);
    let expected = format!(
        "{}, from {path}",
        home.path()
            .join("config/cofferdam/plugins")
            .join(stored_name("echo", &echo_plugin(&reading_tool())))
            .display()
    );
    assert!(ran.exit_code == 0 && ran.stdout.contains(&expected), "{ran:?}");
    assert!(
        stored_files(&home).is_empty() && !read_lock_file(&home).contains("echo"),
        "{}",
        read_lock_file(&home)
    );
    let ran = call_tool(&home);
    assert!(ran.exit_code == 1 && ran.stderr.contains("unknown tool"), "{ran:?}");
    let ran = home.run(&["plugin", "remove", "echo"]);
    assert!(ran.exit_code == 1 && ran.stderr.contains("no plugins were added"), "{ran:?}");
}

#[test]
fn a_kept_file_that_is_not_what_was_accepted_does_not_run_until_it_is_again() {
    let home = new_home();
    let path = write_component(&home, "echo.wasm", &echo_plugin(&reading_tool()));
    assert_eq!(home.run(&["plugin", "add", &path, "--yes"]).exit_code, 0);
    let inside =
        format!("config/cofferdam/plugins/{}", stored_name("echo", &echo_plugin(&reading_tool())));
    let spoil: [(&str, &dyn Fn(), &str, &str); 2] = [
        (
            "changed",
            &|| home.write_file(&inside, echo_plugin(&command_tool())),
            "changed",
            "it changed since you accepted it: echo now requests permission to run commands",
        ),
        (
            "missing",
            &|| fs::remove_file(home.path().join(&inside)).expect("it is there"),
            "refused",
            "cannot read ",
        ),
    ];
    for (what, spoil, state, reason) in spoil {
        spoil();
        let ran = call_tool(&home);
        assert!(ran.exit_code == 78 && ran.stderr.contains(reason), "{what}: {ran:?}");
        let listed = list_plugins(&home);
        assert_eq!(listed[0]["state"], state, "{what}");
        assert!(
            listed[0]["reason"].as_str().is_some_and(|text| text.contains(reason)),
            "{what}: {listed:?}"
        );
        let ran = home.run(&["plugin", "update", "echo"]);
        assert!(
            ran.exit_code == 0 && ran.stdout.contains("restored the accepted file"),
            "{what}: {ran:?}"
        );
        assert_eq!(call_tool(&home).exit_code, 0, "{what}");
    }
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

#[test]
fn a_plugin_comes_from_a_server_and_again_from_there() {
    let (home, site) = (new_home(), FileServer::start());
    let (first, second) =
        (echo_plugin(&reading_tool()), echo_plugin(&reading_tool().with_description("Better.")));
    site.serve_file("/v/echo.wasm?x=1", &first);
    site.serve_response(
        "/latest",
        "HTTP/1.1 302 Found\r\nlocation: /v/echo.wasm?x=1\r\ncontent-length: 0\r\nconnection: \
            close\r\n\r\n",
        false,
    );
    let (url, other) =
        (site.url("/latest"), format!("sha256:{}", ComponentDigest::compute(&second)));
    let ran = home.run(&["plugin", "add", &url, "--name", "echo", "--yes", "--digest", &other]);
    assert!(
        ran.exit_code == 1
            && ran.stderr.contains("does not match `--digest`")
            && ran.stderr.contains(&other),
        "{ran:?}"
    );
    assert!(stored_files(&home).is_empty());
    let digest = format!("sha256:{}", ComponentDigest::compute(&first));
    let ran = home.run(&["plugin", "add", &url, "--name", "echo", "--yes", "--digest", &digest]);
    assert_eq!(ran.exit_code, 0, "{ran:?}");
    assert_eq!(
        (list_plugins(&home)[0]["source"].as_str(), call_tool(&home).exit_code),
        (Some(url.as_str()), 0)
    );
    site.serve_file("/v/echo.wasm?x=1", &second);
    let ran = home.run(&["plugin", "update"]);
    assert!(ran.exit_code == 0 && ran.stderr.contains("it requests no new permissions"), "{ran:?}");
    assert_eq!(
        (stored_files(&home), call_tool(&home).exit_code),
        (vec![stored_name("echo", &second)], 0)
    );
}

#[test]
fn a_server_that_does_not_deliver_changes_nothing() {
    let (home, site) = (new_home(), FileServer::start());
    site.serve_file("/echo.wasm", &echo_plugin(&reading_tool()));
    assert_eq!(home.run(&["plugin", "add", &site.url("/echo.wasm"), "--yes"]).exit_code, 0);
    let before = (read_lock_file(&home), stored_files(&home));
    let head = |length: usize| format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\nsome");
    let away = |to: &str| {
        format!(
            "HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        )
    };
    let endless =
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(), endless_chunks(65)]
            .concat();
    let table: [(&str, Vec<u8>, &str); 8] = [
        (
            "an error",
            b"HTTP/1.1 500 No\r\ncontent-length: 4\r\nconnection: close\r\n\r\noops".to_vec(),
            "the server responded with 500",
        ),
        ("half of it", head(1000).into(), "cannot fetch it: "),
        ("too much, as it says", head(1 << 30).into(), "it is larger than 64 MiB"),
        ("too much", endless, "it is larger than 64 MiB"),
        (
            "elsewhere, for anyone to read",
            away("http://example.org/echo.wasm").into(),
            "it is not https",
        ),
        ("a file", away("file:///etc/passwd").into(), "cannot fetch it: "),
        ("in a circle", away("/echo.wasm").into(), "more than 5 times"),
        (
            "something else",
            b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nwasm".to_vec(),
            "it is not WebAssembly (it begins with `wasm`)",
        ),
    ];
    for (what, answer, problem) in table {
        site.serve_response("/echo.wasm", answer, false);
        let ran = home.run(&["plugin", "update", "--yes"]);
        assert!(ran.exit_code == 1 && ran.stderr.contains(problem), "{what}: {ran:?}");
        assert_eq!((read_lock_file(&home), stored_files(&home)), before, "{what}");
    }
    assert_eq!(call_tool(&home).exit_code, 0);
}

/// So many MiB, a chunk each, and no end.
fn endless_chunks(count: usize) -> Vec<u8> {
    let chunk = [b"100000\r\n".to_vec(), vec![b'x'; 1 << 20], b"\r\n".to_vec()].concat();
    chunk.repeat(count)
}

#[test]
fn a_stop_in_the_middle_leaves_the_old_one() {
    let (home, site) = (new_home(), FileServer::start());
    site.serve_file("/echo.wasm", &echo_plugin(&reading_tool()));
    assert_eq!(home.run(&["plugin", "add", &site.url("/echo.wasm"), "--yes"]).exit_code, 0);
    let before = (read_lock_file(&home), stored_files(&home));
    site.serve_response("/echo.wasm", "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nsome", true);
    for kill in [false, true] {
        let asked = site.request_count("/echo.wasm");
        let running = home.start(home.command(&["plugin", "update"]));
        wait_until("the server was asked", || site.request_count("/echo.wasm") > asked);
        if !kill {
            running.interrupt();
        }
        // One that is dropped is killed.
        drop(running);
        assert_eq!((read_lock_file(&home), stored_files(&home)), before);
        assert_eq!(call_tool(&home).exit_code, 0);
    }
}
