//! Calls that cannot be run: the model is told what is wrong, and the loop goes on.

use std::collections::HashSet;

use cofferdam_tests::wire::{both_providers, empty_reply, text_reply};
use serde_json::json;

use super::new_home;

const GOOD: &str = r#"{"path": "a.txt"}"#;

#[test]
fn r022_each_kind_of_bad_call_says_what_is_wrong_and_hides_no_other() {
    let table = [
        ("no_such_tool", "{}", "unknown tool \"no_such_tool\". Available tools: "),
        ("", "{}", "unknown tool \"\""),
        ("functions.read_file", GOOD, "unknown tool"),
        ("read_file", r#"{"path": "a.t"#, "not valid JSON"),
        ("read_file", "not JSON", "not valid JSON"),
        ("read_file", r#"["a.txt"]"#, "a JSON array instead of an object"),
        ("read_file", "null", "a JSON null instead of an object"),
        ("read_file", "", "\"path\" is a required property"),
        ("read_file", r#"{"path": 7}"#, "at /path: 7 is not of type \"string\""),
        (
            "read_file",
            r#"{"path": "a.txt", "limit": 0}"#,
            "at /limit: 0 is less than the minimum of 1",
        ),
        ("read_file", r#"{"path": "a.txt", "extra": 1}"#, "'extra' was unexpected"),
        ("read_file", r#"{"path": "../a.txt"}"#, "denied (outside-workspace) at /path"),
        // R-23: two objects are not one, and not two calls either.
        ("read_file", r#"{"path": "a.txt"}{"path": "a.txt"}"#, "more than one JSON value"),
    ];
    for provider in both_providers() {
        let home = new_home().with_file("a.txt", "still read\n");
        let calls =
            table.iter().enumerate().fold(empty_reply(), |reply, (n, (tool, arguments, _))| {
                reply.with_raw_call(&format!("c{n}"), tool, arguments)
            });
        let server =
            provider.serve([calls.with_raw_call("last", "read_file", GOOD), text_reply("I see.")]);
        let report = home.run_task(&server, &[]).expect_outcome("answered", 0);
        let mut results = server.last_request().tool_results();
        let last = results.pop().expect("there are results");
        assert!(!last.is_error && last.text.contains("still read"), "{provider:?}: {last:?}");
        for ((_, arguments, expected), result) in table.iter().zip(&results) {
            assert!(
                result.is_error && result.text.contains(expected),
                "{provider:?}, {arguments}: {result:?}"
            );
        }
        assert_eq!(
            (results.len(), report["calls"].as_array().map(Vec::len)),
            (table.len(), Some(table.len() + 1))
        );
    }
}

#[test]
fn r021_duplicate_and_empty_ids_become_distinct() {
    let ids = ["", "same", "same", "", "not a good id!"];
    for provider in both_providers() {
        let home = (0..ids.len())
            .fold(new_home(), |home, n| home.with_file(&format!("{n}.txt"), format!("file {n}\n")));
        let arguments = |n| format!("{{\"path\": \"{n}.txt\"}}");
        let calls = ids.iter().enumerate().fold(empty_reply(), |reply, (n, id)| {
            reply.with_raw_call(id, "read_file", &arguments(n))
        });
        let server = provider.serve([calls, text_reply("Done.")]);
        home.run_task(&server, &[]).expect_answer("Done.");
        let results = server.last_request().tool_results();
        let distinct: HashSet<&str> = results.iter().map(|result| result.id.as_str()).collect();
        assert_eq!(distinct.len(), ids.len(), "{provider:?}: {results:?}");
        for (n, result) in results.iter().enumerate() {
            assert!(result.text.contains(&format!("file {n}")), "{provider:?}: {results:?}");
        }
    }
}

#[test]
fn r024_names_are_trimmed() {
    for provider in both_providers() {
        let home = new_home().with_file("a.txt", "found\n");
        let server = provider
            .serve([empty_reply().with_raw_call("c", " read_file\n", GOOD), text_reply("Done.")]);
        home.run_task(&server, &[]).expect_answer("Done.");
        assert!(server.last_request().tool_results()[0].text.contains("found"));
    }
}

#[test]
fn r025_calls_in_text_are_text() {
    let text =
        "<tool_call>{\"name\": \"bash\", \"arguments\": {\"command\": \"touch ran\"}}</tool_call>";
    for provider in both_providers() {
        let home = new_home();
        let server = provider.serve([text_reply(text)]);
        home.run_task(&server, &["--mode", "auto"]).expect_answer(text);
        assert!(!home.has_file("ran"));
    }
}

#[test]
fn r052_an_id_that_is_used_again_in_a_later_turn_is_another_call() {
    for provider in both_providers() {
        let home = new_home().with_file("a.txt", "first\n").with_file("b.txt", "second\n");
        let read = |path: &str| {
            empty_reply().with_raw_call("same", "read_file", &json!({"path": path}).to_string())
        };
        let server = provider.serve([read("a.txt"), read("b.txt"), text_reply("Both.")]);
        home.run_task(&server, &[]).expect_answer("Both.");
        let requests = server.requests();
        let told = |at: usize| {
            requests[at]
                .tool_results()
                .into_iter()
                .map(|result| result.text.trim().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!((told(1), told(2)), (vec!["1\tfirst".to_owned()], vec!["1\tsecond".to_owned()]));
        assert_eq!(
            (requests[2].count_occurrences("1\tfirst"), requests[2].count_occurrences("1\tsecond")),
            (1, 1)
        );
    }
}
