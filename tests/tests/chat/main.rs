//! The conversation at a terminal: what is typed, what is seen, and what the model gets, under the rules that the names of the
//! tests begin with.

#![expect(clippy::expect_used, reason = "what a test cannot set up, it cannot test")]

mod dialog;
mod plain;
mod queue;
mod screen;
mod slash;
mod stop;
mod talk;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cofferdam_tests::program::Home;
use cofferdam_tests::terminal::{Terminal, Window};
use cofferdam_tests::wire::{Reply, Server, calls};
use serde_json::json;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

const ENTER: &str = "\r";
const ESC: &str = "\u{1b}";
const CTRL_C: &str = "\u{3}";
const SHIFT_TAB: &str = "\u{1b}[Z";
const ALT_ENTER: &str = "\u{1b}\r";

/// A home for one test.
fn home() -> Home {
    static CACHE: OnceLock<PathBuf> = OnceLock::new();
    let cache = CACHE.get_or_init(|| {
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled-tools");
        Home::prepare_cache(PROGRAM, &cache);
        cache
    });
    Home::new(PROGRAM, cache)
}

fn bash(command: &str) -> Reply {
    calls("bash", json!({"command": command}))
}

/// Somebody at a terminal, in a conversation.
struct Chat {
    home: Home,
    terminal: Terminal,
}

impl Chat {
    fn with(server: &Server, args: &[&str]) -> Self {
        Self::at_home(home(), server, args, Window { rows: 40, columns: 100 })
    }

    fn at_home(home: Home, server: &Server, args: &[&str], window: Window) -> Self {
        let mut command = home.command(&["chat", "--model", server.provider().model(), "--base-url", &server.base_url()]);
        command.args(args).env(server.provider().key_variable(), server.key()).env("NO_COLOR", "1");
        let terminal = Terminal::open(&command, None, window);
        let chat = Self { home, terminal };
        chat.is_ready();
        chat
    }

    /// Another conversation in the same home, after this one.
    #[track_caller]
    fn then_with(mut self, server: &Server, args: &[&str]) -> Self {
        self.says("/quit");
        assert_eq!(self.terminal.wait(), 0, "{}", self.terminal.sees());
        Self::at_home(self.home, server, args, Window { rows: 40, columns: 100 })
    }

    /// Waits for the prompt, with nothing typed there.
    #[track_caller]
    fn is_ready(&self) -> String {
        self.is_ready_with("›")
    }

    /// Waits for the prompt, with this in its last row.
    #[track_caller]
    fn is_ready_with(&self, last: &str) -> String {
        self.terminal.wait_to_see(&format!("a prompt with {last:?}"), |seen| {
            !is_running(seen) && seen.contains("· context ") && seen.lines().last() == Some(last)
        })
    }

    /// Waits until a request runs.
    #[track_caller]
    fn is_running(&self) -> String {
        self.terminal.wait_to_see("a running request", is_running)
    }

    /// Types a line, and Enter.
    fn says(&mut self, line: &str) {
        self.types(&format!("{line}{ENTER}"));
    }

    fn types(&mut self, keys: &str) {
        self.terminal.types(keys);
    }

    /// Says something, and waits for all that comes of it.
    #[track_caller]
    fn asks(&mut self, line: &str) -> String {
        self.says(line);
        self.terminal.wait_to_see_text(&format!("› {}", line.lines().last().unwrap_or_default()));
        self.is_ready()
    }

    /// Waits for the question about a command.
    #[track_caller]
    fn is_asked(&self, command: &str) -> String {
        self.terminal.wait_to_see(&format!("the question about {command}"), |seen| {
            let question = seen.rfind("wants to run this command").unwrap_or(usize::MAX);
            seen.get(question..).is_some_and(|rest| rest.contains(command)) && seen.lines().last() == Some(">")
        })
    }

    #[track_caller]
    fn leaves(mut self) -> Home {
        self.says("/quit");
        assert_eq!(self.terminal.wait(), 0, "{}", self.terminal.sees());
        assert!(self.terminal.is_as_before(), "the terminal was not given back");
        self.home
    }

    /// The files of all sessions.
    fn journals(&self) -> Vec<String> {
        journals(&self.home)
    }
}

fn is_running(seen: &str) -> bool {
    seen.contains("Esc stops") || seen.contains("Ctrl-C again to leave")
}

fn journals(home: &Home) -> Vec<String> {
    let root = home.path().join("state/cofferdam/sessions");
    let folders = std::fs::read_dir(root).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).expect("readable").flatten());
    files.map(|file| std::fs::read_to_string(file.path()).expect("readable")).collect()
}
