//! `cofferdam chat`: a conversation, at a terminal or line by line.
//!
//! One thread owns the terminal and does all the reading ([`keyboard`]): at the prompt, while a request runs ([`attend`]), and
//! in a dialog within that request ([`question`]). The request itself runs beside it and tells the [`view`] what happens. What
//! scrolls by is written once; the rows below it are drawn anew ([`screen`]). Where nothing can be drawn, lines are read and
//! written ([`plain`]).

mod acts;
mod attend;
mod commands;
mod editor;
mod history;
mod inline;
mod keyboard;
mod line;
mod meter;
mod plain;
mod prose;
mod question;
mod record;
mod screen;
mod signals;
mod talk;
mod tty;
mod view;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use console::style;

use super::args::{ChatArgs, Common};
use super::assemble;
use super::connect::connect;
use super::error::Done;
use super::print::can_be_drawn_on;
use super::sessions;
use crate::sandbox::Allocation;
use crate::shown;

pub(super) use history::forget;
pub(super) use prose::{fence, hanging};

use history::History;
use keyboard::Keyboard;
use plain::{Lines, Source};
use record::Record;
use signals::{CtrlC, Signals};
use talk::Talk;
use tty::Tty;
use view::Face;

/// Whether there is somebody to talk to.
pub(super) fn is_possible() -> bool {
    tty::is_there()
}

/// In which way is talked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Key by key, at a terminal that is drawn on.
    Keys,
    /// Line by line.
    Lines(Source),
}

impl Manner {
    /// What is possible here.
    fn possible() -> Self {
        match (std::io::stdin().is_terminal(), tty::is_there() && can_be_drawn_on()) {
            (true, true) => Self::Keys,
            (true, false) => Self::Lines(Source::Terminal),
            (false, _) => Self::Lines(Source::Pipe),
        }
    }

    /// Whether there is somebody who can answer a question.
    fn can_be_asked(self) -> bool {
        self != Self::Lines(Source::Pipe)
    }

    fn face(self) -> Face {
        match self {
            Self::Keys => Face::Drawn,
            Self::Lines(_) => Face::Plain,
        }
    }

    fn ctrl_c(self) -> CtrlC {
        match self {
            Self::Keys => CtrlC::Key,
            Self::Lines(_) => CtrlC::Signal,
        }
    }
}

pub(super) fn run(common: &Common, args: ChatArgs) -> Done {
    let manner = Manner::possible();
    if manner != Manner::Keys {
        console::set_colors_enabled_stderr(false);
    }
    let flags = common.flags(args.model.clone(), args.calls, args.max_tool_iterations);
    let parts = assemble::parts(common, flags, Allocation::Pooled)?;
    parts.stop_for_broken()?;
    parts.warn_of_refused();
    let workspace = parts.workspace(&common.workspace)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let session = sessions::resumed(&args.session, &parts, &workspace)?;
    let held_with = session.as_ref().and_then(|session| session.held_with.as_ref());
    let model = runtime.block_on(connect(&parts, &args.model, held_with, None))?;
    let signals = Signals::listen(&runtime, manner.ctrl_c())?;
    let mut keyboard = match manner {
        Manner::Keys => {
            let history = History::new(parts.folders.prompt_history(), sessions::redact(&parts));
            Keyboard::of_keys(Tty::borrow()?, history, signals.end_prompt())
        }
        Manner::Lines(source) => Keyboard::Lines(Lines::new(source, signals.clone())),
    };
    let record = if args.session.no_session { Record::Off } else { Record::NotYet };
    let mut talk = Talk::new(&parts, workspace, &runtime, model, record, &signals, manner);
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
