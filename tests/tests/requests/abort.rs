//! Ctrl-C, wherever it comes.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use cofferdam_tests::guests::TestGuest;
use cofferdam_tests::program::{RunningProgram, find_processes, wait_until};
use cofferdam_tests::wire::{
    ProviderServer, both_providers, call_reply, error_reply, hanging_reply, text_reply,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::new_home;

/// The rule says one second; a loaded machine gets some more.
const ABORT_TIMEOUT: Duration = Duration::from_secs(3);

/// Interrupts a run, which then has to end at once and to say so.
#[track_caller]
fn interrupt_and_report(running: RunningProgram) -> Value {
    let asked = Instant::now();
    running.interrupt();
    let ran = running.wait_for_exit();
    assert!(asked.elapsed() < ABORT_TIMEOUT, "it took {:?}: {ran:?}", asked.elapsed());
    ran.expect_outcome("aborted", 130)
}

/// A duration for `sleep` that no other process has.
fn unique_duration(server: &ProviderServer) -> String {
    format!("100.{}", server.key().replace(|c: char| !c.is_ascii_digit(), ""))
}

/// Runs a command line that sleeps, and interrupts it in its sleep.
fn interrupt_sleeping_command(command: impl Fn(&str) -> String) {
    for provider in both_providers() {
        let home = new_home();
        // The server is a second one only to have a number of its own.
        let numbers = provider.serve([]);
        let sleep = format!("sleep {}", unique_duration(&numbers));
        let after = json!({"command": "touch ran-after"});
        let server =
            provider
                .serve([call_reply("bash", json!({"command": command(&sleep)}))
                    .with_call("bash", after)]);
        let running =
            home.start(home.model_command(&server, &["--mode", "auto", "--output", "json"]));
        let asleep = || find_processes(&sleep).into_iter().any(|line| line.starts_with("sleep"));
        wait_until("the command sleeps", asleep);
        let report = interrupt_and_report(running);
        assert_eq!(find_processes(&sleep), [""; 0], "nothing of it is left");
        // what happened is in the conversation.
        assert_eq!(report["turns"], 1);
        assert!(!home.has_file("ran-after"));
    }
}

#[test]
fn r101_a_command_that_runs_is_ended() {
    interrupt_sleeping_command(str::to_owned);
}

#[test]
fn r101_a_command_gets_term_and_a_moment_before_it_is_killed() {
    for provider in both_providers() {
        let home = new_home();
        // In a private view, the changes of a stopped command are discarded.
        home.write_file("config/cofferdam/config.toml", "[commands]\nat_most = \"kernel\"\n");
        let numbers = provider.serve([]);
        let sleep = format!("sleep {}", unique_duration(&numbers));
        let command = format!("trap 'touch got-term; exit' TERM; {sleep} & wait");
        let server = provider.serve([call_reply("bash", json!({"command": command}))]);
        let running =
            home.start(home.model_command(&server, &["--mode", "auto", "--output", "json"]));
        wait_until("the command sleeps", || {
            find_processes(&sleep).into_iter().any(|line| line.starts_with("sleep"))
        });
        interrupt_and_report(running);
        assert!(home.has_file("got-term"));
    }
}

#[test]
fn r101_a_command_that_ignores_signals_is_killed_with_its_children() {
    interrupt_sleeping_command(|sleep| {
        format!("trap '' TERM INT; (trap '' TERM; {sleep}) & {sleep}; {sleep}")
    });
}

#[test]
fn r100_r102_while_text_is_streaming() {
    for provider in both_providers() {
        let home = new_home();
        let server = provider.serve([text_reply("The first words").then_hanging()]);
        let running = home.start(home.model_command(&server, &["--output", "stream-json"]));
        running.wait_for_stdout("The fir");
        // partial text is kept once.
        assert_eq!(interrupt_and_report(running)["turns"], 1);
    }
}

#[test]
fn r101_a_terminal_that_goes_away_stops_the_request_as_ctrl_c_does() {
    for provider in both_providers() {
        let home = new_home();
        let server = provider.serve([text_reply("The first words").then_hanging()]);
        let running = home.start(home.model_command(&server, &["--output", "stream-json"]));
        running.wait_for_stdout("The fir");
        running.send_signal(Signal::HUP);
        // partial text is kept once.
        assert_eq!(running.wait_for_exit().expect_outcome("aborted", 130)["turns"], 1);
    }
}

#[test]
fn r100_while_arguments_are_streaming() {
    for provider in both_providers() {
        let home = new_home();
        let server = provider.serve([text_reply("Now")
            .with_call("bash", json!({"command": "touch ran"}))
            .then_hanging()]);
        let running =
            home.start(home.model_command(&server, &["--mode", "auto", "--output", "stream-json"]));
        running.wait_for_stdout("Now");
        interrupt_and_report(running);
        assert!(!home.has_file("ran"));
    }
}

#[test]
fn r100_while_the_provider_is_silent() {
    for provider in both_providers() {
        let home = new_home();
        let server = provider.serve([hanging_reply()]);
        let running = home.start(home.model_command(&server, &["--output", "json"]));
        server.wait_for_requests(1);
        assert_eq!(interrupt_and_report(running)["turns"], 0);
    }
}

#[test]
fn r100_while_connecting() {
    for provider in both_providers() {
        let home = new_home();
        // It takes the connection, and never says a word of TLS.
        let silent = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("https://{}/v1", silent.local_addr().expect("it is bound"));
        let mut command = home.command(&[
            "run",
            "The task.",
            "--output",
            "json",
            "--model",
            provider.model(),
            "--base-url",
            &url,
        ]);
        command.env(provider.key_variable(), "sk-nobody");
        let running = home.start(command);
        let connection = silent.accept().expect("it comes");
        assert_eq!(interrupt_and_report(running)["turns"], 0);
        drop(connection);
    }
}

#[test]
fn r100_while_tools_run_in_parallel() {
    for provider in both_providers() {
        let home = new_home();
        let spins = TestGuest::from_file("loop-in-call");
        home.write_file("spins.wasm", spins.component());
        let plugin = home.path().join("spins.wasm").display().to_string();
        assert_eq!(home.run(&["lock", "--yes", "--plugin", &plugin]).exit_code, 0);
        let call = || json!({"text": "x"});
        let server =
            provider.serve([call_reply("loop_in_call", call()).with_call("loop_in_call", call())]);
        let running = home
            .start(home.model_command(&server, &["--output", "stream-json", "--plugin", &plugin]));
        running.wait_for_stdout("\"call_started\"");
        assert_eq!(interrupt_and_report(running)["turns"], 1);
    }
}

#[test]
fn r100_while_waiting_for_the_next_attempt() {
    for provider in both_providers() {
        let home = new_home();
        let server =
            provider
                .serve([error_reply(429, "rate_limit_error", "slow down")
                    .with_header("retry-after", 50)]);
        let running = home.start(home.model_command(&server, &["--output", "stream-json"]));
        running.wait_for_stdout("\"retry\"");
        interrupt_and_report(running);
    }
}
