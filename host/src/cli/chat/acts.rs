//! What the slash commands do.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::attend::{Then, Words};
use super::commands::{Command, help};
use super::keyboard::Keyboard;
use super::meter::{Account, count, percent};
use super::record::Record;
use super::talk::Talk;
use super::{remark, told};
use crate::cli::args::SessionChoice;
use crate::cli::assemble::model_settings;
use crate::cli::error::CliError;
use crate::cli::{sessions, tools};
use crate::conversation::Transcript;
use crate::model::{self, ModelSpec, Provider};
use crate::policy::Mode;
use crate::session::{HeldWith, Scope, Store};
use crate::shown;

/// What a command comes to: a line or more for the user.
type Said = Result<String, CliError>;

impl Talk<'_> {
    /// Does what a command says.
    pub(super) fn act(&mut self, command: Command, keyboard: &mut Keyboard, words: &mut Words) -> Then {
        let said = match command {
            Command::Help => Ok(help()),
            Command::Mode(mode) => self.mode(mode),
            Command::Model(None) => Ok(self.this_model()),
            Command::Model(Some(spec)) => self.choose_model(&spec),
            Command::Tools => Ok(tools::list::text(&self.parts.catalog)),
            Command::Context => Ok(self.context()),
            Command::Cost => Ok(self.cost()),
            Command::Compact => return self.compact(keyboard, words),
            Command::Resume(None) => self.sessions(),
            Command::Resume(Some(id)) => self.resume(id),
            Command::Clear => Ok(self.clear()),
            Command::Export(path) => self.export(path),
            Command::Quit => return Then::Leave,
        };
        self.view.say(&match said {
            Ok(text) => remark(&text),
            Err(problem) => told(problem.message()),
        });
        Then::GoOn
    }

    fn mode(&self, mode: Option<Mode>) -> Said {
        if let Some(mode) = mode {
            if let Some(place) = self.parts.catalog.policy().forbids(mode) {
                return Err(CliError::new(format!("{place}: the policy does not leave mode `{mode}`")));
            }
            self.approvals.set_mode(mode);
        }
        let mode = self.approvals.mode();
        let words = match mode {
            Mode::Ask => "commands and writes need approval, one by one",
            Mode::Plan => "commands and writes are denied",
            Mode::AutoEdit => "writes are allowed, commands need approval",
            Mode::Auto => "commands and writes are allowed without asking",
        };
        Ok(format!("mode {mode}: {words}"))
    }

    fn this_model(&self) -> String {
        let info = self.model.info();
        format!("{}, with a window of {} tokens", HeldWith::from(info), count(info.context_window))
    }

    fn choose_model(&mut self, spec: &str) -> Said {
        let mut settings = model_settings(&self.parts.settings);
        let (spec, now): (ModelSpec, _) = (spec.parse()?, self.model.info());
        // An address belongs to one provider: another one's key must not be sent there.
        if spec.provider.name() == now.provider {
            settings.base_url.clone_from(&now.address);
        } else if let (Some(url), true) = (now.address.as_ref().or(settings.base_url.as_ref()), spec.provider != Provider::Replay) {
            let url = shown::line(url, 200);
            return Err(CliError::new(format!(
                "the base URL {url} belongs to {}; to talk to {spec}, start again without it",
                if now.address.is_some() { &now.provider } else { "another provider" }
            )));
        }
        let _entered = self.runtime.enter();
        self.model = model::connect(&spec, &settings)?.into();
        self.meter.borrow_mut().forget_scale();
        Ok(format!("from now on: {}", self.this_model()))
    }

    fn context(&self) -> String {
        let meter = self.meter.borrow();
        let (all, beside, window) = (meter.context(), meter.beside(), self.model.info().context_window);
        format!(
            "about {} of {} tokens ({}): {} of system prompt and tools, {} of conversation",
            count(all),
            count(window),
            percent(all, window),
            count(beside),
            count(all.saturating_sub(beside))
        )
    }

    fn cost(&self) -> String {
        let meter = self.meter.borrow();
        let line = |since: &str, account: &Account| format!("{since}: {}", account.in_words());
        if meter.session() == meter.chat() {
            return line("in this session", meter.session());
        }
        format!("{}\n{}", line("in this session", meter.session()), line("since this chat began", meter.chat()))
    }

    fn sessions(&self) -> Said {
        let entries = Store::new(self.parts.folders.sessions()).list(Scope::Project(self.workspace.root()))?;
        let list = sessions::list::text(&entries, false);
        Ok(if entries.is_empty() { list } else { format!("{list}\n/resume ID goes on with one; any unique beginning of its name will do") })
    }

    fn resume(&mut self, id: String) -> Said {
        if self.record.id().is_some_and(|own| own.as_str().starts_with(&id)) {
            return Err(CliError::new("that is the session you are in"));
        }
        let choice = SessionChoice { resume: Some(id), ..SessionChoice::default() };
        let Some(session) = sessions::resumed(&choice, self.parts, &self.workspace)? else {
            return Err(CliError::new("there is no such session"));
        };
        self.go_on_with(session);
        Ok("earlier \"don't ask again\" approvals no longer hold".to_owned())
    }

    fn clear(&mut self) -> String {
        let old = self.record.id().map(|id| format!("; session {id} is kept")).unwrap_or_default();
        let record = if matches!(self.record, Record::Off) { Record::Off } else { Record::NotYet };
        self.begin_with(Transcript::new(), record, &[]);
        format!("a new session begins{old}")
    }

    /// Writes what is on record; what is not recorded is written without the keys that are known.
    fn export(&self, path: Option<PathBuf>) -> Said {
        let (text, name) = match self.record.id() {
            Some(id) => {
                let entry = Store::new(self.parts.folders.sessions()).find(Scope::Project(self.workspace.root()), id.as_str())?;
                (sessions::export::text(&entry)?, id.to_string())
            }
            None if self.transcript.is_empty() => return Err(CliError::new("nothing has been said yet")),
            None => {
                let redact = sessions::redact(self.parts);
                let json = serde_json::json!({"transcript": self.transcript});
                (shown::json(&redact(&format!("{json:#}"))), "conversation".to_owned())
            }
        };
        let path = path.unwrap_or_else(|| format!("cofferdam-{name}.json").into());
        write_new(&path, &text).map_err(|error| CliError::new(format!("cannot write {}: {error}", path.display())))?;
        Ok(format!("written to {}", path.display()))
    }
}

/// Into a file that was not there, for its user alone.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")
}
