//! JSON output contains no character that affects a terminal, and its value is complete.

use std::collections::BTreeSet;

use cofferdam_tests::guests::GuestTool;
use cofferdam_tests::program::TestHome;
use cofferdam_tests::wire::{Provider, call_reply, text_reply};
use serde_json::{Value, json};

use super::new_home;
use super::plugin_acceptance::echo_plugin;

/// A C1 control, two that change the direction of text, and one that is invisible.
const HOSTILE: &str = "a\u{9b}2J\u{202e}b\u{200b}c\u{2066}";
const ESCAPED: &str = "a\\u009b2J\\u202eb\\u200bc\\u2066";

/// Whether an output has to contain the hostile text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostileText {
    Required,
    Possible,
}

fn parse_output(output: &str) -> Vec<Value> {
    match serde_json::from_str(output) {
        Ok(value) => vec![value],
        Err(_) => output.lines().map(|line| serde_json::from_str(line).expect(line)).collect(),
    }
}

#[track_caller]
fn check_output(what: &str, output: &str, hostile: HostileText) {
    let is_harmless = |c: char| matches!(c, ' '..='~' | '\n' | '…' | '·' | '→' | '–');
    let found: BTreeSet<char> = output.chars().filter(|c| !is_harmless(*c)).collect();
    assert!(found.is_empty(), "{what} prints {found:?}: {output}");
    let values = parse_output(output);
    assert!(!values.is_empty(), "{what} prints nothing");
    if hostile == HostileText::Required {
        assert!(output.contains(ESCAPED), "{what}: {output}");
        let value = values.iter().map(|value| format!("{value}")).collect::<String>();
        assert!(value.contains(HOSTILE), "{what} changes the value: {output}");
    }
}

/// A home after a request with hostile text wherever a model can put it. Returns the output.
fn hostile_request(home: &TestHome, output: &str) -> String {
    let file = format!("{HOSTILE}-{output}.txt");
    let server = Provider::OpenAi.serve([
        call_reply("write_file", json!({"path": file, "content": HOSTILE})),
        call_reply("bash", json!({"command": format!("echo '{HOSTILE}'")})),
        call_reply("read_file", json!({"path": format!("no-{HOSTILE}")})),
        text_reply(&format!("Done: {HOSTILE}")),
    ]);
    let args = ["--mode", "auto", "--output", output];
    let ran = home.start(home.model_command(&server, &args)).wait_for_exit();
    assert_eq!(ran.exit_code, 0, "{ran:?}");
    ran.stdout
}

/// The commands with an option for JSON, from the reference.
fn documented_commands() -> BTreeSet<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../host/docs/reference/cli.md");
    let text = std::fs::read_to_string(path).expect("the reference is there");
    let mut commands = BTreeSet::from(["audit export".to_owned(), "sessions export".to_owned()]);
    let mut command = String::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('#').map(|rest| rest.trim_matches(['#', ' ', '`'])) {
            command = name.strip_prefix("cofferdam ").unwrap_or_default().to_owned();
        }
        if line.starts_with("- `--json`") || line.starts_with("- `--output <OUTPUT>`") {
            commands.insert(command.clone());
        }
    }
    assert!(commands.len() > 10, "{commands:?}");
    commands
}

/// Adds an MCP server with the hostile text in its arguments to the configuration.
fn add_hostile_server(home: &TestHome) {
    home.write_file("servers/server.py", include_str!("../mcp_servers/server.py"));
    let servers = home.path().join("servers");
    let script = servers.join("server.py");
    home.write_file(
        "config/cofferdam/config.toml",
        format!(
            "[mcp.servers.x]\ncommand = \"/usr/bin/python3\"\nargs = [\"{}\", \"\", \
                \"{ESCAPED}\"]\nread = [\"{}\"]\n",
            script.display(),
            servers.display()
        ),
    );
}

#[test]
fn no_json_output_contains_a_character_that_affects_a_terminal() {
    use HostileText::{Possible, Required};
    let home = new_home().with_file(HOSTILE, HOSTILE);
    let mut checked = BTreeSet::new();
    for output in ["json", "stream-json"] {
        check_output(output, &hostile_request(&home, output), Required);
        checked.insert("run".to_owned());
    }
    let session = home.run(&["sessions", "list", "--json"]).stdout;
    let session: Value = serde_json::from_str(&session).expect("it is JSON");
    let session = session["sessions"][0]["id"].as_str().expect("there is one").to_owned();
    let tool = GuestTool::new("echo");
    let plugin = echo_plugin(&home, &format!("{HOSTILE}.wasm"), &tool);
    let plugin = plugin.to_str().expect("it is text");
    let input = json!({"path": HOSTILE}).to_string();
    add_hostile_server(&home);
    let table: [(&[&str], HostileText); 22] = [
        (&["run", "x", "--output", "json", "--model", HOSTILE], Possible),
        (&["run", "x", "--output", "json", HOSTILE], Required),
        (&["sessions", "list", "--json"], Possible),
        (&["sessions", "show", &session, "--json"], Possible),
        (&["sessions", "export", &session], Required),
        (&["audit", "show", "--json"], Required),
        (&["audit", "export", "--format", "json"], Required),
        (&["audit", "export", "--format", "ocsf"], Required),
        (&["tools", "list", "--json", "--plugin", plugin], Required),
        (&["tools", "show", "bash", "--json"], Possible),
        (&["tools", "call", "read_file", &input, "--json"], Required),
        (&["tools", "call", HOSTILE, "{}", "--json"], Required),
        (&["tools", "call", "grep", HOSTILE, HOSTILE, "--json"], Required),
        (&["mcp", "list", "--json"], Required),
        (&["mcp", "inspect", "x", "--json"], Required),
        (&["plugin", "inspect", plugin, "--json"], Possible),
        (&["plugin", "list", "--json", "--plugin", plugin], Required),
        (&["policy", "explain", "write_file", "--write", HOSTILE, "--json"], Required),
        (&["policy", "explain", "bash", "--command", HOSTILE, "--json"], Required),
        (&["diff", "--json", "--last", "3"], Required),
        (&["undo", "--list", "--json"], Required),
        (&["undo", "--json"], Required),
    ];
    for (args, hostile) in table {
        check_output(&format!("{args:?}"), &home.run(args).stdout, hostile);
        checked.insert(args[0].to_owned());
        checked.insert(args[..2].join(" "));
    }
    let missing: Vec<String> = documented_commands().difference(&checked).cloned().collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
}
