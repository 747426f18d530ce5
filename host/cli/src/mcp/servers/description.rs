//! What a server may do and what it offers, for the user.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::context::AppContext;
use crate::error::CliError;
use cofferdam::config::{SecretHeader, ServerSettings, ServerTransport};
use cofferdam::plugins::{AcceptedServer, AcceptedServerTool};
use cofferdam::policy::{Grants, SandboxLevel};
use cofferdam::terminal_escape::{escape_line, escape_name};
use cofferdam::tools::UnusableTool;

/// The characters of a description of a tool that are shown.
const MAX_DESCRIPTION_LEN: usize = 1000;

/// Describes a server with its permissions and its tools.
pub(super) fn describe_server(
    context: &AppContext,
    settings: &ServerSettings,
    accepted: &AcceptedServer,
) -> String {
    let mut text = format!("{}\n", settings.name);
    let mut fact = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:11} {}", escape_name(value, 4000));
    };
    match &settings.transport {
        ServerTransport::Program(program) => {
            fact("command", &program.command_text());
            fact("permissions", &join_or_none(&permissions(settings, accepted)));
            fact("variables", &join_or_none(&program.env));
            let read: Vec<String> =
                program.read.iter().map(|path| path.display().to_string()).collect();
            if !read.is_empty() {
                fact("can read", &read.join(", "));
            }
        }
        ServerTransport::Http(server) => {
            fact("url", &server.url.to_string());
            fact("permissions", &join_or_none(&permissions(settings, accepted)));
            let headers: Vec<String> = server.headers.iter().map(SecretHeader::describe).collect();
            fact("headers", &join_or_none(&headers));
            if !server.addresses.is_empty() {
                fact("addresses", &server.addresses.join(", "));
            }
            let origin = server.url.origin();
            if !origin.is_encrypted() {
                fact(
                    "encryption",
                    if origin.is_loopback() {
                        "none; the server is on this machine"
                    } else {
                        "none: everybody on the way can read and change everything, all secrets too"
                    },
                );
            }
        }
    }
    fact("calls", describe_tier(settings, accepted));
    match &settings.transport {
        ServerTransport::Program(_) => fact("sandbox", &describe_sandbox(context)),
        ServerTransport::Http(_) => fact(
            "sandbox",
            "none: the server runs elsewhere, and gets the arguments of its calls and nothing else \
                of this machine",
        ),
    }
    fact("digest", &format!("sha256:{}", accepted.digest));
    let _ = writeln!(text, "  tools       {}", accepted.tools.len());
    for tool in &accepted.tools {
        let _ = writeln!(
            text,
            "    {}/{}{}",
            settings.name,
            escape_line(&tool.name, 128),
            if tool.says_it_changes() {
                "  (the server says that it changes something)"
            } else {
                ""
            }
        );
        if !tool.description.trim().is_empty() {
            let description = tool.description.trim();
            let _ = writeln!(text, "      {}", escape_line(description, MAX_DESCRIPTION_LEN));
            // What was not shown was not accepted knowingly.
            if let Some(more @ 1..) = description.chars().count().checked_sub(MAX_DESCRIPTION_LEN) {
                let _ = writeln!(
                    text,
                    "      ({more} more characters; `cofferdam mcp inspect {} --json` shows all)",
                    settings.name
                );
            }
        }
    }
    text
}

/// Finds the tools of a server that cannot be used, so that nobody accepts them by mistake.
pub(super) fn find_unusable(
    context: &AppContext,
    settings: &ServerSettings,
    accepted: &AcceptedServer,
) -> Result<Vec<UnusableTool>, CliError> {
    let description = accepted.to_source(settings).map_err(CliError::configuration)?;
    Ok(context.catalog().unusable_tools(&description))
}

/// Describes the tools that cannot be used.
pub(super) fn describe_unusable(unusable: &[UnusableTool]) -> String {
    if unusable.is_empty() {
        return String::new();
    }
    let lines = unusable.iter().map(|tool| {
        format!("    {}: {}\n", escape_line(&tool.name, 128), escape_line(&tool.reason, 400))
    });
    format!("  Tools that cannot be used and are not offered:\n{}", lines.collect::<String>())
}

fn describe_sandbox(context: &AppContext) -> String {
    let level = context.commands().measured().level;
    let held = match level {
        SandboxLevel::Full => "",
        SandboxLevel::Kernel | SandboxLevel::None => {
            "; servers need `full`, so this one cannot start"
        }
    };
    format!("{level} (measured on this machine){held}")
}

/// Returns the level of the sandbox of a server as JSON: `null` if the server runs elsewhere.
pub(super) fn sandbox_level(context: &AppContext, settings: &ServerSettings) -> Value {
    match settings.transport {
        ServerTransport::Program(_) => json!(context.commands().measured().level),
        ServerTransport::Http(_) => Value::Null,
    }
}

/// Describes the permissions in the words of plugins.
pub(super) fn permissions(settings: &ServerSettings, accepted: &AcceptedServer) -> Vec<String> {
    let source = accepted.to_source(settings);
    source.map_or_else(
        |problem| vec![problem],
        |source| Grants::from_requested(&source.capabilities()).describe(),
    )
}

/// Returns how the calls of a server are handled, which follows from its permissions.
fn describe_tier(settings: &ServerSettings, accepted: &AcceptedServer) -> &'static str {
    match is_read_only(settings, accepted) {
        true => {
            "read-only by construction: without permission to write and without network, it \
                cannot change anything; calls run in parallel and are not asked about"
        }
        false => {
            "write: it can change something, so each call runs alone and needs approval, unless \
                the mode or a rule allows it"
        }
    }
}

pub(super) fn is_read_only(settings: &ServerSettings, accepted: &AcceptedServer) -> bool {
    accepted.to_source(settings).is_ok_and(|source| source.is_read_only())
}

fn join_or_none(words: &[String]) -> String {
    if words.is_empty() { "none".to_owned() } else { words.join("; ") }
}

/// Returns a server as JSON.
pub(super) fn to_json(settings: &ServerSettings, accepted: &AcceptedServer) -> Value {
    let schema = |text: &Option<String>| {
        text.as_ref().and_then(|text| serde_json::from_str::<Value>(text).ok())
    };
    let tool = |tool: &AcceptedServerTool| {
        json!({
            "name": format!("{}/{}", settings.name, tool.name),
            "title": tool.title,
            "description": tool.description,
            "input_schema": schema(&Some(tool.input_schema.clone())),
            "output_schema": schema(&tool.output_schema),
            "annotations": schema(&tool.annotations),
        })
    };
    let tools: Vec<Value> = accepted.tools.iter().map(tool).collect();
    let mut value = settings_json(settings);
    value["digest"] = json!(accepted.digest);
    value["read_only"] = json!(is_read_only(settings, accepted));
    value["tools"] = json!(tools);
    value
}

/// Returns the settings of a server as JSON.
pub(super) fn settings_json(settings: &ServerSettings) -> Value {
    match &settings.transport {
        ServerTransport::Program(program) => json!({
            "name": settings.name,
            "command": program.command,
            "args": program.args,
            "workspace": program.files,
            "network": program.network,
            "env": program.env,
            "read": program.read,
        }),
        ServerTransport::Http(server) => json!({
            "name": settings.name,
            "url": server.url.to_string(),
            "headers": server.headers.iter().map(SecretHeader::describe).collect::<Vec<_>>(),
            "address": server.addresses,
            "allow_plain_http": server.allow_plain_http,
        }),
    }
}
