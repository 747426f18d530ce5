//! A conversation line by line: at a terminal that cannot be drawn on, and from a pipe.

use std::fs::File;
use std::process::Stdio;

use cofferdam_tests::program::Home;
use cofferdam_tests::terminal::{Terminal, Window};
use cofferdam_tests::wire::{Server, both, fails, hangs, says};
use serde_json::json;

use super::{CTRL_C, Chat, bash, home, journals};

/// Somebody at a terminal whose cursor does not move.
struct Dumb {
    home: Home,
    terminal: Terminal,
}

impl Dumb {
    fn with(server: &Server, args: &[&str]) -> Self {
        let home = home();
        let mut command = home.command(&["chat", "--model", server.provider().model(), "--base-url", &server.base_url()]);
        command.args(args).env(server.provider().key_variable(), server.key()).env("TERM", "dumb");
        let mut terminal = Terminal::open(&command, None, Window { rows: 40, columns: 100 });
        terminal.wait_for("\n› ");
        Self { home, terminal }
    }

    /// Says something at the prompt, and waits for the next one.
    #[track_caller]
    fn asks(&mut self, line: &str) {
        self.terminal.types(&format!("{line}\n"));
        self.terminal.wait_for(&format!("{line}\r\n"));
        self.terminal.wait_for("\n› ");
    }

    #[track_caller]
    fn is_asked(&mut self, command: &str) {
        self.terminal.wait_for("wants to run this command");
        self.terminal.wait_for(command);
        self.terminal.wait_for("\n> ");
    }

    /// Leaves. All that was shown were plain characters.
    #[track_caller]
    fn leaves(mut self) -> Home {
        self.terminal.types("/quit\n");
        assert_eq!(self.terminal.wait(), 0, "{}", self.terminal.screen());
        self.is_plain();
        self.home
    }

    #[track_caller]
    fn is_plain(&self) {
        let screen = self.terminal.screen();
        let odd = |c: char| c.is_control() && !matches!(c, '\r' | '\n' | '\t');
        assert!(!screen.contains(odd), "{screen:?}");
    }
}

#[test]
fn r038_at_a_dumb_terminal_a_call_is_approved_by_a_typed_digit_and_by_nothing_else() {
    for provider in both() {
        let server = provider.serve([bash("touch ran").text("I *touch* it."), says("Touched. 日本 🦀"), says("Gladly.")]);
        let mut dumb = Dumb::with(&server, &[]);
        dumb.terminal.types("Go.\n");
        dumb.is_asked("touch ran");
        for no_answer in ["y", "", "11"] {
            dumb.terminal.types(&format!("{no_answer}\n"));
            dumb.terminal.wait_for("Type 1, 2 or 3, and Enter.");
            dumb.terminal.wait_for("\n> ");
            assert!(!dumb.home.has("ran"), "{no_answer:?} approved it");
        }
        dumb.terminal.types("1\n");
        dumb.terminal.wait_for("Touched. 日本 🦀\r\n");
        // how things are stands before each prompt.
        dumb.terminal.wait_for("ask · ");
        dumb.terminal.wait_for("\n› ");
        assert!(dumb.home.has("ran"));
        dumb.asks("/cost");
        dumb.asks("Thanks.");
        assert!(dumb.terminal.screen().contains("in this session: 2 turns") && dumb.terminal.screen().contains("I *touch* it."));
        assert_eq!(server.last_request().user_texts(), ["Go.", "Thanks."]);
        dumb.leaves();
    }
}

#[test]
fn r044_at_a_dumb_terminal_three_lines_of_guidance_arrive_whole() {
    let guidance = ["Not that one.", "  Use `mkdir -p` instead;", "and name it: Grüße."];
    let [provider, _] = both();
    let server = provider.serve([bash("touch ran"), says("As you like.")]);
    let mut dumb = Dumb::with(&server, &[]);
    dumb.terminal.types("Go.\n");
    dumb.is_asked("touch ran");
    dumb.terminal.types("3\n");
    for line in guidance {
        dumb.terminal.wait_for("\n| ");
        dumb.terminal.types(&format!("{line}\n"));
    }
    dumb.terminal.wait_for("\n| ");
    dumb.terminal.types("\n");
    dumb.terminal.wait_for("As you like.");
    dumb.terminal.wait_for("\n› ");
    assert!(server.last_request().results()[0].text.contains(&guidance.join("\n")));
    assert!(!dumb.home.has("ran"));
    dumb.leaves();
}

#[test]
fn r127_at_a_dumb_terminal_ctrl_c_rejects_stops_and_leaves() {
    let [provider, _] = both();
    let server = provider.serve([bash("touch ran"), says("Far away, beyond").then_hangs(), says("Both.")]);
    let mut dumb = Dumb::with(&server, &[]);
    dumb.terminal.types("Go.\n");
    dumb.is_asked("touch ran");
    dumb.terminal.types(CTRL_C);
    dumb.terminal.wait_for("! stopped because you rejected a call.");
    dumb.terminal.wait_for("\n› ");
    // what is typed meanwhile is seen to wait, and is not sent after a stop.
    dumb.terminal.types("Again.\n");
    server.wait_for_requests(2);
    dumb.terminal.types("And then?\n");
    dumb.terminal.wait_for("  next › And then?");
    dumb.terminal.types(CTRL_C);
    // and it breaks no line of the text.
    dumb.terminal.wait_for("Far away, beyond\r\n");
    dumb.terminal.wait_for("! stopped.");
    dumb.terminal.wait_for("not sent: And then?");
    dumb.terminal.wait_for("\n› ");
    // A line that goes on, and one that is thrown away.
    dumb.terminal.types("Which\\\n");
    dumb.terminal.wait_for("\n  ");
    dumb.asks("one?");
    assert_eq!(server.last_request().user_texts().last().map(String::as_str), Some("Which\none?"));
    dumb.terminal.types(CTRL_C);
    dumb.terminal.wait_for("Ctrl-C again, or Ctrl-D, leaves");
    dumb.terminal.wait_for("\n› ");
    dumb.terminal.types(CTRL_C);
    assert_eq!(dumb.terminal.wait(), 0);
    assert!(!dumb.home.has("ran"));
    dumb.is_plain();
}

#[test]
fn r107_at_a_dumb_terminal_a_second_ctrl_c_leaves_and_what_was_said_is_saved() {
    let [provider, _] = both();
    let server = provider.serve([says("Far away, beyond").then_hangs()]);
    let mut dumb = Dumb::with(&server, &[]);
    dumb.terminal.types("Go.\n");
    server.wait_for_requests(1);
    dumb.terminal.types(CTRL_C);
    dumb.terminal.types("\u{4}");
    let code = dumb.terminal.wait();
    // The request may be over before it has heard of the end of the input.
    assert!([0, 130].contains(&code), "{}", dumb.terminal.screen());
    assert!(journals(&dumb.home).concat().contains("\"kind\":\"aborted\""));
}

/// A conversation whose lines come from a file, and what it printed.
fn piped(home: &Home, server: &Server, args: &[&str], lines: &str) -> (Option<i32>, String, String) {
    home.write("lines.txt", lines);
    let mut command = home.command(&["chat", "--model", server.provider().model(), "--base-url", &server.base_url()]);
    command.args(args).env(server.provider().key_variable(), server.key()).env("TERM", "xterm");
    command.stdin(Stdio::from(File::open(home.path().join("lines.txt")).expect("it is there")));
    let output = command.output().expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("all output is text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn r132_lines_of_a_pipe_are_requests_and_standard_output_holds_the_answers() {
    for provider in both() {
        let home = home();
        let server = provider.serve([says("It is **red**.\nReally."), says("Because.")]);
        let (code, stdout, stderr) = piped(&home, &server, &[], "Which colour?\n\n/mode plan\n/nonsense\nAnd\\\nwhy?");
        assert_eq!((code, stdout.as_str()), (Some(0), "It is **red**.\nReally.\nBecause.\n"), "{stderr}");
        for words in ["› Which colour?\n", "mode plan", "/nonsense", "› And\n  why?\n", "goes on with it"] {
            assert!(stderr.contains(words), "{words}: {stderr}");
        }
        assert!(!stderr.contains('\u{1b}'), "{stderr:?}");
        assert_eq!(server.last_request().user_texts(), ["Which colour?", "And\nwhy?"]);
        assert_eq!(journals(&home).len(), 1);
    }
}

#[test]
fn r041_where_the_lines_come_from_a_pipe_nothing_is_approved_and_that_is_said() {
    for provider in both() {
        let home = home();
        let server = provider.serve([bash("touch ran"), says("I may not.")]);
        // The next line is no answer to a question that nobody was asked.
        let (code, stdout, stderr) = piped(&home, &server, &[], "Go.\n");
        assert_eq!((code, stdout.as_str()), (Some(0), "I may not.\n"), "{stderr}");
        let result = &server.last_request().results()[0];
        assert!(result.is_error && result.text.contains("--mode auto"), "{result:?}");
        assert!(stderr.contains("denied") && !home.has("ran"), "{stderr}");

        let server = provider.serve([bash("touch ran"), says("Touched.")]);
        assert_eq!(piped(&home, &server, &["--mode", "auto"], "Go.\n").1, "Touched.\n");
        assert!(home.has("ran"));
    }
}

#[test]
fn r041_a_line_of_a_pipe_loosens_nothing_and_ends_what_follows() {
    let [provider, _] = both();
    let table = [
        ("/mode auto", "start with --mode auto."),
        ("/mode auto-edit", "start with --mode auto-edit."),
        ("/model openai:other", "start with --model SPEC."),
        ("/resume 5f0c", "start with --resume ID."),
        ("/export ../said.json", "`cofferdam sessions export ID` prints a session."),
    ];
    for (line, instead) in table {
        let home = home();
        let server = provider.serve([says("Hello.")]);
        let (code, stdout, stderr) = piped(&home, &server, &[], &format!("Hello?\n{line}\nGo.\n"));
        assert_eq!((code, stdout.as_str()), (Some(1), "Hello.\n"), "{line}: {stderr}");
        assert!(stderr.contains(instead) && stderr.contains("Neither this line nor any after it was done."), "{line}: {stderr}");
        assert_eq!(server.requests().len(), 1, "{line}");
        assert!(!home.has("ran") && !home.has("../said.json"), "{line}");
    }
    // What was said at the start may be said again, and may be made stricter for a while.
    let home = home();
    let server = provider.serve([bash("touch ran"), says("Ran.")]);
    assert_eq!(piped(&home, &server, &["--mode", "auto"], "/mode plan\n/mode auto\nGo.\n").1, "Ran.\n");
    assert!(home.has("ran"));
}

#[test]
fn r132_the_exit_code_of_a_pipe_is_that_of_its_last_request() {
    let [provider, _] = both();
    let bad = fails(400, "invalid_request_error", "no such thing");
    let stopped = || [bash("true"), says("I stop here.")];
    let answered = || says("Well.");
    let table = [
        (stopped().into_iter().chain([answered()]).collect::<Vec<_>>(), 0, "I stop here.\nWell.\n"),
        ([answered()].into_iter().chain(stopped()).collect(), 3, "Well.\nI stop here.\n"),
        (vec![answered(), bad], 7, "Well.\n"),
    ];
    for (replies, expected, text) in table {
        let args = ["--mode", "auto", "--max-tool-iterations", "1"];
        let (code, stdout, stderr) = piped(&home(), &provider.serve(replies), &args, "One.\nTwo.\n");
        assert_eq!((code, stdout.as_str()), (Some(expected), text), "{stderr}");
    }
}

#[test]
fn r130_without_colours_no_colour_is_written_at_a_terminal_that_is_drawn_on() {
    let [provider, _] = both();
    let server = provider.serve([says("# Head\n\nIt is **red** and `code`."), bash("true"), says("Done."), hangs()]);
    let mut chat = Chat::with(&server, &["--mode", "auto"]);
    chat.asks("Which colour?");
    chat.asks("Go.");
    chat.asks("/help");
    chat.says("Wait.");
    chat.is_running();
    server.wait_for_requests(4);
    chat.types(CTRL_C);
    chat.terminal.wait_to_see_text("! stopped.");
    chat.is_ready();
    let raw = chat.terminal.screen();
    // Attributes: ESC [ numbers m. Only the one that takes all away may be there.
    let attribute = |rest: &str| {
        let numbers: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == ';').collect();
        (rest[numbers.len()..].starts_with('m') && !matches!(numbers.as_str(), "" | "0")).then_some(numbers)
    };
    let attributes: Vec<String> = raw.split("\u{1b}[").skip(1).filter_map(attribute).collect();
    assert!(attributes.is_empty(), "{attributes:?} in {raw:?}");
    chat.leaves();
}

#[test]
fn what_the_policy_hides_is_hidden_in_a_chat_too() {
    let [provider, _] = both();
    let home = home().with("customers.sqlite", "secret rows").with(".cofferdam/policy.toml", "[protected]\nhidden = [\"*.sqlite\"]\n");
    let read = cofferdam_tests::wire::calls("read_file", json!({"path": "customers.sqlite"}));
    let server = provider.serve([read, says("I may not.")]);
    let (_, stdout, stderr) = piped(&home, &server, &["--mode", "auto"], "Read it.\n");
    let result = &server.last_request().results()[0];
    assert!(result.is_error && !result.text.contains("secret rows"), "{result:?}");
    assert_eq!(stdout, "I may not.\n", "{stderr}");
}
