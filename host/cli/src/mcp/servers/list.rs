//! `cofferdam mcp list`: the configured servers, with their state and permissions.

use std::process::ExitCode;

use serde_json::json;

use super::description::{is_read_only, permissions, settings_json};
use super::load_context;
use crate::args::CommonArgs;
use crate::context;
use crate::error::CommandResult;
use crate::json_text::json_page;
use crate::print::print_line;
use cofferdam::config::{ServerSettings, ServerTransport};
use cofferdam::plugins::AcceptedServer;
use cofferdam::terminal_escape::escape_line;

/// The state of a configured server.
struct ListedServer<'a> {
    settings: &'a ServerSettings,
    accepted: Option<&'a AcceptedServer>,
}

impl ListedServer<'_> {
    /// Returns the state in one word.
    fn state(&self) -> &'static str {
        match self.accepted {
            None => "new",
            Some(accepted) if accepted.unaccepted_settings(self.settings).is_empty() => "pinned",
            Some(_) => "changed",
        }
    }
}

pub(in crate::mcp) fn run(common: &CommonArgs, as_json: bool) -> CommandResult {
    let context = load_context(common)?;
    let lock = context::lock_file(common, &context.user_dirs).read()?;
    let listed = context
        .settings
        .servers
        .iter()
        .map(|settings| ListedServer { settings, accepted: lock.find_server(&settings.name) });
    let listed: Vec<ListedServer<'_>> = listed.collect();
    if as_json {
        let servers: Vec<_> = listed
            .iter()
            .map(|server| {
                let mut value = settings_json(server.settings);
                value["state"] = json!(server.state());
                value["digest"] = json!(server.accepted.map(|accepted| &accepted.digest));
                value["tools"] = json!(server.accepted.map(|accepted| accepted.tools.len()));
                value
            })
            .collect();
        print_line(&json_page(&json!({
            "servers": servers,
            "sandbox": context.commands().measured().level,
        })));
        return Ok(ExitCode::SUCCESS);
    }
    if listed.is_empty() {
        print_line("There are no MCP servers. `cofferdam mcp add` adds one.");
    }
    for server in &listed {
        print_line(&escape_line(&describe(server), 1000));
    }
    let is_program = |server: &ListedServer<'_>| {
        matches!(server.settings.transport, ServerTransport::Program(_))
    };
    if listed.iter().any(is_program) {
        let level = context.commands().measured().level;
        print_line(&format!(
            "Programs run in the sandbox level `full`; this machine has `{level}`."
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn describe(server: &ListedServer<'_>) -> String {
    let ListedServer { settings, accepted } = server;
    let (name, state, command) = (&settings.name, server.state(), settings.target_text());
    let Some(accepted) = accepted else {
        return format!("{name}  {state}  {command}  (accept it with `cofferdam mcp add {name}`)");
    };
    let may = permissions(settings, accepted);
    let may = if may.is_empty() { "no permissions".to_owned() } else { may.join("; ") };
    let tier = if is_read_only(settings, accepted) { "read-only" } else { "write" };
    let changes = accepted.unaccepted_settings(settings);
    let changes = match changes.is_empty() {
        true => String::new(),
        false => format!("  ({}; see `cofferdam mcp add {name}`)", changes.join("; ")),
    };
    let count = accepted.tools.len();
    format!("{name}  {state}  {tier}  {count} tools  {may}  {command}{changes}")
}
