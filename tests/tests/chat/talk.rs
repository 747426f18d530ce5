//! Saying things and being answered.

use std::os::unix::fs::PermissionsExt as _;

use cofferdam_tests::program::Home;
use cofferdam_tests::terminal::{Terminal, Window};
use cofferdam_tests::wire::{both, calls, fails, nothing, says};
use serde_json::json;

use super::{ALT_ENTER, Chat, ENTER, PROGRAM, bash, home, journals};

#[test]
fn r010_two_prompts_are_one_conversation_and_one_session() {
    for provider in both() {
        let server = provider.serve([says("It is **red**."), says("Because of the iron.")]);
        let mut chat = Chat::with(&server, &[]);
        assert!(chat.journals().is_empty(), "a session begins with its first words");
        assert!(chat.asks("Which colour?").contains("› Which colour?\nIt is **red**."));
        let seen = chat.asks("Why?");
        assert!(seen.contains("Because of the iron.") && seen.contains("tokens in"), "{seen}");
        assert_eq!(server.last_request().user_texts(), ["Which colour?", "Why?"]);
        let [journal] = chat.journals().try_into().expect("one session");
        assert_eq!(journal.matches("{\"request\":").count(), 2);
        chat.leaves();
    }
}

#[test]
fn a_prompt_can_have_many_lines() {
    let [provider, _] = both();
    let server = provider.serve([says("One."), says("Two."), says("Three.")]);
    let mut chat = Chat::with(&server, &[]);
    chat.types(&format!("first{ALT_ENTER}second"));
    chat.is_ready_with("  second");
    chat.types(ENTER);
    chat.terminal.wait_to_see_text("One.");
    chat.is_ready();
    chat.types(&format!("third\\{ENTER}fourth"));
    chat.is_ready_with("  fourth");
    chat.types(ENTER);
    chat.terminal.wait_to_see_text("Two.");
    chat.is_ready();
    // Pasted, a line break sends nothing and a backslash stays.
    chat.types("\u{1b}[200~cargo \\\r  test\u{1b}[201~");
    chat.is_ready_with("    test");
    assert_eq!(server.requests().len(), 2);
    chat.types(ENTER);
    chat.terminal.wait_to_see_text("Three.");
    chat.is_ready();
    assert_eq!(server.last_request().user_texts(), ["first\nsecond", "third\nfourth", "cargo \\\n  test"]);
    chat.leaves();
}

#[test]
fn a_session_is_gone_on_with_by_its_name() {
    let [provider, _] = both();
    let server = provider.serve([says("One."), says("Two.")]);
    let mut chat = Chat::with(&server, &[]);
    chat.asks("first");
    let home = chat.leaves();
    let list = home.run(&["sessions", "list", "--json"]);
    let sessions: serde_json::Value = serde_json::from_str(&list.stdout).expect("it is JSON");
    let id = sessions["sessions"][0]["id"].as_str().expect("it has a name");
    let (model, address) = (server.provider().model(), server.base_url());
    let mut command = home.command(&["sessions", "resume", &id[..6], "--model", model, "--base-url", &address]);
    command.env(server.provider().key_variable(), server.key()).env("NO_COLOR", "1");
    let terminal = Terminal::open(&command, None, Window { rows: 40, columns: 100 });
    let mut chat = Chat { home, terminal };
    chat.is_ready();
    assert!(chat.asks("second").contains("Two."));
    assert_eq!(server.last_request().user_texts(), ["first", "second"]);
    assert_eq!(chat.journals().len(), 1);
    chat.leaves();
}

#[test]
fn r035_what_the_policy_hides_is_hidden_in_a_conversation_too() {
    for provider in both() {
        let reads = |path: &str| calls("read_file", json!({"path": path}));
        let server = provider.serve([reads("secret/plan.txt"), reads("notes.sqlite"), says("I cannot.")]);
        let home = home().with("secret/plan.txt", "the zirconium").with("notes.sqlite", "the cadmium");
        home.write("config/cofferdam/policy.toml", "[read]\ndeny = [\"secret\"]\n[protected]\nhidden = [\"*.sqlite\"]\n");
        let mut chat = Chat::at_home(home, &server, &[], Window { rows: 40, columns: 100 });
        assert!(chat.asks("Read them.").contains("I cannot."));
        let request = server.last_request();
        // The model is told by whose word, as `policy explain` tells the user.
        assert!(request.count("policy.toml:2:9") == 1 && request.count("policy.toml:4:11") == 1, "{request:?}");
        assert_eq!(request.count("the zirconium") + request.count("the cadmium"), 0, "{request:?}");
        chat.leaves();
    }
}

#[test]
fn r099_each_outcome_is_told_and_the_chat_goes_on() {
    for provider in both() {
        let outcomes = [
            (vec![nothing(), nothing()], "! the model gave no answer, twice in a row.", "empty"),
            (vec![fails(400, "invalid_request_error", "no such thing")], "! the model did not answer:", "provider-error"),
            (vec![bash("true"), says("I stop here.")], "! stopped after 1 turn with calls.", "limit"),
        ];
        for (replies, words, outcome) in outcomes {
            let server = provider.serve(replies);
            let mut chat = Chat::with(&server, &["--mode", "auto", "--max-tool-iterations", "1"]);
            assert!(chat.asks("Go.").contains(words), "{}", chat.terminal.sees());
            assert!(chat.asks("/cost").contains("in this session: "));
            let journal = chat.journals().concat();
            assert!(journal.contains(&format!("\"kind\":\"{outcome}\"")), "{journal}");
            chat.leaves();
        }
    }
}

/// What is kept for the arrow keys.
fn prompts(home: &Home) -> String {
    std::fs::read_to_string(home.path().join("state/cofferdam/prompts.jsonl")).unwrap_or_default()
}

#[test]
fn r114_what_was_typed_in_a_session_goes_with_it() {
    let [provider, _] = both();
    let (first, second) = (provider.serve([says("One.")]), provider.serve([says("Two.")]));
    let mut chat = Chat::with(&first, &[]);
    chat.asks("my password is hunter2");
    let mut chat = chat.then_with(&second, &[]);
    chat.asks("keep me");
    let home = chat.leaves();
    let list = home.run(&["sessions", "list", "--json"]);
    let sessions: serde_json::Value = serde_json::from_str(&list.stdout).expect("it is JSON");
    let id = sessions["sessions"][1]["id"].as_str().expect("it has a name");
    assert!(prompts(&home).contains("hunter2"));
    assert_eq!(home.run(&["sessions", "delete", id, "--yes"]).code, 0);
    let left = prompts(&home);
    assert!(!left.contains("hunter2") && left.contains("keep me"), "{left}");
}

#[test]
fn a_session_goes_on_where_it_was_held_and_a_move_is_told_before_anything_is_sent() {
    let [provider, _] = both();
    let (first, second) = (provider.serve([says("One."), says("Two."), says("Three.")]), provider.serve([says("Four.")]));
    let mut chat = Chat::with(&first, &[]);
    // The address is in sight from the start.
    assert!(chat.terminal.sees().replace('\n', "").contains(&first.base_url()), "{}", chat.terminal.sees());
    chat.asks("first");
    let home = chat.leaves();
    let again = |home: Home, args: &[&str]| {
        let mut command = home.command(args);
        command.env(provider.key_variable(), first.key()).env("NO_COLOR", "1");
        let terminal = Terminal::open(&command, None, Window { rows: 40, columns: 100 });
        let chat = Chat { home, terminal };
        chat.is_ready();
        chat
    };
    let mut chat = again(home, &["chat", "--continue"]);
    assert!(!chat.terminal.sees().contains("This session was held with"), "{}", chat.terminal.sees());
    assert!(chat.asks("second").contains("Two."));
    let home = chat.leaves();
    // A whole request does the same.
    let mut command = home.command(&["run", "--continue", "third"]);
    command.env(provider.key_variable(), first.key()).env("COFFERDAM_MODEL", "openai:another");
    let ran = home.start(command).wait();
    assert!(ran.code == 0 && ran.stdout == "Three.\n" && !ran.stderr.contains("warning"), "{ran:?}");
    assert!(ran.stderr.contains(&format!("the session goes on with {}, as before.", provider.model())), "{ran:?}");
    assert_eq!(first.last_request().user_texts(), ["first", "second", "third"]);

    let mut chat = again(home, &["chat", "--continue", "--model", provider.model(), "--base-url", &second.base_url()]);
    let seen = chat.terminal.sees().replace('\n', " ");
    assert!(seen.contains("This session was held with"), "{seen}");
    assert!(seen.contains(&first.base_url()) && seen.matches(&second.base_url()).count() == 2, "{seen}");
    assert!(second.requests().is_empty());
    assert!(chat.asks("fourth").contains("Four."));
    chat.leaves();
}

#[test]
fn r114_lines_are_remembered_for_their_user_alone_and_without_keys() {
    let [provider, _] = both();
    let server = provider.serve([says("One."), says("Two."), says("Three.")]);
    let mut chat = Chat::with(&server, &[]);
    chat.asks("remember me");
    let key = server.key().to_owned();
    chat.asks("/cost");
    // A model is never sent a key knowingly; here it is the user who does it, under the name of a command.
    chat.asks(&format!("/mode {key}"));
    let path = chat.home.path().join("state/cofferdam/prompts.jsonl");
    let text = std::fs::read_to_string(&path).expect("it is there");
    assert!(text.contains("remember me") && text.contains("[key redacted]") && !text.contains(&key), "{text}");
    assert_eq!(std::fs::metadata(path).expect("there").permissions().mode() & 0o777, 0o600);
    let mut chat = chat.then_with(&server, &[]);
    chat.types("\u{1b}[A\u{1b}[A\u{1b}[A");
    chat.terminal.wait_to_see_text("› /cost");
    chat.types("\u{1b}[A");
    chat.is_ready_with("› remember me");
    chat.types(ENTER);
    chat.terminal.wait_to_see_text("Two.");
    chat.is_ready();
    chat.asks("again");
    chat.leaves();
}

#[test]
fn without_a_command_a_terminal_gets_a_chat_and_a_pipe_gets_help() {
    let home = home();
    let ran = home.run(&[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
    assert!(ran.stderr.contains("Usage: cofferdam") && ran.stderr.contains("doctor"), "{ran:?}");

    let [provider, _] = both();
    let server = provider.serve([says("Hello.")]);
    let mut command = home.command(&[]);
    command.env(server.provider().key_variable(), server.key());
    command.env("COFFERDAM_MODEL", provider.model()).env("COFFERDAM_BASE_URL", server.base_url()).env("NO_COLOR", "1");
    let terminal = Terminal::open(&command, None, Window { rows: 24, columns: 80 });
    let mut chat = Chat { home, terminal };
    chat.is_ready();
    chat.asks("Hello?");
    let home = chat.leaves();
    assert_eq!(journals(&home).len(), 1);
    assert!(!PROGRAM.is_empty());
}

#[test]
fn without_a_session_nothing_is_kept() {
    let [provider, _] = both();
    let server = provider.serve([says("Hello.")]);
    let mut chat = Chat::with(&server, &["--no-session"]);
    chat.asks("Hello?");
    assert!(chat.asks("/export said.json").contains("written to said.json"));
    let home = chat.leaves();
    assert!(journals(&home).is_empty());
    assert!(!prompts(&home).contains("Hello?"), "nor for the arrow keys");
    let said = std::fs::read_to_string(home.workspace().join("said.json")).expect("it is there");
    assert!(said.contains("Hello?") && said.contains("Hello."), "{said}");
}
