//! A conversation line by line: at a terminal that cannot be drawn on, and from a pipe.

use std::fs::File;
use std::process::Stdio;

use cofferdam_tests::program::TestHome;
use cofferdam_tests::terminal::{TestTerminal, WindowSize};
use cofferdam_tests::wire::{
    ProviderServer, both_providers, error_reply, hanging_reply, text_reply,
};
use serde_json::json;

use super::{CTRL_C, ChatTerminal, bash_call, journals, new_home};

/// Somebody at a terminal whose cursor does not move.
struct DumbTerminal {
    home: TestHome,
    terminal: TestTerminal,
}

impl DumbTerminal {
    fn start(server: &ProviderServer, args: &[&str]) -> Self {
        let home = new_home();
        let mut command = home.command(&[
            "chat",
            "--model",
            server.provider().model(),
            "--base-url",
            &server.base_url(),
        ]);
        command.args(args).env(server.provider().key_variable(), server.key()).env("TERM", "dumb");
        let mut terminal =
            TestTerminal::start_with_size(&command, None, WindowSize { rows: 40, columns: 100 });
        terminal.wait_for_output("\n› ");
        Self { home, terminal }
    }

    /// Says something at the prompt, and waits for the next one.
    #[track_caller]
    fn ask(&mut self, line: &str) {
        self.terminal.type_keys(&format!("{line}\n"));
        self.terminal.wait_for_output(&format!("{line}\r\n"));
        self.terminal.wait_for_output("\n› ");
    }

    #[track_caller]
    fn wait_for_question(&mut self, command: &str) {
        self.terminal.wait_for_output("wants to run this command");
        self.terminal.wait_for_output(command);
        self.terminal.wait_for_output("\n> ");
    }

    /// Leaves. All that was shown were plain characters.
    #[track_caller]
    fn leave(mut self) -> TestHome {
        self.terminal.type_keys("/quit\n");
        assert_eq!(self.terminal.wait_for_exit(), 0, "{}", self.terminal.raw_output());
        self.assert_plain();
        self.home
    }

    #[track_caller]
    fn assert_plain(&self) {
        let screen = self.terminal.raw_output();
        let odd = |c: char| c.is_control() && !matches!(c, '\r' | '\n' | '\t');
        assert!(!screen.contains(odd), "{screen:?}");
    }
}

#[test]
fn r038_at_a_dumb_terminal_a_call_is_approved_by_a_typed_digit_and_by_nothing_else() {
    for provider in both_providers() {
        let server = provider.serve([
            bash_call("touch ran").with_text("I *touch* it."),
            text_reply("Touched. 日本 🦀"),
            text_reply("Gladly."),
        ]);
        let mut dumb = DumbTerminal::start(&server, &[]);
        dumb.terminal.type_keys("Go.\n");
        dumb.wait_for_question("touch ran");
        for no_answer in ["y", "", "11"] {
            dumb.terminal.type_keys(&format!("{no_answer}\n"));
            dumb.terminal.wait_for_output("Type 1, 2 or 3, and Enter.");
            dumb.terminal.wait_for_output("\n> ");
            assert!(!dumb.home.has_file("ran"), "{no_answer:?} approved it");
        }
        dumb.terminal.type_keys("1\n");
        dumb.terminal.wait_for_output("Touched. 日本 🦀\r\n");
        // how things are stands before each prompt.
        dumb.terminal.wait_for_output("ask · ");
        dumb.terminal.wait_for_output("\n› ");
        assert!(dumb.home.has_file("ran"));
        dumb.ask("/cost");
        dumb.ask("Thanks.");
        assert!(
            dumb.terminal.raw_output().contains("in this session: 2 turns")
                && dumb.terminal.raw_output().contains("I *touch* it.")
        );
        assert_eq!(server.last_request().user_texts(), ["Go.", "Thanks."]);
        dumb.leave();
    }
}

#[test]
fn r044_at_a_dumb_terminal_three_lines_of_guidance_arrive_whole() {
    let guidance = ["Not that one.", "  Use `mkdir -p` instead;", "and name it: Grüße."];
    let [provider, _] = both_providers();
    let server = provider.serve([bash_call("touch ran"), text_reply("As you like.")]);
    let mut dumb = DumbTerminal::start(&server, &[]);
    dumb.terminal.type_keys("Go.\n");
    dumb.wait_for_question("touch ran");
    dumb.terminal.type_keys("3\n");
    for line in guidance {
        dumb.terminal.wait_for_output("\n| ");
        dumb.terminal.type_keys(&format!("{line}\n"));
    }
    dumb.terminal.wait_for_output("\n| ");
    dumb.terminal.type_keys("\n");
    dumb.terminal.wait_for_output("As you like.");
    dumb.terminal.wait_for_output("\n› ");
    assert!(server.last_request().tool_results()[0].text.contains(&guidance.join("\n")));
    assert!(!dumb.home.has_file("ran"));
    dumb.leave();
}

#[test]
fn r127_at_a_dumb_terminal_ctrl_c_rejects_stops_and_leaves() {
    let [provider, _] = both_providers();
    let server = provider.serve([
        bash_call("touch ran"),
        text_reply("Far away, beyond").then_hanging(),
        text_reply("Both."),
    ]);
    let mut dumb = DumbTerminal::start(&server, &[]);
    dumb.terminal.type_keys("Go.\n");
    dumb.wait_for_question("touch ran");
    dumb.terminal.type_keys(CTRL_C);
    dumb.terminal.wait_for_output("! stopped because you rejected a tool call.");
    dumb.terminal.wait_for_output("\n› ");
    // what is typed meanwhile is seen to wait, and is not sent after a stop.
    dumb.terminal.type_keys("Again.\n");
    server.wait_for_requests(2);
    dumb.terminal.type_keys("And then?\n");
    dumb.terminal.wait_for_output("  next › And then?");
    dumb.terminal.type_keys(CTRL_C);
    // and it breaks no line of the text.
    dumb.terminal.wait_for_output("Far away, beyond\r\n");
    dumb.terminal.wait_for_output("! stopped.");
    dumb.terminal.wait_for_output("not sent: And then?");
    dumb.terminal.wait_for_output("\n› ");
    // A line that goes on, and one that is thrown away.
    dumb.terminal.type_keys("Which\\\n");
    dumb.terminal.wait_for_output("\n  ");
    dumb.ask("one?");
    assert_eq!(server.last_request().user_texts().last().map(String::as_str), Some("Which\none?"));
    dumb.terminal.type_keys(CTRL_C);
    dumb.terminal.wait_for_output("Ctrl-C again, or Ctrl-D, leaves");
    dumb.terminal.wait_for_output("\n› ");
    dumb.terminal.type_keys(CTRL_C);
    assert_eq!(dumb.terminal.wait_for_exit(), 0);
    assert!(!dumb.home.has_file("ran"));
    dumb.assert_plain();
}

#[test]
fn r107_at_a_dumb_terminal_a_second_ctrl_c_leaves_and_what_was_said_is_saved() {
    let [provider, _] = both_providers();
    let server = provider.serve([text_reply("Far away, beyond").then_hanging()]);
    let mut dumb = DumbTerminal::start(&server, &[]);
    dumb.terminal.type_keys("Go.\n");
    server.wait_for_requests(1);
    dumb.terminal.type_keys(CTRL_C);
    dumb.terminal.type_keys("\u{4}");
    let code = dumb.terminal.wait_for_exit();
    // The request may be over before it has heard of the end of the input.
    assert!([0, 130].contains(&code), "{}", dumb.terminal.raw_output());
    assert!(journals(&dumb.home).concat().contains("\"kind\":\"aborted\""));
}

/// A conversation whose lines come from a file, and what it printed.
fn run_piped(
    home: &TestHome,
    server: &ProviderServer,
    args: &[&str],
    lines: &str,
) -> (Option<i32>, String, String) {
    home.write_file("lines.txt", lines);
    let mut command = home.command(&[
        "chat",
        "--model",
        server.provider().model(),
        "--base-url",
        &server.base_url(),
    ]);
    command.args(args).env(server.provider().key_variable(), server.key()).env("TERM", "xterm");
    command.stdin(Stdio::from(File::open(home.path().join("lines.txt")).expect("it is there")));
    let output = command.output().expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("all output is text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn r132_lines_of_a_pipe_are_requests_and_standard_output_holds_the_answers() {
    for provider in both_providers() {
        let home = new_home();
        let server =
            provider.serve([text_reply("It is **red**.\nReally."), text_reply("Because.")]);
        let (code, stdout, stderr) =
            run_piped(&home, &server, &[], "Which colour?\n\n/mode plan\n/nonsense\nAnd\\\nwhy?");
        assert_eq!(
            (code, stdout.as_str()),
            (Some(0), "It is **red**.\nReally.\nBecause.\n"),
            "{stderr}"
        );
        for words in
            ["› Which colour?\n", "mode plan", "/nonsense", "› And\n  why?\n", "continues it"]
        {
            assert!(stderr.contains(words), "{words}: {stderr}");
        }
        assert!(!stderr.contains('\u{1b}'), "{stderr:?}");
        assert_eq!(server.last_request().user_texts(), ["Which colour?", "And\nwhy?"]);
        assert_eq!(journals(&home).len(), 1);
    }
}

#[test]
fn r041_where_the_lines_come_from_a_pipe_nothing_is_approved_and_that_is_said() {
    for provider in both_providers() {
        let home = new_home();
        let server = provider.serve([bash_call("touch ran"), text_reply("I may not.")]);
        // The next line is no answer to a question that nobody was asked.
        let (code, stdout, stderr) = run_piped(&home, &server, &[], "Go.\n");
        assert_eq!((code, stdout.as_str()), (Some(0), "I may not.\n"), "{stderr}");
        let result = &server.last_request().tool_results()[0];
        assert!(result.is_error && result.text.contains("--mode auto"), "{result:?}");
        assert!(stderr.contains("denied") && !home.has_file("ran"), "{stderr}");

        let server = provider.serve([bash_call("touch ran"), text_reply("Touched.")]);
        assert_eq!(run_piped(&home, &server, &["--mode", "auto"], "Go.\n").1, "Touched.\n");
        assert!(home.has_file("ran"));
    }
}

#[test]
fn r041_a_line_of_a_pipe_loosens_nothing_and_ends_what_follows() {
    let [provider, _] = both_providers();
    let table = [
        ("/mode auto", "start with --mode auto."),
        ("/mode auto-edit", "start with --mode auto-edit."),
        ("/model openai:other", "start with --model SPEC."),
        ("/resume 5f0c", "start with --resume ID."),
        ("/export ../said.json", "`cofferdam sessions export ID` prints a session."),
    ];
    for (line, instead) in table {
        let home = new_home();
        let server = provider.serve([text_reply("Hello.")]);
        let (code, stdout, stderr) =
            run_piped(&home, &server, &[], &format!("Hello?\n{line}\nGo.\n"));
        assert_eq!((code, stdout.as_str()), (Some(1), "Hello.\n"), "{line}: {stderr}");
        assert!(
            stderr.contains(instead)
                && stderr.contains("This line and all later lines were ignored."),
            "{line}: {stderr}"
        );
        assert_eq!(server.requests().len(), 1, "{line}");
        assert!(!home.has_file("ran") && !home.has_file("../said.json"), "{line}");
    }
    // What was said at the start may be said again, and may be made stricter for a while.
    let home = new_home();
    let server = provider.serve([bash_call("touch ran"), text_reply("Ran.")]);
    assert_eq!(
        run_piped(&home, &server, &["--mode", "auto"], "/mode plan\n/mode auto\nGo.\n").1,
        "Ran.\n"
    );
    assert!(home.has_file("ran"));
}

#[test]
fn r132_the_exit_code_of_a_pipe_is_that_of_its_last_request() {
    let [provider, _] = both_providers();
    let bad = error_reply(400, "invalid_request_error", "no such thing");
    let stopped = || [bash_call("true"), text_reply("I stop here.")];
    let answered = || text_reply("Well.");
    let table = [
        (stopped().into_iter().chain([answered()]).collect::<Vec<_>>(), 0, "I stop here.\nWell.\n"),
        ([answered()].into_iter().chain(stopped()).collect(), 3, "Well.\nI stop here.\n"),
        (vec![answered(), bad], 7, "Well.\n"),
    ];
    for (replies, expected, text) in table {
        let args = ["--mode", "auto", "--max-tool-iterations", "1"];
        let (code, stdout, stderr) =
            run_piped(&new_home(), &provider.serve(replies), &args, "One.\nTwo.\n");
        assert_eq!((code, stdout.as_str()), (Some(expected), text), "{stderr}");
    }
}

#[test]
fn r130_without_colours_no_colour_is_written_at_a_terminal_that_is_drawn_on() {
    let [provider, _] = both_providers();
    let server = provider.serve([
        text_reply("# Head\n\nIt is **red** and `code`."),
        bash_call("true"),
        text_reply("Done."),
        hanging_reply(),
    ]);
    let mut chat = ChatTerminal::start(&server, &["--mode", "auto"]);
    chat.ask("Which colour?");
    chat.ask("Go.");
    chat.ask("/help");
    chat.send_line("Wait.");
    chat.wait_until_running();
    server.wait_for_requests(4);
    chat.type_keys(CTRL_C);
    chat.terminal.wait_for_visible("! stopped.");
    chat.wait_until_ready();
    let raw = chat.terminal.raw_output();
    // Attributes: ESC [ numbers m. Only the one that takes all away may be there.
    let attribute = |rest: &str| {
        let numbers: String =
            rest.chars().take_while(|c| c.is_ascii_digit() || *c == ';').collect();
        (rest[numbers.len()..].starts_with('m') && !matches!(numbers.as_str(), "" | "0"))
            .then_some(numbers)
    };
    let attributes: Vec<String> = raw.split("\u{1b}[").skip(1).filter_map(attribute).collect();
    assert!(attributes.is_empty(), "{attributes:?} in {raw:?}");
    chat.leave();
}

#[test]
fn what_the_policy_hides_is_hidden_in_a_chat_too() {
    let [provider, _] = both_providers();
    let home = new_home()
        .with_file("customers.sqlite", "secret rows")
        .with_file(".cofferdam/policy.toml", "[protected]\nhidden = [\"*.sqlite\"]\n");
    let read = cofferdam_tests::wire::call_reply("read_file", json!({"path": "customers.sqlite"}));
    let server = provider.serve([read, text_reply("I may not.")]);
    let (_, stdout, stderr) = run_piped(&home, &server, &["--mode", "auto"], "Read it.\n");
    let result = &server.last_request().tool_results()[0];
    assert!(result.is_error && !result.text.contains("secret rows"), "{result:?}");
    assert_eq!(stdout, "I may not.\n", "{stderr}");
}

#[test]
fn a_guide_that_changes_within_a_chat_is_told_before_the_next_request() {
    let [provider, _] = both_providers();
    // In a private view, nobody could approve the change.
    let home = new_home().with_file("AGENTS.md", "One.\n");
    home.write_file("config/cofferdam/config.toml", "[commands]\nat_most = \"kernel\"\n");
    let server = provider.serve([
        bash_call("echo Two. >AGENTS.md"),
        text_reply("Done."),
        text_reply("Again."),
        text_reply("Still."),
    ]);
    let (_, _, stderr) = run_piped(&home, &server, &["--mode", "auto"], "Go.\nGo on.\nAnd on.\n");
    assert!(
        stderr.contains(
            "A command changed AGENTS.md, one of the files that contain instructions for agents."
        ),
        "{stderr}"
    );
    let told = "AGENTS.md changed since the last request, and the model receives the new content. \
            Review it.";
    assert_eq!(stderr.matches(told).count(), 1, "{stderr}");
    assert!(server.last_request().system_prompt().contains("Two."));
    // The next chat says who did it.
    let server = provider.serve([text_reply("Done.")]);
    let (_, _, stderr) = run_piped(&home, &server, &[], "Go.\n");
    assert!(
        stderr.contains(
            "AGENTS.md was changed since the last session of this project, by a command of the \
                tool bash"
        ),
        "{stderr}"
    );
}
