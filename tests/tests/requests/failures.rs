//! Providers that fail, and what the user is told.

use std::time::Duration;

use cofferdam_tests::program::ProgramOutput;
use cofferdam_tests::wire::{
    ProviderServer, ScriptedReply, both_providers, call_reply, empty_reply, error_reply,
    hanging_reply, raw_reply, text_reply,
};
use serde_json::json;

use super::new_home;

fn busy_reply() -> ScriptedReply {
    error_reply(429, "rate_limit_error", "slow down").with_header("retry-after", 0)
}

/// A run whose text is shown as it comes.
fn run_streamed(server: &ProviderServer) -> ProgramOutput {
    let home = new_home();
    home.start(home.model_command(server, &["--output", "stream-json"])).wait_for_exit()
}

#[test]
fn r083_a_stream_without_its_end_is_an_error() {
    let cut = [
        |reply: ScriptedReply| reply.disconnecting(),
        |reply: ScriptedReply| reply.without_final_event(),
    ];
    for (provider, cut) in
        both_providers().into_iter().flat_map(|provider| cut.map(|cut| (provider, cut)))
    {
        // Text was shown, so it is not sent again: that would be a second request.
        let server = provider.serve([cut(text_reply("Half of the answer"))]);
        let report = run_streamed(&server).expect_outcome("provider-error", 7);
        // what had come of it is kept, once.
        assert_eq!((&report["text"], &report["turns"]), (&json!(null), &json!(1)));
        assert!(
            report["error"].as_str().is_some_and(|error| error.contains("127.0.0.1")),
            "{report}"
        );
    }
}

#[test]
fn r083_calls_of_a_stream_without_its_end_are_not_run() {
    let cut = [
        |reply: ScriptedReply| reply.disconnecting(),
        |reply: ScriptedReply| reply.without_final_event(),
    ];
    for (provider, cut) in
        both_providers().into_iter().flat_map(|provider| cut.map(|cut| (provider, cut)))
    {
        let home = new_home();
        let server = provider
            .serve([1, 2, 3].map(|_| cut(call_reply("bash", json!({"command": "touch ran"})))));
        home.run_task(&server, &["--mode", "auto"]).expect_outcome("provider-error", 7);
        assert!(!home.has_file("ran"));
    }
}

#[test]
fn r085_a_response_that_broke_off_unseen_begins_anew() {
    let cut = [
        |reply: ScriptedReply| reply.disconnecting(),
        |reply: ScriptedReply| reply.without_final_event(),
    ];
    for (provider, cut) in
        both_providers().into_iter().flat_map(|provider| cut.map(|cut| (provider, cut)))
    {
        // The report shows the text at its end, and standard output that is no terminal does too.
        for output in ["json", "text"] {
            let home = new_home();
            let server = provider
                .serve([cut(text_reply("Half of the answer")), text_reply("The whole answer.")]);
            let ran =
                home.start(home.model_command(&server, &["--output", output])).wait_for_exit();
            assert!(
                ran.exit_code == 0
                    && ran.stdout.contains("The whole answer.")
                    && !ran.stdout.contains("Half"),
                "{ran:?}"
            );
            let bodies: Vec<_> =
                server.requests().into_iter().map(|request| request.body).collect();
            assert!(bodies.len() == 2 && bodies[0] == bodies[1]);
        }
    }
}

#[test]
fn r084_an_error_within_a_stream_is_an_error() {
    for provider in both_providers() {
        let server = provider
            .serve([text_reply("Half").with_error("overloaded_error", "Overloaded, sorry")]);
        let report = run_streamed(&server).expect_outcome("provider-error", 7);
        assert!(
            report["error"].as_str().is_some_and(|error| error.contains("Overloaded, sorry")),
            "{report}"
        );
    }
}

#[test]
fn r084_an_error_before_anything_was_shown_is_tried_again() {
    for provider in both_providers() {
        let server = provider.serve([
            empty_reply().with_error("overloaded_error", "Overloaded"),
            text_reply("Here I am."),
        ]);
        new_home().run_task(&server, &[]).expect_answer("Here I am.");
    }
}

#[test]
fn r084_an_error_that_stays_is_not_tried_again() {
    for provider in both_providers() {
        let server =
            provider.serve([empty_reply().with_error("invalid_request_error", "No such thing")]);
        new_home().run_task(&server, &[]).expect_outcome("provider-error", 7);
    }
}

#[test]
fn r085_trouble_that_passes_costs_nothing_but_time() {
    for provider in both_providers() {
        let home = new_home();
        let server = provider.serve([
            busy_reply(),
            error_reply(503, "api_error", "starting"),
            text_reply("Here I am."),
        ]);
        let ran =
            home.start(home.model_command(&server, &["--output", "stream-json"])).wait_for_exit();
        ran.expect_answer("Here I am.");
        assert_eq!(
            ran.json_lines().iter().filter(|line| line["type"] == "retry").count(),
            2,
            "{ran:?}"
        );
        let bodies: Vec<_> = server.requests().into_iter().map(|request| request.body).collect();
        assert!(bodies[0] == bodies[1] && bodies[1] == bodies[2]);
    }
}

#[test]
fn r085_a_connection_that_breaks_at_once_is_tried_again() {
    for provider in both_providers() {
        let server = provider.serve([raw_reply(b""), text_reply("Here I am.")]);
        new_home().run_task(&server, &[]).expect_answer("Here I am.");
    }
}

#[test]
fn r085_after_three_attempts_it_is_given_up() {
    for provider in both_providers() {
        let server = provider.serve([busy_reply(), busy_reply(), busy_reply()]);
        let report = new_home().run_task(&server, &[]).expect_outcome("provider-error", 7);
        let error = report["error"].as_str().unwrap_or_default();
        assert!(
            error.contains("slow down") && error.contains("given up after 3 attempts"),
            "{error}"
        );
    }
}

#[test]
fn r085_what_will_not_pass_is_not_tried_again() {
    let table = [
        (400, "max_tokens is wrong", "rejected the request"),
        (401, "bad key", "rejected the key"),
        (404, "no such model", "check the model name"),
    ];
    for (provider, (status, message, expected)) in
        both_providers().into_iter().flat_map(|provider| table.map(|row| (provider, row)))
    {
        let server = provider.serve([error_reply(status, "invalid_request_error", message)]);
        let report = new_home().run_task(&server, &[]).expect_outcome("provider-error", 7);
        let error = report["error"].as_str().unwrap_or_default();
        assert!(error.contains(expected) && error.contains(message), "{status}: {error}");
    }
}

#[test]
fn r085_a_pause_that_is_too_long_is_not_made() {
    for provider in both_providers() {
        let server =
            provider
                .serve([error_reply(429, "rate_limit_error", "tomorrow")
                    .with_header("retry-after", 86_400)]);
        let ran = new_home().run_task(&server, &[]);
        ran.expect_outcome("provider-error", 7);
        assert!(ran.duration < Duration::from_secs(30), "{ran:?}");
    }
}

#[test]
fn a_web_page_in_place_of_an_api_points_at_the_address() {
    for provider in both_providers() {
        let server = provider.serve([raw_reply(
            b"HTTP/1.1 200 OK\r\ncontent-type: \
                text/html\r\n\r\n<!doctype html><title>Welcome</title>",
        )]);
        let report = new_home().run_task(&server, &[]).expect_outcome("provider-error", 7);
        assert!(
            report["error"].as_str().is_some_and(
                |error| error.contains("a web page") && error.contains("check the base URL")
            ),
            "{report}"
        );
    }
}

#[test]
fn a_web_page_in_place_of_an_error_is_reduced_to_what_it_says() {
    let page = "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad \
        Gateway</h1><hr>proxy/1.0</body></html>";
    for provider in both_providers() {
        let answer = format!(
            "HTTP/1.1 400 Bad\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n{page}",
            page.len()
        );
        let server = provider.serve([raw_reply(answer.as_bytes())]);
        let report = new_home().run_task(&server, &[]).expect_outcome("provider-error", 7);
        let error = report["error"].as_str().unwrap_or_default();
        assert!(
            error.contains("(status 400): (a web page) 502 Bad Gateway proxy/1.0")
                && !error.contains('<'),
            "{error}"
        );
    }
}

#[test]
fn a_compressed_answer_is_named_as_such() {
    for provider in both_providers() {
        let server = provider.serve([raw_reply(
            b"HTTP/1.1 200 OK\r\ncontent-type: \
                text/event-stream\r\ncontent-encoding: gzip\r\n\r\n\x1F\x8B\x08",
        )]);
        let report = new_home().run_task(&server, &[]).expect_outcome("provider-error", 7);
        assert!(
            report["error"]
                .as_str()
                .is_some_and(|error| error.contains("compressed its response with gzip")),
            "{report}"
        );
    }
}

#[test]
fn r132_a_failure_leaves_standard_output_to_the_answer_that_there_is_not() {
    for provider in both_providers() {
        let home = new_home();
        let server = provider.serve([error_reply(400, "invalid_request_error", "no")]);
        let ran = home.start(home.model_command(&server, &[])).wait_for_exit();
        assert_eq!((ran.exit_code, ran.stdout.as_str()), (7, ""));
        assert!(ran.stderr.contains("the model did not answer"), "{ran:?}");
    }
}

#[test]
fn r103_results_of_earlier_turns_are_counted_when_a_later_one_fails() {
    for provider in both_providers() {
        let home = new_home();
        let server = provider.serve([
            call_reply("bash", json!({"command": "touch ran"})),
            error_reply(400, "invalid_request_error", "no"),
        ]);
        let report =
            home.run_task(&server, &["--mode", "auto"]).expect_outcome("provider-error", 7);
        assert_eq!((&report["turns"], &report["calls"][0]["status"]), (&json!(1), &json!("ok")));
        assert!(home.has_file("ran"));
    }
}

#[test]
fn r086_silence_ends_after_the_configured_time() {
    for provider in both_providers() {
        let table = [
            (hanging_reply(), "first_event_timeout_seconds"),
            (text_reply("Half of").then_hanging(), "idle_timeout_seconds"),
        ];
        for (silent, setting) in table {
            let home = new_home();
            let settings =
                "[provider]\nfirst_event_timeout_seconds = 1\nidle_timeout_seconds = 1\n";
            home.write_file("config/cofferdam/config.toml", settings);
            let server = provider.serve([silent]);
            let report = home.run_task(&server, &[]).expect_outcome("provider-error", 7);
            assert!(
                report["error"].as_str().is_some_and(|error| error
                    .contains("sent nothing for 1 s")
                    && error.contains(setting)),
                "{report}"
            );
        }
    }
}

#[test]
fn r114_a_key_does_not_follow_a_redirect() {
    for provider in both_providers() {
        let elsewhere = provider.serve([]);
        let redirect = format!(
            "HTTP/1.1 307 Elsewhere\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n",
            elsewhere.base_url()
        );
        let server = provider.serve([raw_reply(redirect.as_bytes())]);
        let report = new_home().run_task(&server, &[]).expect_outcome("provider-error", 7);
        assert!(
            report["error"]
                .as_str()
                .is_some_and(|error| error.contains("redirects are not followed")),
            "{report}"
        );
        assert!(elsewhere.requests().is_empty());
    }
}
