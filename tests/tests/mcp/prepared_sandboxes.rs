//! Commands of a server that runs several of them. The sandbox of each is prepared while the one
//! before it runs, and must still show the files as they are when the command starts.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use cofferdam_tests::program::TestHome;
use serde_json::json;
use tempfile::TempDir;

use crate::client::{McpClient, new_home, ok_text};

/// The time in which a sandbox is prepared. If it takes longer, these tests show less, and pass.
const PREPARATION_TIME: Duration = Duration::from_millis(700);

/// A home directory of which commands see some files. It is not in a directory for temporary files,
/// of which each command has its own.
fn new_user() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory")
}

fn command(home: &TestHome, user: &Path, before: &[&str]) -> Command {
    let workspace = home.workspace();
    let workspace = workspace.to_str().expect("it is text");
    let program = home.command(&[]).get_program().to_owned();
    let mut words = before.iter().map(std::ffi::OsString::from).chain([program]);
    let mut command = Command::new(words.next().expect("at least the program"));
    home.configure(&mut command);
    command.env("HOME", user).args(words);
    command.args(["mcp", "serve", "-C", workspace, "--mode", "auto"]);
    command
}

fn begin(home: &TestHome, user: &Path, before: &[&str]) -> McpClient {
    let mut client = McpClient::start_command(command(home, user, before));
    client.initialize("2025-11-25", json!({}));
    client
}

fn run(client: &mut McpClient, line: &str) -> String {
    let result = client.call("bash", json!({"command": line}));
    ok_text(&result).trim().to_owned()
}

#[test]
fn a_file_that_is_exchanged_between_two_commands_is_the_new_one() {
    let (home, user) = (new_home(), new_user());
    let file = user.path().join(".tool-versions");
    fs::write(&file, "old\n").expect("it is written");
    let mut client = begin(&home, user.path(), &[]);
    for content in ["old", "new", "newest"] {
        let next = user.path().join("next");
        fs::write(&next, content).expect("it is written");
        fs::rename(&next, &file).expect("it is exchanged");
        assert_eq!(run(&mut client, "cat ~/.tool-versions"), content);
        std::thread::sleep(PREPARATION_TIME);
    }
}

#[test]
fn a_directory_that_appears_or_vanishes_between_two_commands_is_as_it_is() {
    let (home, user) = (new_home(), new_user());
    let directory = user.path().join("go/bin");
    let mut client = begin(&home, user.path(), &[]);
    let line = "test -e ~/go/bin/tool && echo there || echo missing";
    for expected in ["missing", "there", "missing"] {
        if expected == "there" {
            fs::create_dir_all(&directory).expect("it is made");
            fs::write(directory.join("tool"), "").expect("it is made");
        } else if directory.exists() {
            fs::remove_dir_all(&directory).expect("it is removed");
        }
        assert_eq!(run(&mut client, line), expected);
        std::thread::sleep(PREPARATION_TIME);
    }
}

#[test]
fn a_file_system_that_is_mounted_between_two_commands_is_visible() {
    let (home, user) = (new_home(), new_user());
    let directory = user.path().join("go/bin");
    fs::create_dir_all(&directory).expect("it is made");
    // The server has mounts of its own, which a test may change without being root.
    let before = ["unshare", "--user", "--map-root-user", "--mount"];
    let mut client = begin(&home, user.path(), &before);
    let line = "test -e ~/go/bin/tool && echo there || echo missing";
    assert_eq!(run(&mut client, line), "missing");
    std::thread::sleep(PREPARATION_TIME);
    let path = directory.to_str().expect("it is text");
    let script = format!("mount -t tmpfs none '{path}' && touch '{path}/tool'");
    let server = client.id().to_string();
    let mounted = Command::new("nsenter")
        .args(["--target", &server, "--user", "--mount", "--preserve-credentials"])
        .args(["sh", "-c", &script])
        .status();
    assert!(mounted.expect("it starts").success());
    assert_eq!(run(&mut client, line), "there");
}

#[test]
fn prepared_and_other_commands_alternate() {
    let (home, user) = (new_home(), new_user());
    let mut client = begin(&home, user.path(), &[]);
    // The first and the last change the workspace, the second only reads it.
    assert_eq!(run(&mut client, "echo text > file; hostname"), "cofferdam");
    std::thread::sleep(PREPARATION_TIME);
    assert_eq!(run(&mut client, "cat file"), "text");
    std::thread::sleep(PREPARATION_TIME);
    assert_eq!(run(&mut client, "echo more >> file; cat file; hostname"), "text\nmore\ncofferdam");
    // The root of the sandbox is as small as without preparation, and cannot be changed.
    std::thread::sleep(PREPARATION_TIME);
    let line = "test -e /sys/bus && echo open; touch /usr/x /etc/x 2>/dev/null || echo read-only";
    assert_eq!(run(&mut client, line), "read-only");
}
