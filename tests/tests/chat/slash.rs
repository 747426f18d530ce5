//! The commands that begin with a slash.

use cofferdam_tests::wire::{both_providers, call_reply, text_reply};
use serde_json::json;

use super::{ChatTerminal, ENTER, SHIFT_TAB, bash_call};

#[test]
fn r133_an_unknown_command_is_reported_and_never_sent() {
    for provider in both_providers() {
        let server = provider.serve([text_reply("Fine.")]);
        let mut chat = ChatTerminal::start(&server, &[]);
        assert!(chat.ask("/hel").contains(
            "! unknown command `/hel`: nothing was sent. Did you \
            mean /help?"
        ));
        assert!(chat.ask("/etc/passwd is odd").contains(
            "unknown command `/etc/passwd`: nothing \
            was sent."
        ));
        assert!(chat.ask("/quit now").contains("/quit takes no argument"));
        assert!(server.requests().is_empty());
        chat.ask(" /etc/passwd is odd");
        assert_eq!(server.request().user_texts(), [" /etc/passwd is odd"]);
        chat.leave();
    }
}

#[test]
fn help_names_every_command_and_tab_completes_it() {
    let [provider, _] = both_providers();
    let server = provider.serve([]);
    let mut chat = ChatTerminal::start(&server, &[]);
    let help = chat.ask("/help");
    for name in [
        "/help", "/mode", "/model", "/tools", "/context", "/cost", "/compact", "/jobs", "/resume",
        "/clear", "/export", "/quit",
    ] {
        assert!(help.contains(&format!("  {name} ")), "{name}: {help}");
    }
    chat.type_keys("/cont\t");
    chat.wait_until_ready_with("› /context");
    chat.type_keys(ENTER);
    chat.terminal.wait_for_visible("system prompt and tools");
    chat.wait_until_ready();
    chat.leave();
}

#[test]
fn a_mode_that_is_chosen_decides_from_the_next_call_on() {
    for provider in both_providers() {
        let server = provider.serve([
            bash_call("touch one"),
            text_reply("Denied."),
            bash_call("touch two").after_release(),
            text_reply("Asked."),
            bash_call("touch three"),
            text_reply("Allowed."),
        ]);
        let mut chat = ChatTerminal::start(&server, &[]);
        assert!(chat.ask("/mode plan").contains("mode plan: commands and writes are denied"));
        assert!(chat.ask("One.").contains("Denied."));
        assert!(!chat.home.has_file("one"));
        // Shift-Tab while a request runs: plan, auto-edit, ask.
        chat.send_line("Two.");
        chat.wait_until_running();
        for mode in ["auto-edit", "ask"] {
            chat.type_keys(SHIFT_TAB);
            chat.terminal.wait_for_visible(&format!("\n{mode} · "));
        }
        server.release();
        chat.wait_for_question("touch two");
        chat.send_line("1");
        chat.terminal.wait_for_visible("Asked.");
        chat.wait_until_ready();
        // And at the prompt, where it leaves alone what is typed; it never leads to auto.
        chat.type_keys("typed");
        for mode in ["plan", "auto-edit", "ask", "plan"] {
            chat.type_keys(SHIFT_TAB);
            chat.terminal.wait_for_visible(&format!("\n{mode} · "));
            chat.wait_until_ready_with("› typed");
        }
        chat.type_keys("\u{3}");
        chat.wait_until_ready();
        assert!(chat.ask("/mode auto").contains("without asking"));
        assert!(chat.ask("Three.").contains("Allowed."));
        assert!(chat.home.has_file("two") && chat.home.has_file("three"));
        assert!(chat.ask("/mode").contains("mode auto:"));
        assert!(chat.ask("/mode yolo").contains("unknown mode `yolo`"));
        chat.leave();
    }
}

#[test]
fn the_audit_log_begins_in_the_mode_of_the_chat() {
    let [provider, _] = both_providers();
    let server = provider.serve([text_reply("A plan.")]);
    let mut chat = ChatTerminal::start(&server, &[]);
    chat.ask("/mode plan");
    chat.ask("Plan it.");
    let logs = std::fs::read_dir(chat.home.path().join("state/cofferdam/audit"))
        .expect("there is a log")
        .flatten();
    let first: Vec<String> = logs
        .filter_map(|log| std::fs::read_to_string(log.path()).ok())
        .filter_map(|log| log.lines().find(|line| line.contains("\"mode\"")).map(str::to_owned))
        .collect();
    assert!(matches!(&first[..], [begun] if begun.contains("\"mode\":\"plan\"")), "{first:?}");
    chat.leave();
}

#[test]
fn another_model_answers_from_the_next_request_on() {
    let [provider, _] = both_providers();
    let server = provider.serve([text_reply("I am the first.")]);
    let mut chat = ChatTerminal::start(&server, &[]);
    chat.ask("Who?");
    let recording = "{\"cofferdam_recording\": 1, \"model\": \"second\"}\n{\"blocks\": \
        [{\"text\": \"I am the second.\"}]}\n";
    chat.home.write_file("second.jsonl", recording);
    let path = chat.home.path().join("second.jsonl");
    assert!(
        chat.ask("/model anthropic:claude-sonnet-5-5").contains("belongs to openai"),
        "the key would be sent to another provider"
    );
    assert!(chat.ask("/model nonsense").contains("unknown model `nonsense`"));
    chat.send_line(&format!("/model replay:{}", path.display()));
    chat.terminal.wait_for_visible("model: replay:second");
    assert!(chat.wait_until_ready().contains("ask · second · "));
    let seen = chat.ask("And who now?");
    assert!(seen.contains("I am the second.") && seen.contains("cost unknown"), "{seen}");
    chat.leave();
}

#[test]
fn r131_context_tokens_and_cost_can_be_had() {
    let [_, anthropic] = both_providers();
    let server = anthropic.serve([text_reply("Hello.").with_usage(Some((250_000, 1_000)))]);
    let mut chat = ChatTerminal::start(&server, &[]);
    assert!(chat.ask("/cost").contains("0 turns"));
    let seen = chat.ask("Hello?");
    assert!(seen.contains("ask · claude-sonnet-5-5 · context "), "{seen}");
    assert!(seen.contains("of 1M · 250k tokens in, 1k out · $0.5100"), "{seen}");
    chat.send_line("/cost");
    chat.terminal.wait_for_visible("1 turn, 250000 tokens in");
    chat.wait_until_ready();
    assert!(chat.ask("/tools").contains("read-only"));
    chat.leave();
}

#[test]
fn resume_lists_sessions_and_goes_on_with_one() {
    for provider in both_providers() {
        let server = provider.serve([text_reply("Blue.")]);
        let mut chat = ChatTerminal::start(&server, &[]);
        assert!(chat.ask("/resume").contains("No sessions yet."));
        chat.ask("Which colour?");
        drop(server);

        let server = provider.serve([text_reply("Two legs.")]);
        let mut chat = chat.restart(&server, &[]);
        chat.ask("How many legs?");
        let list = chat.ask("/resume");
        let row = |words: &str| {
            list.lines().rev().find(|line| line.ends_with(words)).expect("it is listed").to_owned()
        };
        let id = row("Which colour?").split(' ').next().expect("a name").to_owned();
        let own = row("How many legs?").split(' ').next().expect("a name").to_owned();
        assert!(chat.ask("/resume ffffzz").contains("no session has an ID that begins with"));
        assert!(chat.ask(&format!("/resume {own}")).contains("this session is already open"));
        drop(server);

        let server = provider.serve([text_reply("Still blue.")]);
        let mut chat = chat.restart(&server, &[]);
        let seen = chat.ask(&format!("/resume {}", &id[..8]));
        assert!(
            seen.contains("1 request")
                && seen.contains("> Which colour?")
                && seen.contains("Blue."),
            "{seen}"
        );
        assert!(chat.ask("And now?").contains("Still blue."));
        assert_eq!(server.request().user_texts(), ["Which colour?", "And now?"]);
        assert_eq!(chat.read_journals().len(), 2);
        chat.leave();
    }
}

#[test]
fn clear_begins_a_new_session_and_keeps_the_old_one() {
    let [provider, _] = both_providers();
    let server = provider.serve([text_reply("One.")]);
    let mut chat = ChatTerminal::start(&server, &[]);
    chat.ask("First.");
    assert!(chat.ask("/clear").contains("started a new session; session "));
    assert_eq!(chat.read_journals().len(), 1);
    drop(server);

    let server = provider.serve([text_reply("Two.")]);
    let mut chat = chat.restart(&server, &["--continue"]);
    assert!(chat.ask("/clear").contains("started a new session"));
    chat.ask("Second.");
    assert_eq!(server.request().user_texts(), ["Second."]);
    assert_eq!(chat.read_journals().len(), 2);
    chat.leave();
}

#[test]
fn export_writes_the_conversation_and_overwrites_nothing() {
    let [provider, _] = both_providers();
    let server =
        provider.serve([call_reply("list_dir", json!({})), text_reply("There is nothing.")]);
    let mut chat = ChatTerminal::start(&server, &[]);
    assert!(chat.ask("/export").contains("there is nothing to export yet"));
    chat.ask("What is there?");
    assert!(chat.ask("/export said.json").contains("wrote said.json"));
    let said =
        std::fs::read_to_string(chat.home.workspace().join("said.json")).expect("it is there");
    let said: serde_json::Value = serde_json::from_str(&said).expect("it is JSON");
    let transcript: cofferdam::conversation::Transcript =
        serde_json::from_value(said["transcript"].clone()).expect("a transcript");
    assert_eq!(transcript.exchanges()[0].prompt(), "What is there?");
    chat.send_line("/export said.json");
    chat.terminal.wait_for_visible("cannot write `said.json`");
    chat.wait_until_ready();
    chat.leave();
}

#[test]
fn r073_compact_puts_a_summary_in_place_of_what_was_said() {
    let [provider, _] = both_providers();
    let server = provider.serve([]);
    let home = super::new_home();
    let (long, used) = ("long words ".repeat(800), json!({"input": 100, "output": 10}));
    let lines: Vec<String> = [&long, &long, "They spoke of words."]
        .iter()
        .map(|text| json!({"blocks": [{"text": text}], "usage": used}).to_string())
        .collect();
    home.write_file(
        "recording.jsonl",
        format!("{{\"cofferdam_recording\": 1, \"model\": \"m\"}}\n{}\n", lines.join("\n")),
    );
    let model = format!("replay:{}", home.path().join("recording.jsonl").display());
    let mut chat = ChatTerminal::start_in(
        home,
        &server,
        &[],
        cofferdam_tests::terminal::WindowSize { rows: 40, columns: 100 },
    );
    chat.send_line(&format!("/model {model}"));
    chat.terminal.wait_for_visible("model: replay:m");
    chat.wait_until_ready();
    assert!(chat.ask("/compact").contains("nothing to summarize yet"));
    for prompt in ["One.", "Two."] {
        chat.send_line(prompt);
        chat.terminal.wait_for_screen("the answer", |seen| {
            seen.contains("long words") && !super::is_running(seen)
        });
        chat.wait_until_ready();
    }
    chat.send_line("/compact");
    let seen = chat.terminal.wait_for_visible("by a summary: about ");
    assert!(!seen.contains("They spoke of words."), "{seen}");
    chat.wait_until_ready();
    assert!(chat.read_journals().concat().contains("They spoke of words."));
    // it is paid for like the two answers.
    assert!(
        chat.ask("/cost").contains("3 turns, 300 tokens in"),
        "{}",
        chat.terminal.visible_text()
    );
    chat.leave();
}

#[test]
fn jobs_lists_shows_and_stops_background_commands() {
    for provider in both_providers() {
        let start = json!({"command": "echo ready; exec sleep 1000", "background": true});
        let short = json!({"command": "sleep 2; echo x > file", "background": true});
        let server = provider.serve([
            call_reply("bash", start),
            text_reply("Started."),
            call_reply("bash", short),
            text_reply("Started too."),
        ]);
        let mut chat = ChatTerminal::start(&server, &["--mode", "auto"]);
        assert!(chat.ask("/jobs").contains("there are no background commands"));
        assert!(chat.ask("One.").contains("Started."));
        let line = "background command 1 (`echo ready; exec sleep 1000`): running after";
        chat.send_line("/jobs");
        chat.terminal.wait_for_visible(line);
        chat.wait_until_ready();
        assert!(chat.ask("/jobs 1").contains("\nready"));
        assert!(chat.ask("/jobs 7").contains("no background command has the number 7"));
        assert!(chat.ask("/jobs x").contains("`x` is not the number"));
        assert!(chat.ask("Two.").contains("Started too."));
        assert!(chat.ask("/jobs stop 1").contains("stopped on request"));
        while !chat.home.has_file("file") {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        std::thread::sleep(std::time::Duration::from_millis(500));
        // The end of a command is shown once, before the next prompt.
        chat.send_line("");
        chat.terminal.wait_for_visible("file`): ended with exit code 0");
        chat.leave();
    }
}
