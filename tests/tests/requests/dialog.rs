//! The approval dialog, at a terminal.

use std::fs::{self, File};

use cofferdam_tests::program::{Home, Ran};
use cofferdam_tests::terminal::Terminal;
use cofferdam_tests::wire::{Reply, Server, both, calls, says};
use serde_json::json;

use super::home;

/// A task at a terminal. Its report goes to a file.
struct Sitting {
    home: Home,
    terminal: Terminal,
}

impl Sitting {
    fn begin(server: &Server) -> Self {
        let home = home();
        let report = File::create(home.path().join("report.json")).expect("it can be made");
        let terminal = Terminal::start(&home.task(server, &["--output", "json"]), Some(report));
        Self { home, terminal }
    }

    /// Waits for the question about a command, and for the place to answer it.
    #[track_caller]
    fn is_asked(&mut self, command: &str) {
        self.terminal.wait_for("wants to run this command");
        self.terminal.wait_for(command);
        self.terminal.wait_for("\n> ");
    }

    #[track_caller]
    fn end(&mut self) -> Ran {
        let code = self.terminal.wait();
        let stdout = fs::read_to_string(self.home.path().join("report.json")).expect("it is there");
        Ran { code, stdout, stderr: self.terminal.screen(), time: std::time::Duration::ZERO }
    }
}

/// What is on the screen, without its rows.
fn said(sitting: &Sitting) -> String {
    sitting.terminal.screen().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn bash(command: &str) -> Reply {
    calls("bash", json!({"command": command}))
}

#[test]
fn r038_one_runs_it_and_enter_alone_does_not() {
    for provider in both() {
        let server = provider.serve([bash("touch ran"), says("Touched.")]);
        let mut sitting = Sitting::begin(&server);
        sitting.is_asked("touch ran");
        for no_answer in ["\n", "y\n", " \n", "11\n"] {
            sitting.terminal.types(no_answer);
            sitting.terminal.wait_for("Type 1, 2 or 3, and Enter.");
            sitting.terminal.wait_for("> ");
            assert!(!sitting.home.has("ran"), "{no_answer:?} approved it");
        }
        sitting.terminal.types("1\n");
        sitting.end().answered("Touched.");
        assert!(sitting.home.has("ran"));
    }
}

#[test]
fn r042_a_burst_of_keys_turns_no_page_that_was_not_seen() {
    let [provider, _] = both();
    let lines: String = (1..=60).map(|n| format!("\n# line {n}")).collect();
    let server = provider.serve([bash(&format!("touch ran{lines}"))]);
    let mut sitting = Sitting::begin(&server);
    sitting.terminal.wait_for("Enter shows more");
    sitting.terminal.wait_for("> ");
    for _ in 0..40 {
        sitting.terminal.types("\n");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    sitting.terminal.types("1\n");
    sitting.terminal.wait_for("Enter shows more");
    sitting.terminal.wait_for("> ");
    assert!(!sitting.home.has("ran") && !said(&sitting).contains("3 no"), "{}", sitting.terminal.screen());
    sitting.terminal.types("3\n\n");
    sitting.end().ended("rejected", 5);
}

#[test]
fn r039_two_approves_the_scope_that_is_shown_and_nothing_else() {
    for provider in both() {
        let server =
            provider.serve([bash("git rev-parse --sq-quote one"), bash("git rev-parse --sq-quote two"), bash("git status"), says("Done.")]);
        let mut sitting = Sitting::begin(&server);
        sitting.is_asked("git rev-parse --sq-quote one");
        assert!(said(&sitting).contains("don't ask again in this request for commands that begin with `git rev-parse`"));
        sitting.terminal.types("2\n");
        // The second is covered; the next question is about the third.
        sitting.is_asked("git status");
        assert!(!sitting.terminal.screen().contains("git rev-parse --sq-quote two"), "it was asked about:\n{}", sitting.terminal.screen());
        sitting.terminal.types("1\n");
        sitting.end().answered("Done.");
        let results: String = server.requests().iter().flat_map(|request| request.results()).map(|result| result.text).collect();
        let ran = |word: &str| results.contains(&format!("'{word}'"));
        assert!(ran("one") && ran("two"));
    }
}

#[test]
fn r039_a_line_that_cannot_be_understood_has_no_scope() {
    let [provider, _] = both();
    let server = provider.serve([bash("true; touch ran"), says("Touched.")]);
    let mut sitting = Sitting::begin(&server);
    sitting.is_asked("true; touch ran");
    sitting.terminal.types("2\n");
    sitting.terminal.wait_for("Type 1 or 3, and Enter.");
    assert!(!sitting.home.has("ran"));
    sitting.terminal.types("1\n");
    sitting.end().answered("Touched.");
}

#[test]
fn r043_r044_r046_r047_guidance_stands_whole_in_the_result_of_its_own_call_and_nowhere_else() {
    let guidance = ["Not that one.", "  Use `mkdir -p` instead;", "and \"quote\" the name: Grüße."];
    for provider in both() {
        let both_calls = bash("touch first").call("bash", json!({"command": "touch second"}));
        let server = provider.serve([both_calls, says("As you like.")]);
        let mut sitting = Sitting::begin(&server);
        sitting.is_asked("touch first");
        sitting.terminal.types("3\n");
        for line in guidance {
            sitting.terminal.wait_for("| ");
            sitting.terminal.types(&format!("{line}\n"));
        }
        sitting.terminal.types("\n");
        // the other call has its own verdict.
        sitting.is_asked("touch second");
        sitting.terminal.types("1\n");
        sitting.end().answered("As you like.");

        let request = server.last_request();
        let [first, second] = request.results().try_into().expect("there are two results");
        let words = guidance.join("\n");
        assert!(
            first.is_error && first.text.contains(&words) && first.text.contains("bash") && first.text.contains("not carried out"),
            "{first:?}"
        );
        assert!(!second.is_error, "{second:?}");
        // once, and not as a message of the user.
        assert_eq!(request.count(&words), 1);
        assert_eq!(request.user_texts(), ["The task."]);
        assert!(!sitting.home.has("first") && sitting.home.has("second"));
    }
}

#[test]
fn r045_no_without_guidance_ends_the_request() {
    for provider in both() {
        // Another request would find the script over.
        let server = provider.serve([bash("touch first").call("bash", json!({"command": "touch second"}))]);
        let mut sitting = Sitting::begin(&server);
        sitting.is_asked("touch first");
        sitting.terminal.types("3\n\n");
        sitting.end().ended("rejected", 5);
        assert!(!sitting.home.has("first") && !sitting.home.has("second"));
    }
}

#[test]
fn r048_three_rejections_in_a_row_end_the_request() {
    for provider in both() {
        let server = provider.serve([bash("touch a"), bash("touch b"), bash("touch c")]);
        let mut sitting = Sitting::begin(&server);
        for name in ["a", "b", "c"] {
            sitting.is_asked(&format!("touch {name}"));
            sitting.terminal.types("3\nno, and again no\n\n");
        }
        sitting.end().ended("rejected", 5);
    }
}

#[test]
fn r038_what_was_typed_before_the_question_is_no_answer_to_it() {
    for provider in both() {
        let server = provider.serve([bash("touch ran").when_released()]);
        let mut sitting = Sitting::begin(&server);
        server.wait_for_requests(1);
        sitting.terminal.types("1\n2\n");
        // The terminal itself shows what is typed, as soon as it has it.
        sitting.terminal.wait_for("2\r\n");
        server.release();
        sitting.is_asked("touch ran");
        sitting.terminal.types("3\n\n");
        sitting.end().ended("rejected", 5);
        assert!(!sitting.home.has("ran"));
    }
}

#[test]
fn r100_ctrl_c_in_the_dialog_stops_the_request() {
    for provider in both() {
        let server = provider.serve([bash("touch ran")]);
        let mut sitting = Sitting::begin(&server);
        sitting.is_asked("touch ran");
        sitting.terminal.types("\u{3}");
        sitting.end().ended("aborted", 130);
        assert!(!sitting.home.has("ran"));
    }
}

#[test]
fn r042_control_characters_hide_nothing_from_the_user() {
    let [provider, _] = both();
    let server = provider.serve([bash("touch ran #\r\u{1b}[2K\u{202e}echo harmless"), says("No.")]);
    let mut sitting = Sitting::begin(&server);
    sitting.is_asked("touch ran #\\u{d}\\u{1b}[2K\\u{202e}echo harmless");
    sitting.terminal.types("3\nno\n\n");
    sitting.end().answered("No.");
}

#[test]
fn r042_empty_lines_push_nothing_off_the_screen() {
    let [provider, _] = both();
    for end in ["\n", "    \n"] {
        let server = provider.serve([bash(&format!("touch ran{}echo harmless", end.repeat(44))), says("No.")]);
        let mut sitting = Sitting::begin(&server);
        sitting.is_asked("echo harmless");
        let seen = sitting.terminal.sees();
        assert!(seen.contains("wants to run this command") && seen.contains("    touch ran"), "{seen}");
        assert!(seen.contains("43 empty lines"), "{seen}");
        sitting.terminal.types("3\nno\n\n");
        sitting.end().answered("No.");
        assert!(!sitting.home.has("ran"));
    }
}

#[test]
fn r042_blanks_that_are_no_space_are_seen() {
    let [provider, _] = both();
    let server = provider.serve([bash("touch\u{a0}ran\u{3000}\u{2003}\u{1bca0}\u{1d159}\u{70f}\u{1680}; ls \r\ntrue"), says("No.")]);
    let mut sitting = Sitting::begin(&server);
    sitting.is_asked("touch\\u{a0}ran\\u{3000}\\u{2003}\\u{1bca0}\\u{1d159}\\u{70f}\\u{1680}; ls \\u{d}");
    sitting.terminal.types("3\nno\n\n");
    sitting.end().answered("No.");
}

#[test]
fn what_is_told_of_a_request_breaks_between_words() {
    let [provider, _] = both();
    let home = home();
    let text = "Of all the words in this long answer none is broken in two, whatever the width of the terminal that it is shown on may be.";
    let reply = calls("bash", json!({"command": format!("echo '{text}'")}));
    let server = provider.serve([reply, says(text)]);
    let mut terminal = Terminal::start(&home.task(&server, &["--mode", "auto"]), None);
    assert_eq!(terminal.wait(), 0, "{}", terminal.screen());
    let seen = terminal.wait_to_see("the end", |seen| seen.contains("answered ·"));
    assert!(seen.lines().all(|row| row.chars().count() < 80), "{seen}");
    let words: Vec<&str> = seen.split_whitespace().collect();
    let all: Vec<&str> = text.split(' ').collect();
    // Once as the result of the call, and once as the answer.
    assert_eq!(words.windows(all.len()).filter(|window| *window == all).count(), 2, "{seen}");
}

#[test]
fn r130_at_a_terminal_each_text_is_shown_once() {
    for provider in both() {
        let home = home();
        let server = provider.serve([says("First I try it.").call("bash", json!({"command": "echo tried"})), says("It works: Grüße.\n")]);
        let mut terminal = Terminal::start(&home.task(&server, &[]), None);
        terminal.wait_for("First I try it.");
        terminal.wait_for("\n> ");
        // Nothing was drawn over it.
        terminal.wait_to_see_text("First I try it.\n\n? bash wants to run");
        terminal.types("1\n");
        assert_eq!(terminal.wait(), 0, "{}", terminal.screen());
        terminal.wait_for("It works: Grüße.\r\n");
        let screen = terminal.screen();
        for text in ["First I try it.", "It works: Grüße."] {
            assert_eq!(screen.matches(text).count(), 1, "{text}:\n{screen}");
        }
        assert!(screen.contains("✓ bash echo tried"), "{screen}");
    }
}

#[test]
fn r040_a_session_that_goes_on_has_forgotten_what_was_allowed() {
    for provider in both() {
        let server = provider.serve([bash("git rev-parse --sq-quote one"), says("Made.")]);
        let mut sitting = Sitting::begin(&server);
        sitting.is_asked("git rev-parse --sq-quote one");
        sitting.terminal.types("2\n");
        sitting.end().answered("Made.");

        let server = provider.serve([bash("git rev-parse --sq-quote two"), says("Made.")]);
        let report = File::create(sitting.home.path().join("report.json")).expect("it can be made");
        sitting.terminal = Terminal::start(&sitting.home.task(&server, &["--continue", "--output", "json"]), Some(report));
        sitting.is_asked("git rev-parse --sq-quote two");
        sitting.terminal.types("1\n");
        sitting.end().answered("Made.");
    }
}

#[test]
fn r008_a_rejection_resets_neither_the_id_nor_what_was_counted() {
    for provider in both() {
        let home = home().with("a.txt", "x");
        let server = provider.serve([bash("touch ran"), calls("read_file", json!({"path": "a.txt"})), says("Done.")]);
        let report = File::create(home.path().join("report.json")).expect("it can be made");
        let terminal = Terminal::start(&home.task(&server, &["--output", "stream-json"]), Some(report));
        let mut sitting = Sitting { home, terminal };
        sitting.is_asked("touch ran");
        sitting.terminal.types("3\nLook first.\n\n");
        let ran = sitting.end();
        ran.answered("Done.");
        let lines = ran.lines();
        let started: Vec<_> = lines.iter().filter(|line| line["type"] == "request_started").collect();
        let [started] = started[..] else { panic!("it began more than once: {started:?}") };
        let report = ran.report();
        assert_eq!((&started["prompt"], &started["request"]), (&json!("The task."), &report["request"]));
        let turns: Vec<_> = lines.iter().filter(|line| line["type"] == "turn_started").map(|line| line["turn"].clone()).collect();
        assert_eq!(turns, [1, 2, 3]);
        assert_eq!((&report["turns"], report["calls"].as_array().map(Vec::len)), (&json!(3), Some(2)));
        // the user's words stand in the result, and there is no second prompt.
        assert_eq!(server.last_request().user_texts(), ["The task."]);
    }
}

#[test]
fn r037_reading_asks_nobody_and_a_command_beside_it_does() {
    for provider in both() {
        let home = home().with("a.txt", "a needle\n");
        let all = calls("read_file", json!({"path": "a.txt"}))
            .call("grep", json!({"pattern": "needle"}))
            .call("glob", json!({"pattern": "*.txt"}))
            .call("list_dir", json!({"path": "."}))
            .call("todo", json!({"items": null}))
            .call("bash", json!({"command": "touch ran"}));
        let server = provider.serve([all, says("Done.")]);
        let report = File::create(home.path().join("report.json")).expect("it can be made");
        let terminal = Terminal::start(&home.task(&server, &["--output", "json"]), Some(report));
        let mut sitting = Sitting { home, terminal };
        // right before its own slot, when all that comes before it is done.
        sitting.is_asked("touch ran");
        assert_eq!(sitting.terminal.screen().matches(" wants to ").count(), 1, "{}", sitting.terminal.screen());
        sitting.terminal.types("1\n");
        sitting.end().answered("Done.");
        assert_eq!(sitting.terminal.screen().matches(" wants to ").count(), 1);
        let results = server.last_request().results();
        assert!(results.len() == 6 && results[..5].iter().all(|result| !result.is_error), "{results:?}");
    }
}

#[test]
fn r043_the_second_question_comes_when_the_first_call_is_done() {
    let [provider, _] = both();
    let server = provider.serve([bash("touch first").call("bash", json!({"command": "touch second"})), says("Done.")]);
    let mut sitting = Sitting::begin(&server);
    sitting.is_asked("touch first");
    assert!(!sitting.terminal.screen().contains("touch second"), "one dialog at a time");
    sitting.terminal.types("1\n");
    sitting.is_asked("touch second");
    assert!(sitting.home.has("first") && !sitting.home.has("second"));
    sitting.terminal.types("1\n");
    sitting.end().answered("Done.");
}
