//! Files that change on disk behind the model's back.

use cofferdam_tests::program::TestHome;
use cofferdam_tests::wire::{
    ProviderServer, ScriptedReply, both_providers, call_reply, text_reply,
};
use serde_json::json;

use super::new_home;

fn read_call(path: &str) -> ScriptedReply {
    call_reply("read_file", json!({"path": path}))
}

fn bash_call(command: &str) -> ScriptedReply {
    call_reply("bash", json!({"command": command}))
}

fn update_call(path: &str, old: &str, new: &str) -> ScriptedReply {
    call_reply("update_file", json!({"path": path, "old_text": old, "new_text": new}))
}

/// Whether each call of the request was an error, with its text.
fn call_results(server: &ProviderServer) -> Vec<(bool, String)> {
    let results = server.requests().into_iter().skip(1).flat_map(|request| request.tool_results());
    results.map(|result| (result.is_error, result.text.trim().to_owned())).collect()
}

fn read_content(home: &TestHome, path: &str) -> String {
    std::fs::read_to_string(home.workspace().join(path)).expect("it is there")
}

#[test]
fn r119_a_file_that_changed_since_it_was_read_is_read_again_first() {
    for provider in both_providers() {
        let home = new_home().with_file("a.txt", "one\ntwo\n").with_file("b.txt", "one\n");
        let server = provider.serve([
            read_call("a.txt").with_call("read_file", json!({"path": "b.txt"})),
            bash_call("printf 'zero\\none\\ntwo\\n' > a.txt"),
            update_call("a.txt", "two", "three"),
            update_call("b.txt", "one", "1"),
            read_call("a.txt"),
            update_call("a.txt", "two", "three"),
            text_reply("Done."),
        ]);
        home.run_task(&server, &["--mode", "auto"]).expect_answer("Done.");
        let results = call_results(&server);
        let (is_error, text) = &results[3];
        assert!(
            *is_error && text.contains("`a.txt` has changed on disk since it was last read"),
            "{text}"
        );
        assert!(text.contains("nothing was changed. Read it again"), "{text}");
        assert!(
            !results[4].0 && !results[6].0,
            "another file, and the same when it was read again: {results:?}"
        );
        assert_eq!(
            (read_content(&home, "a.txt").as_str(), read_content(&home, "b.txt").as_str()),
            ("zero\none\nthree\n", "1\n")
        );
    }
}

#[test]
fn r119_what_the_model_wrote_itself_and_what_it_never_read_is_changed_at_once() {
    for provider in both_providers() {
        let home = new_home().with_file("a.txt", "one\n").with_file("never.txt", "one\n");
        let server = provider.serve([
            read_call("a.txt"),
            update_call("a.txt", "one", "two"),
            update_call("a.txt", "two", "three"),
            call_reply("write_file", json!({"path": "new.txt", "content": "one\n"})),
            update_call("new.txt", "one", "two"),
            update_call("never.txt", "one", "two"),
            // Other permissions are no other content.
            bash_call("chmod 755 a.txt"),
            update_call("a.txt", "three", "four"),
            bash_call("echo more >> new.txt"),
            update_call("new.txt", "two", "three"),
            text_reply("Done."),
        ]);
        home.run_task(&server, &["--mode", "auto"]).expect_answer("Done.");
        let errors: Vec<usize> = call_results(&server)
            .iter()
            .enumerate()
            .filter(|(_, (is_error, _))| *is_error)
            .map(|(n, _)| n)
            .collect();
        assert_eq!(errors, [9], "only what a command wrote to since: {:?}", call_results(&server));
        assert_eq!(
            [
                read_content(&home, "a.txt"),
                read_content(&home, "never.txt"),
                read_content(&home, "new.txt")
            ],
            ["four\n", "two\n", "two\nmore\n"]
        );
    }
}

#[test]
fn r119_the_look_of_a_tool_that_failed_is_no_reading() {
    for provider in both_providers() {
        let home = new_home().with_file("a.txt", "one\n");
        let server = provider.serve([
            read_call("a.txt"),
            bash_call("echo two > a.txt"),
            update_call("a.txt", "not there", "x"),
            call_reply("grep", json!({"pattern": "two"})),
            update_call("a.txt", "two", "three"),
            text_reply("Done."),
        ]);
        home.run_task(&server, &["--mode", "auto"]).expect_answer("Done.");
        let results = call_results(&server);
        assert!(
            results[2].0 && results[4].0 && results[4].1.contains("Read it again"),
            "{results:?}"
        );
        assert_eq!(read_content(&home, "a.txt"), "two\n");
    }
}

#[test]
fn r118_a_file_that_is_edited_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let home = new_home().with_file("run.sh", "#!/bin/sh\necho one\n");
    let path = home.workspace().join("run.sh");
    for mode in [0o755, 0o700, 0o640] {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("it is ours");
        let input =
            json!({"path": "run.sh", "old_text": "echo ", "new_text": "echo  "}).to_string();
        let ran = home.run(&["tools", "call", "update_file", &input, "--mode", "auto"]);
        assert!(ran.exit_code == 0 && !ran.stdout.contains("chmod"), "{ran:?}");
        assert_eq!(path.metadata().expect("it is there").permissions().mode() & 0o7777, mode);
    }
}
