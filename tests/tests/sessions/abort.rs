//! A request that is stopped at each of the points of R-100, and goes on in a new process, with either provider.

use std::path::PathBuf;
use std::process::Command;

use cofferdam_tests::guests::Guest;
use cofferdam_tests::program::{Running, wait_until};
use cofferdam_tests::terminal::Terminal;
use cofferdam_tests::wire::{Provider, Reply, Request, Server, both, calls, fails, hangs, nothing, says};
use serde_json::json;

use super::User;

/// A point at which Ctrl-C may come.
struct Point {
    name: &'static str,
    script: fn() -> Vec<Reply>,
    args: &'static [&'static str],
    when: When,
    /// Text of the stopped turn that is kept, once.
    text: Option<&'static str>,
    /// What the calls of the stopped turn came to, in words of their results.
    results: &'static [&'static str],
}

/// When that is.
#[derive(Clone, Copy)]
enum When {
    /// The request has arrived, and nothing comes back.
    Asked,
    /// This is on standard output.
    Shown(&'static str),
    /// The user is asked about this command.
    InTheDialog(&'static str),
    /// The conversation is nearly as large as the model's window, and the model is asked for a summary.
    Summarising,
    /// A line that begins like this was written, and is on its way to the disk.
    Saving(&'static str),
}

fn bash(command: &str) -> serde_json::Value {
    json!({"command": command})
}

const POINTS: &[Point] = &[
    Point { name: "before the first byte", script: || vec![hangs()], args: &[], when: When::Asked, text: None, results: &[] },
    Point {
        name: "while text is streaming",
        script: || vec![nothing().thinks("I think.").text("The first words").then_hangs()],
        args: &[],
        // The last piece of it: all of it has come.
        when: When::Shown("\"s\""),
        text: Some("The first words"),
        results: &[],
    },
    Point {
        name: "while arguments are streaming",
        script: || vec![says("Now I write.").call("bash", bash("touch ran")).then_hangs()],
        args: &["--mode", "auto"],
        when: When::Shown("rite."),
        text: Some("Now I write."),
        results: &[],
    },
    Point {
        name: "in a dialog",
        script: || vec![nothing().thinks("I think.").call("bash", bash("touch ran")).call("bash", bash("touch ran"))],
        args: &[],
        when: When::InTheDialog("touch ran"),
        text: None,
        // The first one's tool was at work, up to its question: it hears of the stop, or is interrupted before it does.
        results: &["", "was not run"],
    },
    Point {
        name: "in parallel tools",
        script: || vec![nothing().raw_call("p1", "sleep_an_hour", "{}").raw_call("p2", "sleep_an_hour", "")],
        args: &["--max-parallel", "2", "--plugin", "sleep.wasm"],
        when: When::Shown("\"p2\""),
        text: None,
        results: &["interrupted", "interrupted"],
    },
    Point {
        name: "in sequential tools",
        script: || {
            let first = calls("read_file", json!({"path": "there.txt"})).call("bash", bash("sleep 100"));
            vec![first.call("bash", bash("touch ran")).thinks("I think.")]
        },
        args: &["--mode", "auto"],
        when: When::Shown("sleep 100"),
        text: None,
        results: &["It is there.", "interrupted", "was not run"],
    },
    Point {
        name: "in a pause before another attempt, after a turn that is done",
        script: || {
            let busy = fails(429, "rate_limit_error", "slow down").header("retry-after", 50);
            vec![calls("bash", bash("echo done")), busy]
        },
        args: &["--mode", "auto"],
        when: When::Shown("\"retry\""),
        text: None,
        results: &["done"],
    },
    Point {
        name: "while a summary is made",
        script: || {
            let read = |name: &str| calls("read_file", json!({"path": format!("{name}.txt")})).usage(None);
            vec![read("alpha"), read("beta"), read("gamma"), says("They read").then_hangs()]
        },
        args: &[],
        when: When::Summarising,
        text: None,
        results: &["alpha alpha", "beta beta", "gamma gamma"],
    },
    Point {
        name: "while the prompt is saved, with the start of a call",
        script: || vec![calls("bash", bash("touch ran"))],
        args: &["--mode", "auto"],
        when: When::Saving("{\"started\""),
        text: None,
        results: &["interrupted"],
    },
    Point {
        name: "while the end of a turn is saved",
        script: || vec![calls("bash", bash("echo done"))],
        args: &["--mode", "auto"],
        when: When::Saving("{\"closed\""),
        text: None,
        results: &["done"],
    },
    Point {
        name: "while the answer is saved",
        script: || vec![says("All is said.")],
        args: &[],
        when: When::Saving("{\"turn\""),
        text: Some("All is said."),
        results: &[],
    },
    Point {
        name: "while the outcome is saved",
        script: || vec![says("All is said.")],
        args: &[],
        when: When::Saving("{\"outcome\""),
        text: Some("All is said."),
        results: &[],
    },
    Point {
        name: "while the text of a failure is saved",
        script: || vec![says("All is sa").then_error("server_error", "no more")],
        args: &[],
        when: When::Saving("{\"turn\""),
        text: Some("All is sa"),
        results: &[],
    },
];

const CONFIG: &str = "config/cofferdam/config.toml";

/// Runs to the point and stops there.
fn stop(user: &User, server: &Server, point: &Point) {
    user.home.write(CONFIG, server.provider().config(""));
    let mut args = vec!["--output", "stream-json"];
    args.extend(point.args);
    let task = user.home.task(server, &args);
    let interrupt = |running: Running| {
        running.interrupt();
        running.wait()
    };
    let code = match point.when {
        When::Asked => {
            let running = user.home.start(task);
            server.wait_for_requests(1);
            interrupt(running).code
        }
        When::Shown(text) => {
            let running = user.home.start(task);
            running.wait_for_stdout(text);
            interrupt(running).code
        }
        When::InTheDialog(command) => {
            let mut terminal = Terminal::start(&task, None);
            terminal.wait_for("wants to run this command");
            terminal.wait_for(command);
            terminal.wait_for("\n> ");
            terminal.types("\u{3}");
            terminal.wait()
        }
        When::Summarising => {
            // Small enough for three files to fill it; for whoever goes on it is large again.
            user.home.write(CONFIG, server.provider().config("context_window = 48000\n"));
            for name in ["alpha", "beta", "gamma"] {
                user.home.write(&format!("workspace/{name}.txt"), format!("{}\n", format!("{name} ").repeat(20)).repeat(250));
            }
            let running = user.home.start(task);
            running.wait_for_stdout("\"summarising\"");
            server.wait_for_requests(4);
            interrupt(running).code
        }
        When::Saving(line) => {
            let saving = Saving::at(user, line);
            let running = user.home.start(saving.slow(task));
            saving.wait();
            running.interrupt();
            // The signal has arrived before the write is done: what follows it must not begin.
            running.wait_for_stderr("stopping");
            saving.go_on();
            running.wait().code
        }
    };
    // A stop that comes with the last word comes too late.
    let is_said = point.text.is_some() && matches!(point.when, When::Saving(_));
    assert!(code == 130 || (is_said && [0, 7].contains(&code)), "{}: exit code {code}", point.name);
}

/// A write to the disk that takes its time: see `cofferdam-under-test.rs`.
struct Saving {
    folder: PathBuf,
}

impl Saving {
    /// Where a line is saved that begins like this.
    fn at(user: &User, line: &str) -> Self {
        user.home.write("saving/at", line);
        Self { folder: user.home.path().join("saving") }
    }

    fn slow(&self, mut command: Command) -> Command {
        command.env("COFFERDAM_TEST_SYNC", &self.folder);
        command
    }

    fn wait(&self) {
        wait_until("the line is on its way to the disk", || self.folder.join("reached").exists());
    }

    fn go_on(&self) {
        std::fs::write(self.folder.join("go"), "").expect("it can be written");
    }
}

/// Goes on in a new process, and gives what the model was told.
fn go_on(user: &User, provider: Provider, prompt: &str) -> Request {
    user.home.write(CONFIG, provider.config(""));
    let server = provider.serve([says("I go on.")]);
    let (model, address) = (provider.model(), server.base_url());
    let arguments = ["run", "--continue", prompt, "--model", model, "--base-url", &address, "--output", "json"];
    let mut command = user.home.command(&arguments);
    command.env(provider.key_variable(), server.key());
    user.home.start(command).wait().answered("I go on.");
    server.request()
}

#[test]
fn r063_r099_r100_r102_stopped_anywhere_a_session_goes_on_with_either_provider() {
    let others = [(Provider::Responses, Provider::Anthropic), (Provider::OpenAi, Provider::Responses)];
    let directions = both().into_iter().flat_map(|first| both().map(|second| (first, second))).chain(others);
    for (point, (first, second)) in POINTS.iter().flat_map(|point| directions.clone().map(move |direction| (point, direction))) {
        let place = format!("{}, {first:?}, then {second:?}", point.name);
        let user = User::new();
        user.home.write("workspace/there.txt", "It is there.\n");
        user.home.write("workspace/sleep.wasm", Guest::named("sleep-an-hour").component());
        assert_eq!(user.run(&["lock", "--yes", "--plugin", "sleep.wasm"]).code, 0, "the plugin is accepted");
        stop(&user, &first.serve((point.script)()), point);
        assert!(!user.home.has("ran"), "{place}");

        let asked = go_on(&user, second, "Go on, please.");
        for prompt in ["The task.", "Go on, please."] {
            assert_eq!(asked.count(prompt), 1, "{place}: {:#}", asked.body);
        }
        // what had come is kept, once.
        if let Some(text) = point.text {
            assert_eq!(asked.count(text), 1, "{place}: {:#}", asked.body);
        }
        let results = every_result(&asked);
        let fits = results.len() == point.results.len() && results.iter().zip(point.results).all(|(result, words)| result.contains(words));
        assert!(fits, "{place}: {results:#?} are not {:#?}", point.results);

        // And back again. The other one's answer is part of what was said.
        let asked = go_on(&user, first, "And now?");
        assert_eq!((asked.count("Go on, please."), asked.count("I go on."), asked.count("And now?")), (1, 1, 1), "{place}");
        assert_eq!(every_result(&asked), results, "{place}");
        assert!(!user.home.has("ran"), "{place}: it was run after all");
    }
}

/// The texts of all results of a request, in their order.
fn every_result(request: &Request) -> Vec<String> {
    let messages = request.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let blocks = |message: &serde_json::Value| message["content"].as_array().cloned().unwrap_or_default();
    let text = |block: serde_json::Value| block["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    match request.provider {
        Provider::OpenAi => {
            let results = messages.iter().filter(|message| message["role"] == "tool");
            results.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).map(without_mark).collect()
        }
        // There, calls and results are items beside messages, and one request has those of all turns.
        Provider::Responses => {
            let items = request.body["input"].as_array().cloned().unwrap_or_default();
            let outputs = items.iter().filter_map(|item| item["output"].as_str());
            outputs.map(|text| without_mark(text.to_owned())).collect()
        }
        Provider::Anthropic => messages.iter().flat_map(blocks).filter(|block| block["type"] == "tool_result").map(text).collect(),
    }
}

/// Chat completions have no field for errors, so that a word stands for it.
fn without_mark(text: String) -> String {
    text.strip_prefix("Error: ").map_or(text.clone(), str::to_owned)
}

#[test]
fn r090_thinking_goes_back_to_whose_it_is_and_to_nobody_else() {
    for (first, second) in both().into_iter().flat_map(|first| both().map(|second| (first, second))) {
        let user = User::new();
        user.home.write("workspace/there.txt", "It is there.\n");
        let read = nothing().thinks("I look first.").call("read_file", json!({"path": "there.txt"}));
        let server = first.serve([read, nothing().thinks("I have it.").text("It is there.")]);
        user.home.start(user.home.task(&server, &["--output", "json"])).wait().answered("It is there.");
        // Within the request: chat completions do not take thinking back.
        let is_anthropic = |provider| provider == Provider::Anthropic;
        assert_eq!(server.last_request().count("I look first."), usize::from(is_anthropic(first)));
        drop(server);

        let asked = go_on(&user, second, "Sure?");
        let expected = usize::from(is_anthropic(first) && is_anthropic(second));
        for thought in ["I look first.", "I have it.", "signature-1", "signature-2"] {
            assert_eq!(asked.count(thought), expected, "{first:?}, then {second:?}: {thought} in {:#}", asked.body);
        }
        assert_eq!(every_result(&asked).len(), 1);
    }
}

#[test]
fn r107_a_second_ctrl_c_leaves_and_what_happened_is_saved() {
    for provider in both() {
        let user = User::new();
        let stubborn = "trap '' TERM; touch begun; while true; do sleep 0.1; done";
        let server = provider.serve([calls("bash", bash("echo first")), calls("bash", bash(stubborn))]);
        let running = user.home.start(user.home.task(&server, &["--mode", "auto", "--output", "stream-json"]));
        wait_until("the command runs", || user.home.has("begun"));
        running.interrupt();
        running.interrupt();
        assert_eq!(running.wait().code, 130);
        let results = every_result(&go_on(&user, provider, "What happened?"));
        assert!(results.len() == 2 && results[0].contains("first") && results[1].contains("interrupted"), "{results:?}");
    }
}

#[test]
fn r107_a_second_ctrl_c_while_a_line_is_saved_leaves_once_it_is() {
    let [openai, anthropic] = both();
    for (first, second) in [(openai, anthropic), (anthropic, openai)] {
        let user = User::new();
        let server = first.serve([calls("bash", bash("echo first"))]);
        let saving = Saving::at(&user, "{\"closed\"");
        let running = user.home.start(saving.slow(user.home.task(&server, &["--mode", "auto", "--output", "stream-json"])));
        saving.wait();
        running.interrupt();
        // Two signals at once would be one.
        running.wait_for_stderr("stopping");
        running.interrupt();
        saving.go_on();
        assert_eq!(running.wait().code, 130);
        let asked = go_on(&user, second, "What happened?");
        let results = every_result(&asked);
        assert!(results.len() == 1 && results[0].contains("first"), "{results:?}");
    }
}

#[test]
fn r107_a_disk_that_never_answers_does_not_keep_who_wants_to_leave() {
    let [first, second] = both();
    let user = User::new();
    let server = first.serve([calls("bash", bash("echo first"))]);
    let saving = Saving::at(&user, "{\"closed\"");
    let running = user.home.start(saving.slow(user.home.task(&server, &["--mode", "auto", "--output", "stream-json"])));
    saving.wait();
    running.interrupt();
    running.wait_for_stderr("stopping");
    running.interrupt();
    assert_eq!(running.wait().code, 130);
    // What was written until then is there, as after a crash.
    let results = every_result(&go_on(&user, second, "What happened?"));
    assert!(results.len() == 1 && results[0].contains("first"), "{results:?}");
}
