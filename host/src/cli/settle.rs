//! The moment after something to decide on was drawn: what was typed before it could be read is no
//! answer to it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, IsTerminal as _};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};

use super::print::eprint_line;

/// How long the keyboard has to be quiet before an answer counts. A key that is held down repeats
/// about every 30 milliseconds.
pub(super) const SETTLE: Duration = Duration::from_millis(300);

/// The terminal of somebody who is asked, read line by line. It shows pages, and takes answers to
/// what it has shown.
#[derive(Debug)]
pub(super) struct AskingTerminal {
    input: BufReader<File>,
    settle: Duration,
}

impl AskingTerminal {
    /// The terminal of this process; `None` where nobody can be asked: without one to show a
    /// question on and to read the answer from.
    pub(super) fn of_this_process(settle: Duration) -> Option<Self> {
        if !io::stderr().is_terminal() {
            return None;
        }
        let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
        Some(Self::new(terminal, settle))
    }

    fn new(terminal: File, settle: Duration) -> Self {
        Self { input: BufReader::new(terminal), settle }
    }

    /// Shows a page. Everything that is typed until the keyboard has been quiet for the settle
    /// delay is dropped.
    pub(super) fn show(&mut self, page: &str) {
        eprint_line(page);
        self.drop_typed_ahead();
    }

    /// Reads answers.
    pub(super) fn input(&mut self) -> &mut impl BufRead {
        &mut self.input
    }

    fn drop_typed_ahead(&mut self) {
        drop_until_quiet(self.input.get_ref(), self.settle);
        let read_ahead = self.input.buffer().len();
        self.input.consume(read_ahead);
    }
}

/// Drops what comes from a terminal until nothing has come for so long, or until the terminal is
/// gone.
fn drop_until_quiet(terminal: impl AsFd, settle: Duration) {
    let timeout = Timespec {
        tv_sec: settle.as_secs().try_into().unwrap_or(1),
        tv_nsec: settle.subsec_nanos().into(),
    };
    loop {
        let _ = tcflush(&terminal, QueueSelector::IFlush);
        let mut polled = [PollFd::new(&terminal, PollFlags::IN)];
        match poll(&mut polled, Some(&timeout)) {
            Ok(1..) if polled[0].revents() == PollFlags::IN => {}
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => break,
        }
    }
    // A line that was begun and not ended shows only here.
    let _ = tcflush(&terminal, QueueSelector::IFlush);
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::Instant;

    use rustix::fs::{Mode, OFlags};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::*;

    /// A terminal, and the keyboard in front of it.
    fn terminal(settle: Duration) -> (AskingTerminal, File) {
        let keyboard = File::from(
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals"),
        );
        grantpt(&keyboard).and_then(|()| unlockpt(&keyboard)).expect("it is ours");
        let name = ptsname(&keyboard, Vec::new()).expect("it has a name");
        let terminal = File::from(
            rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("it opens"),
        );
        (AskingTerminal::new(terminal, settle), keyboard)
    }

    #[test]
    fn r042_what_is_typed_before_a_page_could_be_read_is_dropped() {
        let settle = Duration::from_millis(150);
        let (mut terminal, mut keyboard) = terminal(settle);
        keyboard.write_all(b"1\n\n1\n").expect("it is typed");
        let mut typing = keyboard.try_clone().expect("it can be shared");
        let (begun, burst) = (Instant::now(), Duration::from_millis(600));
        let typist = std::thread::spawn(move || {
            while begun.elapsed() < burst {
                typing.write_all(b"\n1\n").expect("it is typed");
                std::thread::sleep(Duration::from_millis(20));
            }
            typing.write_all(b"1").expect("it is typed");
        });
        terminal.drop_typed_ahead();
        assert!(
            begun.elapsed() >= burst,
            "it did not wait for a quiet keyboard: {:?}",
            begun.elapsed()
        );
        typist.join().expect("it ends");
        keyboard.write_all(b"3\n").expect("it is typed");
        let mut line = String::new();
        terminal.input().read_line(&mut line).expect("it is read");
        assert_eq!(line, "3\n");
    }

    #[test]
    fn a_terminal_that_is_gone_is_not_waited_for() {
        let (mut terminal, keyboard) = terminal(Duration::from_secs(60));
        drop(keyboard);
        let begun = Instant::now();
        terminal.drop_typed_ahead();
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
