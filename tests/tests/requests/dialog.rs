//! The approval dialog, at a terminal.

use std::fs::{self, File};

use cofferdam_tests::program::{ProgramOutput, TestHome};
use cofferdam_tests::terminal::TestTerminal;
use cofferdam_tests::wire::{
    ProviderServer, ScriptedReply, both_providers, call_reply, text_reply,
};
use serde_json::json;

use super::new_home;

/// A task at a terminal. Its report goes to a file.
struct DialogTerminal {
    home: TestHome,
    terminal: TestTerminal,
}

impl DialogTerminal {
    fn start(server: &ProviderServer) -> Self {
        let home = new_home();
        let report = File::create(home.path().join("report.json")).expect("it can be made");
        let terminal =
            TestTerminal::start(&home.model_command(server, &["--output", "json"]), Some(report));
        Self { home, terminal }
    }

    /// Waits for the question about a command, and for the place to answer it.
    #[track_caller]
    fn wait_for_question(&mut self, command: &str) {
        self.terminal.wait_for_output("wants to run this command");
        self.terminal.wait_for_output(command);
        self.terminal.wait_for_output("\n> ");
    }

    #[track_caller]
    fn finish(&mut self) -> ProgramOutput {
        let code = self.terminal.wait_for_exit();
        let stdout = fs::read_to_string(self.home.path().join("report.json")).expect("it is there");
        ProgramOutput {
            exit_code: code,
            stdout,
            stderr: self.terminal.raw_output(),
            duration: std::time::Duration::ZERO,
        }
    }
}

/// What is on the screen, without its rows.
fn screen_text(sitting: &DialogTerminal) -> String {
    sitting.terminal.raw_output().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn bash_call(command: &str) -> ScriptedReply {
    call_reply("bash", json!({"command": command}))
}

#[test]
fn r038_one_runs_it_and_enter_alone_does_not() {
    for provider in both_providers() {
        let server = provider.serve([bash_call("touch ran"), text_reply("Touched.")]);
        let mut sitting = DialogTerminal::start(&server);
        sitting.wait_for_question("touch ran");
        for no_answer in ["\n", "y\n", " \n", "11\n"] {
            sitting.terminal.type_keys(no_answer);
            sitting.terminal.wait_for_output("Type 1, 2 or 3, and Enter.");
            sitting.terminal.wait_for_output("> ");
            assert!(!sitting.home.has_file("ran"), "{no_answer:?} approved it");
        }
        sitting.terminal.type_keys("1\n");
        sitting.finish().expect_answer("Touched.");
        assert!(sitting.home.has_file("ran"));
    }
}

#[test]
fn r042_a_burst_of_keys_turns_no_page_that_was_not_seen() {
    let [provider, _] = both_providers();
    let lines: String = (1..=60).map(|n| format!("\n# line {n}")).collect();
    let server = provider.serve([bash_call(&format!("touch ran{lines}"))]);
    let mut sitting = DialogTerminal::start(&server);
    sitting.terminal.wait_for_output("Enter shows more");
    sitting.terminal.wait_for_output("> ");
    for _ in 0..40 {
        sitting.terminal.type_keys("\n");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    sitting.terminal.type_keys("1\n");
    sitting.terminal.wait_for_output("Enter shows more");
    sitting.terminal.wait_for_output("> ");
    assert!(
        !sitting.home.has_file("ran") && !screen_text(&sitting).contains("3 no"),
        "{}",
        sitting.terminal.raw_output()
    );
    sitting.terminal.type_keys("3\n\n");
    sitting.finish().expect_outcome("rejected", 5);
}

#[test]
fn r039_two_approves_the_scope_that_is_shown_and_nothing_else() {
    for provider in both_providers() {
        let server = provider.serve([
            bash_call("git rev-parse --sq-quote one"),
            bash_call("git rev-parse --sq-quote two"),
            bash_call("git status"),
            text_reply("Done."),
        ]);
        let mut sitting = DialogTerminal::start(&server);
        sitting.wait_for_question("git rev-parse --sq-quote one");
        assert!(screen_text(&sitting).contains(
            "don't ask again in this request for commands that begin with `git rev-parse`"
        ));
        sitting.terminal.type_keys("2\n");
        // The second is covered; the next question is about the third.
        sitting.wait_for_question("git status");
        assert!(
            !sitting.terminal.raw_output().contains("git rev-parse --sq-quote two"),
            "it was asked about:\n{}",
            sitting.terminal.raw_output()
        );
        sitting.terminal.type_keys("1\n");
        sitting.finish().expect_answer("Done.");
        let results: String = server
            .requests()
            .iter()
            .flat_map(|request| request.tool_results())
            .map(|result| result.text)
            .collect();
        let ran = |word: &str| results.contains(&format!("'{word}'"));
        assert!(ran("one") && ran("two"));
    }
}

#[test]
fn r039_a_line_that_cannot_be_understood_has_no_scope() {
    let [provider, _] = both_providers();
    let server = provider.serve([bash_call("true; touch ran"), text_reply("Touched.")]);
    let mut sitting = DialogTerminal::start(&server);
    sitting.wait_for_question("true; touch ran");
    sitting.terminal.type_keys("2\n");
    sitting.terminal.wait_for_output("Type 1 or 3, and Enter.");
    assert!(!sitting.home.has_file("ran"));
    sitting.terminal.type_keys("1\n");
    sitting.finish().expect_answer("Touched.");
}

#[test]
fn r043_r044_r046_r047_guidance_stands_whole_in_the_result_of_its_own_call_and_nowhere_else() {
    let guidance = ["Not that one.", "  Use `mkdir -p` instead;", "and \"quote\" the name: Grüße."];
    for provider in both_providers() {
        let both_calls =
            bash_call("touch first").with_call("bash", json!({"command": "touch second"}));
        let server = provider.serve([both_calls, text_reply("As you like.")]);
        let mut sitting = DialogTerminal::start(&server);
        sitting.wait_for_question("touch first");
        sitting.terminal.type_keys("3\n");
        for line in guidance {
            sitting.terminal.wait_for_output("| ");
            sitting.terminal.type_keys(&format!("{line}\n"));
        }
        sitting.terminal.type_keys("\n");
        // the other call has its own verdict.
        sitting.wait_for_question("touch second");
        sitting.terminal.type_keys("1\n");
        sitting.finish().expect_answer("As you like.");

        let request = server.last_request();
        let [first, second] = request.tool_results().try_into().expect("there are two results");
        let words = guidance.join("\n");
        assert!(
            first.is_error
                && first.text.contains(&words)
                && first.text.contains("bash")
                && first.text.contains("not carried out"),
            "{first:?}"
        );
        assert!(!second.is_error, "{second:?}");
        // once, and not as a message of the user.
        assert_eq!(request.count_occurrences(&words), 1);
        assert_eq!(request.user_texts(), ["The task."]);
        assert!(!sitting.home.has_file("first") && sitting.home.has_file("second"));
    }
}

#[test]
fn r045_no_without_guidance_ends_the_request() {
    for provider in both_providers() {
        // Another request would find the script over.
        let server = provider.serve([
            bash_call("touch first").with_call("bash", json!({"command": "touch second"}))
        ]);
        let mut sitting = DialogTerminal::start(&server);
        sitting.wait_for_question("touch first");
        sitting.terminal.type_keys("3\n\n");
        sitting.finish().expect_outcome("rejected", 5);
        assert!(!sitting.home.has_file("first") && !sitting.home.has_file("second"));
    }
}

#[test]
fn r048_three_rejections_in_a_row_end_the_request() {
    for provider in both_providers() {
        let server =
            provider.serve([bash_call("touch a"), bash_call("touch b"), bash_call("touch c")]);
        let mut sitting = DialogTerminal::start(&server);
        for name in ["a", "b", "c"] {
            sitting.wait_for_question(&format!("touch {name}"));
            sitting.terminal.type_keys("3\nno, and again no\n\n");
        }
        sitting.finish().expect_outcome("rejected", 5);
    }
}

#[test]
fn r038_what_was_typed_before_the_question_is_no_answer_to_it() {
    for provider in both_providers() {
        let server = provider.serve([bash_call("touch ran").after_release()]);
        let mut sitting = DialogTerminal::start(&server);
        server.wait_for_requests(1);
        sitting.terminal.type_keys("1\n2\n");
        // The terminal itself shows what is typed, as soon as it has it.
        sitting.terminal.wait_for_output("2\r\n");
        server.release();
        sitting.wait_for_question("touch ran");
        sitting.terminal.type_keys("3\n\n");
        sitting.finish().expect_outcome("rejected", 5);
        assert!(!sitting.home.has_file("ran"));
    }
}

#[test]
fn r100_ctrl_c_in_the_dialog_stops_the_request() {
    for provider in both_providers() {
        let server = provider.serve([bash_call("touch ran")]);
        let mut sitting = DialogTerminal::start(&server);
        sitting.wait_for_question("touch ran");
        sitting.terminal.type_keys("\u{3}");
        sitting.finish().expect_outcome("aborted", 130);
        assert!(!sitting.home.has_file("ran"));
    }
}

#[test]
fn r042_control_characters_hide_nothing_from_the_user() {
    let [provider, _] = both_providers();
    let server = provider
        .serve([bash_call("touch ran #\r\u{1b}[2K\u{202e}echo harmless"), text_reply("No.")]);
    let mut sitting = DialogTerminal::start(&server);
    sitting.wait_for_question("touch ran #\\u{d}\\u{1b}[2K\\u{202e}echo harmless");
    sitting.terminal.type_keys("3\nno\n\n");
    sitting.finish().expect_answer("No.");
}

#[test]
fn r042_empty_lines_push_nothing_off_the_screen() {
    let [provider, _] = both_providers();
    for end in ["\n", "    \n"] {
        let server = provider.serve([
            bash_call(&format!("touch ran{}echo harmless", end.repeat(44))),
            text_reply("No."),
        ]);
        let mut sitting = DialogTerminal::start(&server);
        sitting.wait_for_question("echo harmless");
        let seen = sitting.terminal.visible_text();
        assert!(
            seen.contains("wants to run this command") && seen.contains("    touch ran"),
            "{seen}"
        );
        assert!(seen.contains("43 empty lines"), "{seen}");
        sitting.terminal.type_keys("3\nno\n\n");
        sitting.finish().expect_answer("No.");
        assert!(!sitting.home.has_file("ran"));
    }
}

#[test]
fn r042_blanks_that_are_no_space_are_seen() {
    let [provider, _] = both_providers();
    let server = provider.serve([
        bash_call("touch\u{a0}ran\u{3000}\u{2003}\u{1bca0}\u{1d159}\u{70f}\u{1680}; ls \r\ntrue"),
        text_reply("No."),
    ]);
    let mut sitting = DialogTerminal::start(&server);
    sitting.wait_for_question(
        "touch\\u{a0}ran\\u{3000}\\u{2003}\\u{1bca0}\\u{1d159}\\u{70f}\\u{1680}; ls \\u{d}",
    );
    sitting.terminal.type_keys("3\nno\n\n");
    sitting.finish().expect_answer("No.");
}

#[test]
fn what_is_told_of_a_request_breaks_between_words() {
    let [provider, _] = both_providers();
    let home = new_home();
    let text = "Of all the words in this long answer none is broken in two, whatever the width of \
        the terminal that it is shown on may be.";
    let reply = call_reply("bash", json!({"command": format!("echo '{text}'")}));
    let server = provider.serve([reply, text_reply(text)]);
    let mut terminal = TestTerminal::start(&home.model_command(&server, &["--mode", "auto"]), None);
    assert_eq!(terminal.wait_for_exit(), 0, "{}", terminal.raw_output());
    let seen = terminal.wait_for_screen("the end", |seen| seen.contains("answered ·"));
    assert!(seen.lines().all(|row| row.chars().count() < 80), "{seen}");
    let words: Vec<&str> = seen.split_whitespace().collect();
    let all: Vec<&str> = text.split(' ').collect();
    // Once as the result of the call, and once as the answer.
    assert_eq!(words.windows(all.len()).filter(|window| *window == all).count(), 2, "{seen}");
}

#[test]
fn r130_at_a_terminal_each_text_is_shown_once() {
    for provider in both_providers() {
        let home = new_home();
        let server = provider.serve([
            text_reply("First I try it.").with_call("bash", json!({"command": "echo tried"})),
            text_reply("It works: Grüße.\n"),
        ]);
        let mut terminal = TestTerminal::start(&home.model_command(&server, &[]), None);
        terminal.wait_for_output("First I try it.");
        terminal.wait_for_output("\n> ");
        // Nothing was drawn over it.
        terminal.wait_for_visible("First I try it.\n\n? bash wants to run");
        terminal.type_keys("1\n");
        assert_eq!(terminal.wait_for_exit(), 0, "{}", terminal.raw_output());
        terminal.wait_for_output("It works: Grüße.\r\n");
        let screen = terminal.raw_output();
        for text in ["First I try it.", "It works: Grüße."] {
            assert_eq!(screen.matches(text).count(), 1, "{text}:\n{screen}");
        }
        assert!(screen.contains("✓ bash echo tried"), "{screen}");
    }
}

#[test]
fn r040_a_session_that_goes_on_has_forgotten_what_was_allowed() {
    for provider in both_providers() {
        let server =
            provider.serve([bash_call("git rev-parse --sq-quote one"), text_reply("Made.")]);
        let mut sitting = DialogTerminal::start(&server);
        sitting.wait_for_question("git rev-parse --sq-quote one");
        sitting.terminal.type_keys("2\n");
        sitting.finish().expect_answer("Made.");

        let server =
            provider.serve([bash_call("git rev-parse --sq-quote two"), text_reply("Made.")]);
        let report = File::create(sitting.home.path().join("report.json")).expect("it can be made");
        sitting.terminal = TestTerminal::start(
            &sitting.home.model_command(&server, &["--continue", "--output", "json"]),
            Some(report),
        );
        sitting.wait_for_question("git rev-parse --sq-quote two");
        sitting.terminal.type_keys("1\n");
        sitting.finish().expect_answer("Made.");
    }
}

#[test]
fn r008_a_rejection_resets_neither_the_id_nor_what_was_counted() {
    for provider in both_providers() {
        let home = new_home().with_file("a.txt", "x");
        let server = provider.serve([
            bash_call("touch ran"),
            call_reply("read_file", json!({"path": "a.txt"})),
            text_reply("Done."),
        ]);
        let report = File::create(home.path().join("report.json")).expect("it can be made");
        let terminal = TestTerminal::start(
            &home.model_command(&server, &["--output", "stream-json"]),
            Some(report),
        );
        let mut sitting = DialogTerminal { home, terminal };
        sitting.wait_for_question("touch ran");
        sitting.terminal.type_keys("3\nLook first.\n\n");
        let ran = sitting.finish();
        ran.expect_answer("Done.");
        let lines = ran.json_lines();
        let started: Vec<_> =
            lines.iter().filter(|line| line["type"] == "request_started").collect();
        let [started] = started[..] else { panic!("it began more than once: {started:?}") };
        let report = ran.report();
        assert_eq!(
            (&started["prompt"], &started["request"]),
            (&json!("The task."), &report["request"])
        );
        let turns: Vec<_> = lines
            .iter()
            .filter(|line| line["type"] == "turn_started")
            .map(|line| line["turn"].clone())
            .collect();
        assert_eq!(turns, [1, 2, 3]);
        assert_eq!(
            (&report["turns"], report["calls"].as_array().map(Vec::len)),
            (&json!(3), Some(2))
        );
        // the user's words stand in the result, and there is no second prompt.
        assert_eq!(server.last_request().user_texts(), ["The task."]);
    }
}

#[test]
fn r037_reading_asks_nobody_and_a_command_beside_it_does() {
    for provider in both_providers() {
        let home = new_home().with_file("a.txt", "a needle\n");
        let all = call_reply("read_file", json!({"path": "a.txt"}))
            .with_call("grep", json!({"pattern": "needle"}))
            .with_call("glob", json!({"pattern": "*.txt"}))
            .with_call("list_dir", json!({"path": "."}))
            .with_call("todo", json!({"items": null}))
            .with_call("bash", json!({"command": "touch ran"}));
        let server = provider.serve([all, text_reply("Done.")]);
        let report = File::create(home.path().join("report.json")).expect("it can be made");
        let terminal =
            TestTerminal::start(&home.model_command(&server, &["--output", "json"]), Some(report));
        let mut sitting = DialogTerminal { home, terminal };
        // right before its own slot, when all that comes before it is done.
        sitting.wait_for_question("touch ran");
        assert_eq!(
            sitting.terminal.raw_output().matches(" wants to ").count(),
            1,
            "{}",
            sitting.terminal.raw_output()
        );
        sitting.terminal.type_keys("1\n");
        sitting.finish().expect_answer("Done.");
        assert_eq!(sitting.terminal.raw_output().matches(" wants to ").count(), 1);
        let results = server.last_request().tool_results();
        assert!(
            results.len() == 6 && results[..5].iter().all(|result| !result.is_error),
            "{results:?}"
        );
    }
}

#[test]
fn r043_the_second_question_comes_when_the_first_call_is_done() {
    let [provider, _] = both_providers();
    let server = provider.serve([
        bash_call("touch first").with_call("bash", json!({"command": "touch second"})),
        text_reply("Done."),
    ]);
    let mut sitting = DialogTerminal::start(&server);
    sitting.wait_for_question("touch first");
    assert!(!sitting.terminal.raw_output().contains("touch second"), "one dialog at a time");
    sitting.terminal.type_keys("1\n");
    sitting.wait_for_question("touch second");
    assert!(sitting.home.has_file("first") && !sitting.home.has_file("second"));
    sitting.terminal.type_keys("1\n");
    sitting.finish().expect_answer("Done.");
}
