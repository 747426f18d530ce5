//! A terminal with the program in it, and somebody who reads and types.

#![expect(
    clippy::expect_used,
    reason = "a harness that does not work fails the test that needs it"
)]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::program::{POLL_INTERVAL, wait};

/// How long something may take to appear.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A terminal of its own, which the program takes for its user's.
pub struct TestTerminal {
    child: Child,
    keyboard: File,
    output: Arc<Mutex<TerminalOutput>>,
    /// How much of the screen was waited for already.
    read_position: usize,
}

/// What came out of the program, and what a user sees of it.
struct TerminalOutput {
    raw: String,
    screen: vt100::Parser,
}

/// How large a terminal is.
#[derive(Clone, Copy, Debug)]
pub struct WindowSize {
    /// Its height.
    pub rows: u16,
    /// Its width.
    pub columns: u16,
}

/// What a program asks to be told where the cursor is.
const CURSOR_QUERY: &str = "\u{1b}[6n";

impl TestTerminal {
    /// Starts a command that has this terminal for all but its standard output, if that goes to a
    /// file. It is 80 columns wide, and has no colours.
    pub fn start(command: &Command, stdout: Option<File>) -> Self {
        let mut command = clone_command(command);
        command.env("NO_COLOR", "1");
        Self::start_with_size(&command, stdout, WindowSize { rows: 24, columns: 80 })
    }

    /// Starts a command in a window.
    pub fn start_with_size(command: &Command, stdout: Option<File>, window: WindowSize) -> Self {
        let keyboard = File::from(
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals"),
        );
        grantpt(&keyboard).and_then(|()| unlockpt(&keyboard)).expect("the terminal is ours");
        let name = ptsname(&keyboard, Vec::new()).expect("it has a name");
        let terminal = File::from(
            rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("it opens"),
        );
        set_size(&keyboard, window);
        let share = || terminal.try_clone().expect("it can be shared");
        let (stdout, stderr) = (stdout.unwrap_or_else(share), share());
        // A session of its own, whose terminal is its standard input: that makes it `/dev/tty`.
        let mut session = Command::new("setsid");
        session.arg("--ctty").arg(command.get_program()).args(command.get_args()).env_clear();
        session
            .env("TERM", "xterm")
            .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        session.current_dir(command.get_current_dir().expect("it has a folder"));
        let child = session
            .stdin(terminal)
            .stderr(stderr)
            .stdout(Stdio::from(stdout))
            .spawn()
            .expect("setsid is there");
        drop(session);
        let mut reader = keyboard.try_clone().expect("it can be shared");
        let mut answering = keyboard.try_clone().expect("it can be shared");
        let screen = vt100::Parser::new(nonzero(window.rows), nonzero(window.columns), 1000);
        let output = Arc::new(Mutex::new(TerminalOutput { raw: String::new(), screen }));
        let showing = Arc::clone(&output);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                let mut shown = showing.lock().unwrap_or_else(PoisonError::into_inner);
                let before = shown.raw.matches(CURSOR_QUERY).count();
                shown.screen.process(&bytes[..count]);
                shown.raw.push_str(&String::from_utf8_lossy(&bytes[..count]));
                for _ in before..shown.raw.matches(CURSOR_QUERY).count() {
                    let (row, column) = shown.screen.screen().cursor_position();
                    drop(write!(answering, "\u{1b}[{};{}R", row + 1, column + 1));
                }
            }
        });
        Self { child, keyboard, output, read_position: 0 }
    }

    /// Makes the window larger or smaller, as a user does with a mouse.
    pub fn resize(&self, window: WindowSize) {
        self.output().screen.screen_mut().set_size(nonzero(window.rows), nonzero(window.columns));
        set_size(&self.keyboard, window);
    }

    /// The rows that a user sees, without what is empty below them.
    pub fn visible_text(&self) -> String {
        let shown = self.output();
        let columns = shown.screen.screen().size().1;
        let rows: Vec<String> = shown
            .screen
            .screen()
            .rows(0, columns.get())
            .map(|row| row.trim_end().to_owned())
            .collect();
        rows.join("\n").trim_end().to_owned()
    }

    /// Waits until something is true of what a user sees, and gives that.
    #[track_caller]
    pub fn wait_for_screen(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let seen = self.visible_text();
            if is_there(&seen) {
                return seen;
            }
            assert!(
                Instant::now() < deadline,
                "{what} does not come to be seen:\n{seen}\n--- raw:\n{:?}",
                self.raw_output()
            );
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits until a text can be seen.
    #[track_caller]
    pub fn wait_for_visible(&self, text: &str) -> String {
        self.wait_for_screen(&format!("{text:?}"), |seen| seen.contains(text))
    }

    /// Where the cursor is: row and column, from 0.
    pub fn cursor(&self) -> (u16, u16) {
        self.output().screen.screen().cursor_position()
    }

    /// The state of the terminal's line: whether it echoes, edits lines, and turns Ctrl-C into a
    /// signal.
    pub fn is_restored(&self) -> bool {
        use rustix::termios::LocalModes;
        let modes =
            rustix::termios::tcgetattr(&self.keyboard).expect("it is a terminal").local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Sends a signal to the program.
    pub fn send_signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(crate::program::pid(&self.child), signal).expect("it runs");
    }

    /// Waits until a text appears after what was waited for before.
    #[track_caller]
    pub fn wait_for_output(&mut self, text: &str) {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let screen = self.raw_output();
            if let Some(at) = screen[self.read_position..].find(text) {
                self.read_position += at + text.len();
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{text:?} does not appear after {:?} in:\n{screen}",
                &screen[..self.read_position]
            );
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Types; `\n` is Enter, `\u{3}` is Ctrl-C.
    pub fn type_keys(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).expect("the terminal takes it");
    }

    /// Everything that was shown so far.
    pub fn raw_output(&self) -> String {
        self.output().raw.clone()
    }

    fn output(&self) -> MutexGuard<'_, TerminalOutput> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end of the command, and gives its exit code.
    #[track_caller]
    pub fn wait_for_exit(&mut self) -> i32 {
        let code = wait(&mut self.child);
        code.unwrap_or_else(|| panic!("it did not end by itself:\n{}", self.raw_output()))
    }
}

fn nonzero(number: u16) -> std::num::NonZeroU16 {
    number.try_into().expect("a window has a size")
}

fn set_size(terminal: &File, window: WindowSize) {
    let size = rustix::termios::Winsize {
        ws_row: window.rows,
        ws_col: window.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    rustix::termios::tcsetwinsize(terminal, size).expect("it is a terminal");
}

fn clone_command(command: &Command) -> Command {
    let mut clone = Command::new(command.get_program());
    clone.args(command.get_args()).env_clear();
    clone.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    clone.current_dir(command.get_current_dir().expect("it has a folder"));
    clone
}

impl Drop for TestTerminal {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
