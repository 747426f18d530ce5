//! Questions in windows of many sizes: a yes counts only after each word was visible.

use std::collections::BTreeSet;
use std::fs::File;

use cofferdam::policy::Capability;
use cofferdam_tests::guests::GuestTool;
use cofferdam_tests::program::{TestHome, wait_until};
use cofferdam_tests::terminal::{TestTerminal, WindowSize};
use cofferdam_tests::wire::{Provider, ProviderServer, ScriptedReply, call_reply, text_reply};
use serde_json::json;

use super::new_home;
use super::plugin_acceptance::echo_plugin;

const PROJECT_POLICY: &str = "workspace/.cofferdam/policy.toml";

/// Windows in which a question can be approved.
const SIZES: [WindowSize; 6] =
    [size(80, 8), size(40, 7), size(21, 8), size(20, 12), size(20, 6), size(120, 50)];

const fn size(columns: u16, rows: u16) -> WindowSize {
    WindowSize { rows, columns }
}

/// Words that are all different, each short enough for any row.
fn words(separator: &str) -> String {
    (0..30).map(|n| format!("w{n:02}")).collect::<Vec<_>>().join(separator)
}

/// Somebody who reads questions page by page.
struct QuestionReader<'a> {
    terminal: &'a mut TestTerminal,
    prompts: usize,
    /// What was visible at the prompts of this question.
    screens: Vec<String>,
}

impl<'a> QuestionReader<'a> {
    fn new(terminal: &'a mut TestTerminal) -> Self {
        Self { terminal, prompts: 0, screens: Vec::new() }
    }

    fn count_prompts(&self) -> usize {
        let raw = self.terminal.raw_output();
        raw.lines().filter(|line| line.starts_with("> ") || line.starts_with("[y/N] ")).count()
    }

    /// Waits for a prompt, and returns what is visible.
    #[track_caller]
    fn wait_for_prompt(&mut self) -> String {
        wait_until(&format!("a prompt after {:#?}", self.screens), || {
            self.count_prompts() > self.prompts
        });
        self.prompts = self.count_prompts();
        let screen = self.terminal.visible_text();
        self.screens.push(screen.clone());
        screen
    }

    fn type_line(&mut self, line: &str) {
        self.terminal.type_keys(&format!("{line}\n"));
    }

    /// Turns the pages until the question can be approved.
    #[track_caller]
    fn read_to_end(&mut self) {
        for _ in 0..100 {
            let screen = self.wait_for_prompt();
            if screen.contains("Type 1") || screen.ends_with("[y/N]") {
                return;
            }
            self.type_line("");
        }
        panic!("the question has no end: {:#?}", self.screens);
    }

    /// Approves, after each word of the test and these ones were visible.
    #[track_caller]
    fn approve(&mut self, others: &[&str], yes: &str) {
        let seen: BTreeSet<&str> = self
            .screens
            .iter()
            .flat_map(|screen| screen.split([' ', '\n', ',', '+', '#']))
            .map(|word| word.trim_end_matches(".example"))
            .collect();
        let all = words(" ");
        let missing: Vec<&str> = all
            .split(' ')
            .chain(others.iter().copied())
            .filter(|word| !seen.contains(word))
            .collect();
        assert!(missing.is_empty(), "{missing:?} was never visible: {:#?}", self.screens);
        self.screens.clear();
        self.type_line(yes);
    }
}

fn bash_call(command: &str) -> ScriptedReply {
    call_reply("bash", json!({"command": command}))
}

fn serve(replies: Vec<ScriptedReply>) -> ProviderServer {
    Provider::OpenAi.serve(replies.into_iter().chain([text_reply("Done.")]))
}

fn start_run(
    home: &TestHome,
    server: &ProviderServer,
    args: &[&str],
    window: WindowSize,
) -> TestTerminal {
    let report = File::create(home.path().join("report.json")).expect("it can be made");
    let mut command = home.model_command(server, &[&["--output", "json"][..], args].concat());
    command.env("NO_COLOR", "1");
    TestTerminal::start_with_size(&command, Some(report), window)
}

/// Runs a test in each window, several at a time.
fn in_each_window(test: impl Fn(WindowSize) + Sync) {
    let test = &test;
    std::thread::scope(|scope| SIZES.map(|window| scope.spawn(move || test(window))).map(drop));
}

/// Asks one question in each window, and approves it.
fn approve_in_each_window(reply: &ScriptedReply, args: &[&str], others: &[&str]) {
    in_each_window(|window| {
        let (home, server) = (new_home(), serve(vec![reply.clone()]));
        let mut terminal = start_run(&home, &server, args, window);
        let mut reader = QuestionReader::new(&mut terminal);
        reader.read_to_end();
        reader.approve(others, "1");
        assert_eq!(terminal.wait_for_exit(), 0, "{window:?}: {}", terminal.raw_output());
    });
}

#[test]
fn r042_a_command_is_visible_as_a_whole_in_each_window() {
    let reply = bash_call(&format!("true # {}", words(" ")));
    approve_in_each_window(&reply, &[], &["wants", "sandbox", "yes", "no"]);
}

#[test]
fn r042_a_diff_is_visible_as_a_whole_in_each_window() {
    let input = json!({"path": "new.txt", "content": words("\n")});
    approve_in_each_window(&call_reply("write_file", input), &[], &["wants", "new.txt", "yes"]);
}

#[test]
fn r042_a_plan_is_visible_as_a_whole_in_each_window() {
    let reply = call_reply("present_plan", json!({"plan": words("\n\n")}));
    approve_in_each_window(&reply, &["--mode", "plan"], &["plan:", "carry", "ends", "applies"]);
}

#[test]
fn r042_an_input_is_visible_as_a_whole_in_each_window() {
    in_each_window(|window| {
        let server = serve(vec![
            call_reply(
                "bash",
                json!({"command": format!("cat # {}", words(" ")), "background": true}),
            ),
            call_reply("jobs", json!({"action": "write", "id": 1, "text": words(" ")})),
        ]);
        let home = new_home();
        let mut terminal = start_run(&home, &server, &[], window);
        let mut reader = QuestionReader::new(&mut terminal);
        for others in [["wants", "background", "sandbox"], ["input", "background", "yes"]] {
            reader.read_to_end();
            reader.approve(&others, "1");
        }
        assert_eq!(terminal.wait_for_exit(), 0, "{window:?}: {}", terminal.raw_output());
    });
}

#[test]
fn r042_a_question_about_a_host_is_visible_as_a_whole_in_each_window() {
    let line = format!("curl --silent --max-time 60 http://127.0.0.1:9/ # {}", words(" "));
    in_each_window(|window| {
        let (home, server) = (new_home(), serve(vec![bash_call(&line)]));
        let policy = "[commands.network]\nunlisted = \"ask\"\n";
        home.write_file("config/cofferdam/policy.toml", policy);
        let mut terminal = start_run(&home, &server, &[], window);
        let mut reader = QuestionReader::new(&mut terminal);
        for others in [["wants", "run", "yes"], ["wants", "connect", "without"]] {
            reader.read_to_end();
            reader.approve(&others, "1");
        }
        assert_eq!(terminal.wait_for_exit(), 0, "{window:?}: {}", terminal.raw_output());
    });
}

#[test]
fn r042_a_policy_file_is_visible_as_a_whole_in_each_window() {
    in_each_window(|window| {
        let home = new_home();
        home.write_file(PROJECT_POLICY, format!("# {}\n", words("\n# ")));
        let mut command = home.command(&["trust"]);
        command.env("NO_COLOR", "1");
        let mut terminal = TestTerminal::start_with_size(&command, None, window);
        let mut reader = QuestionReader::new(&mut terminal);
        reader.read_to_end();
        reader.approve(&["Trust", "exactly", "project?"], "y");
        assert_eq!(terminal.wait_for_exit(), 0, "{window:?}: {}", terminal.raw_output());
        assert_eq!(home.run(&["trust", "--show"]).exit_code, 0);
    });
}

#[test]
fn r042_a_plugin_is_visible_as_a_whole_in_each_window() {
    in_each_window(|window| {
        let home = new_home();
        let hosts = words(" ").split(' ').map(|word| format!("{word}.example")).collect();
        let tool = GuestTool::new("echo").with_requested(&[Capability::Fetch(hosts)]);
        let plugin = echo_plugin(&home, "echo.wasm", &tool);
        let plugin = plugin.to_str().expect("it is text");
        let mut command = home.command(&["lock", "--plugin", plugin]);
        command.env("NO_COLOR", "1");
        let mut terminal = TestTerminal::start_with_size(&command, None, window);
        let mut reader = QuestionReader::new(&mut terminal);
        reader.read_to_end();
        reader.approve(&["plugin", "Accept", "plugin?"], "y");
        assert_eq!(terminal.wait_for_exit(), 0, "{window:?}: {}", terminal.raw_output());
    });
}

#[test]
fn r042_a_window_that_becomes_smaller_shows_the_question_again() {
    let (home, server) =
        (new_home(), serve(vec![bash_call(&format!("touch ran # {}", words("\n#")))]));
    let mut terminal = start_run(&home, &server, &[], size(80, 24));
    let mut reader = QuestionReader::new(&mut terminal);
    reader.wait_for_prompt();
    for smaller in [size(80, 12), size(40, 10)] {
        reader.terminal.resize(smaller);
        // In the first round this is a page, in the second the end.
        reader.type_line(if smaller.rows == 12 { "" } else { "1" });
        reader.screens.clear();
        let first = reader.wait_for_prompt();
        assert!(first.contains("smaller") && first.contains("wants"), "{first}");
        assert!(!home.has_file("ran"));
        reader.type_line("");
        reader.read_to_end();
    }
    // A larger window hides nothing.
    reader.terminal.resize(size(100, 30));
    reader.approve(&["wants", "touch"], "1");
    assert_eq!(terminal.wait_for_exit(), 0, "{}", terminal.raw_output());
    assert!(home.has_file("ran"));
}

/// Types answers that approve elsewhere, and checks that the window has to be enlarged first.
#[track_caller]
fn check_too_small(reader: &mut QuestionReader<'_>, home: &TestHome) {
    for typed in ["1", "2", "", "1"] {
        reader.wait_for_prompt();
        reader.type_line(typed);
        assert!(!home.has_file("ran"));
    }
    reader.wait_for_prompt();
    let raw = reader.terminal.raw_output();
    let shown = raw.split_whitespace().collect::<Vec<_>>().join(" ");
    let hint = "! Enlarge the window: approval needs 20 columns and 6 rows. Enter shows more; 3 \
        rejects.";
    assert!(shown.contains(hint) && !shown.contains("w00"), "{raw}");
}

#[test]
fn r042_a_window_that_is_too_small_rejects() {
    let home = new_home();
    let server = Provider::OpenAi.serve([bash_call("touch ran # w00")]);
    let mut terminal = start_run(&home, &server, &[], size(80, 5));
    let mut reader = QuestionReader::new(&mut terminal);
    check_too_small(&mut reader, &home);
    reader.type_line("3");
    reader.terminal.wait_for_output("| ");
    reader.type_line("");
    assert_eq!(terminal.wait_for_exit(), 5, "{}", terminal.raw_output());
    assert!(!home.has_file("ran"));
}

#[test]
fn r042_a_window_that_is_too_small_approves_after_it_was_enlarged() {
    for window in [size(19, 24), size(3, 2)] {
        let (home, line) = (new_home(), format!("touch ran # {}", words(" ")));
        let server = serve(vec![bash_call(&line)]);
        let mut terminal = start_run(&home, &server, &[], window);
        let mut reader = QuestionReader::new(&mut terminal);
        check_too_small(&mut reader, &home);
        reader.terminal.resize(size(80, 24));
        reader.type_line("");
        reader.read_to_end();
        reader.approve(&["wants", "touch"], "1");
        assert_eq!(terminal.wait_for_exit(), 0, "{}", terminal.raw_output());
        assert!(home.has_file("ran"));
    }
}
