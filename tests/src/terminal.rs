//! A terminal with the program in it, and somebody who reads and types.

#![expect(clippy::expect_used, reason = "a harness that does not work fails the test that needs it")]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::program::{GLANCE, wait};

/// How long something may take to appear.
const PATIENCE: Duration = Duration::from_secs(30);

/// A terminal of its own, which the program takes for its user's.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<String>>,
    /// How much of the screen was waited for already.
    read: usize,
}

impl Terminal {
    /// Starts a command that has this terminal for all but its standard output, if that goes to a file.
    pub fn start(command: &Command, stdout: Option<File>) -> Self {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals");
        grantpt(&keyboard).and_then(|()| unlockpt(&keyboard)).expect("the terminal is ours");
        let name = ptsname(&keyboard, Vec::new()).expect("it has a name");
        let terminal = File::from(rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("it opens"));
        let share = || terminal.try_clone().expect("it can be shared");
        let (stdout, stderr) = (stdout.unwrap_or_else(share), share());
        // A session of its own, whose terminal is its standard input: that makes it `/dev/tty`.
        let mut session = Command::new("setsid");
        session.arg("--ctty").arg(command.get_program()).args(command.get_args()).env_clear();
        session.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm").env("NO_COLOR", "1");
        session.current_dir(command.get_current_dir().expect("it has a folder"));
        let child = session.stdin(terminal).stderr(stderr).stdout(Stdio::from(stdout)).spawn().expect("setsid is there");
        drop(session);
        let keyboard = File::from(keyboard);
        let mut reader = keyboard.try_clone().expect("it can be shared");
        let screen = Arc::new(Mutex::new(String::new()));
        let shown = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                shown.lock().unwrap_or_else(PoisonError::into_inner).push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self { child, keyboard, screen, read: 0 }
    }

    /// Waits until a text appears after what was waited for before.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if let Some(at) = screen[self.read..].find(text) {
                self.read += at + text.len();
                return;
            }
            assert!(Instant::now() < deadline, "{text:?} does not appear after {:?} in:\n{screen}", &screen[..self.read]);
            std::thread::sleep(GLANCE);
        }
    }

    /// Types; `\n` is Enter, `\u{3}` is Ctrl-C.
    pub fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).expect("the terminal takes it");
    }

    /// Everything that was shown so far.
    pub fn screen(&self) -> String {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for the end of the command, and gives its exit code.
    #[track_caller]
    pub fn wait(&mut self) -> i32 {
        let code = wait(&mut self.child);
        code.unwrap_or_else(|| panic!("it did not end by itself:\n{}", self.screen()))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
