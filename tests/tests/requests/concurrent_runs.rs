//! Two runs at the same time, in one home and one workspace.

use cofferdam_tests::wire::{both_providers, call_reply, text_reply};
use serde_json::json;

use super::new_home;

#[test]
fn two_runs_at_the_same_time_do_not_disturb_each_other() {
    let home = new_home().with_file("a.txt", "shared\n");
    let servers = both_providers().map(|provider| {
        let name = format!("{provider:?}");
        let command = format!("echo {name} > {name}.txt; sleep 0.3; cat {name}.txt a.txt");
        (provider.serve([call_reply("bash", json!({"command": command})), text_reply(&name)]), name)
    });
    let running: Vec<_> = servers
        .iter()
        .map(|(server, _)| {
            home.start(home.model_command(server, &["--mode", "auto", "--output", "json"]))
        })
        .collect();
    for (running, (server, name)) in running.into_iter().zip(&servers) {
        running.wait_for_exit().expect_answer(name);
        assert_eq!(server.last_request().tool_results()[0].text, format!("{name}\nshared\n"));
    }
}
