//! What is typed while a request runs.

use cofferdam_tests::terminal::Window;
use cofferdam_tests::wire::{both, hangs, says};

use super::{ALT_ENTER, Chat, ENTER, ESC};

#[test]
fn r129_it_is_queued_where_it_can_be_seen_and_sent_in_its_turn() {
    for provider in both() {
        let server = provider.serve([says("One.").when_released(), says("Two."), says("Three.")]);
        let mut chat = Chat::with(&server, &[]);
        chat.says("first");
        chat.is_running();
        chat.types(&format!("second{ALT_ENTER}line{ENTER}"));
        chat.types(&format!("\u{1b}[200~third\rline\u{1b}[201~{ENTER}"));
        let seen = chat.terminal.wait_to_see_text("next › third line");
        assert!(seen.contains("next › second line") && super::is_running(&seen), "{seen}");
        assert_eq!(server.requests().len(), 1);
        server.release();
        chat.terminal.wait_to_see_text("Three.");
        let seen = chat.is_ready();
        assert!(seen.contains("One.\n") && seen.contains("› second\n  line\nTwo."), "{seen}");
        assert_eq!(server.last_request().user_texts(), ["first", "second\nline", "third\nline"]);
        chat.leaves();
    }
}

#[test]
fn r133_no_unknown_command_is_queued_and_a_known_one_is_done_in_its_turn() {
    let [provider, _] = both();
    let server = provider.serve([says("One.").when_released()]);
    let mut chat = Chat::with(&server, &[]);
    chat.says("first");
    chat.is_running();
    chat.says("/nothing");
    chat.terminal.wait_to_see_text("there is no command /nothing.");
    // It stays where it can be mended.
    chat.says("\u{15}/mode plan");
    chat.terminal.wait_to_see_text("next › /mode plan");
    server.release();
    chat.terminal.wait_to_see_text("mode plan: commands and writes are denied");
    assert!(chat.is_ready().contains("plan · "));
    chat.leaves();
}

#[test]
fn r129_after_a_stop_what_was_queued_is_not_sent_by_itself() {
    let [provider, _] = both();
    let server = provider.serve([hangs()]);
    let mut chat = Chat::with(&server, &[]);
    chat.says("first");
    chat.is_running();
    chat.says("second");
    chat.terminal.wait_to_see_text("next › second");
    // It can be taken back, changed, and queued again.
    chat.types("\u{1b}[A");
    chat.terminal.wait_to_see("it in the line", |seen| seen.lines().last() == Some("› second"));
    chat.says(" thoughts");
    chat.terminal.wait_to_see_text("next › second thoughts");
    chat.types(ESC);
    chat.terminal.wait_to_see_text("What was queued was not sent; it is below.");
    chat.is_ready_with("› second thoughts");
    chat.types(ESC);
    chat.is_ready();
    chat.leaves();
}

#[test]
fn r129_after_a_stop_in_compact_what_was_queued_is_not_sent_by_itself() {
    let [provider, _] = both();
    let server = provider.serve([says(&"alpha words ".repeat(400)), says(&"beta words ".repeat(400)), hangs()]);
    let mut chat = Chat::with(&server, &[]);
    for (prompt, answer) in [("One.", "alpha words"), ("Two.", "beta words")] {
        chat.says(prompt);
        chat.terminal.wait_to_see_text(answer);
        chat.is_ready();
    }
    chat.says("/compact");
    server.wait_for_requests(3);
    chat.says("and then");
    chat.terminal.wait_to_see_text("next › and then");
    chat.types(ESC);
    chat.terminal.wait_to_see_text("What was queued was not sent; it is below.");
    chat.is_ready_with("› and then");
    chat.types(ESC);
    chat.is_ready();
    chat.leaves();
}

#[test]
fn r103_what_may_not_be_sent_without_a_record_is_given_back() {
    let [provider, _] = both();
    let server = provider.serve([]);
    let home = super::home();
    home.write("config/cofferdam/config.toml", "[audit]\nrequired = true\n");
    home.write("state/cofferdam/audit", "no folder");
    let mut chat = Chat::at_home(home, &server, &[], Window { rows: 40, columns: 100 });
    chat.says("Precious words.");
    chat.terminal.wait_to_see_text("It was not sent; it is below.");
    chat.is_ready_with("› Precious words.");
    chat.types(ESC);
    chat.is_ready();
    chat.leaves();
}
