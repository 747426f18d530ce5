//! What counts as an answer, and what the user gets of it.

use cofferdam_tests::program::Ran;
use cofferdam_tests::wire::{Stop, both, calls, nothing, says};
use serde_json::json;

use super::home;

const NOTE: &str = "Your last response was empty.";

#[test]
fn r001_r002_r013_marker_phrases_are_text() {
    for provider in both() {
        let home = home().with("a.txt", "read anyway\n");
        let server = provider.serve([
            says("DONE: TASK_COMPLETE <final_answer>").call("read_file", json!({"path": "a.txt"})),
            says("DONE: it is over. <attempt_completion>"),
        ]);
        home.ask(&server, &[]).answered("DONE: it is over. <attempt_completion>");
        assert!(server.last_request().results()[0].text.contains("read anyway"));
    }
}

#[test]
fn r075_an_empty_response_is_followed_by_one_reminder() {
    for provider in both() {
        let server = provider.serve([nothing(), says("Here I am.")]);
        home().ask(&server, &[]).answered("Here I am.");
        let noted: Vec<usize> = server.requests().iter().map(|request| request.count(NOTE)).collect();
        assert_eq!(noted, [0, 1]);
    }
}

#[test]
fn r075_two_empty_responses_in_a_row_end_the_request() {
    for provider in both() {
        let server = provider.serve([nothing(), nothing()]);
        assert_eq!(home().ask(&server, &[]).ended("empty", 4)["text"], json!(null));
    }
}

#[test]
fn r075_blank_text_and_thinking_are_no_answer() {
    for provider in both() {
        let server = provider.serve([says(" \n\t"), nothing().thinks("Hm.")]);
        home().ask(&server, &[]).ended("empty", 4);
    }
}

#[test]
fn r078_the_reminder_is_gone_in_the_next_request() {
    for provider in both() {
        let home = home().with("a.txt", "x");
        let read = || calls("read_file", json!({"path": "a.txt"}));
        // The second empty response comes after a turn with calls: it is the first in a row again.
        let server = provider.serve([nothing(), read(), nothing(), says("Done.")]);
        home.ask(&server, &[]).answered("Done.");
        let noted: Vec<usize> = server.requests().iter().map(|request| request.count(NOTE)).collect();
        assert_eq!(noted, [0, 1, 0, 1]);
    }
}

#[test]
fn r079_calls_of_a_response_that_was_cut_off_are_not_run() {
    for provider in both() {
        let home = home();
        let cut_off = calls("bash", json!({"command": "touch ran"})).raw_call("cut", "bash", "{\"command\": \"touch").stops(Stop::Length);
        let server = provider.serve([cut_off, says("I will be brief.")]);
        home.ask(&server, &["--mode", "auto"]).answered("I will be brief.");
        let results = server.last_request().results();
        assert!(
            results.len() == 2 && results.iter().all(|r| r.is_error && r.text.contains("cut off by the limit on output")),
            "{results:?}"
        );
        assert!(!home.has("ran"));
    }
}

#[test]
fn r079_calls_of_a_response_that_the_provider_withheld_are_not_run() {
    for provider in both() {
        let home = home();
        let server = provider.serve([calls("bash", json!({"command": "touch ran"})).stops(Stop::Withheld), says("In another way.")]);
        home.ask(&server, &["--mode", "auto"]).answered("In another way.");
        let [result] = server.last_request().results().try_into().expect("one result");
        assert!(result.is_error && result.text.contains("cut off by the provider"), "{result:?}");
        assert!(!home.has("ran"));
    }
}

#[test]
fn r079_text_that_was_cut_off_is_flagged() {
    for provider in both() {
        let home = home();
        let server = provider.serve([says("The first half").stops(Stop::Length)]);
        let ran = home.start(home.task(&server, &["--output", "stream-json"])).wait();
        assert_eq!(ran.ended("answered", 0)["text"], "The first half");
        assert!(ran.lines().iter().any(|line| line["type"] == "notice" && line["text"].to_string().contains("not complete")), "{ran:?}");
    }
}

/// The notices of a run.
fn notices(ran: &Ran) -> Vec<String> {
    let told = ran.lines().into_iter().filter(|line| line["type"] == "notice");
    told.filter_map(|line| line["text"].as_str().map(str::to_owned)).collect()
}

#[test]
fn r079_text_that_the_provider_withheld_in_part_is_flagged() {
    for provider in both() {
        let home = home();
        let server = provider.serve([says("The first half").stops(Stop::Withheld)]);
        let ran = home.start(home.task(&server, &["--output", "stream-json"])).wait();
        let report = ran.ended("answered", 0);
        assert_eq!((&report["text"], &report["stop_reason"]), (&json!("The first half"), &json!("refused")));
        assert_eq!(notices(&ran), ["The answer was withheld in part by the provider and is not complete."]);
    }
}

#[test]
fn r079_an_answer_that_was_withheld_is_not_asked_for_again() {
    for provider in both() {
        let home = home();
        let server = provider.serve([nothing().stops(Stop::Withheld)]);
        let report = home.ask(&server, &[]).ended("provider-error", 7);
        let error = report["error"].as_str().unwrap_or_default();
        assert!(error.starts_with("the provider withheld the answer") && error.contains("another model"), "{report}");
        drop(server);
        // Whoever has submitted has said enough.
        let server = provider.serve([calls("submit", json!({"summary": "All done."})), nothing().stops(Stop::Withheld)]);
        home.ask(&server, &[]).answered("All done.");
    }
}

#[test]
fn r075_a_model_that_thought_until_no_room_was_left_is_told_so_and_the_user_too() {
    const TOLD: &str = "The response ran into the limit on output before it said anything.";
    for provider in both() {
        let home = home();
        let thinks = || nothing().thinks("Hm.").stops(Stop::Length);
        let server = provider.serve([thinks(), says("Four.")]);
        let ran = home.start(home.task(&server, &["--output", "stream-json"])).wait();
        ran.answered("Four.");
        assert_eq!(notices(&ran), [TOLD]);
        let last = server.last_request();
        assert_eq!((last.count("used up its limit on output"), last.count(NOTE)), (1, 0));
        drop(server);
        let server = provider.serve([thinks(), thinks()]);
        let ran = home.start(home.task(&server, &["--output", "stream-json"])).wait();
        ran.ended("empty", 4);
        assert_eq!(notices(&ran), [TOLD, TOLD]);
    }
}

#[test]
fn r132_standard_output_holds_the_answer_and_nothing_else() {
    for provider in both() {
        let home = home();
        let server =
            provider.serve([says("First I look.").thinks("Hm.").call("bash", json!({"command": "echo noise"})), says("**The** answer.\n")]);
        let ran = home.start(home.task(&server, &["--mode", "auto"])).wait();
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "**The** answer.\n"));
        assert!(ran.stderr.contains("bash echo noise") && ran.stderr.contains("answered"), "{ran:?}");
        home.assert_keeps_secret(server.key(), &ran);
    }
}

#[test]
fn r132_the_stream_of_events_ends_with_the_report() {
    for provider in both() {
        let home = home();
        let server = provider.serve([calls("submit", json!({"summary": "s"})), says("Grüße, 日本.")]);
        let ran = home.start(home.task(&server, &["--output", "stream-json"])).wait();
        let lines = ran.lines();
        let kinds: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).filter(|kind| *kind != "text").collect();
        assert_eq!(kinds, ["request_started", "turn_started", "call_started", "call_finished", "turn_started", "result"]);
        // the pieces are the answer, byte for byte.
        let pieces: String = lines.iter().filter(|line| line["type"] == "text").filter_map(|line| line["text"].as_str()).collect();
        assert_eq!(pieces, "Grüße, 日本.");
        ran.answered("Grüße, 日本.");
    }
}

#[test]
fn r008_the_request_has_an_id_of_eight_characters_and_counts_its_turns() {
    let [provider, _] = both();
    let server = provider.serve([calls("submit", json!({})), says("Done.")]);
    let report = home().ask(&server, &[]).ended("answered", 0);
    assert_eq!(report["request"].as_str().map(str::len), Some(8));
    assert_eq!((&report["turns"], &report["calls"][0]["tool"]), (&json!(2), &json!("submit")));
}
