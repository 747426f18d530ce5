//! `cofferdam chat`: a conversation at a terminal.
//!
//! One thread owns the terminal and does all the reading ([`keyboard`]): at the prompt, while a request runs ([`attend`]), and
//! in a dialog within that request ([`question`]). The request itself runs beside it and tells the [`view`] what happens. What
//! scrolls by is written once; the rows below it are drawn anew ([`screen`]).

mod acts;
mod attend;
mod commands;
mod editor;
mod history;
mod inline;
mod keyboard;
mod line;
mod meter;
mod prose;
mod question;
mod record;
mod screen;
mod signals;
mod talk;
mod tty;
mod view;

use std::process::ExitCode;
use std::sync::Arc;

use console::style;

use super::args::{ChatArgs, Common};
use super::assemble;
use super::error::{CliError, Done};
use super::run::connect;
use super::sessions;
use crate::sandbox::{Allocation, Workspace};
use crate::shown;

use history::History;
use keyboard::Keyboard;
use record::Record;
use signals::Signals;
use talk::Talk;
use tty::Tty;

/// Whether there is somebody to talk to.
pub(super) fn is_possible() -> bool {
    tty::is_there()
}

pub(super) fn run(common: &Common, args: ChatArgs) -> Done {
    if !is_possible() {
        return Err(CliError::new(
            "a conversation needs a terminal for what is typed and what is shown; for one task without a terminal: cofferdam run \"…\"",
        ));
    }
    let flags = common.flags(args.model, args.calls, args.max_tool_iterations);
    let parts = assemble::parts(common, flags, Allocation::Pooled)?;
    parts.warn_of_refused();
    let workspace = Arc::new(Workspace::open(&common.workspace)?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let model = runtime.block_on(connect(&parts, None))?;
    let session = sessions::resumed(&args.session, &parts, &workspace)?;
    let signals = Signals::listen(&runtime)?;
    let history = History::new(parts.folders.prompt_history(), sessions::redact(&parts));
    let mut keyboard = Keyboard::new(Tty::borrow()?, history, signals.end_prompt());
    let record = if args.session.no_session { Record::Off } else { Record::NotYet };
    let mut talk = Talk::new(&parts, workspace, &runtime, model, record, &signals);
    talk.greet();
    if let Some(session) = session {
        talk.go_on_with(session);
    }
    let left = talk.talk(&mut keyboard);
    talk.take_leave();
    drop(talk);
    drop(keyboard);
    runtime.shutdown_background();
    Ok(signals.exit_code().unwrap_or(left?))
}

/// Something the user should know, in a line.
fn told(text: &str) -> String {
    format!("{} {}", style("!").yellow().for_stderr(), shown::block(text))
}

/// Something the user asked for, or that follows from what they did.
fn remark(text: &str) -> String {
    let dim = |line| style(line).dim().for_stderr().to_string();
    shown::block(text).lines().map(dim).collect::<Vec<_>>().join("\n")
}

/// Left in the ordinary way.
const LEFT: ExitCode = ExitCode::SUCCESS;
