//! What counts as an answer, and what the user gets of it.

use cofferdam_tests::program::ProgramOutput;
use cofferdam_tests::wire::{StopReason, both_providers, call_reply, empty_reply, text_reply};
use serde_json::json;

use super::new_home;

const NOTE_PREFIX: &str = "Your last response was empty.";

#[test]
fn r001_r002_r013_marker_phrases_are_text() {
    for provider in both_providers() {
        let home = new_home().with_file("a.txt", "read anyway\n");
        let server = provider.serve([
            text_reply("DONE: TASK_COMPLETE <final_answer>")
                .with_call("read_file", json!({"path": "a.txt"})),
            text_reply("DONE: it is over. <attempt_completion>"),
        ]);
        home.run_task(&server, &[]).expect_answer("DONE: it is over. <attempt_completion>");
        assert!(server.last_request().tool_results()[0].text.contains("read anyway"));
    }
}

#[test]
fn r075_an_empty_response_is_followed_by_one_reminder() {
    for provider in both_providers() {
        let server = provider.serve([empty_reply(), text_reply("Here I am.")]);
        new_home().run_task(&server, &[]).expect_answer("Here I am.");
        let noted: Vec<usize> = server
            .requests()
            .iter()
            .map(|request| request.count_occurrences(NOTE_PREFIX))
            .collect();
        assert_eq!(noted, [0, 1]);
    }
}

#[test]
fn r075_two_empty_responses_in_a_row_end_the_request() {
    for provider in both_providers() {
        let server = provider.serve([empty_reply(), empty_reply()]);
        assert_eq!(
            new_home().run_task(&server, &[]).expect_outcome("empty", 4)["text"],
            json!(null)
        );
    }
}

#[test]
fn r075_blank_text_and_thinking_are_no_answer() {
    for provider in both_providers() {
        let server = provider.serve([text_reply(" \n\t"), empty_reply().with_thinking("Hm.")]);
        new_home().run_task(&server, &[]).expect_outcome("empty", 4);
    }
}

#[test]
fn r078_the_reminder_is_gone_in_the_next_request() {
    for provider in both_providers() {
        let home = new_home().with_file("a.txt", "x");
        let read = || call_reply("read_file", json!({"path": "a.txt"}));
        // The second empty response comes after a turn with calls: it is the first in a row again.
        let server = provider.serve([empty_reply(), read(), empty_reply(), text_reply("Done.")]);
        home.run_task(&server, &[]).expect_answer("Done.");
        let noted: Vec<usize> = server
            .requests()
            .iter()
            .map(|request| request.count_occurrences(NOTE_PREFIX))
            .collect();
        assert_eq!(noted, [0, 1, 0, 1]);
    }
}

#[test]
fn r079_calls_of_a_response_that_was_cut_off_are_not_run() {
    for provider in both_providers() {
        let home = new_home();
        let cut_off = call_reply("bash", json!({"command": "touch ran"}))
            .with_raw_call("cut", "bash", "{\"command\": \"touch")
            .with_stop_reason(StopReason::Length);
        let server = provider.serve([cut_off, text_reply("I will be brief.")]);
        home.run_task(&server, &["--mode", "auto"]).expect_answer("I will be brief.");
        let results = server.last_request().tool_results();
        assert!(
            results.len() == 2
                && results
                    .iter()
                    .all(|r| r.is_error && r.text.contains("truncated by the output limit")),
            "{results:?}"
        );
        assert!(!home.has_file("ran"));
    }
}

#[test]
fn r079_calls_of_a_response_that_the_provider_withheld_are_not_run() {
    for provider in both_providers() {
        let home = new_home();
        let server = provider.serve([
            call_reply("bash", json!({"command": "touch ran"}))
                .with_stop_reason(StopReason::ContentFilter),
            text_reply("In another way."),
        ]);
        home.run_task(&server, &["--mode", "auto"]).expect_answer("In another way.");
        let [result] = server.last_request().tool_results().try_into().expect("one result");
        assert!(result.is_error && result.text.contains("truncated by the provider"), "{result:?}");
        assert!(!home.has_file("ran"));
    }
}

#[test]
fn r079_text_that_was_cut_off_is_flagged() {
    for provider in both_providers() {
        let home = new_home();
        let server =
            provider.serve([text_reply("The first half").with_stop_reason(StopReason::Length)]);
        let ran =
            home.start(home.model_command(&server, &["--output", "stream-json"])).wait_for_exit();
        assert_eq!(ran.expect_outcome("answered", 0)["text"], "The first half");
        assert!(
            ran.json_lines().iter().any(|line| line["type"] == "notice"
                && line["text"].to_string().contains("is incomplete")),
            "{ran:?}"
        );
    }
}

/// The notices of a run.
fn notice_lines(ran: &ProgramOutput) -> Vec<String> {
    let told = ran.json_lines().into_iter().filter(|line| line["type"] == "notice");
    told.filter_map(|line| line["text"].as_str().map(str::to_owned)).collect()
}

#[test]
fn r079_text_that_the_provider_withheld_in_part_is_flagged() {
    for provider in both_providers() {
        let home = new_home();
        let server = provider
            .serve([text_reply("The first half").with_stop_reason(StopReason::ContentFilter)]);
        let ran =
            home.start(home.model_command(&server, &["--output", "stream-json"])).wait_for_exit();
        let report = ran.expect_outcome("answered", 0);
        assert_eq!(
            (&report["text"], &report["stop_reason"]),
            (&json!("The first half"), &json!("refused"))
        );
        assert_eq!(
            notice_lines(&ran),
            ["The answer was partly withheld by the provider and is incomplete."]
        );
    }
}

#[test]
fn r079_an_answer_that_was_withheld_is_not_asked_for_again() {
    for provider in both_providers() {
        let home = new_home();
        let server = provider.serve([empty_reply().with_stop_reason(StopReason::ContentFilter)]);
        let report = home.run_task(&server, &[]).expect_outcome("provider-error", 7);
        let error = report["error"].as_str().unwrap_or_default();
        assert!(
            error.starts_with("the provider withheld the answer")
                && error.contains("another model"),
            "{report}"
        );
        drop(server);
        // Whoever has submitted has said enough.
        let server = provider.serve([
            call_reply("submit", json!({"summary": "All done."})),
            empty_reply().with_stop_reason(StopReason::ContentFilter),
        ]);
        home.run_task(&server, &[]).expect_answer("All done.");
    }
}

#[test]
fn r075_a_model_that_thought_until_no_room_was_left_is_told_so_and_the_user_too() {
    const TOLD: &str = "The response reached the output limit before it contained any text.";
    for provider in both_providers() {
        let home = new_home();
        let thinks = || empty_reply().with_thinking("Hm.").with_stop_reason(StopReason::Length);
        let server = provider.serve([thinks(), text_reply("Four.")]);
        let ran =
            home.start(home.model_command(&server, &["--output", "stream-json"])).wait_for_exit();
        ran.expect_answer("Four.");
        assert_eq!(notice_lines(&ran), [TOLD]);
        let last = server.last_request();
        assert_eq!(
            (
                last.count_occurrences("reached the output limit"),
                last.count_occurrences(NOTE_PREFIX)
            ),
            (1, 0)
        );
        drop(server);
        let server = provider.serve([thinks(), thinks()]);
        let ran =
            home.start(home.model_command(&server, &["--output", "stream-json"])).wait_for_exit();
        ran.expect_outcome("empty", 4);
        assert_eq!(notice_lines(&ran), [TOLD, TOLD]);
    }
}

#[test]
fn r132_standard_output_holds_the_answer_and_nothing_else() {
    for provider in both_providers() {
        let home = new_home();
        let server = provider.serve([
            text_reply("First I look.")
                .with_thinking("Hm.")
                .with_call("bash", json!({"command": "echo noise"})),
            text_reply("**The** answer.\n"),
        ]);
        let ran = home.start(home.model_command(&server, &["--mode", "auto"])).wait_for_exit();
        assert_eq!((ran.exit_code, ran.stdout.as_str()), (0, "**The** answer.\n"));
        assert!(
            ran.stderr.contains("bash echo noise") && ran.stderr.contains("answered"),
            "{ran:?}"
        );
        home.assert_hides_secret(server.key(), &ran);
    }
}

#[test]
fn r132_the_stream_of_events_ends_with_the_report() {
    for provider in both_providers() {
        let home = new_home();
        let server = provider
            .serve([call_reply("submit", json!({"summary": "s"})), text_reply("Grüße, 日本.")]);
        let ran =
            home.start(home.model_command(&server, &["--output", "stream-json"])).wait_for_exit();
        let lines = ran.json_lines();
        let kinds: Vec<&str> = lines
            .iter()
            .filter_map(|line| line["type"].as_str())
            .filter(|kind| *kind != "text")
            .collect();
        assert_eq!(
            kinds,
            [
                "request_started",
                "turn_started",
                "call_started",
                "call_finished",
                "turn_started",
                "result"
            ]
        );
        // the pieces are the answer, byte for byte.
        let pieces: String = lines
            .iter()
            .filter(|line| line["type"] == "text")
            .filter_map(|line| line["text"].as_str())
            .collect();
        assert_eq!(pieces, "Grüße, 日本.");
        ran.expect_answer("Grüße, 日本.");
    }
}

#[test]
fn r008_the_request_has_an_id_of_eight_characters_and_counts_its_turns() {
    let [provider, _] = both_providers();
    let server = provider.serve([call_reply("submit", json!({})), text_reply("Done.")]);
    let report = new_home().run_task(&server, &[]).expect_outcome("answered", 0);
    assert_eq!(report["request"].as_str().map(str::len), Some(8));
    assert_eq!((&report["turns"], &report["calls"][0]["tool"]), (&json!(2), &json!("submit")));
}
