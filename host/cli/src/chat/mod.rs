//! `cofferdam chat`: a chat in a terminal, or line by line.
//!
//! One thread owns the terminal and does all reading ([`keyboard`]): at the prompt, in the event
//! loop of a request ([`event_loop`]), and in a dialog within that request ([`question`]). The
//! request runs on another thread and reports events to the [`view`]. Finished lines are written
//! once; the rows below them are redrawn ([`screen`]). Where the terminal cannot be redrawn, input
//! and output are plain lines ([`line_reader`]).

mod actions;
mod chat_session;
mod commands;
mod edit_line;
mod editor;
mod event_loop;
mod history;
mod inline;
mod jobs;
mod keyboard;
mod line_reader;
mod meter;
mod outcome_text;
mod prose;
mod question;
mod screen;
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
use cofferdam::host::SessionRecord;
use cofferdam::sandbox::InstanceAllocation;
use cofferdam::terminal_escape;

pub(super) use history::remove_session;
pub(super) use prose::{closing_fence_after, hanging_indent};

use chat_session::ChatSession;
use history::PromptHistory;
use keyboard::KeyboardOwner;
use line_reader::{LineSource, PipedLineReader};
use signals::{InterruptKind, ProcessSignals};
use tty::RawTerminal;
use view::ChatRenderMode;

/// Returns whether the program runs in a terminal that can hold a chat.
pub(super) fn is_available() -> bool {
    tty::is_interactive()
}

/// Returns whether a chat would redraw the terminal.
pub(super) fn draws_on_terminal() -> bool {
    ChatInputMode::detect() == ChatInputMode::Keys
}

/// How the chat reads input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChatInputMode {
    /// Key by key, in a terminal that can be redrawn.
    Keys,
    /// Line by line, from a simple terminal or a pipe.
    Lines(LineSource),
}

impl ChatInputMode {
    /// Detects the mode from the standard streams and `TERM`.
    fn detect() -> Self {
        match (std::io::stdin().is_terminal(), tty::is_interactive() && supports_cursor()) {
            (true, true) => Self::Keys,
            (true, false) => Self::Lines(LineSource::Terminal),
            (false, _) => Self::Lines(LineSource::Pipe),
        }
    }

    /// Returns whether a user can answer questions.
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
    let input_mode = ChatInputMode::detect();
    if input_mode != ChatInputMode::Keys {
        console::set_colors_enabled_stderr(false);
    }
    let flags = common.flags(args.model.clone(), args.calls, args.max_tool_iterations);
    let context = context::load_context(common, flags, InstanceAllocation::Pooled)?;
    context.check_named_plugins()?;
    context.warn_refused_plugins();
    let choice = policy_checks::apply_session_policy(context.policy(), args.session)?;
    let host = context.open_host()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let session = sessions::resume(&choice, &context, host.workspace())?;
    let last_model = session.as_ref().and_then(|session| session.last_model.as_ref());
    let model = runtime.block_on(connect(&context, &args.model, last_model, None))?;
    let signals = ProcessSignals::listen(&runtime, input_mode.interrupt_kind())?;
    let mut keyboard = match input_mode {
        ChatInputMode::Keys => {
            let history =
                PromptHistory::new(context.user_dirs.prompt_history(), context.prepared.redactor());
            KeyboardOwner::with_raw_keys(RawTerminal::acquire()?, history, signals.prompt_break())
        }
        ChatInputMode::Lines(source) => {
            KeyboardOwner::Lines(PipedLineReader::new(source, signals.clone()))
        }
    };
    let record = if choice.no_session { SessionRecord::Disabled } else { SessionRecord::Pending };
    let mut chat = ChatSession::new(&context, &host, &runtime, model, record, &signals, input_mode);
    chat.print_banner();
    if let Some(session) = session {
        chat.resume_session(session);
    }
    let exit_code = chat.run(&mut keyboard);
    chat.end_jobs();
    chat.print_resume_hint();
    drop(chat);
    drop(keyboard);
    runtime.shutdown_background();
    Ok(signals.exit_code().unwrap_or(exit_code?))
}

/// Formats a notice for the user.
fn format_notice(text: &str) -> String {
    format!("{} {}", style("!").yellow().for_stderr(), terminal_escape::escape_text(text))
}

/// Formats the reply to a command or another action of the user.
fn format_reply(text: &str) -> String {
    let dim = |line| style(line).dim().for_stderr().to_string();
    terminal_escape::escape_text(text).lines().map(dim).collect::<Vec<_>>().join("\n")
}

/// The exit code when the user leaves.
const NORMAL_EXIT: ExitCode = ExitCode::SUCCESS;
