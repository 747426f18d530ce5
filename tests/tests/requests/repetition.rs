//! A model that goes in circles is told so, and nothing else happens to it.

use cofferdam_tests::wire::{
    ProviderServer, ScriptedReply, both_providers, call_reply, text_reply,
};
use serde_json::json;

use super::new_home;

/// Which results carry the remark.
fn has_repetition_notice(server: &ProviderServer) -> Vec<bool> {
    let requests = server.requests();
    requests
        .iter()
        .flat_map(|request| request.tool_results())
        .map(|result| result.text.contains("[Notice from the host"))
        .collect()
}

fn read_call(path: &str) -> ScriptedReply {
    call_reply("read_file", json!({"path": path}))
}

#[test]
fn r011_the_third_same_call_with_the_same_result_gets_a_remark() {
    for provider in both_providers() {
        let home = new_home().with_file("a.txt", "a\n").with_file("b.txt", "b\n");
        let server = provider.serve([
            read_call("a.txt"),
            read_call("a.txt"),
            read_call("b.txt"),
            read_call("a.txt"),
            read_call("a.txt"),
            read_call("a.txt"),
            text_reply("Oh."),
        ]);
        home.run_task(&server, &[]).expect_answer("Oh.");
        assert_eq!(
            has_repetition_notice(&server),
            [false, false, false, false, false, true],
            "{provider:?}"
        );
    }
}

#[test]
fn r011_a_call_that_is_refused_each_time_gets_it_too() {
    for provider in both_providers() {
        let server = provider.serve([
            read_call("../a.txt"),
            read_call("../a.txt"),
            read_call("../a.txt"),
            text_reply("Oh."),
        ]);
        new_home().run_task(&server, &[]).expect_answer("Oh.");
        assert_eq!(has_repetition_notice(&server), [false, false, true], "{provider:?}");
    }
}
