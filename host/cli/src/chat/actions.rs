//! The actions of the slash commands.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::chat_session::ChatSession;
use super::commands::{SlashCommand, help_text};
use super::event_loop::{AfterRequest, ChatInputQueue};
use super::keyboard::KeyboardOwner;
use super::meter::{UsageTotals, format_percent, format_tokens};
use super::{format_notice, format_reply};
use crate::args::SessionChoice;
use crate::context::model_settings;
use crate::error::CliError;
use crate::json_text::redacted_json_page;
use crate::policy_checks::{check_sessions_allowed, open_model};
use crate::{diff, sessions, tools};
use cofferdam::host::SessionRecord;
use cofferdam::model::{ModelSpec, ProviderKind};
use cofferdam::policy::ApprovalMode;
use cofferdam::sandbox::UndoHistory;
use cofferdam::session::{ModelIdentity, SessionScope, SessionStore};
use cofferdam::terminal_escape;

/// The reply of a command: one or more lines for the user.
type CommandReply = Result<String, CliError>;

impl ChatSession<'_> {
    /// Runs a slash command and prints its reply.
    pub(super) fn run_command(
        &mut self,
        command: SlashCommand,
        keyboard: &mut KeyboardOwner,
        input: &mut ChatInputQueue,
    ) -> AfterRequest {
        let result = match command {
            SlashCommand::Help => Ok(help_text()),
            SlashCommand::Mode(mode) => self.set_or_show_mode(mode),
            SlashCommand::Model(None) => Ok(self.describe_model()),
            SlashCommand::Model(Some(spec)) => self.choose_model(&spec),
            SlashCommand::Tools => Ok(tools::list::format_table(self.context.catalog())),
            SlashCommand::Context => Ok(self.describe_context()),
            SlashCommand::Cost => Ok(self.describe_cost()),
            SlashCommand::Compact => return self.compact(keyboard, input),
            SlashCommand::Jobs(command) => self.run_jobs_command(command),
            SlashCommand::Diff => match self.describe_changes() {
                Ok(shown) => {
                    self.view.print_line(&shown);
                    return AfterRequest::Continue;
                }
                Err(problem) => Err(problem),
            },
            SlashCommand::Resume(None) => self.list_sessions(),
            SlashCommand::Resume(Some(id)) => self.resume_by_id(id),
            SlashCommand::Clear => Ok(self.start_new_session()),
            SlashCommand::Export(path) => self.export_transcript(path),
            SlashCommand::Quit => return AfterRequest::Exit,
        };
        self.view.print_line(&match result {
            Ok(text) => format_reply(&text),
            Err(problem) => format_notice(problem.message()),
        });
        AfterRequest::Continue
    }

    fn set_or_show_mode(&self, mode: Option<ApprovalMode>) -> CommandReply {
        if let Some(mode) = mode {
            if let Some(place) = self.context.policy().mode_denied_by(mode) {
                return Err(CliError::new(format!(
                    "{place}: mode `{mode}` is not allowed by this policy"
                )));
            }
            self.session.approvals().set_mode(mode);
        }
        let mode = self.session.approvals().mode();
        let commands = match mode {
            ApprovalMode::Auto => {
                format!("; commands run {}", self.context.commands().describe_access())
            }
            ApprovalMode::Ask | ApprovalMode::Plan | ApprovalMode::AutoEdit => String::new(),
        };
        Ok(format!("mode {mode}: {}{commands}", mode.describe()))
    }

    fn describe_model(&self) -> String {
        let info = self.session.model().info();
        format!(
            "{}, context window {} tokens",
            ModelIdentity::from(info),
            format_tokens(info.context_window)
        )
    }

    fn choose_model(&mut self, spec: &str) -> CommandReply {
        let mut settings = model_settings(&self.context.settings);
        let (spec, now): (ModelSpec, _) = (spec.parse()?, self.session.model().info());
        // A base URL belongs to one provider: the key of another one must not be sent there.
        if spec.provider.name() == now.provider {
            settings.base_url.clone_from(&now.address);
        } else if let (Some(url), true) = (
            now.address.as_ref().or(settings.base_url.as_ref()),
            spec.provider != ProviderKind::Replay,
        ) {
            let url = terminal_escape::escape_line(url, 200);
            return Err(CliError::new(format!(
                "the base URL `{url}` belongs to {}\n\
                    hint: to use `{spec}`, start again without this base URL",
                if now.address.is_some() { &now.provider } else { "another provider" }
            )));
        }
        let _entered = self.runtime.enter();
        let model = open_model(self.context.policy(), &spec, &settings)?;
        self.session.set_model(model.into());
        self.meter.borrow_mut().reset_scale();
        Ok(format!("model: {}", self.describe_model()))
    }

    fn describe_context(&self) -> String {
        let meter = self.meter.borrow();
        let (all, overhead_tokens, window) =
            (meter.context_tokens(), meter.overhead(), self.session.model().info().context_window);
        format!(
            "about {} of {} tokens ({}): {} system prompt and tools, {} conversation",
            format_tokens(all),
            format_tokens(window),
            format_percent(all, window),
            format_tokens(overhead_tokens),
            format_tokens(all.saturating_sub(overhead_tokens))
        )
    }

    fn describe_cost(&self) -> String {
        let meter = self.meter.borrow();
        let line = |since: &str, account: &UsageTotals| format!("{since}: {}", account.describe());
        if meter.session_totals() == meter.chat_totals() {
            return line("in this session", meter.session_totals());
        }
        format!(
            "{}\n{}",
            line("in this session", meter.session_totals()),
            line("since this chat began", meter.chat_totals())
        )
    }

    /// Describes what tools and commands have changed since the chat began, escaped and coloured.
    fn describe_changes(&self) -> CommandReply {
        let workspace = self.session.host().workspace();
        let history = UndoHistory::for_workspace(&self.context.user_dirs.undo(), workspace);
        Ok(diff::describe_since(&history, workspace, self.began)?)
    }

    fn list_sessions(&self) -> CommandReply {
        let entries = SessionStore::new(self.context.user_dirs.sessions())
            .list(SessionScope::Project(self.session.host().workspace().root()))?;
        let list = sessions::list::format_table(&entries, false);
        Ok(if entries.is_empty() {
            list
        } else {
            format!(
                "{list}\n\
                `/resume ID` continues a session; a unique prefix of its ID is enough."
            )
        })
    }

    fn resume_by_id(&mut self, id: String) -> CommandReply {
        if self.session.id().is_some_and(|own| own.as_str().starts_with(&id)) {
            return Err(CliError::new("this session is already open"));
        }
        let choice = SessionChoice { resume: Some(id), ..SessionChoice::default() };
        let Some(session) =
            sessions::resume(&choice, self.context, self.session.host().workspace())?
        else {
            return Err(CliError::new("no session has this ID"));
        };
        self.resume_session(session);
        Ok("earlier \"don't ask again\" approvals do not apply".to_owned())
    }

    fn start_new_session(&mut self) -> String {
        let old = self.session.id().map(|id| format!("; session {id} is kept")).unwrap_or_default();
        let record = if matches!(self.session.record(), SessionRecord::Disabled) {
            SessionRecord::Disabled
        } else {
            SessionRecord::Pending
        };
        self.start_session(record);
        format!("started a new session{old}")
    }

    /// Writes the conversation to a new JSON file. Known keys are redacted from an unrecorded
    /// conversation.
    fn export_transcript(&self, path: Option<PathBuf>) -> CommandReply {
        check_sessions_allowed(self.context.policy(), "the conversation cannot be exported")?;
        let (text, name) = match self.session.id() {
            Some(id) => {
                let entry = SessionStore::new(self.context.user_dirs.sessions()).find(
                    SessionScope::Project(self.session.host().workspace().root()),
                    id.as_str(),
                )?;
                (sessions::export::export_json(&entry)?, id.to_string())
            }
            None if self.session.transcript().is_empty() => {
                return Err(CliError::new("there is nothing to export yet"));
            }
            None => {
                let redact = self.context.prepared.redactor();
                let json = serde_json::json!({"transcript": self.session.transcript()});
                (redacted_json_page(&json, redact), "conversation".to_owned())
            }
        };
        let path = path.unwrap_or_else(|| format!("cofferdam-{name}.json").into());
        write_new_file(&path, &text).map_err(|error| {
            CliError::new(format!("cannot write `{}`: {error}", path.display()))
        })?;
        Ok(format!("wrote {}", path.display()))
    }
}

/// Writes a file that must not exist yet, readable only by this user.
fn write_new_file(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")
}
