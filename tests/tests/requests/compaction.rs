//! Conversations that grow too long: what is left out, what is summarised, and what is never lost.

use cofferdam_tests::program::{ProgramOutput, TestHome};
use cofferdam_tests::wire::{
    Provider, ProviderServer, ScriptedReply, both_providers, call_reply, empty_reply, error_reply,
    hanging_reply, text_reply,
};
use serde_json::{Value, json};

use super::new_home;

/// Half of this is there to be used; a file takes a sixth of it. System prompt and tools take less
/// than another.
const CONTEXT_WINDOW: u32 = 48_000;

/// With files of 30,000 bytes, each full of its own word, and a model of a small window.
fn long_home() -> TestHome {
    ["alpha", "beta", "gamma", "delta", "epsilon"].into_iter().fold(small_home(), |home, name| {
        let line = format!("{}\n", format!("{name} ").repeat(20));
        home.with_file(&format!("{name}.txt"), line.repeat(30_000 / line.len()))
    })
}

fn small_home() -> TestHome {
    let home = new_home();
    home.write_file(
        "config/cofferdam/config.toml",
        format!("[provider]\ncontext_window = {CONTEXT_WINDOW}\n"),
    );
    home
}

/// Reads one of those files. Nobody counts its tokens, so the host has to rely on its estimate.
fn read_call(name: &str) -> ScriptedReply {
    call_reply("read_file", json!({"path": format!("{name}.txt")})).with_usage(None)
}

fn overflow_reply() -> ScriptedReply {
    error_reply(400, "context_length_exceeded", "prompt is too long: 60000 tokens > 48000 maximum")
}

fn summary_reply(text: &str) -> ScriptedReply {
    text_reply(text).with_usage(Some((700, 70)))
}

fn is_summariser(server: &ProviderServer, at: usize) -> bool {
    let request = &server.requests()[at];
    request.tool_names().is_empty() && request.system_prompt().starts_with("You summarise")
}

/// Goes on with the newest session.
fn continue_session(home: &TestHome, server: &ProviderServer, args: &[&str]) -> ProgramOutput {
    home.run_task(server, &[&["--continue"], args].concat())
}

/// What is kept of the newest session.
fn saved_session(home: &TestHome) -> Value {
    let list: Value = serde_json::from_str(&home.run(&["sessions", "list", "--json"]).stdout)
        .expect("it is JSON");
    let id = list["sessions"][0]["id"].as_str().expect("there is one").to_owned();
    let exported: Value =
        serde_json::from_str(&home.run(&["sessions", "export", &id]).stdout).expect("it is JSON");
    exported["transcript"].clone()
}

/// Three reads fill the window, so that a summary is due before the fourth request.
fn server_filling_window(
    provider: Provider,
    then: impl IntoIterator<Item = ScriptedReply>,
) -> ProviderServer {
    provider.serve(["alpha", "beta", "gamma"].map(read_call).into_iter().chain(then))
}

#[test]
fn r068_a_long_request_is_summarised_once_but_for_its_newest_turns() {
    for provider in both_providers() {
        let home = long_home();
        // Three more would be enough for another one, which there is not.
        let server = server_filling_window(
            provider,
            [
                summary_reply("They read alpha and beta."),
                read_call("delta"),
                read_call("epsilon"),
                read_call("alpha"),
                text_reply("Done."),
            ],
        );
        let ran =
            home.start(home.model_command(&server, &["--output", "stream-json"])).wait_for_exit();
        ran.expect_answer("Done.");
        assert!(is_summariser(&server, 3));
        let summarised = &server.requests()[3];
        assert!(
            summarised.count_occurrences("alpha alpha") > 0
                && summarised.count_occurrences("gamma gamma") == 0,
            "the newest turn is not summarised"
        );

        let after = &server.requests()[4];
        assert_eq!(
            (
                after.count_occurrences("They read alpha and beta."),
                after.count_occurrences("The task.")
            ),
            (1, 1)
        );
        assert_eq!(
            (after.count_occurrences("alpha alpha"), after.count_occurrences("beta beta")),
            (0, 0)
        );
        assert!(
            after.tool_results()[0].text.contains("gamma gamma"),
            "{provider:?}: the newest turn is there as it was"
        );
        let line = ran
            .json_lines()
            .into_iter()
            .find(|line| line["type"] == "summarised")
            .expect("it is told");
        assert!(
            line["turns"] == 2 && line["tokens_after"].as_u64() < line["tokens_before"].as_u64(),
            "{line}"
        );
        // What it cost is in the account of the request.
        assert!(ran.report()["usage"]["input"].as_u64() >= Some(700), "{ran:?}");
    }
}

#[test]
fn r065_the_session_keeps_what_a_summary_stands_for_and_goes_on_from_the_summary() {
    for provider in both_providers() {
        let home = long_home();
        home.run_task(
            &server_filling_window(
                provider,
                [summary_reply("They read alpha and beta."), text_reply("Done.")],
            ),
            &[],
        )
        .expect_answer("Done.");
        let kept = saved_session(&home);
        for word in ["alpha alpha", "beta beta", "gamma gamma"] {
            assert!(kept["exchanges"].to_string().contains(word), "{word} is lost");
        }
        assert_eq!(
            (&kept["summary"]["text"], &kept["summary"]["turns"]),
            (&json!("They read alpha and beta."), &json!(2))
        );

        let server = provider.serve([text_reply("It was gamma.")]);
        continue_session(&home, &server, &[]).expect_answer("It was gamma.");
        let request = server.request();
        assert_eq!(
            (
                request.count_occurrences("They read alpha and beta."),
                request.count_occurrences("alpha alpha")
            ),
            (1, 0)
        );
        assert!(request.count_occurrences("gamma gamma") > 0);
    }
}

#[test]
fn r070_a_new_summary_extends_the_previous_one() {
    for provider in both_providers() {
        let home = long_home();
        home.run_task(
            &server_filling_window(provider, [summary_reply("FIRST."), text_reply("Done.")]),
            &[],
        )
        .expect_answer("Done.");
        let server = provider.serve([
            read_call("delta"),
            read_call("epsilon"),
            summary_reply("SECOND."),
            text_reply("Done."),
        ]);
        continue_session(&home, &server, &[]).expect_answer("Done.");
        assert!(is_summariser(&server, 2));
        assert_eq!(
            server.requests()[2]
                .count_occurrences("<previous-summary>\nFIRST.\n</previous-summary>"),
            1
        );
        let last = server.last_request();
        assert_eq!((last.count_occurrences("FIRST."), last.count_occurrences("SECOND.")), (0, 1));
        assert_eq!(saved_session(&home)["summary"]["text"], "SECOND.");
    }
}

#[test]
fn r071_a_summary_that_fails_or_is_empty_changes_nothing_and_is_told() {
    // what comes of no use is paid for all the same.
    let no_summary: [(fn() -> ScriptedReply, u32); 3] = [
        (empty_reply, 200),
        (|| error_reply(400, "invalid_request_error", "no such model"), 100),
        (|| text_reply("x ".repeat(40_000).as_str()), 200),
    ];
    for (provider, (no_summary, paid)) in
        both_providers().into_iter().flat_map(|provider| no_summary.map(|reply| (provider, reply)))
    {
        let home = long_home();
        let server =
            server_filling_window(provider, [no_summary(), text_reply("Done all the same.")]);
        let ran =
            home.start(home.model_command(&server, &["--output", "stream-json"])).wait_for_exit();
        ran.expect_answer("Done all the same.");
        let notices = ran.json_lines().into_iter().filter(|line| line["type"] == "notice").count();
        assert_eq!(notices, 1, "{ran:?}");
        assert_eq!(ran.report()["usage"]["input"], paid, "{ran:?}");
        assert!(server.last_request().count_occurrences("alpha alpha") > 0);
        assert_eq!(saved_session(&home)["summary"], Value::Null);
    }
}

#[test]
fn r072_too_large_for_the_provider_is_summarised_by_force_and_asked_once_more() {
    for provider in both_providers() {
        let home = long_home();
        let server = provider.serve([
            read_call("alpha"),
            overflow_reply(),
            summary_reply("They read alpha."),
            text_reply("Done."),
        ]);
        home.run_task(&server, &[]).expect_answer("Done.");
        assert!(is_summariser(&server, 2));
        let last = server.last_request();
        assert_eq!(
            (
                last.count_occurrences("The task."),
                last.count_occurrences("They read alpha."),
                last.count_occurrences("alpha alpha")
            ),
            (1, 1, 0)
        );
        let prompts = saved_session(&home)["exchanges"].as_array().map(Vec::len);
        assert_eq!(prompts, Some(1), "the prompt is not duplicated");
    }
}

#[test]
fn r072_what_is_still_too_large_ends_the_request_with_numbers() {
    for provider in both_providers() {
        let after_a_summary = [
            read_call("alpha"),
            overflow_reply(),
            summary_reply("They read alpha."),
            overflow_reply(),
        ];
        let without_one = [read_call("alpha"), overflow_reply(), empty_reply()];
        let with_nothing_to_summarise = [overflow_reply()];
        for script in
            [after_a_summary.to_vec(), without_one.to_vec(), with_nothing_to_summarise.to_vec()]
        {
            let home = long_home();
            let server = provider.serve(script);
            let report = home.run_task(&server, &[]).expect_outcome("overflow", 8);
            let error = report["error"].as_str().unwrap_or_default();
            assert!(
                error.contains("prompt is too long")
                    && error.contains("tokens were sent")
                    && error.contains("48000"),
                "{error}"
            );
            // it goes on from here.
            let server = provider.serve([text_reply("Shorter.")]);
            continue_session(&home, &server, &[]).expect_answer("Shorter.");
        }
    }
}

#[test]
fn r072_words_that_fill_the_window_are_summarised_away() {
    // Half of the window, whether they were too large for the provider or answered.
    let log = "thread main panicked at line 1\n".repeat(100_000 / 31);
    for (provider, is_answered) in
        both_providers().into_iter().flat_map(|provider| [(provider, true), (provider, false)])
    {
        let home = small_home();
        let server = provider.serve([if is_answered {
            text_reply("I see.").with_usage(None)
        } else {
            overflow_reply()
        }]);
        let mut command = home.command(&[
            "run",
            &log,
            "--model",
            server.provider().model(),
            "--base-url",
            &server.base_url(),
        ]);
        command.env(server.provider().key_variable(), server.key());
        assert_eq!(home.start(command).wait_for_exit().exit_code, if is_answered { 0 } else { 8 });
        drop(server);

        let server =
            provider.serve([summary_reply("They pasted a log of a panic."), text_reply("Go on.")]);
        continue_session(&home, &server, &[]).expect_answer("Go on.");
        assert!(is_summariser(&server, 0));
        let last = server.last_request();
        assert_eq!(
            (
                last.count_occurrences("They pasted a log of a panic."),
                last.count_occurrences("panicked at line 1"),
                last.count_occurrences("The task.")
            ),
            (1, 0, 1)
        );
        assert!(
            saved_session(&home)["exchanges"].to_string().contains("panicked at line 1"),
            "the session keeps it"
        );
    }
}

#[test]
fn r065_r066_old_results_are_left_out_and_kept() {
    for provider in both_providers() {
        let home = long_home();
        home.run_task(&provider.serve([read_call("alpha"), text_reply("One.")]), &[])
            .expect_answer("One.");
        let second = provider.serve([read_call("beta"), text_reply("Two.")]);
        continue_session(&home, &second, &[]).expect_answer("Two.");
        assert!(
            second.last_request().count_occurrences("alpha alpha") > 0,
            "the newest two exchanges are whole"
        );
        let third = provider.serve([read_call("gamma"), text_reply("Three.")]);
        continue_session(&home, &third, &[]).expect_answer("Three.");
        let last = third.last_request();
        assert_eq!(
            (
                last.count_occurrences("alpha alpha"),
                last.count_occurrences("This old result was omitted")
            ),
            (0, 1),
            "{provider:?}"
        );
        assert!(
            last.count_occurrences("beta beta") > 0 && last.count_occurrences("gamma gamma") > 0
        );
        let kept = saved_session(&home).to_string();
        assert!(kept.contains("alpha alpha") && !kept.contains("This old result was omitted"));
    }
}

#[test]
fn estimates_are_corrected_by_what_the_provider_counts() {
    for provider in both_providers() {
        let home = long_home();
        // Two files are far from filling the window, by the host's estimate; the provider counts
        // twice as much.
        let server = provider.serve([
            read_call("alpha"),
            read_call("beta").with_usage(Some((20_000, 10))),
            summary_reply("They read both."),
            text_reply("Done."),
        ]);
        home.run_task(&server, &[]).expect_answer("Done.");
        assert!(is_summariser(&server, 2));
    }
}

#[test]
fn r100_in_compaction_everything_stays_as_it_was() {
    for provider in both_providers() {
        let home = long_home();
        let server = server_filling_window(provider, [hanging_reply()]);
        let running = home.start(home.model_command(&server, &["--output", "json"]));
        server.wait_for_requests(4);
        running.interrupt();
        let report = running.wait_for_exit().expect_outcome("aborted", 130);
        assert_eq!(report["turns"], 3);
        assert_continues_after_three_turns(&home, provider);
    }
}

#[test]
fn killed_in_compaction_everything_stays_as_it_was() {
    for provider in both_providers() {
        let home = long_home();
        let server = server_filling_window(provider, [hanging_reply()]);
        let running = home.start(home.model_command(&server, &["--output", "json"]));
        server.wait_for_requests(4);
        // SIGKILL.
        drop(running);
        assert_continues_after_three_turns(&home, provider);
    }
}

fn assert_continues_after_three_turns(home: &TestHome, provider: Provider) {
    let before = saved_session(home);
    assert_eq!(
        (&before["summary"], before["exchanges"][0]["turns"].as_array().map(Vec::len)),
        (&Value::Null, Some(3))
    );
    let server = provider.serve([summary_reply("They read."), text_reply("Going on.")]);
    continue_session(home, &server, &[]).expect_answer("Going on.");
    assert!(is_summariser(&server, 0), "it is as long as it was");
    assert_eq!(saved_session(home)["exchanges"][0], before["exchanges"][0]);
}
