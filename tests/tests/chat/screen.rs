//! What is seen, in windows of several widths.

use cofferdam_tests::terminal::{TestTerminal, WindowSize};
use cofferdam_tests::wire::{StreamChunking, both_providers, call_reply, text_reply};
use serde_json::json;

use super::{ChatTerminal, ESC, new_home};

const TEXT: &str = "# Fares\n\nThe **fare** of a family is `sum(adults) + half` and never more \
    than that, whatever src/**/*.rs says about it.\n\n\
    - one point that is so long that it has to go on in a second row of the terminal, below its \
    words\n- 日本語\n\n\
    ```rust\nfn main() {}\n```\nDone.";

/// The rows between what was said and the line that tells how things are.
fn answer_rows(seen: &str) -> String {
    let after = seen.split("› Why?\n").nth(1).expect("it was said");
    after.split("\nask · ").next().unwrap_or_default().trim_end().to_owned()
}

/// A question and its answer, with colours.
fn start_with_colors(columns: u16) -> (TestTerminal, String) {
    let [provider, _] = both_providers();
    let home = new_home();
    let server = provider.serve([text_reply(TEXT).with_chunking(StreamChunking::PerByte)]);
    let mut command =
        home.command(&["chat", "--model", provider.model(), "--base-url", &server.base_url()]);
    command.env(provider.key_variable(), server.key()).env("CLICOLOR_FORCE", "1");
    let mut terminal =
        TestTerminal::start_with_size(&command, None, WindowSize { rows: 40, columns });
    terminal.wait_for_screen("a prompt", |seen| seen.lines().last() == Some("›"));
    terminal.type_keys("Why?\r");
    terminal.wait_for_screen("the answer", |seen| {
        seen.contains("Done.") && !super::is_running(seen) && seen.lines().last() == Some("›")
    });
    let seen = terminal.visible_text();
    (terminal, seen)
}

#[test]
fn at_80_columns() {
    insta::assert_snapshot!(answer_rows(&start_with_colors(80).1), @r"
    # Fares

    The **fare** of a family is `sum(adults) + half` and never more than that,
    whatever src/**/*.rs says about it.

    - one point that is so long that it has to go on in a second row of the
      terminal, below its words
    - 日本語

    ```rust
    fn main() {}
    ```
    Done.
    ");
}

#[test]
fn at_200_columns() {
    insta::assert_snapshot!(answer_rows(&start_with_colors(200).1), @"
    # Fares

    The **fare** of a family is `sum(adults) + half` and never more than that, \
    whatever src/**/*.rs says about it.

    - one point that is so long that it has to go on in a second row of the \
    terminal, below its words
    - 日本語

    ```rust
    fn main() {}
    ```
    Done.
    ");
}

#[test]
fn emphasis_is_seen() {
    let (terminal, _) = start_with_colors(80);
    let raw = terminal.raw_output();
    assert!(
        raw.contains("\u{1b}[1mfare\u{1b}[0m")
            && raw.contains("\u{1b}[36msum(adults) + half\u{1b}[0m"),
        "{raw:?}"
    );
}

#[test]
fn r130_without_colours_the_text_is_what_is_stored() {
    for provider in both_providers() {
        let server = provider.serve([text_reply(TEXT).with_chunking(StreamChunking::PerByte)]);
        let window = WindowSize { rows: 40, columns: 200 };
        let mut chat = ChatTerminal::start_in(new_home(), &server, &[], window);
        let seen = chat.ask("Why?");
        assert_eq!(answer_rows(&seen), TEXT);
        let journal = chat.read_journals().concat();
        assert!(journal.contains(&json!(TEXT).to_string()), "{journal}");
        chat.leave();
    }
}

#[test]
fn calls_are_shown_in_a_line_each_with_their_tier() {
    let [provider, _] = both_providers();
    let write = call_reply("write_file", json!({"path": "new.txt", "content": "new\n"}));
    let server = provider
        .serve([write.with_call("read_file", json!({"path": "there.txt"})), text_reply("Done.")]);
    let mut chat = ChatTerminal::start_in(
        new_home().with_file("there.txt", "there\n"),
        &server,
        &["--mode", "auto"],
        WindowSize { rows: 40, columns: 80 },
    );
    let seen = chat.ask("Go.");
    assert!(
        seen.contains("  ✓ write_file new.txt  write, ")
            && seen.contains("  ✓ read_file there.txt  read-only, "),
        "{seen}"
    );
    chat.leave();
}

#[test]
fn r042_nothing_that_a_model_says_moves_the_cursor() {
    let [provider, _] = both_providers();
    let server = provider.serve([text_reply("before\u{1b}[2J\u{1b}[H\rafter\u{202e}")]);
    let mut chat = ChatTerminal::start(&server, &[]);
    assert!(chat.ask("Why?").contains("before\\u{1b}[2J\\u{1b}[H\\u{d}after\\u{202e}"));
    chat.leave();
}

#[test]
fn a_window_that_changes_its_size_while_text_streams_costs_none_of_it() {
    let [provider, _] = both_providers();
    let words = "word ".repeat(60);
    let server = provider.serve([text_reply(&words).then_hanging(), text_reply("Here.")]);
    let mut chat =
        ChatTerminal::start_in(new_home(), &server, &[], WindowSize { rows: 40, columns: 100 });
    chat.send_line("Why?");
    chat.terminal
        .wait_for_screen("the text", |seen| seen.replace('\n', "").matches("word").count() >= 59);
    for columns in [60, 120] {
        chat.terminal.resize(WindowSize { rows: 40, columns });
        chat.type_keys("x");
        chat.terminal.wait_for_screen("what is typed", |seen| {
            seen.lines().last().is_some_and(|last| last.starts_with("› x"))
        });
    }
    chat.type_keys(ESC);
    chat.terminal.wait_for_visible("! stopped.");
    chat.wait_until_ready_with("› xx");
    let journal = chat.read_journals().concat();
    assert_eq!(journal.matches("word ").count(), 60, "{journal}");
    chat.type_keys(ESC);
    chat.wait_until_ready();
    assert!(chat.ask("Still there?").contains("Here."));
    chat.leave();
}

#[test]
fn what_the_program_says_breaks_between_words() {
    let [provider, _] = both_providers();
    let server = provider.serve([]);
    let mut chat =
        ChatTerminal::start_in(new_home(), &server, &[], WindowSize { rows: 40, columns: 60 });
    for (command, words) in [
        ("/context", "system prompt and tools, 0 conversation"),
        ("/cost", "in this session: 0 turns, tokens unknown, $0"),
        ("/nonsense", "/help lists"),
    ] {
        let seen = chat.ask(command);
        let said =
            seen.split(&format!("› {command}\n")).nth(1).expect("it was said").replace('\n', " ");
        assert!(said.contains(words), "{seen}");
    }
    chat.leave();
}

#[test]
fn a_picture_of_several_is_one_and_nothing_else_is_joined() {
    let [provider, _] = both_providers();
    let server = provider.serve([text_reply("A technician: 👩\u{200d}💻. No trick\u{200d}s.")
        .with_chunking(StreamChunking::PerByte)]);
    let mut chat = ChatTerminal::start(&server, &[]);
    chat.ask("Who?");
    let raw = chat.terminal.raw_output();
    assert!(raw.contains("👩\u{200d}💻") && raw.contains("trick\\u{200d}s"), "{raw:?}");
    chat.leave();
}
