//! `cofferdam plugin list`: the plugins that are not part of the program, and whether each is what was accepted.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;

use crate::cli::admission::summary;
use crate::cli::args::Common;
use crate::cli::assemble::Parts;
use crate::cli::error::Done;
use crate::cli::print::stdout_line;
use crate::plugins::Shelf;
use crate::shown;
use crate::tools::{Lock, Origin, Standing, Tool};

pub(super) fn run(common: &Common, as_json: bool) -> Done {
    let shelf = super::shelf(common)?;
    let lock = shelf.lock()?;
    let parts = super::parts(common)?;
    let listed: Vec<Listed<'_>> = parts.settings.plugins.iter().map(|path| Listed::new(path, &parts, &shelf, &lock)).collect();
    if as_json {
        let plugins: Vec<_> = listed.iter().map(Listed::as_value).collect();
        stdout_line(&shown::json(&format!("{:#}", json!({"plugins": plugins, "lock": shelf.lock_path()}))));
    } else if listed.is_empty() {
        stdout_line("No plugin was added, and the configuration names none. `cofferdam plugin add FILE` adds one.");
    } else {
        stdout_line(&listed.iter().map(Listed::text).collect::<Vec<_>>().join("\n\n"));
    }
    Ok(ExitCode::SUCCESS)
}

/// A plugin, wherever it is named.
struct Listed<'a> {
    path: &'a Path,
    /// Under which it was added, and from where; `None` for one of the configuration or the command line.
    added: Option<(String, String)>,
    tools: Vec<&'a Tool>,
    state: State,
}

enum State {
    Known(Standing),
    /// It is not offered.
    Refused(String),
}

impl<'a> Listed<'a> {
    fn new(path: &'a Path, parts: &'a Parts, shelf: &Shelf, lock: &Lock) -> Self {
        let added = lock.added().find(|(_, added)| shelf.path(added) == path);
        let is_here = |origin: &Origin| matches!(origin, Origin::File(file) if file == path);
        let tools: Vec<&Tool> = parts.catalog.tools().iter().filter(|tool| is_here(&tool.origin)).collect();
        let refused = parts.catalog.refused().iter().find(|refused| is_here(&refused.origin));
        let state = match (tools.first(), refused) {
            (Some(tool), _) => State::Known(lock.standing(path, &tool.plugin)),
            (None, Some(refused)) => State::Refused(refused.reason.clone()),
            (None, None) => State::Refused("it has no tools".to_owned()),
        };
        Self { path, added: added.map(|(name, added)| (name.to_owned(), added.source.clone())), tools, state }
    }

    fn word(&self) -> &'static str {
        match &self.state {
            State::Known(Standing::Accepted) => "pinned",
            State::Known(Standing::New) => "new",
            State::Known(Standing::Changed { .. }) => "changed",
            State::Refused(_) => "refused",
        }
    }

    /// What is the matter, if anything.
    fn reason(&self) -> Option<String> {
        match &self.state {
            State::Known(Standing::Accepted) => None,
            State::Known(standing @ (Standing::New | Standing::Changed { .. })) => Some(summary(standing)),
            State::Refused(reason) => Some(reason.clone()),
        }
    }

    fn as_value(&self) -> serde_json::Value {
        let (name, source) = self.added.clone().unzip();
        let tool = |tool: &&Tool| json!({"name": tool.declared.name, "tier": tool.tier, "asks": tool.declared.asks, "grants": tool.grants});
        json!({
            "name": name, "source": source, "file": self.path,
            "digest": self.tools.first().map(|tool| tool.plugin.digest()), "size": self.tools.first().map(|tool| tool.plugin.size()),
            "state": self.word(), "reason": self.reason(), "tools": self.tools.iter().map(tool).collect::<Vec<_>>(),
        })
    }

    fn text(&self) -> String {
        let name = self.added.as_ref().map_or_else(|| self.path.display().to_string(), |(name, _)| name.clone());
        let digest = self.tools.first().map_or(String::new(), |tool| format!("  sha256:{}", tool.plugin.digest().short()));
        let mut text = format!("{}{digest}  {}", shown::line(&name, 400), self.word());
        if let Some(reason) = self.reason() {
            let _ = write!(text, ": {}", shown::line(&reason, 1000));
        }
        match &self.added {
            Some((_, source)) => {
                let _ = write!(text, "\n  from   {}", shown::line(source, 1000));
                let _ = write!(text, "\n  file   {}", shown::line(&self.path.display().to_string(), 1000));
            }
            None => text.push_str("\n  from   the configuration, or --plugin"),
        }
        for tool in &self.tools {
            let asks: Vec<String> = tool.declared.asks.iter().map(ToString::to_string).collect();
            let asks = if asks.is_empty() { "asks for nothing".to_owned() } else { format!("asks to {}", asks.join("; ")) };
            let line = format!("{}  {}, {asks}", tool.declared.name, tool.tier.name());
            let _ = write!(text, "\n  tool   {}", shown::line(&line, 1000));
        }
        text
    }
}
