//! The conversation at a terminal: what is typed, what is seen, and what the model gets, under the
//! rules that the names of the tests begin with.

#![expect(clippy::expect_used, reason = "what a test cannot set up, it cannot test")]

mod checkpoints;
mod conversation;
mod dialog;
mod line_mode;
mod queue;
mod screen;
mod slash;
mod stop;

use cofferdam_tests::program::TestHome;
use cofferdam_tests::terminal::{TestTerminal, WindowSize};
use cofferdam_tests::wire::{ProviderServer, ScriptedReply, call_reply};
use serde_json::json;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

const ENTER: &str = "\r";
const ESC: &str = "\u{1b}";
const CTRL_C: &str = "\u{3}";
const SHIFT_TAB: &str = "\u{1b}[Z";
const ALT_ENTER: &str = "\u{1b}\r";

/// A home for one test.
fn new_home() -> TestHome {
    TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"))
}

fn bash_call(command: &str) -> ScriptedReply {
    call_reply("bash", json!({"command": command}))
}

/// Somebody at a terminal, in a conversation.
struct ChatTerminal {
    home: TestHome,
    terminal: TestTerminal,
}

impl ChatTerminal {
    fn start(server: &ProviderServer, args: &[&str]) -> Self {
        Self::start_in(new_home(), server, args, WindowSize { rows: 40, columns: 100 })
    }

    fn start_in(
        home: TestHome,
        server: &ProviderServer,
        args: &[&str],
        window: WindowSize,
    ) -> Self {
        let mut command = home.command(&[
            "chat",
            "--model",
            server.provider().model(),
            "--base-url",
            &server.base_url(),
        ]);
        command.args(args).env(server.provider().key_variable(), server.key()).env("NO_COLOR", "1");
        let terminal = TestTerminal::start_with_size(&command, None, window);
        let chat = Self { home, terminal };
        chat.wait_until_ready();
        chat
    }

    /// Another conversation in the same home, after this one.
    #[track_caller]
    fn restart(mut self, server: &ProviderServer, args: &[&str]) -> Self {
        self.send_line("/quit");
        assert_eq!(self.terminal.wait_for_exit(), 0, "{}", self.terminal.visible_text());
        Self::start_in(self.home, server, args, WindowSize { rows: 40, columns: 100 })
    }

    /// Waits for the prompt, with nothing typed there.
    #[track_caller]
    fn wait_until_ready(&self) -> String {
        self.wait_until_ready_with("›")
    }

    /// Waits for the prompt, with this in its last row.
    #[track_caller]
    fn wait_until_ready_with(&self, last: &str) -> String {
        self.terminal.wait_for_screen(&format!("a prompt with {last:?}"), |seen| {
            !is_running(seen) && seen.contains("· context ") && seen.lines().last() == Some(last)
        })
    }

    /// Waits until a request runs.
    #[track_caller]
    fn wait_until_running(&self) -> String {
        self.terminal.wait_for_screen("a running request", is_running)
    }

    /// Types a line, and Enter.
    fn send_line(&mut self, line: &str) {
        self.type_keys(&format!("{line}{ENTER}"));
    }

    fn type_keys(&mut self, keys: &str) {
        self.terminal.type_keys(keys);
    }

    /// Says something, and waits for all that comes of it.
    #[track_caller]
    fn ask(&mut self, line: &str) -> String {
        self.send_line(line);
        self.terminal.wait_for_visible(&format!("› {}", line.lines().last().unwrap_or_default()));
        self.wait_until_ready()
    }

    /// Waits for the question about a command.
    #[track_caller]
    fn wait_for_question(&self, command: &str) -> String {
        self.terminal.wait_for_screen(&format!("the question about {command}"), |seen| {
            let question = seen.rfind("wants to run this command").unwrap_or(usize::MAX);
            seen.get(question..).is_some_and(|rest| rest.contains(command))
                && seen.lines().last() == Some(">")
        })
    }

    #[track_caller]
    fn leave(mut self) -> TestHome {
        self.send_line("/quit");
        assert_eq!(self.terminal.wait_for_exit(), 0, "{}", self.terminal.visible_text());
        assert!(self.terminal.is_restored(), "the terminal was not given back");
        self.home
    }

    /// The files of all sessions.
    fn read_journals(&self) -> Vec<String> {
        journals(&self.home)
    }
}

fn is_running(seen: &str) -> bool {
    seen.contains("Esc stops") || seen.contains("Ctrl-C again leaves")
}

fn journals(home: &TestHome) -> Vec<String> {
    let root = home.path().join("state/cofferdam/sessions");
    let folders = std::fs::read_dir(root).into_iter().flatten().flatten();
    let files =
        folders.flat_map(|folder| std::fs::read_dir(folder.path()).expect("readable").flatten());
    files.map(|file| std::fs::read_to_string(file.path()).expect("readable")).collect()
}
