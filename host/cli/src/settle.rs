//! The settle delay of a dialog: keys typed before a page was readable do not answer it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, IsTerminal as _, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};

use super::paging::{QuestionTerminal, TypedAnswer};
use super::print::{eprint_line, eprint_text};
use super::wrap::{self, TerminalSize};

/// Time without input before an answer counts. A held key repeats about every 30 ms.
pub(super) const SETTLE: Duration = Duration::from_millis(300);

/// The interval at which a question without input looks whether it is over.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A terminal that shows pages and reads answers line by line.
#[derive(Debug)]
pub(super) struct AskingTerminal {
    input: BufReader<File>,
    settle: Duration,
}

impl AskingTerminal {
    /// Opens the terminal of this process. Returns `None` if standard error is not a terminal or
    /// `/dev/tty` cannot be opened.
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

    /// Returns the reader of the answers to one question. It ends when the question is over, so
    /// that no later question loses its answer to this one.
    pub(super) fn input_until<'a>(&'a mut self, is_over: &'a dyn Fn() -> bool) -> AnswerInput<'a> {
        AnswerInput { input: &mut self.input, is_over }
    }

    #[cfg(test)]
    fn input(&mut self) -> &mut impl BufRead {
        &mut self.input
    }

    fn drop_typed_ahead(&mut self) {
        drop_until_quiet(self.input.get_ref(), self.settle);
        let read_ahead = self.input.buffer().len();
        self.input.consume(read_ahead);
    }
}

/// An open question, whose answers are lines.
pub(super) struct LineQuestion<'a> {
    terminal: &'a mut AskingTerminal,
    is_over: &'a dyn Fn() -> bool,
}

impl<'a> LineQuestion<'a> {
    /// Creates a question that ends without an answer as soon as `is_over` returns `true`.
    pub(super) fn new(terminal: &'a mut AskingTerminal, is_over: &'a dyn Fn() -> bool) -> Self {
        Self { terminal, is_over }
    }
}

impl QuestionTerminal for LineQuestion<'_> {
    fn size(&self) -> TerminalSize {
        wrap::terminal_size()
    }

    fn show_page(&mut self, page: &str) -> io::Result<()> {
        // The rows fit into the window as they are.
        eprint_text(&format!("{page}\n"));
        self.terminal.drop_typed_ahead();
        Ok(())
    }

    fn show_hint(&mut self, hint: &str) {
        eprint_line(hint);
    }

    fn read_line(&mut self, prompt: &'static str) -> io::Result<TypedAnswer<String>> {
        eprint_text(prompt);
        let line = read_line(&mut self.terminal.input_until(self.is_over))?;
        Ok(line.map_or(TypedAnswer::Rejected, TypedAnswer::Answer))
    }
}

/// Reads a line; invalid UTF-8 is replaced. Returns `None` if the terminal is closed.
pub(super) fn read_line(terminal: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    match terminal.read_until(b'\n', &mut line)? {
        0 => Ok(None),
        _ => Ok(Some(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned())),
    }
}

/// The input of an open question.
pub(super) struct AnswerInput<'a> {
    input: &'a mut BufReader<File>,
    is_over: &'a dyn Fn() -> bool,
}

impl AnswerInput<'_> {
    /// Waits for input. Returns `false` if the question is over.
    fn wait(&self) -> bool {
        let timeout = Timespec { tv_sec: 0, tv_nsec: POLL_INTERVAL.subsec_nanos().into() };
        while self.input.buffer().is_empty() {
            if (self.is_over)() {
                return false;
            }
            let mut polled = [PollFd::new(self.input.get_ref(), PollFlags::IN)];
            match poll(&mut polled, Some(&timeout)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                // Reading finds the error.
                Ok(_) | Err(_) => return true,
            }
        }
        true
    }
}

impl Read for AnswerInput<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.wait() { self.input.read(buffer) } else { Ok(0) }
    }
}

impl BufRead for AnswerInput<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.wait() { self.input.fill_buf() } else { Ok(&[]) }
    }

    fn consume(&mut self, count: usize) {
        self.input.consume(count);
    }
}

/// Discards terminal input until none has arrived for `settle`, or the terminal is gone.
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
    // An incomplete line is invisible to `poll`, so it is flushed here.
    let _ = tcflush(&terminal, QueueSelector::IFlush);
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::Instant;

    use rustix::fs::{Mode, OFlags};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::*;

    /// Creates a pseudo-terminal; the second value plays its keyboard.
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
    fn r042_input_before_a_page_is_readable_is_discarded() {
        let settle = Duration::from_millis(150);
        let (mut terminal, mut keyboard) = terminal(settle);
        keyboard.write_all(b"1\n\n1\n").expect("write the file");
        let mut typing = keyboard.try_clone().expect("clone the handle");
        let (started, burst) = (Instant::now(), Duration::from_millis(600));
        let typist = std::thread::spawn(move || {
            while started.elapsed() < burst {
                typing.write_all(b"\n1\n").expect("write the file");
                std::thread::sleep(Duration::from_millis(20));
            }
            typing.write_all(b"1").expect("write the file");
        });
        terminal.drop_typed_ahead();
        assert!(
            started.elapsed() >= burst,
            "it did not wait for a quiet keyboard: {:?}",
            started.elapsed()
        );
        typist.join().expect("join the thread");
        keyboard.write_all(b"3\n").expect("write the file");
        let mut line = String::new();
        terminal.input().read_line(&mut line).expect("read the line");
        assert_eq!(line, "3\n");
    }

    #[test]
    fn a_question_that_is_over_leaves_the_next_line_to_the_next_question() {
        let (mut terminal, mut keyboard) = terminal(Duration::from_millis(10));
        let started = Instant::now();
        let is_over = || started.elapsed() > Duration::from_millis(200);
        let mut line = String::new();
        terminal.input_until(&is_over).read_line(&mut line).expect("it ends");
        assert_eq!(line, "");
        keyboard.write_all(b"1\n").expect("it is typed");
        terminal.input().read_line(&mut line).expect("read the line");
        assert_eq!(line, "1\n");
    }

    #[test]
    fn a_closed_terminal_does_not_block() {
        let (mut terminal, keyboard) = terminal(Duration::from_secs(60));
        drop(keyboard);
        let started = Instant::now();
        terminal.drop_typed_ahead();
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}
