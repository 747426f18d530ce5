//! `cofferdam chat`: a conversation, at a terminal or line by line.
//!
//! One thread owns the terminal and does all the reading ([`keyboard`]): at the prompt, while a
//! request runs ([`event_loop`]), and in a dialog within that request ([`question`]). The request
//! itself runs beside it and tells the [`view`] what happens. What scrolls by is written once; the
//! rows below it are drawn anew ([`screen`]). Where nothing can be drawn, lines are read and
//! written ([`line_reader`]).

mod actions;
mod chat_session;
mod commands;
mod edit_line;
mod editor;
mod event_loop;
mod history;
mod inline;
mod keyboard;
mod line_reader;
mod meter;
mod prose;
mod question;
mod screen;
mod session_record;
mod signals;
mod tty;
mod view;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use console::style;

use super::args::{ChatArgs, CommonArgs};
use super::connect::connect;
use super::context;
use super::error::CommandResult;
use super::policy_checks;
use super::print::supports_cursor;
use super::sessions;
use crate::sandbox::InstanceAllocation;
use crate::terminal_escape;

pub(super) use history::remove_session;
pub(super) use prose::{fence_mark, hanging_indent};

use chat_session::ChatSession;
use history::PromptHistory;
use keyboard::KeyboardOwner;
use line_reader::{LineSource, PipedLineReader};
use session_record::SessionRecord;
use signals::{InterruptKind, ProcessSignals};
use tty::RawTerminal;
use view::ChatRenderMode;

/// Whether there is somebody to talk to.
pub(super) fn is_available() -> bool {
    tty::is_interactive()
}

/// In which way is talked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChatInputMode {
    /// Key by key, at a terminal that is drawn on.
    Keys,
    /// Line by line.
    Lines(LineSource),
}

impl ChatInputMode {
    /// What is possible here.
    fn detect() -> Self {
        match (std::io::stdin().is_terminal(), tty::is_interactive() && supports_cursor()) {
            (true, true) => Self::Keys,
            (true, false) => Self::Lines(LineSource::Terminal),
            (false, _) => Self::Lines(LineSource::Pipe),
        }
    }

    /// Whether there is somebody who can answer a question.
    fn is_interactive(self) -> bool {
        self != Self::Lines(LineSource::Pipe)
    }

    fn render_mode(self) -> ChatRenderMode {
        match self {
            Self::Keys => ChatRenderMode::Drawn,
            Self::Lines(_) => ChatRenderMode::Plain,
        }
    }

    fn interrupt_kind(self) -> InterruptKind {
        match self {
            Self::Keys => InterruptKind::Key,
            Self::Lines(_) => InterruptKind::Signal,
        }
    }
}

pub(super) fn run(common: &CommonArgs, args: ChatArgs) -> CommandResult {
    let manner = ChatInputMode::detect();
    if manner != ChatInputMode::Keys {
        console::set_colors_enabled_stderr(false);
    }
    let flags = common.flags(args.model.clone(), args.calls, args.max_tool_iterations);
    let parts = context::load_context(common, flags, InstanceAllocation::Pooled)?;
    parts.check_named_plugins()?;
    parts.warn_refused_plugins();
    let choice = policy_checks::apply_session_policy(parts.catalog.policy(), &args.session)?;
    let workspace = parts.open_workspace(&common.workspace)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let session = sessions::resume(&choice, &parts, &workspace)?;
    let held_with = session.as_ref().and_then(|session| session.last_model.as_ref());
    let model = runtime.block_on(connect(&parts, &args.model, held_with, None))?;
    let signals = ProcessSignals::listen(&runtime, manner.interrupt_kind())?;
    let mut keyboard = match manner {
        ChatInputMode::Keys => {
            let history = PromptHistory::new(
                parts.user_dirs.prompt_history(),
                sessions::secret_redactor(&parts),
            );
            KeyboardOwner::with_raw_keys(RawTerminal::acquire()?, history, signals.prompt_break())
        }
        ChatInputMode::Lines(source) => {
            KeyboardOwner::Lines(PipedLineReader::new(source, signals.clone()))
        }
    };
    let record = if choice.no_session { SessionRecord::Disabled } else { SessionRecord::Pending };
    let mut talk = ChatSession::new(&parts, workspace, &runtime, model, record, &signals, manner);
    talk.print_banner();
    if let Some(session) = session {
        talk.resume_session(session);
    }
    let left = talk.run(&mut keyboard);
    talk.print_resume_hint();
    drop(talk);
    drop(keyboard);
    runtime.shutdown_background();
    Ok(signals.exit_code().unwrap_or(left?))
}

/// Something the user should know, in a line.
fn format_notice(text: &str) -> String {
    format!("{} {}", style("!").yellow().for_stderr(), terminal_escape::escape_text(text))
}

/// Something the user asked for, or that follows from what they did.
fn format_reply(text: &str) -> String {
    let dim = |line| style(line).dim().for_stderr().to_string();
    terminal_escape::escape_text(text).lines().map(dim).collect::<Vec<_>>().join("\n")
}

/// Left in the ordinary way.
const NORMAL_EXIT: ExitCode = ExitCode::SUCCESS;
