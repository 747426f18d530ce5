//! `todo` and `react`: what the model writes down for itself, from turn to turn.

use cofferdam_tests::wire::{ProviderServer, both_providers, call_reply, text_reply};
use serde_json::json;

use super::new_home;

/// All results of all turns, in order.
fn result_texts(server: &ProviderServer) -> Vec<String> {
    server
        .requests()
        .iter()
        .skip(1)
        .flat_map(|request| request.tool_results())
        .map(|result| result.text.trim().to_owned())
        .collect()
}

#[test]
fn r125_the_list_is_kept_from_turn_to_turn_and_shown() {
    for provider in both_providers() {
        let item = |text: &str, status: &str| json!({"text": text, "status": status});
        let first = json!({"items": [item("Read", "in_progress"), item("Mend", "pending")]});
        let second = json!({"items": [item("Read", "completed"), item("Mend", "in_progress")]});
        // Two in one response are taken in their order.
        let server = provider.serve([
            call_reply("todo", first),
            call_reply("todo", second).with_call("todo", json!({})),
            text_reply("Done."),
        ]);
        let home = new_home();
        let ran = home.start(home.model_command(&server, &["--mode", "plan"])).wait_for_exit();
        assert_eq!((ran.exit_code, ran.stdout.as_str()), (0, "Done.\n"), "{ran:?}");
        let after = "1 of 2 done:\n[x] Read\n[>] Mend";
        assert_eq!(result_texts(&server), ["0 of 2 done:\n[>] Read\n[ ] Mend", after, after]);
        assert!(ran.stderr.contains("▸  Mend"), "{}", ran.stderr);
    }
}

#[test]
fn r126b_the_scratchpad_lasts_for_the_session() {
    for provider in both_providers() {
        let think = |text: &str| json!({"action": "think", "text": text});
        let both_thoughts =
            call_reply("react", think("First.")).with_call("react", think("Second."));
        let server = provider.serve([
            both_thoughts,
            call_reply("react", json!({"action": "get"})),
            text_reply("Done."),
        ]);
        new_home().run_task(&server, &[]).expect_answer("Done.");
        assert_eq!(
            result_texts(&server),
            ["Noted as entry 1.", "Noted as entry 2.", "1. thought: First.\n2. thought: Second."]
        );
    }
}
