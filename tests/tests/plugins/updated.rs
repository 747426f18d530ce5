//! Added plugins that are updated, restored and taken away.

use std::fs;

use cofferdam_tests::guests::GuestTool;
use cofferdam_tests::terminal::TestTerminal;

use super::added::{
    call_tool, command_tool, echo_plugin, list_plugins, read_lock_file, reading_tool, stored_files,
    stored_name, write_component,
};
use super::new_home;

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
