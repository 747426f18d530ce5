//! A request that is stopped at each of the points of R-100, and goes on in a new process, with
//! either provider.

use std::path::PathBuf;
use std::process::Command;

use cofferdam_tests::guests::TestGuest;
use cofferdam_tests::program::{RunningProgram, wait_for_sleep, wait_until};
use cofferdam_tests::terminal::TestTerminal;
use cofferdam_tests::wire::{
    Provider, ProviderServer, ReceivedRequest, ScriptedReply, both_providers, call_reply,
    empty_reply, error_reply, hanging_reply, text_reply,
};
use serde_json::json;

use super::TestUser;

/// A point at which Ctrl-C may come.
struct AbortPoint {
    name: &'static str,
    script: fn() -> Vec<ScriptedReply>,
    args: &'static [&'static str],
    trigger: AbortTrigger,
    /// Text of the stopped turn that is kept, once.
    kept_text: Option<&'static str>,
    /// What the calls of the stopped turn came to, in words of their results.
    results: &'static [&'static str],
}

/// When that is.
#[derive(Clone, Copy)]
enum AbortTrigger {
    /// The request has arrived, and nothing comes back.
    RequestSent,
    /// This is on standard output.
    OutputShown(&'static str),
    /// The user is asked about this command.
    QuestionAsked(&'static str),
    /// The conversation is nearly as large as the model's window, and the model is asked for a
    /// summary.
    SummaryRequested,
    /// A line that begins like this was written, and is on its way to the disk.
    LineWritten(&'static str),
}

fn bash_call(command: &str) -> serde_json::Value {
    json!({"command": command})
}

const ABORT_POINTS: &[AbortPoint] = &[
    AbortPoint {
        name: "before the first byte",
        script: || vec![hanging_reply()],
        args: &[],
        trigger: AbortTrigger::RequestSent,
        kept_text: None,
        results: &[],
    },
    AbortPoint {
        name: "while text is streaming",
        script: || {
            vec![
                empty_reply().with_thinking("I think.").with_text("The first words").then_hanging(),
            ]
        },
        args: &[],
        // The last piece of it: all of it has come.
        trigger: AbortTrigger::OutputShown("\"s\""),
        kept_text: Some("The first words"),
        results: &[],
    },
    AbortPoint {
        name: "while arguments are streaming",
        script: || {
            vec![
                text_reply("Now I write.").with_call("bash", bash_call("touch ran")).then_hanging(),
            ]
        },
        args: &["--mode", "auto"],
        trigger: AbortTrigger::OutputShown("rite."),
        kept_text: Some("Now I write."),
        results: &[],
    },
    AbortPoint {
        name: "in a dialog",
        script: || {
            vec![
                empty_reply()
                    .with_thinking("I think.")
                    .with_call("bash", bash_call("touch ran"))
                    .with_call("bash", bash_call("touch ran")),
            ]
        },
        args: &[],
        trigger: AbortTrigger::QuestionAsked("touch ran"),
        kept_text: None,
        // The first one's tool was at work, up to its question: it hears of the stop, or is
        // interrupted before it does.
        results: &["", "was not run"],
    },
    AbortPoint {
        name: "in parallel tools",
        script: || {
            vec![empty_reply().with_raw_call("p1", "sleep_an_hour", "{}").with_raw_call(
                "p2",
                "sleep_an_hour",
                "",
            )]
        },
        args: &["--max-parallel", "2", "--plugin", "sleep.wasm"],
        trigger: AbortTrigger::OutputShown("\"p2\""),
        kept_text: None,
        results: &["interrupted", "interrupted"],
    },
    AbortPoint {
        name: "in sequential tools",
        script: || {
            let first = call_reply("read_file", json!({"path": "there.txt"}))
                .with_call("bash", bash_call("sleep 100"));
            vec![first.with_call("bash", bash_call("touch ran")).with_thinking("I think.")]
        },
        args: &["--mode", "auto"],
        trigger: AbortTrigger::OutputShown("sleep 100"),
        kept_text: None,
        results: &["It is there.", "interrupted", "was not run"],
    },
    AbortPoint {
        name: "in a pause before another attempt, after a turn that is done",
        script: || {
            let busy =
                error_reply(429, "rate_limit_error", "slow down").with_header("retry-after", 50);
            vec![call_reply("bash", bash_call("echo done")), busy]
        },
        args: &["--mode", "auto"],
        trigger: AbortTrigger::OutputShown("\"retry\""),
        kept_text: None,
        results: &["done"],
    },
    AbortPoint {
        name: "while a summary is made",
        script: || {
            let read = |name: &str| {
                call_reply("read_file", json!({"path": format!("{name}.txt")})).with_usage(None)
            };
            vec![read("alpha"), read("beta"), read("gamma"), text_reply("They read").then_hanging()]
        },
        args: &[],
        trigger: AbortTrigger::SummaryRequested,
        kept_text: None,
        results: &["alpha alpha", "beta beta", "gamma gamma"],
    },
    AbortPoint {
        name: "while the prompt is saved, with the start of a call",
        script: || vec![call_reply("bash", bash_call("touch ran"))],
        args: &["--mode", "auto"],
        trigger: AbortTrigger::LineWritten("{\"started\""),
        kept_text: None,
        results: &["interrupted"],
    },
    AbortPoint {
        name: "while the end of a turn is saved",
        script: || vec![call_reply("bash", bash_call("echo done"))],
        args: &["--mode", "auto"],
        trigger: AbortTrigger::LineWritten("{\"closed\""),
        kept_text: None,
        results: &["done"],
    },
    AbortPoint {
        name: "while the answer is saved",
        script: || vec![text_reply("All is said.")],
        args: &[],
        trigger: AbortTrigger::LineWritten("{\"turn\""),
        kept_text: Some("All is said."),
        results: &[],
    },
    AbortPoint {
        name: "while the outcome is saved",
        script: || vec![text_reply("All is said.")],
        args: &[],
        trigger: AbortTrigger::LineWritten("{\"outcome\""),
        kept_text: Some("All is said."),
        results: &[],
    },
    AbortPoint {
        name: "while the text of a failure is saved",
        script: || vec![text_reply("All is sa").with_error("server_error", "no more")],
        args: &[],
        trigger: AbortTrigger::LineWritten("{\"turn\""),
        kept_text: Some("All is sa"),
        results: &[],
    },
];

const CONFIG: &str = "config/cofferdam/config.toml";

/// Runs to the point and stops there.
fn run_to_point(user: &TestUser, server: &ProviderServer, point: &AbortPoint) {
    user.home.write_file(CONFIG, server.provider().config(""));
    let mut args = vec!["--output", "stream-json"];
    args.extend(point.args);
    let task = user.home.model_command(server, &args);
    let interrupt = |running: RunningProgram| {
        running.interrupt();
        running.wait_for_exit()
    };
    let code = match point.trigger {
        AbortTrigger::RequestSent => {
            let running = user.home.start(task);
            server.wait_for_requests(1);
            interrupt(running).exit_code
        }
        AbortTrigger::OutputShown(text) => {
            let running = user.home.start(task);
            running.wait_for_stdout(text);
            interrupt(running).exit_code
        }
        AbortTrigger::QuestionAsked(command) => {
            let mut terminal = TestTerminal::start(&task, None);
            terminal.wait_for_output("wants to run this command");
            terminal.wait_for_output(command);
            terminal.wait_for_output("\n> ");
            terminal.type_keys("\u{3}");
            terminal.wait_for_exit()
        }
        AbortTrigger::SummaryRequested => {
            // Small enough for three files to fill it; for whoever goes on it is large again.
            user.home.write_file(CONFIG, server.provider().config("context_window = 48000\n"));
            for name in ["alpha", "beta", "gamma"] {
                user.home.write_file(
                    &format!("workspace/{name}.txt"),
                    format!("{}\n", format!("{name} ").repeat(20)).repeat(250),
                );
            }
            let running = user.home.start(task);
            running.wait_for_stdout("\"summarising\"");
            server.wait_for_requests(4);
            interrupt(running).exit_code
        }
        AbortTrigger::LineWritten(line) => {
            let saving = SlowWrite::for_line(user, line);
            let running = user.home.start(saving.slow_down(task));
            saving.wait();
            running.interrupt();
            // The signal has arrived before the write is done: what follows it must not begin.
            running.wait_for_stderr("stopping");
            saving.resume_request();
            running.wait_for_exit().exit_code
        }
    };
    // A stop that comes with the last word comes too late.
    let is_said =
        point.kept_text.is_some() && matches!(point.trigger, AbortTrigger::LineWritten(_));
    assert!(code == 130 || (is_said && [0, 7].contains(&code)), "{}: exit code {code}", point.name);
}

/// A write to the disk that takes its time: see `cofferdam-under-test.rs`.
struct SlowWrite {
    folder: PathBuf,
}

impl SlowWrite {
    /// Where a line is saved that begins like this.
    fn for_line(user: &TestUser, line: &str) -> Self {
        user.home.write_file("saving/at", line);
        Self { folder: user.home.path().join("saving") }
    }

    fn slow_down(&self, mut command: Command) -> Command {
        command.env("COFFERDAM_TEST_SYNC", &self.folder);
        command
    }

    fn wait(&self) {
        wait_until("the line is on its way to the disk", || self.folder.join("reached").exists());
    }

    fn resume_request(&self) {
        std::fs::write(self.folder.join("go"), "").expect("it can be written");
    }
}

/// Goes on in a new process, and gives what the model was told.
fn go_on(user: &TestUser, provider: Provider, prompt: &str) -> ReceivedRequest {
    user.home.write_file(CONFIG, provider.config(""));
    let server = provider.serve([text_reply("I go on.")]);
    let (model, address) = (provider.model(), server.base_url());
    let arguments =
        ["run", "--continue", prompt, "--model", model, "--base-url", &address, "--output", "json"];
    let mut command = user.home.command(&arguments);
    command.env(provider.key_variable(), server.key());
    user.home.start(command).wait_for_exit().expect_answer("I go on.");
    server.request()
}

#[test]
fn r063_r099_r100_r102_stopped_anywhere_a_session_goes_on_with_either_provider() {
    let others =
        [(Provider::Responses, Provider::Anthropic), (Provider::OpenAi, Provider::Responses)];
    let directions = both_providers()
        .into_iter()
        .flat_map(|first| both_providers().map(|second| (first, second)))
        .chain(others);
    for (point, (first, second)) in ABORT_POINTS
        .iter()
        .flat_map(|point| directions.clone().map(move |direction| (point, direction)))
    {
        let place = format!("{}, {first:?}, then {second:?}", point.name);
        let user = TestUser::new();
        user.home.write_file("workspace/there.txt", "It is there.\n");
        user.home
            .write_file("workspace/sleep.wasm", TestGuest::from_file("sleep-an-hour").component());
        assert_eq!(
            user.run(&["lock", "--yes", "--plugin", "sleep.wasm"]).exit_code,
            0,
            "the plugin is accepted"
        );
        run_to_point(&user, &first.serve((point.script)()), point);
        assert!(!user.home.has_file("ran"), "{place}");

        let asked = go_on(&user, second, "Go on, please.");
        for prompt in ["The task.", "Go on, please."] {
            assert_eq!(asked.count_occurrences(prompt), 1, "{place}: {:#}", asked.body);
        }
        // what had come is kept, once.
        if let Some(text) = point.kept_text {
            assert_eq!(asked.count_occurrences(text), 1, "{place}: {:#}", asked.body);
        }
        let results = all_results(&asked);
        let fits = results.len() == point.results.len()
            && results.iter().zip(point.results).all(|(result, words)| result.contains(words));
        assert!(fits, "{place}: {results:#?} are not {:#?}", point.results);

        // And back again. The other one's answer is part of what was said.
        let asked = go_on(&user, first, "And now?");
        assert_eq!(
            (
                asked.count_occurrences("Go on, please."),
                asked.count_occurrences("I go on."),
                asked.count_occurrences("And now?")
            ),
            (1, 1, 1),
            "{place}"
        );
        assert_eq!(all_results(&asked), results, "{place}");
        assert!(!user.home.has_file("ran"), "{place}: it was run after all");
    }
}

/// The texts of all results of a request, in their order.
fn all_results(request: &ReceivedRequest) -> Vec<String> {
    let messages = request.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let blocks =
        |message: &serde_json::Value| message["content"].as_array().cloned().unwrap_or_default();
    let text = |block: serde_json::Value| {
        block["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    };
    match request.provider {
        Provider::OpenAi => {
            let results = messages.iter().filter(|message| message["role"] == "tool");
            results
                .map(|message| message["content"].as_str().unwrap_or_default().to_owned())
                .map(strip_error_mark)
                .collect()
        }
        // There, calls and results are items beside messages, and one request has those of all
        // turns.
        Provider::Responses => {
            let items = request.body["input"].as_array().cloned().unwrap_or_default();
            let outputs = items.iter().filter_map(|item| item["output"].as_str());
            outputs.map(|text| strip_error_mark(text.to_owned())).collect()
        }
        Provider::Anthropic => messages
            .iter()
            .flat_map(blocks)
            .filter(|block| block["type"] == "tool_result")
            .map(text)
            .collect(),
    }
}

/// Chat completions have no field for errors, so that a word stands for it.
fn strip_error_mark(text: String) -> String {
    text.strip_prefix("Error: ").map_or(text.clone(), str::to_owned)
}

#[test]
fn r090_thinking_goes_back_to_whose_it_is_and_to_nobody_else() {
    for (first, second) in both_providers()
        .into_iter()
        .flat_map(|first| both_providers().map(|second| (first, second)))
    {
        let user = TestUser::new();
        user.home.write_file("workspace/there.txt", "It is there.\n");
        let read = empty_reply()
            .with_thinking("I look first.")
            .with_call("read_file", json!({"path": "there.txt"}));
        let server = first
            .serve([read, empty_reply().with_thinking("I have it.").with_text("It is there.")]);
        user.home
            .start(user.home.model_command(&server, &["--output", "json"]))
            .wait_for_exit()
            .expect_answer("It is there.");
        // Within the request: chat completions do not take thinking back.
        let is_anthropic = |provider| provider == Provider::Anthropic;
        assert_eq!(
            server.last_request().count_occurrences("I look first."),
            usize::from(is_anthropic(first))
        );
        drop(server);

        let asked = go_on(&user, second, "Sure?");
        let expected = usize::from(is_anthropic(first) && is_anthropic(second));
        for thought in ["I look first.", "I have it.", "signature-1", "signature-2"] {
            assert_eq!(
                asked.count_occurrences(thought),
                expected,
                "{first:?}, then {second:?}: {thought} in {:#}",
                asked.body
            );
        }
        assert_eq!(all_results(&asked).len(), 1);
    }
}

#[test]
fn r107_a_second_ctrl_c_leaves_and_what_happened_is_saved() {
    for provider in both_providers() {
        let user = TestUser::new();
        let stubborn = "trap '' TERM; while true; do sleep 0.1025; done";
        let server = provider.serve([
            call_reply("bash", bash_call("echo first")),
            call_reply("bash", bash_call(stubborn)),
        ]);
        let running = user.home.start(
            user.home.model_command(&server, &["--mode", "auto", "--output", "stream-json"]),
        );
        wait_for_sleep("0.1025");
        running.interrupt();
        running.interrupt();
        assert_eq!(running.wait_for_exit().exit_code, 130);
        let results = all_results(&go_on(&user, provider, "What happened?"));
        assert!(
            results.len() == 2
                && results[0].contains("first")
                && results[1].contains("interrupted"),
            "{results:?}"
        );
    }
}

#[test]
fn r107_a_second_ctrl_c_while_a_line_is_saved_leaves_once_it_is() {
    let [openai, anthropic] = both_providers();
    for (first, second) in [(openai, anthropic), (anthropic, openai)] {
        let user = TestUser::new();
        let server = first.serve([call_reply("bash", bash_call("echo first"))]);
        let saving = SlowWrite::for_line(&user, "{\"closed\"");
        let running = user.home.start(saving.slow_down(
            user.home.model_command(&server, &["--mode", "auto", "--output", "stream-json"]),
        ));
        saving.wait();
        running.interrupt();
        // Two signals at once would be one.
        running.wait_for_stderr("stopping");
        running.interrupt();
        saving.resume_request();
        assert_eq!(running.wait_for_exit().exit_code, 130);
        let asked = go_on(&user, second, "What happened?");
        let results = all_results(&asked);
        assert!(results.len() == 1 && results[0].contains("first"), "{results:?}");
    }
}

#[test]
fn r107_a_disk_that_never_answers_does_not_keep_who_wants_to_leave() {
    let [first, second] = both_providers();
    let user = TestUser::new();
    let server = first.serve([call_reply("bash", bash_call("echo first"))]);
    let saving = SlowWrite::for_line(&user, "{\"closed\"");
    let running = user.home.start(saving.slow_down(
        user.home.model_command(&server, &["--mode", "auto", "--output", "stream-json"]),
    ));
    saving.wait();
    running.interrupt();
    running.wait_for_stderr("stopping");
    running.interrupt();
    assert_eq!(running.wait_for_exit().exit_code, 130);
    // What was written until then is there, as after a crash.
    let results = all_results(&go_on(&user, second, "What happened?"));
    assert!(results.len() == 1 && results[0].contains("first"), "{results:?}");
}
