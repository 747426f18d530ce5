//! The approval dialog at a terminal (R-38).

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::sync::{Arc, Mutex};

use console::style;
use futures_util::future::BoxFuture;

use super::print::{stderr_line, stderr_piece};
use super::render::Renderer;
use crate::policy::{Effect, Question};
use crate::shown;
use crate::tools::{Answer, Approver};

/// Asks at the terminal of this process.
pub(super) struct TerminalDialog {
    renderer: Arc<Renderer>,
    /// One reader for all questions: what it has buffered belongs to the next line.
    terminal: Arc<Mutex<BufReader<File>>>,
}

impl TerminalDialog {
    /// `None` where nobody can be asked: without a terminal to show a question on and to read the answer from.
    pub(super) fn at_this_terminal(renderer: &Arc<Renderer>) -> Option<Arc<dyn Approver>> {
        use std::io::IsTerminal as _;
        if !std::io::stderr().is_terminal() {
            return None;
        }
        let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
        Some(Arc::new(Self { renderer: Arc::clone(renderer), terminal: Arc::new(Mutex::new(BufReader::new(terminal))) }))
    }
}

impl Approver for TerminalDialog {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let _quiet = self.renderer.pause();
            let (text, has_scope) = (describe(question), question.scope.is_some());
            let terminal = Arc::clone(&self.terminal);
            // If the request is cancelled meanwhile, the thread stays behind with its read; the process is about to end.
            tokio::task::spawn_blocking(move || converse(&terminal, &text, has_scope)).await.unwrap_or(Answer::No { guidance: None })
        })
    }
}

/// The question with everything to decide by, escaped and in full.
fn describe(question: &Question) -> String {
    let tool = shown::line(&question.tool, 64);
    let (what, detail) = match &question.effect {
        Effect::Command { line, directory } => {
            let place = if directory.as_str().is_empty() { String::new() } else { format!(" in {}", shown::line(directory.as_str(), 400)) };
            (format!("{tool} wants to run this command{place}, outside of the sandbox, with your rights:"), shown::block(line))
        }
        Effect::Write { paths, .. } if paths.is_empty() => {
            (format!("{tool} wants to run with the workspace open for writing. Its arguments:"), shown::block(&question.arguments))
        }
        Effect::Write { paths, .. } => {
            let paths: Vec<String> = paths.iter().map(|path| shown::line(path.as_str(), 400)).collect();
            // Not "wants to write to": the grant is for the whole workspace, and the arguments are what the call says of itself.
            let what =
                format!("{tool} wants to run with the workspace open for writing; its call names {}. Its arguments:", paths.join(", "));
            (what, shown::block(&question.arguments))
        }
        Effect::Fetch { method, url, .. } => {
            (format!("{tool} wants to send this request, whatever its body is:"), shown::block(&format!("{method} {url}")))
        }
        Effect::Confirmed => (format!("{tool} wants to be confirmed. Its arguments:"), shown::block(&question.arguments)),
    };
    let indented: String = detail.lines().map(|line| format!("    {line}\n")).collect();
    let scope = match &question.scope {
        Some(scope) => format!("  2  yes, and don't ask again in this session for {}\n", shown::line(&scope.to_string(), 200)),
        None => String::new(),
    };
    format!(
        "\n{} {what}\n\n{indented}\n  1  yes, this once\n{scope}  3  no; you can say what to do instead",
        style("?").yellow().bold().for_stderr()
    )
}

fn converse(terminal: &Mutex<BufReader<File>>, text: &str, has_scope: bool) -> Answer {
    let mut terminal = terminal.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // What was typed before the question was there is no answer to it.
    let _ = rustix::termios::tcflush(terminal.get_ref(), rustix::termios::QueueSelector::IFlush);
    stderr_line(text);
    loop {
        stderr_piece("> ");
        let Some(line) = read_line(&mut terminal) else { return Answer::No { guidance: None } };
        match line.trim() {
            "1" => return Answer::Yes,
            "2" if has_scope => return Answer::YesForScope,
            "3" => return Answer::No { guidance: guidance(&mut terminal) },
            _ if has_scope => stderr_line("Type 1, 2 or 3, and Enter."),
            _ => stderr_line("Type 1 or 3, and Enter."),
        }
    }
}

fn guidance(terminal: &mut BufReader<File>) -> Option<String> {
    stderr_line("What should it do instead? End with an empty line; an empty line at once ends the request.");
    let mut lines = Vec::new();
    loop {
        stderr_piece("| ");
        match read_line(terminal) {
            Some(line) if !line.trim().is_empty() => lines.push(line),
            Some(_) | None => break,
        }
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn read_line(terminal: &mut BufReader<File>) -> Option<String> {
    let mut line = String::new();
    match terminal.read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line.trim_end_matches(['\n', '\r']).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Decision, Judge, Mode, WorkspacePath};

    fn question(line: &str) -> String {
        let effect = Effect::Command { line: line.into(), directory: WorkspacePath::parse("", None).unwrap() };
        let Decision::Ask(question) = Judge::new(Mode::Ask, true).decide("bash", "{}", effect) else { panic!("not asked") };
        console::strip_ansi_codes(&describe(&question)).into_owned()
    }

    #[test]
    fn r038_the_dialog_shows_the_command_and_the_scope() {
        insta::assert_snapshot!(question("cargo test --release"), @r"

        ? bash wants to run this command, outside of the sandbox, with your rights:

            cargo test --release

          1  yes, this once
          2  yes, and don't ask again in this session for commands that begin with `cargo test`
          3  no; you can say what to do instead
        ");
    }

    #[test]
    fn r042_a_write_is_shown_as_what_it_is_allowed_and_not_as_what_it_claims() {
        let paths = vec![WorkspacePath::parse("src/a.rs", None).unwrap()];
        let effect = Effect::Write { paths, confirm: false };
        let Decision::Ask(question) = Judge::new(Mode::Ask, true).decide("patch", r#"{"path":"src/a.rs"}"#, effect) else {
            panic!("not asked")
        };
        let text = console::strip_ansi_codes(&describe(&question)).into_owned();
        assert!(text.contains("patch wants to run with the workspace open for writing; its call names src/a.rs."), "{text}");
    }

    #[test]
    fn r039_an_opaque_command_has_no_scope_and_nothing_of_it_is_hidden() {
        insta::assert_snapshot!(question("ls\u{202e} \u{1b}[2K\r; rm -rf x\nsecond line"), @r"

        ? bash wants to run this command, outside of the sandbox, with your rights:

            ls\u{202e} \u{1b}[2K\u{d}; rm -rf x
            second line

          1  yes, this once
          3  no; you can say what to do instead
        ");
    }
}
