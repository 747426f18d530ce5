//! How a request can end: each outcome with its exit code and its report, and that a session goes on after it.

use cofferdam::agent::Outcome;
use cofferdam_tests::program::{Home, Ran};
use cofferdam_tests::terminal::Terminal;
use cofferdam_tests::wire::{Provider, Reply, Server, both, calls, fails, hangs, nothing, says};
use serde_json::{Value, json};

use super::home;

/// How to come to an outcome from outside.
enum Play {
    /// With these replies and arguments.
    Replies(Vec<Reply>, &'static [&'static str]),
    /// With these, and Ctrl-C once all of them went out.
    Interrupt(Vec<Reply>),
    /// At a terminal, with this typed when something is asked.
    Typed(Vec<Reply>, &'static str),
    /// It takes a fault of the program. That there is none is what the other tests are for; what the loop does with one is
    /// tested inside of it (`r060_a_conversation_that_breaks_a_rule_is_never_sent`), and its exit code beside the others.
    Fault,
}

/// One outcome in a table.
struct Row {
    code: u8,
    play: Play,
    /// What the report says.
    text: Value,
    error: Option<&'static str>,
}

fn read() -> Reply {
    calls("read_file", json!({"path": "a.txt"}))
}

/// A row for each outcome: one that is missing does not compile.
fn row(outcome: &Outcome) -> Row {
    let none = Value::Null;
    let bash = || calls("bash", json!({"command": "touch ran"}));
    match outcome {
        Outcome::Answered { .. } => {
            Row { code: 0, play: Play::Replies(vec![read(), says("The answer.")], &[]), text: json!("The answer."), error: None }
        }
        Outcome::Limit { .. } => {
            let play = Play::Replies(vec![read(), says("So far.")], &["--max-tool-iterations", "1"]);
            Row { code: 3, play, text: json!("So far."), error: None }
        }
        Outcome::Empty => Row { code: 4, play: Play::Replies(vec![read(), nothing(), nothing()], &[]), text: none, error: None },
        Outcome::Rejected => Row { code: 5, play: Play::Typed(vec![read(), bash()], "3\n\n"), text: none, error: None },
        Outcome::TimedOut { .. } => {
            Row { code: 6, play: Play::Replies(vec![read(), hangs()], &["--timeout", "2"]), text: none, error: None }
        }
        Outcome::ProviderError { .. } => {
            let play = Play::Replies(vec![read(), fails(400, "invalid_request_error", "no such thing")], &[]);
            Row { code: 7, play, text: none, error: Some("no such thing") }
        }
        Outcome::Overflow { .. } => {
            let too_large = || fails(400, "context_length_exceeded", "prompt is too long");
            let play = Play::Replies(vec![read(), too_large(), says("Sum."), too_large()], &[]);
            Row { code: 8, play, text: none, error: Some("prompt is too long") }
        }
        Outcome::InternalError { .. } => Row { code: 70, play: Play::Fault, text: none, error: Some("") },
        Outcome::Aborted => Row { code: 130, play: Play::Interrupt(vec![read(), hangs()]), text: none, error: None },
    }
}

/// One of each.
fn all() -> [Outcome; 9] {
    let text = String::new;
    [
        Outcome::Answered { text: text() },
        Outcome::Limit { text: text(), turns: 1 },
        Outcome::Empty,
        Outcome::Rejected,
        Outcome::Aborted,
        Outcome::TimedOut { seconds: 1 },
        Outcome::ProviderError { message: text() },
        Outcome::Overflow { message: text() },
        Outcome::InternalError { message: text() },
    ]
}

fn furnished() -> Home {
    home().with("a.txt", format!("{}\n", "found ".repeat(500)))
}

/// Plays it; the run and the server.
fn played(provider: Provider, play: Play) -> Option<(Home, Ran, Server)> {
    let home = furnished();
    Some(match play {
        Play::Fault => return None,
        Play::Replies(replies, args) => {
            let server = provider.serve(replies);
            let ran = home.ask(&server, args);
            (home, ran, server)
        }
        Play::Interrupt(replies) => {
            let count = replies.len();
            let server = provider.serve(replies);
            let running = home.start(home.task(&server, &["--output", "json"]));
            server.wait_for_requests(count);
            running.interrupt();
            (home, running.wait(), server)
        }
        Play::Typed(replies, keys) => {
            let server = provider.serve(replies);
            let path = home.path().join("report.json");
            let report = std::fs::File::create(&path).expect("it can be made");
            let mut terminal = Terminal::start(&home.task(&server, &["--output", "json"]), Some(report));
            terminal.wait_for("wants to run this command");
            terminal.wait_for("\n> ");
            terminal.types(keys);
            let code = terminal.wait();
            let stdout = std::fs::read_to_string(path).expect("it is there");
            (home, Ran { code, stdout, stderr: terminal.screen(), time: std::time::Duration::ZERO }, server)
        }
    })
}

#[test]
fn r099_each_outcome_has_its_exit_code_and_its_report_and_the_session_goes_on() {
    for provider in both() {
        for outcome in all() {
            let Row { code, play, text, error } = row(&outcome);
            let Some((home, ran, server)) = played(provider, play) else { continue };
            let report = ran.ended(outcome.kind(), i32::from(code));
            assert_eq!(report["text"], text, "{outcome:?}");
            let told = report["error"].as_str();
            assert!(told.is_some() == error.is_some() && told.unwrap_or_default().contains(error.unwrap_or_default()), "{report}");
            assert!(report["turns"].as_u64() >= Some(1), "the turn before the end is not lost: {report}");
            drop(server);

            let server = provider.serve([says("Gladly.")]);
            home.ask(&server, &["--continue"]).answered("Gladly.");
            // what was said and done before is all there.
            assert_eq!(server.request().count("The task."), 2, "{outcome:?}: the first prompt and the second");
        }
    }
}

#[test]
fn r132_no_two_outcomes_share_an_exit_code() {
    let codes: std::collections::BTreeSet<u8> = all().iter().map(|outcome| row(outcome).code).collect();
    assert_eq!(codes.len(), all().len());
    let help = home().run(&["run", "--help"]).stdout;
    let (_, told) = help.split_once("Exit codes: ").expect("the help tells the codes");
    let told: String = told.split('.').next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    for code in codes {
        let is_told = told.split(", ").any(|one| one.split(' ').next() == Some(&code.to_string()));
        assert!(is_told, "{code} is not in the help: {told}");
    }
}

#[test]
fn r049_r104_time_in_a_dialog_does_not_count() {
    let [provider, _] = both();
    let home = furnished();
    let server = provider.serve([calls("bash", json!({"command": "touch ran"})), says("Done.")]);
    let mut terminal = Terminal::start(&home.task(&server, &["--timeout", "4"]), None);
    terminal.wait_for("wants to run this command");
    terminal.wait_for("\n> ");
    std::thread::sleep(std::time::Duration::from_secs(5));
    terminal.types("1\n");
    assert_eq!(terminal.wait(), 0, "{}", terminal.screen());
    assert!(home.has("ran"));
}

#[test]
fn r104_when_the_time_is_up_what_runs_is_stopped_and_what_was_done_is_kept() {
    for provider in both() {
        let home = furnished();
        home.write("config/cofferdam/config.toml", "timeout_seconds = 2\n");
        let server = provider.serve([
            calls("bash", json!({"command": "touch begun; sleep 60; touch ended"})).call("bash", json!({"command": "touch after"}))
        ]);
        let report = home.ask(&server, &["--mode", "auto"]).ended("timed-out", 6);
        assert_eq!(report["turns"], 1);
        assert!(home.has("begun") && !home.has("ended") && !home.has("after"));
    }
}
