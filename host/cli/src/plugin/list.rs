//! `cofferdam plugin list`: lists the plugins that are not built in, with their acceptance status.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;

use crate::args::CommonArgs;
use crate::context::AppContext;
use crate::error::CommandResult;
use crate::json_text::json_page;
use crate::print::print_line;
use cofferdam::plugins::{AcceptanceStatus, AcceptedPlugins, PluginStore};
use cofferdam::terminal_escape;
use cofferdam::tools::{CatalogTool, PluginProvenance};

pub(super) fn run(common: &CommonArgs, as_json: bool) -> CommandResult {
    let store = super::plugin_store(common)?;
    let lock = store.accepted_plugins()?;
    let context = super::load_context(common)?;
    let listed: Vec<ListedPlugin<'_>> = context
        .prepared
        .plugins()
        .iter()
        .map(|path| ListedPlugin::new(path, &context, &store, &lock))
        .collect();
    if as_json {
        let plugins: Vec<_> = listed.iter().map(ListedPlugin::to_json).collect();
        print_line(&json_page(&json!({"plugins": plugins, "lock": store.lock_file_path()})));
    } else if listed.is_empty() {
        print_line("There are no plugins. `cofferdam plugin add FILE` adds one.");
    } else {
        print_line(&listed.iter().map(ListedPlugin::to_text).collect::<Vec<_>>().join("\n\n"));
    }
    Ok(ExitCode::SUCCESS)
}

/// A plugin with its acceptance status.
struct ListedPlugin<'a> {
    path: &'a Path,
    /// The name and source of an added plugin; `None` for a plugin of the configuration or the
    /// command line.
    added: Option<(String, String)>,
    tools: Vec<&'a CatalogTool>,
    state: PluginState,
}

enum PluginState {
    Known(AcceptanceStatus),
    /// The plugin is not loaded, for this reason.
    Refused(String),
}

impl<'a> ListedPlugin<'a> {
    fn new(
        path: &'a Path,
        context: &'a AppContext,
        store: &PluginStore,
        lock: &AcceptedPlugins,
    ) -> Self {
        let added = lock.added_plugins().find(|(_, added)| store.plugin_path(added) == path);
        let is_here = |origin: &PluginProvenance| match origin {
            PluginProvenance::File(file) => file == path,
            PluginProvenance::BuiltIn(_) | PluginProvenance::Source(_) => false,
        };
        let tools: Vec<&CatalogTool> =
            context.catalog().tools().iter().filter(|tool| is_here(&tool.origin)).collect();
        let refused =
            context.catalog().refused_plugins().iter().find(|refused| is_here(&refused.origin));
        let plugin = tools.first().and_then(|tool| tool.backend.component());
        let state = match (plugin, refused) {
            (Some(plugin), _) => PluginState::Known(lock.status(path, plugin)),
            (None, Some(refused)) => PluginState::Refused(refused.reason.clone()),
            (None, None) => PluginState::Refused("it has no tools".to_owned()),
        };
        Self {
            path,
            added: added.map(|(name, added)| (name.to_owned(), added.source.clone())),
            tools,
            state,
        }
    }

    fn status_label(&self) -> &'static str {
        match &self.state {
            PluginState::Known(AcceptanceStatus::Accepted) => "pinned",
            PluginState::Known(AcceptanceStatus::New) => "new",
            PluginState::Known(AcceptanceStatus::Changed { .. }) => "changed",
            PluginState::Refused(_) => "refused",
        }
    }

    /// Returns the reason for a status other than accepted.
    fn status_reason(&self) -> Option<String> {
        match &self.state {
            PluginState::Known(AcceptanceStatus::Accepted) => None,
            PluginState::Known(
                status @ (AcceptanceStatus::New | AcceptanceStatus::Changed { .. }),
            ) => Some(status.describe()),
            PluginState::Refused(reason) => Some(reason.clone()),
        }
    }

    fn to_json(&self) -> serde_json::Value {
        let (name, source) = self.added.clone().unzip();
        let tool = |tool: &&CatalogTool| {
            json!({
                "name": tool.declaration.name,
                "tier": tool.tier,
                "asks": tool.declaration.asks,
                "grants": tool.grants,
            })
        };
        json!({
            "name": name,
            "source": source,
            "file": self.path,
            "digest": self.tools.first().map(|tool| tool.backend.digest()),
            "size": self.tools.first().and_then(|tool| Some(tool.backend.component()?.size())),
            "state": self.status_label(),
            "reason": self.status_reason(),
            "tools": self.tools.iter().map(tool).collect::<Vec<_>>(),
        })
    }

    fn to_text(&self) -> String {
        let name = self
            .added
            .as_ref()
            .map_or_else(|| self.path.display().to_string(), |(name, _)| name.clone());
        let digest = self
            .tools
            .first()
            .map_or(String::new(), |tool| format!("  sha256:{}", tool.backend.digest().short()));
        let mut text = format!(
            "{}{digest}  {}",
            terminal_escape::escape_line(&name, 400),
            self.status_label()
        );
        if let Some(reason) = self.status_reason() {
            let _ = write!(text, ": {}", terminal_escape::escape_line(&reason, 1000));
        }
        match &self.added {
            Some((_, source)) => {
                let _ = write!(text, "\n  from   {}", terminal_escape::escape_line(source, 1000));
                let _ = write!(
                    text,
                    "\n  file   {}",
                    terminal_escape::escape_line(&self.path.display().to_string(), 1000)
                );
            }
            None => text.push_str("\n  from   the configuration or `--plugin`"),
        }
        for tool in &self.tools {
            let asks: Vec<String> = tool.declaration.asks.iter().map(ToString::to_string).collect();
            let asks = if asks.is_empty() {
                "requests no permissions".to_owned()
            } else {
                format!("requests permission to {}", asks.join("; "))
            };
            let line = format!("{}  {}, {asks}", tool.declaration.name, tool.tier.name());
            let _ = write!(text, "\n  tool   {}", terminal_escape::escape_line(&line, 1000));
        }
        text
    }
}
