//! The approval dialog in a conversation.

use cofferdam_tests::wire::{both_providers, text_reply};
use serde_json::json;

use super::{CTRL_C, ChatTerminal, ENTER, ESC, bash_call};

#[test]
fn r038_one_runs_it_and_enter_alone_does_not() {
    for provider in both_providers() {
        let server = provider.serve([bash_call("touch ran"), text_reply("Touched.")]);
        let mut chat = ChatTerminal::start(&server, &[]);
        chat.send_line("Go.");
        chat.wait_for_question("touch ran");
        for (n, no_answer) in ["", "y", " ", "11"].into_iter().enumerate() {
            chat.send_line(no_answer);
            // The question itself ends with it.
            chat.terminal.wait_for_screen("a hint", |seen| {
                seen.matches("Type 1, 2 or 3, and Enter.").count() == n + 2
            });
            chat.wait_for_question("touch ran");
            assert!(!chat.home.has_file("ran"), "{no_answer:?} approved it");
        }
        chat.send_line("1");
        chat.terminal.wait_for_visible("Touched.");
        chat.wait_until_ready();
        assert!(chat.home.has_file("ran"));
        chat.leave();
    }
}

#[test]
fn r042_what_is_longer_than_the_screen_is_not_approved_before_it_was_shown_whole() {
    let [provider, _] = both_providers();
    let lines: String = (1..=60).map(|n| format!("\n# line {n}")).collect();
    let server = provider
        .serve([bash_call(&format!("touch ran{lines}\ntouch also")), text_reply("Touched.")]);
    let mut chat = ChatTerminal::start_in(
        super::new_home(),
        &server,
        &[],
        super::WindowSize { rows: 24, columns: 80 },
    );
    chat.send_line("Go.");
    let first = chat.terminal.wait_for_screen("the first page", |seen| {
        seen.contains("Enter shows more") && seen.lines().last() == Some(">")
    });
    assert!(
        first.contains("wants to run this command") && first.contains("    touch ran\n"),
        "{first}"
    );
    for (n, too_early) in ["1", "2", "y"].into_iter().enumerate() {
        chat.send_line(too_early);
        chat.terminal.wait_for_screen("a hint", |seen| {
            seen.matches("There are more pages.").count() == n + 1
        });
        assert!(!chat.home.has_file("ran"), "{too_early:?} approved it");
    }
    let mut seen = first;
    for turned in 1.. {
        assert!(turned < 10, "it has no end: {seen}");
        chat.send_line("");
        // The page that was on the screen gives way to another one.
        seen = chat.terminal.wait_for_screen("the next page", |now| {
            now.lines().last() == Some(">")
                && now != seen
                && (now.contains("3  no") || now.matches("Enter shows more").count() > 0)
        });
        if seen.contains("3  no") {
            break;
        }
    }
    assert!(seen.contains("touch also") && seen.contains("! End of"), "{seen}");
    chat.send_line("1");
    chat.terminal.wait_for_visible("Touched.");
    chat.wait_until_ready();
    assert!(chat.home.has_file("ran") && chat.home.has_file("also"));
    chat.leave();
}

/// Turns the pages of a question to the last one, and returns what was visible.
#[track_caller]
fn read_to_end(chat: &mut ChatTerminal, first: String) -> String {
    let (mut screens, mut last) = (String::new(), first);
    for _ in 0..100 {
        screens.push_str(&format!("{last}\n"));
        if last.contains("Type 1") {
            return screens;
        }
        chat.send_line("");
        last = chat
            .terminal
            .wait_for_screen("the next page", |now| now.lines().last() == Some(">") && now != last);
    }
    panic!("the question has no end: {screens}");
}

#[test]
fn r042_in_a_window_that_changes_a_yes_counts_after_each_word_was_visible() {
    let [provider, _] = both_providers();
    let words: Vec<String> = (1..=40).map(|n| format!("w{n:02}")).collect();
    let server = provider
        .serve([bash_call(&format!("touch ran # {}", words.join("\n# "))), text_reply("Touched.")]);
    let size = |columns, rows| super::WindowSize { rows, columns };
    let mut chat = ChatTerminal::start_in(super::new_home(), &server, &[], size(80, 24));
    // Too small, then large enough, then smaller at a page and at the end, then larger.
    chat.terminal.resize(size(80, 5));
    chat.send_line("Go.");
    chat.terminal.wait_for_screen("a hint", |seen| {
        seen.contains("Enlarge the window") && seen.lines().last() == Some(">")
    });
    chat.send_line("1");
    chat.terminal.wait_for_visible("There are more pages.");
    chat.terminal.resize(size(80, 24));
    let is_again = |seen: &str| seen.contains("smaller") && seen.lines().last() == Some(">");
    chat.send_line("");
    chat.terminal.wait_for_screen("the first page", |seen| {
        seen.contains("wants to run") && seen.lines().last() == Some(">")
    });
    chat.terminal.resize(size(80, 8));
    chat.send_line("");
    let first = chat.terminal.wait_for_screen("the first page again", is_again);
    read_to_end(&mut chat, first);
    chat.terminal.resize(size(40, 7));
    chat.send_line("1");
    let first = chat.terminal.wait_for_screen("the first page again", is_again);
    assert!(!chat.home.has_file("ran"));
    let seen = read_to_end(&mut chat, first);
    let missing: Vec<&String> = words
        .iter()
        .filter(|word| !seen.split_whitespace().any(|visible| visible == word.as_str()))
        .collect();
    assert!(missing.is_empty(), "{missing:?} was never visible: {seen}");
    chat.terminal.resize(size(100, 40));
    chat.send_line("1");
    chat.terminal.wait_for_visible("Touched.");
    chat.wait_until_ready();
    assert!(chat.home.has_file("ran"));
    chat.leave();
}

#[test]
fn r042_a_burst_of_keys_turns_no_page_that_was_not_seen() {
    let [provider, _] = both_providers();
    let lines: String = (1..=60).map(|n| format!("\n# line {n}")).collect();
    let server = provider.serve([bash_call(&format!("touch ran{lines}"))]);
    let mut chat = ChatTerminal::start_in(
        super::new_home(),
        &server,
        &[],
        super::WindowSize { rows: 24, columns: 80 },
    );
    chat.send_line("Go.");
    chat.terminal.wait_for_screen("the first page", |seen| {
        seen.contains("Enter shows more") && seen.lines().last() == Some(">")
    });
    for _ in 0..40 {
        chat.type_keys(ENTER);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    chat.send_line("1");
    let seen =
        chat.terminal.wait_for_screen("the second page", |seen| seen.lines().last() == Some(">"));
    assert!(
        seen.contains("Enter shows more") && !seen.contains("3  no") && !chat.home.has_file("ran"),
        "{seen}"
    );
    chat.type_keys(ESC);
    chat.terminal.wait_for_visible("! stopped because you rejected a tool call.");
    chat.wait_until_ready();
    chat.leave();
}

#[test]
fn r042_on_a_page_before_the_last_a_no_counts() {
    let [provider, _] = both_providers();
    let lines: String = (1..=60).map(|n| format!("\n# line {n}")).collect();
    for no in ["3\r\r", ESC, CTRL_C] {
        let server = provider.serve([bash_call(&format!("touch ran{lines}"))]);
        let mut chat = ChatTerminal::start_in(
            super::new_home(),
            &server,
            &[],
            super::WindowSize { rows: 24, columns: 80 },
        );
        chat.send_line("Go.");
        chat.terminal.wait_for_screen("the first page", |seen| {
            seen.contains("Enter shows more") && seen.lines().last() == Some(">")
        });
        chat.type_keys(no);
        chat.terminal.wait_for_visible("! stopped because you rejected a tool call.");
        chat.wait_until_ready();
        assert!(!chat.home.has_file("ran"));
        chat.leave();
    }
}

#[test]
fn r040_two_approves_a_scope_for_the_whole_chat_and_not_for_a_resumed_session() {
    for provider in both_providers() {
        let server = provider.serve([
            bash_call("git rev-parse --sq-quote one"),
            text_reply("One."),
            bash_call("git rev-parse --sq-quote two"),
            text_reply("Two."),
        ]);
        let mut chat = ChatTerminal::start(&server, &[]);
        chat.send_line("Go.");
        assert!(
            chat.wait_for_question("git rev-parse --sq-quote one").contains(
                "don't ask again in this chat for commands that begin with `git rev-parse`"
            )
        );
        chat.send_line("2");
        chat.terminal.wait_for_visible("One.");
        chat.wait_until_ready();
        assert!(chat.ask("Another.").contains("Two."));
        let results: String = server
            .requests()
            .iter()
            .flat_map(|request| request.tool_results())
            .map(|result| result.text)
            .collect();
        let ran = |word: &str| results.contains(&format!("'{word}'"));
        assert!(ran("one") && ran("two"));
        drop(server);

        let server =
            provider.serve([bash_call("git rev-parse --sq-quote three"), text_reply("No.")]);
        let mut chat = chat.restart(&server, &["--continue"]);
        chat.send_line("A third.");
        chat.wait_for_question("git rev-parse --sq-quote three");
        chat.send_line("3");
        chat.send_line("");
        chat.terminal.wait_for_visible("! stopped because you rejected a tool call.");
        chat.wait_until_ready();
        assert!(chat.ask("Well?").contains("No."));
        assert!(
            server
                .last_request()
                .tool_results()
                .iter()
                .all(|result| !result.text.contains("'three'"))
        );
        chat.leave();
    }
}

#[test]
fn r044_three_lines_of_guidance_arrive_whole() {
    let guidance = ["Not that one.", "  Use `mkdir -p` instead;", "and \"quote\" the name: Grüße."];
    for provider in both_providers() {
        let server = provider.serve([
            bash_call("touch first").with_call("bash", json!({"command": "touch second"})),
            text_reply("As you like."),
        ]);
        let mut chat = ChatTerminal::start(&server, &[]);
        chat.send_line("Go.");
        chat.wait_for_question("touch first");
        chat.send_line("3");
        for line in guidance {
            chat.terminal
                .wait_for_screen("a place for words", |seen| seen.lines().last() == Some("|"));
            chat.send_line(line);
            chat.terminal.wait_for_visible(&format!("| {line}"));
        }
        chat.send_line("");
        chat.wait_for_question("touch second");
        chat.send_line("1");
        chat.terminal.wait_for_visible("As you like.");
        chat.wait_until_ready();
        let request = server.last_request();
        let [first, second] = request.tool_results().try_into().expect("there are two results");
        let words = guidance.join("\n");
        assert!(first.is_error && first.text.contains(&words), "{first:?}");
        assert!(!second.is_error, "{second:?}");
        assert_eq!(
            (request.count_occurrences(&words), request.user_texts()),
            (1, vec!["Go.".to_owned()])
        );
        assert!(!chat.home.has_file("first") && chat.home.has_file("second"));
        chat.leave();
    }
}

#[test]
fn r127_esc_and_ctrl_c_in_a_dialog_reject_that_call() {
    let [provider, _] = both_providers();
    for key in [ESC, CTRL_C] {
        let server = provider.serve([bash_call("touch ran"), text_reply("What then?")]);
        let mut chat = ChatTerminal::start(&server, &[]);
        chat.send_line("Go.");
        chat.wait_for_question("touch ran");
        chat.type_keys(key);
        chat.terminal.wait_for_visible("! stopped because you rejected a tool call.");
        chat.wait_until_ready();
        assert!(chat.ask("Well.").contains("What then?"));
        // R-50: the call has its result, and no user's word stands in its place.
        assert!(server.last_request().tool_results().iter().all(|result| result.is_error));
        assert!(!chat.home.has_file("ran"));
        chat.leave();
    }
}

#[test]
fn r099_to_be_told_to_end_in_a_dialog_is_no_no() {
    for provider in both_providers() {
        let server = provider.serve([bash_call("touch ran")]);
        let mut chat = ChatTerminal::start(&server, &[]);
        chat.send_line("Go.");
        chat.wait_for_question("touch ran");
        chat.terminal.send_signal(rustix::process::Signal::TERM);
        assert_eq!(chat.terminal.wait_for_exit(), 143, "{}", chat.terminal.visible_text());
        let journal = chat.read_journals().concat();
        assert!(
            journal.contains("\"kind\":\"aborted\"") && !journal.contains("rejected"),
            "{journal}"
        );
    }
}

#[test]
fn r129_what_is_typed_before_a_dialog_is_no_answer_to_it() {
    let [provider, _] = both_providers();
    let server = provider.serve([
        bash_call("touch ran").after_release(),
        text_reply("Done."),
        text_reply("Queued too."),
    ]);
    let mut chat = ChatTerminal::start(&server, &[]);
    chat.send_line("Go.");
    chat.wait_until_running();
    chat.type_keys(&format!("1{ENTER}2"));
    chat.terminal.wait_for_screen("what is typed", |seen| {
        seen.contains("next › 1") && seen.lines().last() == Some("› 2")
    });
    server.release();
    chat.wait_for_question("touch ran");
    assert!(!chat.home.has_file("ran"));
    chat.send_line("1");
    chat.terminal.wait_for_visible("Queued too.");
    // What was not sent is still there.
    chat.wait_until_ready_with("› 2");
    assert_eq!(server.last_request().user_texts(), ["Go.", "1"]);
    chat.type_keys(CTRL_C);
    chat.wait_until_ready();
    chat.leave();
}

#[test]
fn r048_rejections_are_counted_for_each_request_anew() {
    let [provider, _] = both_providers();
    let server = provider.serve([
        bash_call("touch a"),
        bash_call("touch b"),
        text_reply("I give up."),
        bash_call("touch c"),
        text_reply("Well."),
    ]);
    let mut chat = ChatTerminal::start(&server, &[]);
    for (prompt, names) in [("One", &["a", "b"][..]), ("Two", &["c"])] {
        chat.send_line(prompt);
        for name in names {
            chat.wait_for_question(&format!("touch {name}"));
            chat.send_line("3");
            chat.terminal
                .wait_for_screen("a place for words", |seen| seen.lines().last() == Some("|"));
            chat.send_line("no");
            chat.terminal.wait_for_visible("| no");
            chat.send_line("");
        }
        chat.terminal.wait_for_visible(if prompt == "One" { "I give up." } else { "Well." });
        chat.wait_until_ready();
    }
    chat.leave();
}

#[test]
fn a_host_is_asked_about_while_the_command_runs_and_always_adds_it_to_the_policy() {
    let [provider, _] = both_providers();
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("it has an address").port();
    std::thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            use std::io::{Read as _, Write as _};
            let _ = connection.read(&mut [0; 4096]);
            let _ = connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nhi!\n");
        }
    });
    let line = format!("curl --silent --max-time 60 http://127.0.0.1:{port}/ > answer");
    let server = provider.serve([bash_call(&line), text_reply("Fetched.")]);
    let home = super::new_home();
    home.write_file("config/cofferdam/policy.toml", "[commands.network]\nunlisted = \"ask\"\n");
    let size = super::WindowSize { rows: 40, columns: 160 };
    let mut chat = ChatTerminal::start_in(home, &server, &[], size);
    chat.send_line("Go.");
    chat.wait_for_question("curl");
    chat.send_line("1");
    let headline = format!("wants to connect to 127.0.0.1:{port} (this machine):");
    let seen = chat.terminal.wait_for_screen("the question about the host", |seen| {
        seen.contains(&headline) && seen.lines().last() == Some(">")
    });
    for part in [
        "1  yes, for this command",
        &format!(
            "2  yes, and don't ask again in this chat for connections of commands to \
                127.0.0.1:{port}"
        ),
        "3  no; the command goes on without the connection",
        &format!(
            "4  yes, always; adds `allow = [\"127.0.0.1:{port}\"]` under [commands.network] in"
        ),
        "Type 1, 2, 3 or 4, and Enter.",
    ] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    chat.send_line("4");
    chat.terminal.wait_for_visible("Fetched.");
    chat.wait_until_ready();
    assert!(chat.home.has_file("answer"));
    let home = chat.leave();
    let policy = std::fs::read_to_string(home.path().join("config/cofferdam/policy.toml"));
    assert_eq!(
        policy.expect("it is there"),
        format!("[commands.network]\nallow = [\"127.0.0.1:{port}\"]\nunlisted = \"ask\"\n")
    );
}
