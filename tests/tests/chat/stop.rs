//! Stopping a request, and leaving.

use std::time::{Duration, Instant};

use cofferdam_tests::program::{processes_with, wait_until};
use cofferdam_tests::wire::{both, hangs, says};
use rustix::process::Signal;

use super::{CTRL_C, Chat, ESC, bash, journals};

/// The rule says one second; a loaded machine gets some more.
const PROMPTLY: Duration = Duration::from_secs(5);

#[test]
fn r101_esc_and_ctrl_c_stop_a_stream_and_the_prompt_is_back() {
    for (provider, key) in both().into_iter().zip([ESC, CTRL_C]) {
        let server = provider.serve([says("Far away, beyond").then_hangs(), hangs()]);
        let mut chat = Chat::with(&server, &[]);
        for (n, text) in ["Far aw", ""].into_iter().enumerate() {
            chat.says("Go.");
            server.wait_for_requests(n + 1);
            chat.terminal.wait_to_see("a stream", |seen| super::is_running(seen) && seen.contains(text));
            let asked = Instant::now();
            chat.types(key);
            chat.terminal.wait_to_see("the end", |seen| seen.matches("! stopped.").count() == n + 1);
            chat.is_ready();
            assert!(asked.elapsed() < PROMPTLY, "{:?}", asked.elapsed());
        }
        // what came of the first is part of the second, once.
        assert_eq!(server.last_request().count("Far away"), 1);
        chat.leaves();
    }
}

#[test]
fn r101_esc_stops_a_command_with_all_it_started() {
    let [provider, _] = both();
    let numbers = provider.serve([]);
    let sleep = format!("sleep 100.{}", numbers.key().replace(|c: char| !c.is_ascii_digit(), ""));
    for key in [ESC, CTRL_C] {
        let server = provider.serve([bash(&format!("{sleep} & {sleep}")), says("It was interrupted.")]);
        let mut chat = Chat::with(&server, &["--mode", "auto"]);
        chat.says("Go.");
        wait_until("the command sleeps", || processes_with(&sleep).into_iter().any(|line| line.starts_with("sleep")));
        chat.types(key);
        chat.terminal.wait_to_see_text("! stopped.");
        chat.is_ready();
        assert!(!processes_with(&sleep).into_iter().any(|line| line.starts_with("sleep")), "something of it is left");
        assert!(chat.asks("And?").contains("It was interrupted."));
        assert!(server.last_request().results().iter().all(|result| result.is_error));
        chat.leaves();
    }
}

#[test]
fn r127_on_an_empty_line_ctrl_c_leaves_the_second_time() {
    let [provider, _] = both();
    let server = provider.serve([]);
    for key in [ESC, CTRL_C] {
        let mut chat = Chat::with(&server, &[]);
        chat.types("some words");
        chat.is_ready_with("› some words");
        chat.types(key);
        chat.is_ready();
        chat.types(CTRL_C);
        chat.terminal.wait_to_see_text("Ctrl-C again, or Ctrl-D, leaves");
        chat.types("x");
        chat.types(CTRL_C);
        chat.is_ready();
        chat.types(CTRL_C);
        chat.terminal.wait_to_see_text("Ctrl-C again, or Ctrl-D, leaves");
        chat.types(CTRL_C);
        assert_eq!(chat.terminal.wait(), 0);
        assert!(chat.terminal.is_as_before());
    }
}

#[test]
fn r107_ctrl_c_twice_in_a_request_leaves_and_what_was_said_is_saved() {
    for provider in both() {
        let server = provider.serve([says("Far away, beyond").then_hangs()]);
        let mut chat = Chat::with(&server, &[]);
        chat.says("Go.");
        chat.terminal.wait_to_see_text("Far aw");
        // In one piece: the second is there before the first was seen to.
        chat.types("\u{3}\u{3}");
        assert_eq!(chat.terminal.wait(), 130, "{}", chat.terminal.sees());
        assert!(chat.terminal.is_as_before());
        let journal = journals(&chat.home).concat();
        assert!(journal.contains("\"stop\":\"interrupted\"") && journal.contains("\"kind\":\"aborted\""), "{journal}");
    }
}

#[test]
fn the_terminal_is_given_back_when_the_program_is_told_to_end() {
    let [provider, _] = both();
    for is_busy in [false, true] {
        let server = provider.serve(is_busy.then(|| says("Far away, beyond").then_hangs()));
        let mut chat = Chat::with(&server, &[]);
        assert!(!chat.terminal.is_as_before(), "the test would show nothing");
        if is_busy {
            chat.says("Go.");
            chat.terminal.wait_to_see_text("Far aw");
        }
        chat.terminal.signals(Signal::TERM);
        let code = chat.terminal.wait();
        assert!(chat.terminal.is_as_before());
        assert_eq!(code, 143, "{}", chat.terminal.sees());
    }
}

#[test]
fn ctrl_d_leaves() {
    let [provider, _] = both();
    let server = provider.serve([says("Hello.")]);
    let mut chat = Chat::with(&server, &[]);
    chat.asks("Hello?");
    chat.types("\u{4}");
    assert_eq!(chat.terminal.wait(), 0);
    assert!(chat.terminal.is_as_before());
    chat.terminal.wait_to_see_text("goes on with it");
}
