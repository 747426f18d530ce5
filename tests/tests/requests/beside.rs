//! Two runs at the same time, in one home and one workspace.

use cofferdam_tests::wire::{both, calls, says};
use serde_json::json;

use super::home;

#[test]
fn two_runs_at_the_same_time_do_not_disturb_each_other() {
    let home = home().with("a.txt", "shared\n");
    let servers = both().map(|provider| {
        let name = format!("{provider:?}");
        let command = format!("echo {name} > {name}.txt; sleep 0.3; cat {name}.txt a.txt");
        (provider.serve([calls("bash", json!({"command": command})), says(&name)]), name)
    });
    let running: Vec<_> =
        servers.iter().map(|(server, _)| home.start(home.task(server, &["--mode", "auto", "--output", "json"]))).collect();
    for (running, (server, name)) in running.into_iter().zip(&servers) {
        running.wait().answered(name);
        assert_eq!(server.last_request().results()[0].text, format!("{name}\nshared\n"));
    }
}
