//! What is typed while a request runs.

use cofferdam_tests::terminal::WindowSize;
use cofferdam_tests::wire::{both_providers, hanging_reply, text_reply};

use super::{ALT_ENTER, ChatTerminal, ENTER, ESC};

#[test]
fn r129_it_is_queued_where_it_can_be_seen_and_sent_in_its_turn() {
    for provider in both_providers() {
        let server = provider.serve([
            text_reply("One.").after_release(),
            text_reply("Two."),
            text_reply("Three."),
        ]);
        let mut chat = ChatTerminal::start(&server, &[]);
        chat.send_line("first");
        chat.wait_until_running();
        chat.type_keys(&format!("second{ALT_ENTER}line{ENTER}"));
        chat.type_keys(&format!("\u{1b}[200~third\rline\u{1b}[201~{ENTER}"));
        let seen = chat.terminal.wait_for_visible("next › third line");
        assert!(seen.contains("next › second line") && super::is_running(&seen), "{seen}");
        server.wait_for_requests(1);
        assert_eq!(server.requests().len(), 1);
        server.release();
        chat.terminal.wait_for_visible("Three.");
        let seen = chat.wait_until_ready();
        assert!(seen.contains("One.\n") && seen.contains("› second\n  line\nTwo."), "{seen}");
        assert_eq!(server.last_request().user_texts(), ["first", "second\nline", "third\nline"]);
        chat.leave();
    }
}

#[test]
fn r133_no_unknown_command_is_queued_and_a_known_one_is_done_in_its_turn() {
    let [provider, _] = both_providers();
    let server = provider.serve([text_reply("One.").after_release()]);
    let mut chat = ChatTerminal::start(&server, &[]);
    chat.send_line("first");
    chat.wait_until_running();
    chat.send_line("/nothing");
    chat.terminal.wait_for_visible("unknown command `/nothing`: nothing was sent.");
    // It stays where it can be mended.
    chat.send_line("\u{15}/mode plan");
    chat.terminal.wait_for_visible("next › /mode plan");
    server.release();
    chat.terminal.wait_for_visible("mode plan: commands and writes are denied");
    assert!(chat.wait_until_ready().contains("plan · "));
    chat.leave();
}

#[test]
fn r129_after_a_stop_what_was_queued_is_not_sent_by_itself() {
    let [provider, _] = both_providers();
    let server = provider.serve([hanging_reply()]);
    let mut chat = ChatTerminal::start(&server, &[]);
    chat.send_line("first");
    chat.wait_until_running();
    chat.send_line("second");
    chat.terminal.wait_for_visible("next › second");
    // It can be taken back, changed, and queued again.
    chat.type_keys("\u{1b}[A");
    chat.terminal.wait_for_screen("it in the line", |seen| seen.lines().last() == Some("› second"));
    chat.send_line(" thoughts");
    chat.terminal.wait_for_visible("next › second thoughts");
    chat.type_keys(ESC);
    chat.terminal.wait_for_visible("The queued prompts were not sent; they are in the input line.");
    chat.wait_until_ready_with("› second thoughts");
    chat.type_keys(ESC);
    chat.wait_until_ready();
    chat.leave();
}

#[test]
fn r129_after_a_stop_in_compact_what_was_queued_is_not_sent_by_itself() {
    let [provider, _] = both_providers();
    let server = provider.serve([
        text_reply(&"alpha words ".repeat(400)),
        text_reply(&"beta words ".repeat(400)),
        hanging_reply(),
    ]);
    let mut chat = ChatTerminal::start(&server, &[]);
    for (prompt, answer) in [("One.", "alpha words"), ("Two.", "beta words")] {
        chat.send_line(prompt);
        chat.terminal.wait_for_visible(answer);
        chat.wait_until_ready();
    }
    chat.send_line("/compact");
    server.wait_for_requests(3);
    chat.send_line("and then");
    chat.terminal.wait_for_visible("next › and then");
    chat.type_keys(ESC);
    chat.terminal.wait_for_visible("The queued prompts were not sent; they are in the input line.");
    chat.wait_until_ready_with("› and then");
    chat.type_keys(ESC);
    chat.wait_until_ready();
    chat.leave();
}

#[test]
fn r103_what_may_not_be_sent_without_a_record_is_given_back() {
    let [provider, _] = both_providers();
    let server = provider.serve([]);
    let home = super::new_home();
    home.write_file("config/cofferdam/config.toml", "[audit]\nrequired = true\n");
    home.write_file("state/cofferdam/audit", "no folder");
    let mut chat =
        ChatTerminal::start_in(home, &server, &[], WindowSize { rows: 40, columns: 100 });
    chat.send_line("Precious words.");
    chat.terminal.wait_for_visible("The prompt was not sent; it is in the input line.");
    chat.wait_until_ready_with("› Precious words.");
    chat.type_keys(ESC);
    chat.wait_until_ready();
    chat.leave();
}
