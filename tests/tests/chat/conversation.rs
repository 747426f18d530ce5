//! Saying things and being answered.

use std::os::unix::fs::PermissionsExt as _;

use cofferdam_tests::program::TestHome;
use cofferdam_tests::terminal::{TestTerminal, WindowSize};
use cofferdam_tests::wire::{both_providers, call_reply, empty_reply, error_reply, text_reply};
use serde_json::json;

use super::{ALT_ENTER, ChatTerminal, ENTER, PROGRAM, bash_call, journals, new_home};

#[test]
fn r010_two_prompts_are_one_conversation_and_one_session() {
    for provider in both_providers() {
        let server =
            provider.serve([text_reply("It is **red**."), text_reply("Because of the iron.")]);
        let mut chat = ChatTerminal::start(&server, &[]);
        assert!(chat.read_journals().is_empty(), "a session begins with its first words");
        assert!(chat.ask("Which colour?").contains("› Which colour?\nIt is **red**."));
        let seen = chat.ask("Why?");
        assert!(seen.contains("Because of the iron.") && seen.contains("tokens in"), "{seen}");
        assert_eq!(server.last_request().user_texts(), ["Which colour?", "Why?"]);
        let [journal] = chat.read_journals().try_into().expect("one session");
        assert_eq!(journal.matches("{\"request\":").count(), 2);
        chat.leave();
    }
}

#[test]
fn a_prompt_can_have_many_lines() {
    let [provider, _] = both_providers();
    let server = provider.serve([text_reply("One."), text_reply("Two."), text_reply("Three.")]);
    let mut chat = ChatTerminal::start(&server, &[]);
    chat.type_keys(&format!("first{ALT_ENTER}second"));
    chat.wait_until_ready_with("  second");
    chat.type_keys(ENTER);
    chat.terminal.wait_for_visible("One.");
    chat.wait_until_ready();
    chat.type_keys(&format!("third\\{ENTER}fourth"));
    chat.wait_until_ready_with("  fourth");
    chat.type_keys(ENTER);
    chat.terminal.wait_for_visible("Two.");
    chat.wait_until_ready();
    // Pasted, a line break sends nothing and a backslash stays.
    chat.type_keys("\u{1b}[200~cargo \\\r  test\u{1b}[201~");
    chat.wait_until_ready_with("    test");
    assert_eq!(server.requests().len(), 2);
    chat.type_keys(ENTER);
    chat.terminal.wait_for_visible("Three.");
    chat.wait_until_ready();
    assert_eq!(
        server.last_request().user_texts(),
        ["first\nsecond", "third\nfourth", "cargo \\\n  test"]
    );
    chat.leave();
}

#[test]
fn a_session_is_gone_on_with_by_its_name() {
    let [provider, _] = both_providers();
    let server = provider.serve([text_reply("One."), text_reply("Two.")]);
    let mut chat = ChatTerminal::start(&server, &[]);
    chat.ask("first");
    let home = chat.leave();
    let list = home.run(&["sessions", "list", "--json"]);
    let sessions: serde_json::Value = serde_json::from_str(&list.stdout).expect("it is JSON");
    let id = sessions["sessions"][0]["id"].as_str().expect("it has a name");
    let (model, address) = (server.provider().model(), server.base_url());
    let mut command =
        home.command(&["sessions", "resume", &id[..6], "--model", model, "--base-url", &address]);
    command.env(server.provider().key_variable(), server.key()).env("NO_COLOR", "1");
    let terminal =
        TestTerminal::start_with_size(&command, None, WindowSize { rows: 40, columns: 100 });
    let mut chat = ChatTerminal { home, terminal };
    chat.wait_until_ready();
    assert!(chat.ask("second").contains("Two."));
    assert_eq!(server.last_request().user_texts(), ["first", "second"]);
    assert_eq!(chat.read_journals().len(), 1);
    chat.leave();
}

#[test]
fn r035_what_the_policy_hides_is_hidden_in_a_conversation_too() {
    for provider in both_providers() {
        let reads = |path: &str| call_reply("read_file", json!({"path": path}));
        let server = provider.serve([
            reads("secret/plan.txt"),
            reads("notes.sqlite"),
            text_reply("I cannot."),
        ]);
        let home = new_home()
            .with_file("secret/plan.txt", "the zirconium")
            .with_file("notes.sqlite", "the cadmium");
        home.write_file(
            "config/cofferdam/policy.toml",
            "[read]\ndeny = [\"secret\"]\n[protected]\nhidden = [\"*.sqlite\"]\n",
        );
        let mut chat =
            ChatTerminal::start_in(home, &server, &[], WindowSize { rows: 40, columns: 100 });
        assert!(chat.ask("Read them.").contains("I cannot."));
        let request = server.last_request();
        // The model is told by whose word, as `policy explain` tells the user.
        assert!(
            request.count_occurrences("policy.toml:2:9") == 1
                && request.count_occurrences("policy.toml:4:11") == 1,
            "{request:?}"
        );
        assert_eq!(
            request.count_occurrences("the zirconium") + request.count_occurrences("the cadmium"),
            0,
            "{request:?}"
        );
        chat.leave();
    }
}

#[test]
fn r099_each_outcome_is_told_and_the_chat_goes_on() {
    for provider in both_providers() {
        let outcomes = [
            (
                vec![empty_reply(), empty_reply()],
                "! the model gave two empty answers in a row.",
                "empty",
            ),
            (
                vec![error_reply(400, "invalid_request_error", "no such thing")],
                "! the model did not answer:",
                "provider-error",
            ),
            (
                vec![bash_call("true"), text_reply("I stop here.")],
                "! stopped at the limit of 1 turn with tool calls.",
                "limit",
            ),
        ];
        for (replies, words, outcome) in outcomes {
            let server = provider.serve(replies);
            let mut chat =
                ChatTerminal::start(&server, &["--mode", "auto", "--max-tool-iterations", "1"]);
            assert!(chat.ask("Go.").contains(words), "{}", chat.terminal.visible_text());
            assert!(chat.ask("/cost").contains("in this session: "));
            let journal = chat.read_journals().concat();
            assert!(journal.contains(&format!("\"kind\":\"{outcome}\"")), "{journal}");
            chat.leave();
        }
    }
}

#[test]
fn a_diff_shows_what_changed_since_the_chat_began() {
    let [provider, _] = both_providers();
    let server = provider.serve([bash_call("echo hello > made"), text_reply("It is made.")]);
    let mut chat = ChatTerminal::start(&server, &["--mode", "auto"]);
    chat.ask("Make it.");
    let seen = chat.ask("/diff");
    for expected in ["bash  made", "create made (6 bytes)", "+++ b/made", "+hello"] {
        assert!(seen.contains(expected), "{expected}: {seen}");
    }
    chat.leave();
}

/// What is kept for the arrow keys.
fn prompt_history(home: &TestHome) -> String {
    std::fs::read_to_string(home.path().join("state/cofferdam/prompts.jsonl")).unwrap_or_default()
}

#[test]
fn r114_what_was_typed_in_a_session_goes_with_it() {
    let [provider, _] = both_providers();
    let (first, second) =
        (provider.serve([text_reply("One.")]), provider.serve([text_reply("Two.")]));
    let mut chat = ChatTerminal::start(&first, &[]);
    chat.ask("my password is hunter2");
    let mut chat = chat.restart(&second, &[]);
    chat.ask("keep me");
    let home = chat.leave();
    let list = home.run(&["sessions", "list", "--json"]);
    let sessions: serde_json::Value = serde_json::from_str(&list.stdout).expect("it is JSON");
    let id = sessions["sessions"][1]["id"].as_str().expect("it has a name");
    assert!(prompt_history(&home).contains("hunter2"));
    assert_eq!(home.run(&["sessions", "delete", id, "--yes"]).exit_code, 0);
    let left = prompt_history(&home);
    assert!(!left.contains("hunter2") && left.contains("keep me"), "{left}");
}

#[test]
fn a_session_goes_on_where_it_was_held_and_a_move_is_told_before_anything_is_sent() {
    let [provider, _] = both_providers();
    let (first, second) = (
        provider.serve([text_reply("One."), text_reply("Two."), text_reply("Three.")]),
        provider.serve([text_reply("Four.")]),
    );
    let mut chat = ChatTerminal::start(&first, &[]);
    // The address is in sight from the start.
    assert!(
        chat.terminal.visible_text().replace('\n', "").contains(&first.base_url()),
        "{}",
        chat.terminal.visible_text()
    );
    chat.ask("first");
    let home = chat.leave();
    let again = |home: TestHome, args: &[&str]| {
        let mut command = home.command(args);
        command.env(provider.key_variable(), first.key()).env("NO_COLOR", "1");
        let terminal =
            TestTerminal::start_with_size(&command, None, WindowSize { rows: 40, columns: 100 });
        let chat = ChatTerminal { home, terminal };
        chat.wait_until_ready();
        chat
    };
    let mut chat = again(home, &["chat", "--continue"]);
    assert!(
        !chat.terminal.visible_text().contains("this session used"),
        "{}",
        chat.terminal.visible_text()
    );
    assert!(chat.ask("second").contains("Two."));
    let home = chat.leave();
    // A whole request does the same.
    let mut command = home.command(&["run", "--continue", "third"]);
    command.env(provider.key_variable(), first.key()).env("COFFERDAM_MODEL", "openai:another");
    let ran = home.start(command).wait_for_exit();
    assert!(
        ran.exit_code == 0 && ran.stdout == "Three.\n" && !ran.stderr.contains("warning"),
        "{ran:?}"
    );
    assert!(
        ran.stderr
            .contains(&format!("this session continues with {}, as before;", provider.model())),
        "{ran:?}"
    );
    assert_eq!(first.last_request().user_texts(), ["first", "second", "third"]);

    let mut chat = again(
        home,
        &["chat", "--continue", "--model", provider.model(), "--base-url", &second.base_url()],
    );
    let seen = chat.terminal.visible_text().replace('\n', " ");
    assert!(seen.contains("this session used"), "{seen}");
    assert!(
        seen.contains(&first.base_url()) && seen.matches(&second.base_url()).count() == 2,
        "{seen}"
    );
    assert!(second.requests().is_empty());
    assert!(chat.ask("fourth").contains("Four."));
    chat.leave();
}

#[test]
fn r114_lines_are_remembered_for_their_user_alone_and_without_keys() {
    let [provider, _] = both_providers();
    let server = provider.serve([text_reply("One."), text_reply("Two."), text_reply("Three.")]);
    let mut chat = ChatTerminal::start(&server, &[]);
    chat.ask("remember me");
    let key = server.key().to_owned();
    chat.ask("/cost");
    // A model is never sent a key knowingly; here it is the user who does it, under the name of a
    // command.
    chat.ask(&format!("/mode {key}"));
    let path = chat.home.path().join("state/cofferdam/prompts.jsonl");
    let text = std::fs::read_to_string(&path).expect("it is there");
    assert!(
        text.contains("remember me") && text.contains("[key redacted]") && !text.contains(&key),
        "{text}"
    );
    assert_eq!(std::fs::metadata(path).expect("there").permissions().mode() & 0o777, 0o600);
    let mut chat = chat.restart(&server, &[]);
    chat.type_keys("\u{1b}[A\u{1b}[A\u{1b}[A");
    chat.terminal.wait_for_visible("› /cost");
    chat.type_keys("\u{1b}[A");
    chat.wait_until_ready_with("› remember me");
    chat.type_keys(ENTER);
    chat.terminal.wait_for_visible("Two.");
    chat.wait_until_ready();
    chat.ask("again");
    chat.leave();
}

#[test]
fn without_a_command_a_terminal_gets_a_chat_and_a_pipe_gets_help() {
    let home = new_home();
    let ran = home.run(&[]);
    assert_eq!((ran.exit_code, ran.stdout.as_str()), (2, ""), "{ran:?}");
    assert!(ran.stderr.contains("Usage: cofferdam") && ran.stderr.contains("doctor"), "{ran:?}");

    let [provider, _] = both_providers();
    let server = provider.serve([text_reply("Hello.")]);
    let mut command = home.command(&[]);
    command.env(server.provider().key_variable(), server.key());
    command
        .env("COFFERDAM_MODEL", provider.model())
        .env("COFFERDAM_BASE_URL", server.base_url())
        .env("NO_COLOR", "1");
    let terminal =
        TestTerminal::start_with_size(&command, None, WindowSize { rows: 24, columns: 80 });
    let mut chat = ChatTerminal { home, terminal };
    chat.wait_until_ready();
    chat.ask("Hello?");
    let home = chat.leave();
    assert_eq!(journals(&home).len(), 1);
    assert!(!PROGRAM.is_empty());
}

#[test]
fn without_a_session_nothing_is_kept() {
    let [provider, _] = both_providers();
    let server = provider.serve([text_reply("Hello.")]);
    let mut chat = ChatTerminal::start(&server, &["--no-session"]);
    chat.ask("Hello?");
    assert!(chat.ask("/export said.json").contains("wrote said.json"));
    let home = chat.leave();
    assert!(journals(&home).is_empty());
    assert!(!prompt_history(&home).contains("Hello?"), "nor for the arrow keys");
    let said = std::fs::read_to_string(home.workspace().join("said.json")).expect("it is there");
    assert!(said.contains("Hello?") && said.contains("Hello."), "{said}");
}
