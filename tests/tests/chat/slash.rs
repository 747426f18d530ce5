//! The commands that begin with a slash.

use cofferdam_tests::wire::{both, calls, says};
use serde_json::json;

use super::{Chat, ENTER, SHIFT_TAB, bash};

#[test]
fn r133_an_unknown_command_is_reported_and_never_sent() {
    for provider in both() {
        let server = provider.serve([says("Fine.")]);
        let mut chat = Chat::with(&server, &[]);
        assert!(chat.asks("/hel").contains("! there is no command /hel. Is it /help?"));
        assert!(chat.asks("/etc/passwd is odd").contains("there is no command /etc/passwd."));
        assert!(chat.asks("/quit now").contains("/quit takes nothing behind it"));
        assert!(server.requests().is_empty());
        chat.asks(" /etc/passwd is odd");
        assert_eq!(server.request().user_texts(), [" /etc/passwd is odd"]);
        chat.leaves();
    }
}

#[test]
fn help_names_every_command_and_tab_completes_it() {
    let [provider, _] = both();
    let server = provider.serve([]);
    let mut chat = Chat::with(&server, &[]);
    let help = chat.asks("/help");
    for name in ["/help", "/mode", "/model", "/tools", "/context", "/cost", "/compact", "/resume", "/clear", "/export", "/quit"] {
        assert!(help.contains(&format!("  {name} ")), "{name}: {help}");
    }
    chat.types("/cont\t");
    chat.is_ready_with("› /context");
    chat.types(ENTER);
    chat.terminal.wait_to_see_text("of system prompt and tools");
    chat.is_ready();
    chat.leaves();
}

#[test]
fn a_mode_that_is_chosen_decides_from_the_next_call_on() {
    for provider in both() {
        let server = provider.serve([
            bash("touch one"),
            says("Denied."),
            bash("touch two").when_released(),
            says("Asked."),
            bash("touch three"),
            says("Allowed."),
        ]);
        let mut chat = Chat::with(&server, &[]);
        assert!(chat.asks("/mode plan").contains("mode plan: commands and writes are denied"));
        assert!(chat.asks("One.").contains("Denied."));
        assert!(!chat.home.has("one"));
        // Shift-Tab while a request runs: plan, auto-edit, ask.
        chat.says("Two.");
        chat.is_running();
        for mode in ["auto-edit", "ask"] {
            chat.types(SHIFT_TAB);
            chat.terminal.wait_to_see_text(&format!("\n{mode} · "));
        }
        server.release();
        chat.is_asked("touch two");
        chat.says("1");
        chat.terminal.wait_to_see_text("Asked.");
        chat.is_ready();
        // And at the prompt, where it leaves alone what is typed; it never leads to auto.
        chat.types("typed");
        for mode in ["plan", "auto-edit", "ask", "plan"] {
            chat.types(SHIFT_TAB);
            chat.terminal.wait_to_see_text(&format!("\n{mode} · "));
            chat.is_ready_with("› typed");
        }
        chat.types("\u{3}");
        chat.is_ready();
        assert!(chat.asks("/mode auto").contains("without asking"));
        assert!(chat.asks("Three.").contains("Allowed."));
        assert!(chat.home.has("two") && chat.home.has("three"));
        assert!(chat.asks("/mode").contains("mode auto:"));
        assert!(chat.asks("/mode yolo").contains("'yolo' is not a mode"));
        chat.leaves();
    }
}

#[test]
fn the_audit_log_begins_in_the_mode_of_the_chat() {
    let [provider, _] = both();
    let server = provider.serve([says("A plan.")]);
    let mut chat = Chat::with(&server, &[]);
    chat.asks("/mode plan");
    chat.asks("Plan it.");
    let logs = std::fs::read_dir(chat.home.path().join("state/cofferdam/audit")).expect("there is a log").flatten();
    let first: Vec<String> = logs
        .filter_map(|log| std::fs::read_to_string(log.path()).ok())
        .filter_map(|log| log.lines().find(|line| line.contains("\"mode\"")).map(str::to_owned))
        .collect();
    assert!(matches!(&first[..], [begun] if begun.contains("\"mode\":\"plan\"")), "{first:?}");
    chat.leaves();
}

#[test]
fn another_model_answers_from_the_next_request_on() {
    let [provider, _] = both();
    let server = provider.serve([says("I am the first.")]);
    let mut chat = Chat::with(&server, &[]);
    chat.asks("Who?");
    let recording = "{\"cofferdam_recording\": 1, \"model\": \"second\"}\n{\"blocks\": [{\"text\": \"I am the second.\"}]}\n";
    chat.home.write("second.jsonl", recording);
    let path = chat.home.path().join("second.jsonl");
    assert!(chat.asks("/model anthropic:claude-sonnet-5-5").contains("belongs to openai"), "its key would go to a stranger");
    assert!(chat.asks("/model nonsense").contains("not the name of a model known here"));
    chat.says(&format!("/model replay:{}", path.display()));
    chat.terminal.wait_to_see_text("from now on: replay:second");
    assert!(chat.is_ready().contains("ask · second · "));
    let seen = chat.asks("And who now?");
    assert!(seen.contains("I am the second.") && seen.contains("cost unknown"), "{seen}");
    chat.leaves();
}

#[test]
fn r131_context_tokens_and_cost_can_be_had() {
    let [_, anthropic] = both();
    let server = anthropic.serve([says("Hello.").usage(Some((250_000, 1_000)))]);
    let mut chat = Chat::with(&server, &[]);
    assert!(chat.asks("/cost").contains("0 turns"));
    let seen = chat.asks("Hello?");
    assert!(seen.contains("ask · claude-sonnet-5-5 · context "), "{seen}");
    assert!(seen.contains("of 1M · 250k tokens in, 1k out · $0.5100"), "{seen}");
    chat.says("/cost");
    chat.terminal.wait_to_see_text("1 turn, 250000 tokens in");
    chat.is_ready();
    assert!(chat.asks("/tools").contains("read-only"));
    chat.leaves();
}

#[test]
fn resume_lists_sessions_and_goes_on_with_one() {
    for provider in both() {
        let server = provider.serve([says("Blue.")]);
        let mut chat = Chat::with(&server, &[]);
        assert!(chat.asks("/resume").contains("No session yet."));
        chat.asks("Which colour?");
        drop(server);

        let server = provider.serve([says("Two legs.")]);
        let mut chat = chat.then_with(&server, &[]);
        chat.asks("How many legs?");
        let list = chat.asks("/resume");
        let row = |words: &str| list.lines().rev().find(|line| line.ends_with(words)).expect("it is listed").to_owned();
        let id = row("Which colour?").split(' ').next().expect("a name").to_owned();
        let own = row("How many legs?").split(' ').next().expect("a name").to_owned();
        assert!(chat.asks("/resume ffffzz").contains("no session begins with"));
        assert!(chat.asks(&format!("/resume {own}")).contains("the session you are in"));
        drop(server);

        let server = provider.serve([says("Still blue.")]);
        let mut chat = chat.then_with(&server, &[]);
        let seen = chat.asks(&format!("/resume {}", &id[..8]));
        assert!(seen.contains("1 request") && seen.contains("> Which colour?") && seen.contains("Blue."), "{seen}");
        assert!(chat.asks("And now?").contains("Still blue."));
        assert_eq!(server.request().user_texts(), ["Which colour?", "And now?"]);
        assert_eq!(chat.journals().len(), 2);
        chat.leaves();
    }
}

#[test]
fn clear_begins_a_new_session_and_keeps_the_old_one() {
    let [provider, _] = both();
    let server = provider.serve([says("One.")]);
    let mut chat = Chat::with(&server, &[]);
    chat.asks("First.");
    assert!(chat.asks("/clear").contains("a new session begins; session "));
    assert_eq!(chat.journals().len(), 1);
    drop(server);

    let server = provider.serve([says("Two.")]);
    let mut chat = chat.then_with(&server, &["--continue"]);
    assert!(chat.asks("/clear").contains("a new session begins"));
    chat.asks("Second.");
    assert_eq!(server.request().user_texts(), ["Second."]);
    assert_eq!(chat.journals().len(), 2);
    chat.leaves();
}

#[test]
fn export_writes_the_conversation_and_overwrites_nothing() {
    let [provider, _] = both();
    let server = provider.serve([calls("list_dir", json!({})), says("There is nothing.")]);
    let mut chat = Chat::with(&server, &[]);
    assert!(chat.asks("/export").contains("nothing has been said yet"));
    chat.asks("What is there?");
    assert!(chat.asks("/export said.json").contains("written to said.json"));
    let said = std::fs::read_to_string(chat.home.workspace().join("said.json")).expect("it is there");
    let said: serde_json::Value = serde_json::from_str(&said).expect("it is JSON");
    let transcript: cofferdam::conversation::Transcript = serde_json::from_value(said["transcript"].clone()).expect("a transcript");
    assert_eq!(transcript.exchanges()[0].prompt(), "What is there?");
    chat.says("/export said.json");
    chat.terminal.wait_to_see_text("cannot write said.json");
    chat.is_ready();
    chat.leaves();
}

#[test]
fn r073_compact_puts_a_summary_in_place_of_what_was_said() {
    let [provider, _] = both();
    let server = provider.serve([]);
    let home = super::home();
    let (long, used) = ("long words ".repeat(800), json!({"input": 100, "output": 10}));
    let lines: Vec<String> =
        [&long, &long, "They spoke of words."].iter().map(|text| json!({"blocks": [{"text": text}], "usage": used}).to_string()).collect();
    home.write("recording.jsonl", format!("{{\"cofferdam_recording\": 1, \"model\": \"m\"}}\n{}\n", lines.join("\n")));
    let model = format!("replay:{}", home.path().join("recording.jsonl").display());
    let mut chat = Chat::at_home(home, &server, &[], cofferdam_tests::terminal::Window { rows: 40, columns: 100 });
    chat.says(&format!("/model {model}"));
    chat.terminal.wait_to_see_text("from now on: replay:m");
    chat.is_ready();
    assert!(chat.asks("/compact").contains("nothing yet that a summary could stand for"));
    for prompt in ["One.", "Two."] {
        chat.says(prompt);
        chat.terminal.wait_to_see("the answer", |seen| seen.contains("long words") && !super::is_running(seen));
        chat.is_ready();
    }
    chat.says("/compact");
    let seen = chat.terminal.wait_to_see_text("a summary now stands for ");
    assert!(!seen.contains("They spoke of words."), "{seen}");
    chat.is_ready();
    assert!(chat.journals().concat().contains("They spoke of words."));
    // it is paid for like the two answers.
    assert!(chat.asks("/cost").contains("3 turns, 300 tokens in"), "{}", chat.terminal.sees());
    chat.leaves();
}
