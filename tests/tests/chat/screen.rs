//! What is seen, in windows of several widths.

use cofferdam_tests::terminal::{Terminal, Window};
use cofferdam_tests::wire::{Cut, both, calls, says};
use serde_json::json;

use super::{Chat, ESC, home};

const TEXT: &str = "# Fares\n\nThe **fare** of a family is `sum(adults) + half` and never more than that, whatever src/**/*.rs says about it.\n\n\
    - one point that is so long that it has to go on in a second row of the terminal, below its words\n- 日本語\n\n\
    ```rust\nfn main() {}\n```\nDone.";

/// The rows between what was said and the line that tells how things are.
fn answer(seen: &str) -> String {
    let after = seen.split("› Why?\n").nth(1).expect("it was said");
    after.split("\nask · ").next().unwrap_or_default().trim_end().to_owned()
}

/// A question and its answer, with colours.
fn coloured(columns: u16) -> (Terminal, String) {
    let [provider, _] = both();
    let home = home();
    let server = provider.serve([says(TEXT).cut(Cut::Bytes)]);
    let mut command = home.command(&["chat", "--model", provider.model(), "--base-url", &server.base_url()]);
    command.env(provider.key_variable(), server.key()).env("CLICOLOR_FORCE", "1");
    let mut terminal = Terminal::open(&command, None, Window { rows: 40, columns });
    terminal.wait_to_see("a prompt", |seen| seen.lines().last() == Some("›"));
    terminal.types("Why?\r");
    terminal.wait_to_see("the answer", |seen| seen.contains("Done.") && !super::is_running(seen) && seen.lines().last() == Some("›"));
    let seen = terminal.sees();
    (terminal, seen)
}

#[test]
fn at_80_columns() {
    insta::assert_snapshot!(answer(&coloured(80).1), @r"
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
    insta::assert_snapshot!(answer(&coloured(200).1), @r"
    # Fares

    The **fare** of a family is `sum(adults) + half` and never more than that, whatever src/**/*.rs says about it.

    - one point that is so long that it has to go on in a second row of the terminal, below its words
    - 日本語

    ```rust
    fn main() {}
    ```
    Done.
    ");
}

#[test]
fn emphasis_is_seen() {
    let (terminal, _) = coloured(80);
    let raw = terminal.screen();
    assert!(raw.contains("\u{1b}[1mfare\u{1b}[0m") && raw.contains("\u{1b}[36msum(adults) + half\u{1b}[0m"), "{raw:?}");
}

#[test]
fn r130_without_colours_the_text_is_what_is_stored() {
    for provider in both() {
        let server = provider.serve([says(TEXT).cut(Cut::Bytes)]);
        let window = Window { rows: 40, columns: 200 };
        let mut chat = Chat::at_home(home(), &server, &[], window);
        let seen = chat.asks("Why?");
        assert_eq!(answer(&seen), TEXT);
        let journal = chat.journals().concat();
        assert!(journal.contains(&json!(TEXT).to_string()), "{journal}");
        chat.leaves();
    }
}

#[test]
fn calls_are_shown_in_a_line_each_with_their_tier() {
    let [provider, _] = both();
    let write = calls("write_file", json!({"path": "new.txt", "content": "new\n"}));
    let server = provider.serve([write.call("read_file", json!({"path": "there.txt"})), says("Done.")]);
    let mut chat = Chat::at_home(home().with("there.txt", "there\n"), &server, &["--mode", "auto"], Window { rows: 40, columns: 80 });
    let seen = chat.asks("Go.");
    assert!(seen.contains("  ✓ write_file new.txt  write, ") && seen.contains("  ✓ read_file there.txt  read-only, "), "{seen}");
    chat.leaves();
}

#[test]
fn r042_nothing_that_a_model_says_moves_the_cursor() {
    let [provider, _] = both();
    let server = provider.serve([says("before\u{1b}[2J\u{1b}[H\rafter\u{202e}")]);
    let mut chat = Chat::with(&server, &[]);
    assert!(chat.asks("Why?").contains("before\\u{1b}[2J\\u{1b}[H\\u{d}after\\u{202e}"));
    chat.leaves();
}

#[test]
fn a_window_that_changes_its_size_while_text_streams_costs_none_of_it() {
    let [provider, _] = both();
    let words = "word ".repeat(60);
    let server = provider.serve([says(&words).then_hangs(), says("Here.")]);
    let mut chat = Chat::at_home(home(), &server, &[], Window { rows: 40, columns: 100 });
    chat.says("Why?");
    chat.terminal.wait_to_see("the text", |seen| seen.replace('\n', "").matches("word").count() >= 59);
    for columns in [60, 120] {
        chat.terminal.resize(Window { rows: 40, columns });
        chat.types("x");
        chat.terminal.wait_to_see("what is typed", |seen| seen.lines().last().is_some_and(|last| last.starts_with("› x")));
    }
    chat.types(ESC);
    chat.terminal.wait_to_see_text("! stopped.");
    chat.is_ready_with("› xx");
    let journal = chat.journals().concat();
    assert_eq!(journal.matches("word ").count(), 60, "{journal}");
    chat.types(ESC);
    chat.is_ready();
    assert!(chat.asks("Still there?").contains("Here."));
    chat.leaves();
}

#[test]
fn what_the_program_says_breaks_between_words() {
    let [provider, _] = both();
    let server = provider.serve([]);
    let mut chat = Chat::at_home(home(), &server, &[], Window { rows: 40, columns: 60 });
    for (command, words) in [
        ("/context", "of system prompt and tools, 0 of conversation"),
        ("/cost", "in this session: 0 turns, tokens unknown, $0"),
        ("/nonsense", "/help lists"),
    ] {
        let seen = chat.asks(command);
        let said = seen.split(&format!("› {command}\n")).nth(1).expect("it was said").replace('\n', " ");
        assert!(said.contains(words), "{seen}");
    }
    chat.leaves();
}

#[test]
fn a_picture_of_several_is_one_and_nothing_else_is_joined() {
    let [provider, _] = both();
    let server = provider.serve([says("A technician: 👩\u{200d}💻. No trick\u{200d}s.").cut(Cut::Bytes)]);
    let mut chat = Chat::with(&server, &[]);
    chat.asks("Who?");
    let raw = chat.terminal.screen();
    assert!(raw.contains("👩\u{200d}💻") && raw.contains("trick\\u{200d}s"), "{raw:?}");
    chat.leaves();
}
