//! How a request can end: each outcome with its exit code and its report, and that a
//! session goes on after it.

use cofferdam::agent::RequestOutcome;
use cofferdam_tests::program::{ProgramOutput, TestHome};
use cofferdam_tests::terminal::TestTerminal;
use cofferdam_tests::wire::{
    Provider, ProviderServer, ScriptedReply, both_providers, call_reply, empty_reply, error_reply,
    hanging_reply, text_reply,
};
use serde_json::{Value, json};

use super::new_home;

/// How to come to an outcome from outside.
enum OutcomeScenario {
    /// With these replies and arguments.
    Replies(Vec<ScriptedReply>, &'static [&'static str]),
    /// With these, and Ctrl-C once all of them went out.
    Interrupt(Vec<ScriptedReply>),
    /// At a terminal, with this typed when something is asked.
    Typed(Vec<ScriptedReply>, &'static str),
    /// It takes a fault of the program. That there is none is what the other tests are for; what
    /// the loop does with one is tested inside of it
    /// (`r060_a_conversation_that_breaks_a_rule_is_never_sent`), and its exit code beside the
    /// others.
    InternalFault,
}

/// One outcome in a table.
struct OutcomeRow {
    exit_code: u8,
    scenario: OutcomeScenario,
    /// What the report says.
    text: Value,
    error: Option<&'static str>,
}

fn read_call() -> ScriptedReply {
    call_reply("read_file", json!({"path": "a.txt"}))
}

/// A row for each outcome: one that is missing does not compile.
fn outcome_row(outcome: &RequestOutcome) -> OutcomeRow {
    let none = Value::Null;
    let bash = || call_reply("bash", json!({"command": "touch ran"}));
    match outcome {
        RequestOutcome::Answered { .. } => OutcomeRow {
            exit_code: 0,
            scenario: OutcomeScenario::Replies(vec![read_call(), text_reply("The answer.")], &[]),
            text: json!("The answer."),
            error: None,
        },
        RequestOutcome::Limit { .. } => {
            let play = OutcomeScenario::Replies(
                vec![read_call(), text_reply("So far.")],
                &["--max-tool-iterations", "1"],
            );
            OutcomeRow { exit_code: 3, scenario: play, text: json!("So far."), error: None }
        }
        RequestOutcome::Empty => OutcomeRow {
            exit_code: 4,
            scenario: OutcomeScenario::Replies(
                vec![read_call(), empty_reply(), empty_reply()],
                &[],
            ),
            text: none,
            error: None,
        },
        RequestOutcome::Rejected => OutcomeRow {
            exit_code: 5,
            scenario: OutcomeScenario::Typed(vec![read_call(), bash()], "3\n\n"),
            text: none,
            error: None,
        },
        RequestOutcome::TimedOut { .. } => OutcomeRow {
            exit_code: 6,
            scenario: OutcomeScenario::Replies(
                vec![read_call(), hanging_reply()],
                &["--timeout", "2"],
            ),
            text: none,
            error: None,
        },
        RequestOutcome::ProviderError { .. } => {
            let play = OutcomeScenario::Replies(
                vec![read_call(), error_reply(400, "invalid_request_error", "no such thing")],
                &[],
            );
            OutcomeRow { exit_code: 7, scenario: play, text: none, error: Some("no such thing") }
        }
        RequestOutcome::Overflow { .. } => {
            let too_large = || error_reply(400, "context_length_exceeded", "prompt is too long");
            let play = OutcomeScenario::Replies(
                vec![read_call(), too_large(), text_reply("Sum."), too_large()],
                &[],
            );
            OutcomeRow {
                exit_code: 8,
                scenario: play,
                text: none,
                error: Some("prompt is too long"),
            }
        }
        RequestOutcome::InternalError { .. } => OutcomeRow {
            exit_code: 70,
            scenario: OutcomeScenario::InternalFault,
            text: none,
            error: Some(""),
        },
        RequestOutcome::Aborted => OutcomeRow {
            exit_code: 130,
            scenario: OutcomeScenario::Interrupt(vec![read_call(), hanging_reply()]),
            text: none,
            error: None,
        },
    }
}

/// One of each.
fn all_outcomes() -> [RequestOutcome; 9] {
    let text = String::new;
    [
        RequestOutcome::Answered { text: text() },
        RequestOutcome::Limit { text: text(), turns: 1 },
        RequestOutcome::Empty,
        RequestOutcome::Rejected,
        RequestOutcome::Aborted,
        RequestOutcome::TimedOut { seconds: 1 },
        RequestOutcome::ProviderError { message: text() },
        RequestOutcome::Overflow { message: text() },
        RequestOutcome::InternalError { message: text() },
    ]
}

fn home_with_files() -> TestHome {
    new_home().with_file("a.txt", format!("{}\n", "found ".repeat(500)))
}

/// Plays it; the run and the server.
fn run_scenario(
    provider: Provider,
    play: OutcomeScenario,
) -> Option<(TestHome, ProgramOutput, ProviderServer)> {
    let home = home_with_files();
    Some(match play {
        OutcomeScenario::InternalFault => return None,
        OutcomeScenario::Replies(replies, args) => {
            let server = provider.serve(replies);
            let ran = home.run_task(&server, args);
            (home, ran, server)
        }
        OutcomeScenario::Interrupt(replies) => {
            let count = replies.len();
            let server = provider.serve(replies);
            let running = home.start(home.model_command(&server, &["--output", "json"]));
            server.wait_for_requests(count);
            running.interrupt();
            (home, running.wait_for_exit(), server)
        }
        OutcomeScenario::Typed(replies, keys) => {
            let server = provider.serve(replies);
            let path = home.path().join("report.json");
            let report = std::fs::File::create(&path).expect("it can be made");
            let mut terminal = TestTerminal::start(
                &home.model_command(&server, &["--output", "json"]),
                Some(report),
            );
            terminal.wait_for_output("wants to run this command");
            terminal.wait_for_output("\n> ");
            terminal.type_keys(keys);
            let code = terminal.wait_for_exit();
            let stdout = std::fs::read_to_string(path).expect("it is there");
            (
                home,
                ProgramOutput {
                    exit_code: code,
                    stdout,
                    stderr: terminal.raw_output(),
                    duration: std::time::Duration::ZERO,
                },
                server,
            )
        }
    })
}

#[test]
fn r099_each_outcome_has_its_exit_code_and_its_report_and_the_session_goes_on() {
    for provider in both_providers() {
        for outcome in all_outcomes() {
            let OutcomeRow { exit_code: code, scenario: play, text, error } = outcome_row(&outcome);
            let Some((home, ran, server)) = run_scenario(provider, play) else { continue };
            let report = ran.expect_outcome(outcome.kind(), i32::from(code));
            assert_eq!(report["text"], text, "{outcome:?}");
            let told = report["error"].as_str();
            assert!(
                told.is_some() == error.is_some()
                    && told.unwrap_or_default().contains(error.unwrap_or_default()),
                "{report}"
            );
            assert!(
                report["turns"].as_u64() >= Some(1),
                "the turn before the end is not lost: {report}"
            );
            drop(server);

            let server = provider.serve([text_reply("Gladly.")]);
            home.run_task(&server, &["--continue"]).expect_answer("Gladly.");
            // what was said and done before is all there.
            assert_eq!(
                server.request().count_occurrences("The task."),
                2,
                "{outcome:?}: the first prompt and the second"
            );
        }
    }
}

#[test]
fn r132_no_two_outcomes_share_an_exit_code() {
    let codes: std::collections::BTreeSet<u8> =
        all_outcomes().iter().map(|outcome| outcome_row(outcome).exit_code).collect();
    assert_eq!(codes.len(), all_outcomes().len());
    let help = new_home().run(&["run", "--help"]).stdout;
    let (_, told) = help.split_once("Exit codes: ").expect("the help tells the codes");
    let told: String =
        told.split('.').next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    for code in codes {
        let is_told = told.split(", ").any(|one| one.split(' ').next() == Some(&code.to_string()));
        assert!(is_told, "{code} is not in the help: {told}");
    }
}

#[test]
fn r049_r104_time_in_a_dialog_does_not_count() {
    let [provider, _] = both_providers();
    let home = home_with_files();
    let server =
        provider.serve([call_reply("bash", json!({"command": "touch ran"})), text_reply("Done.")]);
    let mut terminal = TestTerminal::start(&home.model_command(&server, &["--timeout", "4"]), None);
    terminal.wait_for_output("wants to run this command");
    terminal.wait_for_output("\n> ");
    std::thread::sleep(std::time::Duration::from_secs(5));
    terminal.type_keys("1\n");
    assert_eq!(terminal.wait_for_exit(), 0, "{}", terminal.raw_output());
    assert!(home.has_file("ran"));
}

#[test]
fn r104_when_the_time_is_up_what_runs_is_stopped_and_what_was_done_is_kept() {
    for provider in both_providers() {
        let home = home_with_files();
        home.write_file("config/cofferdam/config.toml", "timeout_seconds = 2\n");
        let bash = |command: &str| ("bash", json!({"command": command}));
        let (tool, first) = bash("touch begun");
        let server = provider.serve([call_reply(tool, first)
            .with_call("bash", bash("touch stopped; sleep 60; touch ended").1)
            .with_call("bash", bash("touch after").1)]);
        let report = home.run_task(&server, &["--mode", "auto"]).expect_outcome("timed-out", 6);
        assert_eq!(report["turns"], 1);
        assert!(home.has_file("begun"));
        assert!(!["stopped", "ended", "after"].iter().any(|name| home.has_file(name)));
    }
}
