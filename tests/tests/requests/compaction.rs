//! Conversations that grow too long: what is left out, what is summarised, and what is never lost.

use cofferdam_tests::program::{Home, Ran};
use cofferdam_tests::wire::{Provider, Reply, Server, both, calls, fails, hangs, nothing, says};
use serde_json::{Value, json};

use super::home;

/// Half of this is there to be used; a file takes a sixth of it. System prompt and tools take less than another.
const WINDOW: u32 = 48_000;

/// With files of 30,000 bytes, each full of its own word, and a model of a small window.
fn long_home() -> Home {
    ["alpha", "beta", "gamma", "delta", "epsilon"].into_iter().fold(small_home(), |home, name| {
        let line = format!("{}\n", format!("{name} ").repeat(20));
        home.with(&format!("{name}.txt"), line.repeat(30_000 / line.len()))
    })
}

fn small_home() -> Home {
    let home = home();
    home.write("config/cofferdam/config.toml", format!("[provider]\ncontext_window = {WINDOW}\n"));
    home
}

/// Reads one of those files. Nobody counts its tokens, so the host has to rely on its estimate.
fn reads(name: &str) -> Reply {
    calls("read_file", json!({"path": format!("{name}.txt")})).usage(None)
}

fn too_large() -> Reply {
    fails(400, "context_length_exceeded", "prompt is too long: 60000 tokens > 48000 maximum")
}

fn sum(text: &str) -> Reply {
    says(text).usage(Some((700, 70)))
}

fn is_summariser(server: &Server, at: usize) -> bool {
    let request = &server.requests()[at];
    request.tools().is_empty() && request.system().starts_with("You summarise")
}

/// Goes on with the newest session.
fn goes_on(home: &Home, server: &Server, args: &[&str]) -> Ran {
    home.ask(server, &[&["--continue"], args].concat())
}

/// What is kept of the newest session.
fn kept(home: &Home) -> Value {
    let list: Value = serde_json::from_str(&home.run(&["sessions", "list", "--json"]).stdout).expect("it is JSON");
    let id = list["sessions"][0]["id"].as_str().expect("there is one").to_owned();
    let exported: Value = serde_json::from_str(&home.run(&["sessions", "export", &id]).stdout).expect("it is JSON");
    exported["transcript"].clone()
}

/// Three reads fill the window, so that a summary is due before the fourth request.
fn filled(provider: Provider, then: impl IntoIterator<Item = Reply>) -> Server {
    provider.serve(["alpha", "beta", "gamma"].map(reads).into_iter().chain(then))
}

#[test]
fn r068_a_long_request_is_summarised_once_but_for_its_newest_turns() {
    for provider in both() {
        let home = long_home();
        // Three more would be enough for another one, which there is not.
        let server = filled(provider, [sum("They read alpha and beta."), reads("delta"), reads("epsilon"), reads("alpha"), says("Done.")]);
        let ran = home.start(home.task(&server, &["--output", "stream-json"])).wait();
        ran.answered("Done.");
        assert!(is_summariser(&server, 3));
        let summarised = &server.requests()[3];
        assert!(summarised.count("alpha alpha") > 0 && summarised.count("gamma gamma") == 0, "the newest turn is not summarised");

        let after = &server.requests()[4];
        assert_eq!((after.count("They read alpha and beta."), after.count("The task.")), (1, 1));
        assert_eq!((after.count("alpha alpha"), after.count("beta beta")), (0, 0));
        assert!(after.results()[0].text.contains("gamma gamma"), "{provider:?}: the newest turn is there as it was");
        let line = ran.lines().into_iter().find(|line| line["type"] == "summarised").expect("it is told");
        assert!(line["turns"] == 2 && line["tokens_after"].as_u64() < line["tokens_before"].as_u64(), "{line}");
        // What it cost is in the account of the request.
        assert!(ran.report()["usage"]["input"].as_u64() >= Some(700), "{ran:?}");
    }
}

#[test]
fn r065_the_session_keeps_what_a_summary_stands_for_and_goes_on_from_the_summary() {
    for provider in both() {
        let home = long_home();
        home.ask(&filled(provider, [sum("They read alpha and beta."), says("Done.")]), &[]).answered("Done.");
        let kept = kept(&home);
        for word in ["alpha alpha", "beta beta", "gamma gamma"] {
            assert!(kept["exchanges"].to_string().contains(word), "{word} is lost");
        }
        assert_eq!((&kept["summary"]["text"], &kept["summary"]["turns"]), (&json!("They read alpha and beta."), &json!(2)));

        let server = provider.serve([says("It was gamma.")]);
        goes_on(&home, &server, &[]).answered("It was gamma.");
        let request = server.request();
        assert_eq!((request.count("They read alpha and beta."), request.count("alpha alpha")), (1, 0));
        assert!(request.count("gamma gamma") > 0);
    }
}

#[test]
fn r070_a_new_summary_extends_the_previous_one() {
    for provider in both() {
        let home = long_home();
        home.ask(&filled(provider, [sum("FIRST."), says("Done.")]), &[]).answered("Done.");
        let server = provider.serve([reads("delta"), reads("epsilon"), sum("SECOND."), says("Done.")]);
        goes_on(&home, &server, &[]).answered("Done.");
        assert!(is_summariser(&server, 2));
        assert_eq!(server.requests()[2].count("<previous-summary>\nFIRST.\n</previous-summary>"), 1);
        let last = server.last_request();
        assert_eq!((last.count("FIRST."), last.count("SECOND.")), (0, 1));
        assert_eq!(kept(&home)["summary"]["text"], "SECOND.");
    }
}

#[test]
fn r071_a_summary_that_fails_or_is_empty_changes_nothing_and_is_told() {
    // what comes of no use is paid for all the same.
    let no_summary: [(fn() -> Reply, u32); 3] =
        [(nothing, 200), (|| fails(400, "invalid_request_error", "no such model"), 100), (|| says("x ".repeat(40_000).as_str()), 200)];
    for (provider, (no_summary, paid)) in both().into_iter().flat_map(|provider| no_summary.map(|reply| (provider, reply))) {
        let home = long_home();
        let server = filled(provider, [no_summary(), says("Done all the same.")]);
        let ran = home.start(home.task(&server, &["--output", "stream-json"])).wait();
        ran.answered("Done all the same.");
        let notices = ran.lines().into_iter().filter(|line| line["type"] == "notice").count();
        assert_eq!(notices, 1, "{ran:?}");
        assert_eq!(ran.report()["usage"]["input"], paid, "{ran:?}");
        assert!(server.last_request().count("alpha alpha") > 0);
        assert_eq!(kept(&home)["summary"], Value::Null);
    }
}

#[test]
fn r072_too_large_for_the_provider_is_summarised_by_force_and_asked_once_more() {
    for provider in both() {
        let home = long_home();
        let server = provider.serve([reads("alpha"), too_large(), sum("They read alpha."), says("Done.")]);
        home.ask(&server, &[]).answered("Done.");
        assert!(is_summariser(&server, 2));
        let last = server.last_request();
        assert_eq!((last.count("The task."), last.count("They read alpha."), last.count("alpha alpha")), (1, 1, 0));
        let prompts = kept(&home)["exchanges"].as_array().map(Vec::len);
        assert_eq!(prompts, Some(1), "the prompt is not duplicated");
    }
}

#[test]
fn r072_what_is_still_too_large_ends_the_request_with_numbers() {
    for provider in both() {
        let after_a_summary = [reads("alpha"), too_large(), sum("They read alpha."), too_large()];
        let without_one = [reads("alpha"), too_large(), nothing()];
        let with_nothing_to_summarise = [too_large()];
        for script in [after_a_summary.to_vec(), without_one.to_vec(), with_nothing_to_summarise.to_vec()] {
            let home = long_home();
            let server = provider.serve(script);
            let report = home.ask(&server, &[]).ended("overflow", 8);
            let error = report["error"].as_str().unwrap_or_default();
            assert!(error.contains("prompt is too long") && error.contains("tokens were sent") && error.contains("48000"), "{error}");
            // it goes on from here.
            let server = provider.serve([says("Shorter.")]);
            goes_on(&home, &server, &[]).answered("Shorter.");
        }
    }
}

#[test]
fn r072_words_that_fill_the_window_are_summarised_away() {
    // Half of the window, whether they were too large for the provider or answered.
    let log = "thread main panicked at line 1\n".repeat(100_000 / 31);
    for (provider, is_answered) in both().into_iter().flat_map(|provider| [(provider, true), (provider, false)]) {
        let home = small_home();
        let server = provider.serve([if is_answered { says("I see.").usage(None) } else { too_large() }]);
        let mut command = home.command(&["run", &log, "--model", server.provider().model(), "--base-url", &server.base_url()]);
        command.env(server.provider().key_variable(), server.key());
        assert_eq!(home.start(command).wait().code, if is_answered { 0 } else { 8 });
        drop(server);

        let server = provider.serve([sum("They pasted a log of a panic."), says("Go on.")]);
        goes_on(&home, &server, &[]).answered("Go on.");
        assert!(is_summariser(&server, 0));
        let last = server.last_request();
        assert_eq!((last.count("They pasted a log of a panic."), last.count("panicked at line 1"), last.count("The task.")), (1, 0, 1));
        assert!(kept(&home)["exchanges"].to_string().contains("panicked at line 1"), "the session keeps it");
    }
}

#[test]
fn r065_r066_old_results_are_left_out_and_kept() {
    for provider in both() {
        let home = long_home();
        home.ask(&provider.serve([reads("alpha"), says("One.")]), &[]).answered("One.");
        let second = provider.serve([reads("beta"), says("Two.")]);
        goes_on(&home, &second, &[]).answered("Two.");
        assert!(second.last_request().count("alpha alpha") > 0, "the newest two exchanges are whole");
        let third = provider.serve([reads("gamma"), says("Three.")]);
        goes_on(&home, &third, &[]).answered("Three.");
        let last = third.last_request();
        assert_eq!((last.count("alpha alpha"), last.count("This old result was left out")), (0, 1), "{provider:?}");
        assert!(last.count("beta beta") > 0 && last.count("gamma gamma") > 0);
        let kept = kept(&home).to_string();
        assert!(kept.contains("alpha alpha") && !kept.contains("This old result was left out"));
    }
}

#[test]
fn estimates_are_corrected_by_what_the_provider_counts() {
    for provider in both() {
        let home = long_home();
        // Two files are far from filling the window, by the host's estimate; the provider counts twice as much.
        let server = provider.serve([reads("alpha"), reads("beta").usage(Some((20_000, 10))), sum("They read both."), says("Done.")]);
        home.ask(&server, &[]).answered("Done.");
        assert!(is_summariser(&server, 2));
    }
}

#[test]
fn r100_in_compaction_everything_stays_as_it_was() {
    for provider in both() {
        let home = long_home();
        let server = filled(provider, [hangs()]);
        let running = home.start(home.task(&server, &["--output", "json"]));
        server.wait_for_requests(4);
        running.interrupt();
        let report = running.wait().ended("aborted", 130);
        assert_eq!(report["turns"], 3);
        goes_on_from_three_turns(&home, provider);
    }
}

#[test]
fn killed_in_compaction_everything_stays_as_it_was() {
    for provider in both() {
        let home = long_home();
        let server = filled(provider, [hangs()]);
        let running = home.start(home.task(&server, &["--output", "json"]));
        server.wait_for_requests(4);
        // SIGKILL.
        drop(running);
        goes_on_from_three_turns(&home, provider);
    }
}

fn goes_on_from_three_turns(home: &Home, provider: Provider) {
    let before = kept(home);
    assert_eq!((&before["summary"], before["exchanges"][0]["turns"].as_array().map(Vec::len)), (&Value::Null, Some(3)));
    let server = provider.serve([sum("They read."), says("Going on.")]);
    goes_on(home, &server, &[]).answered("Going on.");
    assert!(is_summariser(&server, 0), "it is as long as it was");
    assert_eq!(kept(home)["exchanges"][0], before["exchanges"][0]);
}
