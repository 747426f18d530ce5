//! `cofferdam mcp add`, `list`, `inspect`, `remove`, `login` and `logout`: MCP servers whose tools
//! the model can call.

mod add;
mod description;
mod inspect;
mod list;
mod login;
mod logout;
mod remove;
mod secrets;

pub(super) use add::run as add;
pub(super) use inspect::run as inspect;
pub(super) use list::run as list;
pub(super) use login::run as login;
pub(super) use logout::run as logout;
pub(super) use remove::run as remove;

use std::sync::Arc;

use crate::args::CommonArgs;
use crate::context::{self, AppContext};
use crate::error::CliError;
use cofferdam::HostBuilder;
use cofferdam::config::{ServerSettings, UserDirectories};
use cofferdam::plugins::{AcceptedPlugins, AcceptedServer};
use cofferdam::sandbox::{ComponentDigest, InstanceAllocation};
use cofferdam_mcp::login::LoginStore;
use cofferdam_mcp::servers::{
    McpServer, ServerInspection, ServerTarget, ServerTimeouts, inspect_server,
};

/// Adds the configured servers to a host, each with the tools that the user accepted. A server that
/// is not accepted is recorded with the reason.
pub(crate) fn add_sources(
    builder: HostBuilder,
    user: (&CommonArgs, &UserDirectories),
    servers: &[ServerSettings],
    accepted: &AcceptedPlugins,
) -> HostBuilder {
    servers.iter().fold(builder, |builder, settings| {
        let name = &settings.name;
        let Some(accepted) = accepted.find_server(name) else {
            let reason = format!(
                "it is not accepted yet; see its tools and accept them with `cofferdam mcp add \
                    {name}`"
            );
            return builder.refused_source(name, reason, Vec::new());
        };
        let server = endpoint(user, settings).and_then(|endpoint| {
            McpServer::new(settings, accepted, endpoint, ServerTimeouts::default())
        });
        match server {
            Ok(server) => builder.tool_source(Arc::new(server)),
            Err(reason) => builder.refused_source(name, reason, tool_names(name, accepted)),
        }
    })
}

/// Returns the names of the tools of a server, by both of their names.
fn tool_names(server: &str, accepted: &AcceptedServer) -> Vec<String> {
    accepted.tools.iter().map(|tool| format!("{server}/{}", tool.name)).collect()
}

/// Loads the configuration and the policies, without asking about plugins.
fn load_context(common: &CommonArgs) -> Result<AppContext, CliError> {
    let flags = common.common_flags();
    context::load_context_for_inspection(common, flags, InstanceAllocation::OnDemand)
}

/// Returns a configured server.
fn find_server<'a>(context: &'a AppContext, name: &str) -> Result<&'a ServerSettings, CliError> {
    let servers = &context.settings.servers;
    servers.iter().find(|server| server.name == name).ok_or_else(|| {
        let known: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        CliError::configuration(format!(
            "there is no MCP server `{}` in the configuration (known: {known})",
            cofferdam::terminal_escape::escape_line(name, 64)
        ))
    })
}

/// Returns how a server is reached, with the secrets of its headers and the token of its login.
fn endpoint(
    (common, user_dirs): (&CommonArgs, &UserDirectories),
    settings: &ServerSettings,
) -> Result<ServerTarget, String> {
    let endpoint = ServerTarget::new(settings, |source| secrets::read(common, source))?;
    Ok(endpoint.with_login(&login_store(user_dirs), &settings.name))
}

/// Returns the tokens of all logins.
fn login_store(user_dirs: &UserDirectories) -> LoginStore {
    LoginStore::new(user_dirs.mcp_logins())
}

/// Starts a server or connects to it, and lists its tools.
fn inspect_settings(
    common: &CommonArgs,
    context: &AppContext,
    settings: &ServerSettings,
) -> Result<ServerInspection, CliError> {
    let host = context.open_host()?;
    let endpoint = endpoint((common, &context.user_dirs), settings).map_err(|problem| {
        CliError::configuration(format!("cannot use the server `{}`: {problem}", settings.name))
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let inspected = runtime.block_on(async {
        let access = host.inspect_source(&settings.name, &ComponentDigest::compute(b""));
        inspect_server(&settings.name, &endpoint, &access, ServerTimeouts::default()).await
    });
    inspected.map_err(CliError::new)
}
