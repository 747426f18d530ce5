//! Stopping a request, and leaving.

use std::time::{Duration, Instant};

use cofferdam_tests::program::{find_processes, wait_until};
use cofferdam_tests::wire::{both_providers, hanging_reply, text_reply};
use rustix::process::Signal;

use super::{CTRL_C, ChatTerminal, ESC, bash_call, journals};

/// The rule says one second; a loaded machine gets some more.
const ABORT_TIMEOUT: Duration = Duration::from_secs(5);

#[test]
fn r101_esc_and_ctrl_c_stop_a_stream_and_the_prompt_is_back() {
    for (provider, key) in both_providers().into_iter().zip([ESC, CTRL_C]) {
        let server =
            provider.serve([text_reply("Far away, beyond").then_hanging(), hanging_reply()]);
        let mut chat = ChatTerminal::start(&server, &[]);
        for (n, text) in ["Far aw", ""].into_iter().enumerate() {
            chat.send_line("Go.");
            server.wait_for_requests(n + 1);
            chat.terminal
                .wait_for_screen("a stream", |seen| super::is_running(seen) && seen.contains(text));
            let asked = Instant::now();
            chat.type_keys(key);
            chat.terminal
                .wait_for_screen("the end", |seen| seen.matches("! stopped.").count() == n + 1);
            chat.wait_until_ready();
            assert!(asked.elapsed() < ABORT_TIMEOUT, "{:?}", asked.elapsed());
        }
        // what came of the first is part of the second, once.
        assert_eq!(server.last_request().count_occurrences("Far away"), 1);
        chat.leave();
    }
}

#[test]
fn r101_esc_stops_a_command_with_all_it_started() {
    let [provider, _] = both_providers();
    let numbers = provider.serve([]);
    let sleep = format!("sleep 100.{}", numbers.key().replace(|c: char| !c.is_ascii_digit(), ""));
    for key in [ESC, CTRL_C] {
        let server = provider
            .serve([bash_call(&format!("{sleep} & {sleep}")), text_reply("It was interrupted.")]);
        let mut chat = ChatTerminal::start(&server, &["--mode", "auto"]);
        chat.send_line("Go.");
        wait_until("the command sleeps", || {
            find_processes(&sleep).into_iter().any(|line| line.starts_with("sleep"))
        });
        chat.type_keys(key);
        chat.terminal.wait_for_visible("! stopped.");
        chat.wait_until_ready();
        assert!(
            !find_processes(&sleep).into_iter().any(|line| line.starts_with("sleep")),
            "something of it is left"
        );
        assert!(chat.ask("And?").contains("It was interrupted."));
        assert!(server.last_request().tool_results().iter().all(|result| result.is_error));
        chat.leave();
    }
}

#[test]
fn r127_on_an_empty_line_ctrl_c_leaves_the_second_time() {
    let [provider, _] = both_providers();
    let server = provider.serve([]);
    for key in [ESC, CTRL_C] {
        let mut chat = ChatTerminal::start(&server, &[]);
        chat.type_keys("some words");
        chat.wait_until_ready_with("› some words");
        chat.type_keys(key);
        chat.wait_until_ready();
        chat.type_keys(CTRL_C);
        chat.terminal.wait_for_visible("Ctrl-C again, or Ctrl-D, leaves");
        chat.type_keys("x");
        chat.type_keys(CTRL_C);
        chat.wait_until_ready();
        chat.type_keys(CTRL_C);
        chat.terminal.wait_for_visible("Ctrl-C again, or Ctrl-D, leaves");
        chat.type_keys(CTRL_C);
        assert_eq!(chat.terminal.wait_for_exit(), 0);
        assert!(chat.terminal.is_restored());
    }
}

#[test]
fn r107_ctrl_c_twice_in_a_request_leaves_and_what_was_said_is_saved() {
    for provider in both_providers() {
        let server = provider.serve([text_reply("Far away, beyond").then_hanging()]);
        let mut chat = ChatTerminal::start(&server, &[]);
        chat.send_line("Go.");
        chat.terminal.wait_for_visible("Far aw");
        // In one piece: the second is there before the first was seen to.
        chat.type_keys("\u{3}\u{3}");
        assert_eq!(chat.terminal.wait_for_exit(), 130, "{}", chat.terminal.visible_text());
        assert!(chat.terminal.is_restored());
        let journal = journals(&chat.home).concat();
        assert!(
            journal.contains("\"stop\":\"interrupted\"")
                && journal.contains("\"kind\":\"aborted\""),
            "{journal}"
        );
    }
}

#[test]
fn the_terminal_is_given_back_when_the_program_is_told_to_end() {
    let [provider, _] = both_providers();
    for is_busy in [false, true] {
        let server = provider.serve(is_busy.then(|| text_reply("Far away, beyond").then_hanging()));
        let mut chat = ChatTerminal::start(&server, &[]);
        assert!(!chat.terminal.is_restored(), "the test would show nothing");
        if is_busy {
            chat.send_line("Go.");
            chat.terminal.wait_for_visible("Far aw");
        }
        chat.terminal.send_signal(Signal::TERM);
        let code = chat.terminal.wait_for_exit();
        assert!(chat.terminal.is_restored());
        assert_eq!(code, 143, "{}", chat.terminal.visible_text());
    }
}

#[test]
fn ctrl_d_leaves() {
    let [provider, _] = both_providers();
    let server = provider.serve([text_reply("Hello.")]);
    let mut chat = ChatTerminal::start(&server, &[]);
    chat.ask("Hello?");
    chat.type_keys("\u{4}");
    assert_eq!(chat.terminal.wait_for_exit(), 0);
    assert!(chat.terminal.is_restored());
    chat.terminal.wait_for_visible("continues it");
}
