//! The approval dialog in a conversation.

use cofferdam_tests::wire::{both, says};
use serde_json::json;

use super::{CTRL_C, Chat, ENTER, ESC, bash};

#[test]
fn r038_one_runs_it_and_enter_alone_does_not() {
    for provider in both() {
        let server = provider.serve([bash("touch ran"), says("Touched.")]);
        let mut chat = Chat::with(&server, &[]);
        chat.says("Go.");
        chat.is_asked("touch ran");
        for (n, no_answer) in ["", "y", " ", "11"].into_iter().enumerate() {
            chat.says(no_answer);
            // The question itself ends with it.
            chat.terminal.wait_to_see("a hint", |seen| seen.matches("Type 1, 2 or 3, and Enter.").count() == n + 2);
            chat.is_asked("touch ran");
            assert!(!chat.home.has("ran"), "{no_answer:?} approved it");
        }
        chat.says("1");
        chat.terminal.wait_to_see_text("Touched.");
        chat.is_ready();
        assert!(chat.home.has("ran"));
        chat.leaves();
    }
}

#[test]
fn r042_what_is_longer_than_the_screen_is_not_approved_before_it_was_shown_whole() {
    let [provider, _] = both();
    let lines: String = (1..=60).map(|n| format!("\n# line {n}")).collect();
    let server = provider.serve([bash(&format!("touch ran{lines}\ntouch also")), says("Touched.")]);
    let mut chat = Chat::at_home(super::home(), &server, &[], super::Window { rows: 24, columns: 80 });
    chat.says("Go.");
    let first = chat.terminal.wait_to_see("the first page", |seen| seen.contains("Enter shows more") && seen.lines().last() == Some(">"));
    assert!(first.contains("wants to run this command") && first.contains("    touch ran\n"), "{first}");
    for (n, too_early) in ["1", "2", "y"].into_iter().enumerate() {
        chat.says(too_early);
        chat.terminal.wait_to_see("a hint", |seen| seen.matches("There is more to see").count() == n + 1);
        assert!(!chat.home.has("ran"), "{too_early:?} approved it");
    }
    let mut seen = first;
    for turned in 1.. {
        assert!(turned < 10, "it has no end: {seen}");
        chat.says("");
        // The page that was on the screen gives way to another one.
        seen = chat.terminal.wait_to_see("the next page", |now| {
            now.lines().last() == Some(">") && now != seen && (now.contains("3  no") || now.matches("Enter shows more").count() > 0)
        });
        if seen.contains("3  no") {
            break;
        }
    }
    assert!(seen.contains("touch also") && seen.contains("! That was the last of"), "{seen}");
    chat.says("1");
    chat.terminal.wait_to_see_text("Touched.");
    chat.is_ready();
    assert!(chat.home.has("ran") && chat.home.has("also"));
    chat.leaves();
}

#[test]
fn r042_a_burst_of_keys_turns_no_page_that_was_not_seen() {
    let [provider, _] = both();
    let lines: String = (1..=60).map(|n| format!("\n# line {n}")).collect();
    let server = provider.serve([bash(&format!("touch ran{lines}"))]);
    let mut chat = Chat::at_home(super::home(), &server, &[], super::Window { rows: 24, columns: 80 });
    chat.says("Go.");
    chat.terminal.wait_to_see("the first page", |seen| seen.contains("Enter shows more") && seen.lines().last() == Some(">"));
    for _ in 0..40 {
        chat.types(ENTER);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    chat.says("1");
    let seen = chat.terminal.wait_to_see("the second page", |seen| seen.lines().last() == Some(">"));
    assert!(seen.contains("Enter shows more") && !seen.contains("3  no") && !chat.home.has("ran"), "{seen}");
    chat.types(ESC);
    chat.terminal.wait_to_see_text("! stopped because you rejected a call.");
    chat.is_ready();
    chat.leaves();
}

#[test]
fn r042_on_a_page_before_the_last_a_no_counts() {
    let [provider, _] = both();
    let lines: String = (1..=60).map(|n| format!("\n# line {n}")).collect();
    for no in ["3\r\r", ESC, CTRL_C] {
        let server = provider.serve([bash(&format!("touch ran{lines}"))]);
        let mut chat = Chat::at_home(super::home(), &server, &[], super::Window { rows: 24, columns: 80 });
        chat.says("Go.");
        chat.terminal.wait_to_see("the first page", |seen| seen.contains("Enter shows more") && seen.lines().last() == Some(">"));
        chat.types(no);
        chat.terminal.wait_to_see_text("! stopped because you rejected a call.");
        chat.is_ready();
        assert!(!chat.home.has("ran"));
        chat.leaves();
    }
}

#[test]
fn r040_two_approves_a_scope_for_the_whole_chat_and_not_for_a_resumed_session() {
    for provider in both() {
        let server =
            provider.serve([bash("git rev-parse --sq-quote one"), says("One."), bash("git rev-parse --sq-quote two"), says("Two.")]);
        let mut chat = Chat::with(&server, &[]);
        chat.says("Go.");
        assert!(
            chat.is_asked("git rev-parse --sq-quote one")
                .contains("don't ask again in this chat for commands that begin with `git rev-parse`")
        );
        chat.says("2");
        chat.terminal.wait_to_see_text("One.");
        chat.is_ready();
        assert!(chat.asks("Another.").contains("Two."));
        let results: String = server.requests().iter().flat_map(|request| request.results()).map(|result| result.text).collect();
        let ran = |word: &str| results.contains(&format!("'{word}'"));
        assert!(ran("one") && ran("two"));
        drop(server);

        let server = provider.serve([bash("git rev-parse --sq-quote three"), says("No.")]);
        let mut chat = chat.then_with(&server, &["--continue"]);
        chat.says("A third.");
        chat.is_asked("git rev-parse --sq-quote three");
        chat.says("3");
        chat.says("");
        chat.terminal.wait_to_see_text("! stopped because you rejected a call.");
        chat.is_ready();
        assert!(chat.asks("Well?").contains("No."));
        assert!(server.last_request().results().iter().all(|result| !result.text.contains("'three'")));
        chat.leaves();
    }
}

#[test]
fn r044_three_lines_of_guidance_arrive_whole() {
    let guidance = ["Not that one.", "  Use `mkdir -p` instead;", "and \"quote\" the name: Grüße."];
    for provider in both() {
        let server = provider.serve([bash("touch first").call("bash", json!({"command": "touch second"})), says("As you like.")]);
        let mut chat = Chat::with(&server, &[]);
        chat.says("Go.");
        chat.is_asked("touch first");
        chat.says("3");
        for line in guidance {
            chat.terminal.wait_to_see("a place for words", |seen| seen.lines().last() == Some("|"));
            chat.says(line);
            chat.terminal.wait_to_see_text(&format!("| {line}"));
        }
        chat.says("");
        chat.is_asked("touch second");
        chat.says("1");
        chat.terminal.wait_to_see_text("As you like.");
        chat.is_ready();
        let request = server.last_request();
        let [first, second] = request.results().try_into().expect("there are two results");
        let words = guidance.join("\n");
        assert!(first.is_error && first.text.contains(&words), "{first:?}");
        assert!(!second.is_error, "{second:?}");
        assert_eq!((request.count(&words), request.user_texts()), (1, vec!["Go.".to_owned()]));
        assert!(!chat.home.has("first") && chat.home.has("second"));
        chat.leaves();
    }
}

#[test]
fn r127_esc_and_ctrl_c_in_a_dialog_reject_that_call() {
    let [provider, _] = both();
    for key in [ESC, CTRL_C] {
        let server = provider.serve([bash("touch ran"), says("What then?")]);
        let mut chat = Chat::with(&server, &[]);
        chat.says("Go.");
        chat.is_asked("touch ran");
        chat.types(key);
        chat.terminal.wait_to_see_text("! stopped because you rejected a call.");
        chat.is_ready();
        assert!(chat.asks("Well.").contains("What then?"));
        // R-50: the call has its result, and no user's word stands in its place.
        assert!(server.last_request().results().iter().all(|result| result.is_error));
        assert!(!chat.home.has("ran"));
        chat.leaves();
    }
}

#[test]
fn r099_to_be_told_to_end_in_a_dialog_is_no_no() {
    for provider in both() {
        let server = provider.serve([bash("touch ran")]);
        let mut chat = Chat::with(&server, &[]);
        chat.says("Go.");
        chat.is_asked("touch ran");
        chat.terminal.signals(rustix::process::Signal::TERM);
        assert_eq!(chat.terminal.wait(), 143, "{}", chat.terminal.sees());
        let journal = chat.journals().concat();
        assert!(journal.contains("\"kind\":\"aborted\"") && !journal.contains("rejected"), "{journal}");
    }
}

#[test]
fn r129_what_is_typed_before_a_dialog_is_no_answer_to_it() {
    let [provider, _] = both();
    let server = provider.serve([bash("touch ran").when_released(), says("Done."), says("Queued too.")]);
    let mut chat = Chat::with(&server, &[]);
    chat.says("Go.");
    chat.is_running();
    chat.types(&format!("1{ENTER}2"));
    chat.terminal.wait_to_see("what is typed", |seen| seen.contains("next › 1") && seen.lines().last() == Some("› 2"));
    server.release();
    chat.is_asked("touch ran");
    assert!(!chat.home.has("ran"));
    chat.says("1");
    chat.terminal.wait_to_see_text("Queued too.");
    // What was not sent is still there.
    chat.is_ready_with("› 2");
    assert_eq!(server.last_request().user_texts(), ["Go.", "1"]);
    chat.types(CTRL_C);
    chat.is_ready();
    chat.leaves();
}

#[test]
fn r048_rejections_are_counted_for_each_request_anew() {
    let [provider, _] = both();
    let server = provider.serve([bash("touch a"), bash("touch b"), says("I give up."), bash("touch c"), says("Well.")]);
    let mut chat = Chat::with(&server, &[]);
    for (prompt, names) in [("One", &["a", "b"][..]), ("Two", &["c"])] {
        chat.says(prompt);
        for name in names {
            chat.is_asked(&format!("touch {name}"));
            chat.says("3");
            chat.terminal.wait_to_see("a place for words", |seen| seen.lines().last() == Some("|"));
            chat.says("no");
            chat.terminal.wait_to_see_text("| no");
            chat.says("");
        }
        chat.terminal.wait_to_see_text(if prompt == "One" { "I give up." } else { "Well." });
        chat.is_ready();
    }
    chat.leaves();
}
