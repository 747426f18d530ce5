//! `cofferdam mcp install`: the files of clients.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::Value;

use crate::client::{McpClient, new_home, ok_text};

#[test]
fn the_configuration_is_printed_and_only_written_on_request() {
    let home = new_home();
    for (client, file) in [
        ("claude", ".claude.json"),
        ("codex", ".codex/config.toml"),
        ("cursor", ".cursor/mcp.json"),
        ("vscode", "config/Code/User/mcp.json"),
        ("goose", "config/goose/config.yaml"),
        ("gemini", ".gemini/settings.json"),
    ] {
        let path = home.path().join(file);
        let shown = home.run(&["mcp", "install", client]);
        assert_eq!(shown.exit_code, 0, "{shown:?}");
        assert!(shown.stdout.contains("serve") && shown.stderr.contains(file), "{shown:?}");
        assert!(!path.exists(), "nothing is written without --write");
        let written = home.run(&["mcp", "install", client, "--write", "--mode", "plan"]);
        assert_eq!(written.exit_code, 0, "{written:?}");
        let text = fs::read_to_string(&path).expect("it is written");
        assert!(text.contains("cofferdam-under-test") && text.contains("plan"), "{text}");
        let removed = home.run(&["mcp", "uninstall", client]);
        assert_eq!(removed.exit_code, 0, "{removed:?}");
        let text = fs::read_to_string(&path).expect("it is there");
        assert!(!text.contains("cofferdam"), "{text}");
        let again = home.run(&["mcp", "uninstall", client]);
        assert!(again.exit_code == 1 && again.stderr.contains("no such server"), "{again:?}");
    }
}

#[test]
fn a_written_entry_starts_a_server_that_works() {
    let home = new_home().with_file("a.txt", "one\n");
    let written = home.run(&["mcp", "install", "cursor", "--write", "-C", "."]);
    assert_eq!(written.exit_code, 0, "{written:?}");
    let text = fs::read_to_string(home.path().join(".cursor/mcp.json")).expect("it is written");
    let entry: Value = serde_json::from_str(&text).expect("JSON");
    let entry = &entry["mcpServers"]["cofferdam"];
    let mut command = std::process::Command::new(entry["command"].as_str().expect("a path"));
    home.configure(&mut command);
    command.args(entry["args"].as_array().expect("a list").iter().filter_map(Value::as_str));
    command.current_dir("/");
    let mut client = McpClient::start_command(command);
    client.initialize("2025-11-25", serde_json::json!({}));
    let result = client.call("read_file", serde_json::json!({"path": "a.txt"}));
    assert!(ok_text(&result).contains("one"), "{result}");
}

#[test]
fn a_file_keeps_its_content_its_permissions_and_its_link() {
    let home = new_home();
    let text = concat!(
        "{\n  // keep this\n  \"history\": [\"a\"],\n",
        "  \"mcpServers\": {\"b\": {\"command\": \"x\"}}\n}\n"
    );
    home.write_file("real.json", text);
    let real = home.path().join("real.json");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).expect("set it");
    symlink("real.json", home.path().join(".claude.json")).expect("link it");
    let written = home.run(&["mcp", "install", "claude", "--write"]);
    assert_eq!(written.exit_code, 0, "{written:?}");
    let changed = fs::read_to_string(&real).expect("it is there");
    assert!(changed.contains("// keep this") && changed.contains("\"b\": {\"command\": \"x\"}"));
    assert!(changed.contains("\"cofferdam\""), "{changed}");
    assert_eq!(fs::metadata(&real).expect("it is there").permissions().mode() & 0o777, 0o600);
    assert!(home.path().join(".claude.json").is_symlink());
    assert_eq!(home.run(&["mcp", "uninstall", "claude"]).exit_code, 0);
    assert_eq!(fs::read_to_string(&real).expect("it is there"), text);
}

#[test]
fn a_file_that_cannot_be_parsed_is_not_changed() {
    let home = new_home();
    for (client, file, text) in [
        ("claude", ".claude.json", "{\"mcpServers\": "),
        ("codex", ".codex/config.toml", "model = \n"),
        ("goose", "config/goose/config.yaml", "- a\n"),
    ] {
        home.write_file(file, text);
        for args in [&["mcp", "install", client, "--write"][..], &["mcp", "uninstall", client]] {
            let refused = home.run(args);
            assert_eq!(refused.exit_code, 1, "{refused:?}");
            assert!(refused.stderr.contains("hint: repair the file"), "{refused:?}");
        }
        assert_eq!(fs::read_to_string(home.path().join(file)).expect("it is there"), text);
    }
}
