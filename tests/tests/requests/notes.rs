//! `todo` and `react`: what the model writes down for itself, from turn to turn.

use cofferdam_tests::wire::{Server, both, calls, says};
use serde_json::json;

use super::home;

/// All results of all turns, in order.
fn texts(server: &Server) -> Vec<String> {
    server.requests().iter().skip(1).flat_map(|request| request.results()).map(|result| result.text.trim().to_owned()).collect()
}

#[test]
fn r125_the_list_is_kept_from_turn_to_turn_and_shown() {
    for provider in both() {
        let item = |text: &str, status: &str| json!({"text": text, "status": status});
        let first = json!({"items": [item("Read", "in_progress"), item("Mend", "pending")]});
        let second = json!({"items": [item("Read", "completed"), item("Mend", "in_progress")]});
        // Two in one response are taken in their order.
        let server = provider.serve([calls("todo", first), calls("todo", second).call("todo", json!({})), says("Done.")]);
        let home = home();
        let ran = home.start(home.task(&server, &["--mode", "plan"])).wait();
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "Done.\n"), "{ran:?}");
        let after = "1 of 2 done:\n[x] Read\n[>] Mend";
        assert_eq!(texts(&server), ["0 of 2 done:\n[>] Read\n[ ] Mend", after, after]);
        assert!(ran.stderr.contains("▸  Mend"), "{}", ran.stderr);
    }
}

#[test]
fn r126b_the_scratchpad_lasts_for_the_session() {
    for provider in both() {
        let think = |text: &str| json!({"action": "think", "text": text});
        let both_thoughts = calls("react", think("First.")).call("react", think("Second."));
        let server = provider.serve([both_thoughts, calls("react", json!({"action": "get"})), says("Done.")]);
        home().ask(&server, &[]).answered("Done.");
        assert_eq!(texts(&server), ["Noted as entry 1.", "Noted as entry 2.", "1. thought: First.\n2. thought: Second."]);
    }
}
