//! Files that change on disk behind the model's back.

use cofferdam_tests::program::Home;
use cofferdam_tests::wire::{Reply, Server, both, calls, says};
use serde_json::json;

use super::home;

fn read(path: &str) -> Reply {
    calls("read_file", json!({"path": path}))
}

fn bash(command: &str) -> Reply {
    calls("bash", json!({"command": command}))
}

fn update(path: &str, old: &str, new: &str) -> Reply {
    calls("update_file", json!({"path": path, "old_text": old, "new_text": new}))
}

/// Whether each call of the request was an error, with its text.
fn results(server: &Server) -> Vec<(bool, String)> {
    let results = server.requests().into_iter().skip(1).flat_map(|request| request.results());
    results.map(|result| (result.is_error, result.text.trim().to_owned())).collect()
}

fn content(home: &Home, path: &str) -> String {
    std::fs::read_to_string(home.workspace().join(path)).expect("it is there")
}

#[test]
fn r119_a_file_that_changed_since_it_was_read_is_read_again_first() {
    for provider in both() {
        let home = home().with("a.txt", "one\ntwo\n").with("b.txt", "one\n");
        let server = provider.serve([
            read("a.txt").call("read_file", json!({"path": "b.txt"})),
            bash("printf 'zero\\none\\ntwo\\n' > a.txt"),
            update("a.txt", "two", "three"),
            update("b.txt", "one", "1"),
            read("a.txt"),
            update("a.txt", "two", "three"),
            says("Done."),
        ]);
        home.ask(&server, &["--mode", "auto"]).answered("Done.");
        let results = results(&server);
        let (is_error, text) = &results[3];
        assert!(*is_error && text.contains("'a.txt' has changed on disk since it was last read"), "{text}");
        assert!(text.contains("nothing was changed. Read it again"), "{text}");
        assert!(!results[4].0 && !results[6].0, "another file, and the same when it was read again: {results:?}");
        assert_eq!((content(&home, "a.txt").as_str(), content(&home, "b.txt").as_str()), ("zero\none\nthree\n", "1\n"));
    }
}

#[test]
fn r119_what_the_model_wrote_itself_and_what_it_never_read_is_changed_at_once() {
    for provider in both() {
        let home = home().with("a.txt", "one\n").with("never.txt", "one\n");
        let server = provider.serve([
            read("a.txt"),
            update("a.txt", "one", "two"),
            update("a.txt", "two", "three"),
            calls("write_file", json!({"path": "new.txt", "content": "one\n"})),
            update("new.txt", "one", "two"),
            update("never.txt", "one", "two"),
            // Other permissions are no other content.
            bash("chmod 755 a.txt"),
            update("a.txt", "three", "four"),
            bash("echo more >> new.txt"),
            update("new.txt", "two", "three"),
            says("Done."),
        ]);
        home.ask(&server, &["--mode", "auto"]).answered("Done.");
        let errors: Vec<usize> = results(&server).iter().enumerate().filter(|(_, (is_error, _))| *is_error).map(|(n, _)| n).collect();
        assert_eq!(errors, [9], "only what a command wrote to since: {:?}", results(&server));
        assert_eq!([content(&home, "a.txt"), content(&home, "never.txt"), content(&home, "new.txt")], ["four\n", "two\n", "two\nmore\n"]);
    }
}

#[test]
fn r119_the_look_of_a_tool_that_failed_is_no_reading() {
    for provider in both() {
        let home = home().with("a.txt", "one\n");
        let server = provider.serve([
            read("a.txt"),
            bash("echo two > a.txt"),
            update("a.txt", "not there", "x"),
            calls("grep", json!({"pattern": "two"})),
            update("a.txt", "two", "three"),
            says("Done."),
        ]);
        home.ask(&server, &["--mode", "auto"]).answered("Done.");
        let results = results(&server);
        assert!(results[2].0 && results[4].0 && results[4].1.contains("Read it again"), "{results:?}");
        assert_eq!(content(&home, "a.txt"), "two\n");
    }
}

#[test]
fn r118_a_file_that_is_edited_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let home = home().with("run.sh", "#!/bin/sh\necho one\n");
    let path = home.workspace().join("run.sh");
    for mode in [0o755, 0o700, 0o640] {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("it is ours");
        let input = json!({"path": "run.sh", "old_text": "echo ", "new_text": "echo  "}).to_string();
        let ran = home.run(&["tools", "call", "update_file", &input, "--mode", "auto"]);
        assert!(ran.code == 0 && !ran.stdout.contains("chmod"), "{ran:?}");
        assert_eq!(path.metadata().expect("it is there").permissions().mode() & 0o7777, mode);
    }
}
