//! A model that goes in circles is told so, and nothing else happens to it.

use cofferdam_tests::wire::{Reply, Server, both, calls, says};
use serde_json::json;

use super::home;

/// Which results carry the remark.
fn remarked(server: &Server) -> Vec<bool> {
    let requests = server.requests();
    requests.iter().flat_map(|request| request.results()).map(|result| result.text.contains("[Remark of the host")).collect()
}

fn read(path: &str) -> Reply {
    calls("read_file", json!({"path": path}))
}

#[test]
fn r011_the_third_same_call_with_the_same_result_gets_a_remark() {
    for provider in both() {
        let home = home().with("a.txt", "a\n").with("b.txt", "b\n");
        let server =
            provider.serve([read("a.txt"), read("a.txt"), read("b.txt"), read("a.txt"), read("a.txt"), read("a.txt"), says("Oh.")]);
        home.ask(&server, &[]).answered("Oh.");
        assert_eq!(remarked(&server), [false, false, false, false, false, true], "{provider:?}");
    }
}

#[test]
fn r011_a_call_that_is_refused_each_time_gets_it_too() {
    for provider in both() {
        let server = provider.serve([read("../a.txt"), read("../a.txt"), read("../a.txt"), says("Oh.")]);
        home().ask(&server, &[]).answered("Oh.");
        assert_eq!(remarked(&server), [false, false, true], "{provider:?}");
    }
}
