//! `cofferdam mcp remove`: removes a server from the configuration and from the lock file.

use std::process::ExitCode;

use super::add::config_file;
use super::{load_context, login_store};
use crate::args::CommonArgs;
use crate::error::{CliError, CommandResult};
use crate::print::print_line;
use crate::{audit, context};
use cofferdam::config::remove_server;
use cofferdam::terminal_escape::escape_line;
use cofferdam::tools::AuthorityChange;

pub(in crate::mcp) fn run(common: &CommonArgs, name: &str) -> CommandResult {
    let context = load_context(common)?;
    let shown = escape_line(name, 64);
    let lock_file = context::lock_file(common, &context.user_dirs);
    let is_accepted = lock_file.read()?.find_server(name).is_some();
    let is_configured = context.settings.servers.iter().any(|server| server.name == name);
    if !is_accepted && !is_configured {
        return Err(CliError::new(format!("cannot remove `{shown}`: there is no such MCP server")));
    }
    let change = AuthorityChange::PluginRemoved { name, path: &format!("server {name}") };
    audit::record_change(&context.settings, &context.user_dirs, common, &change)?;
    // Without its acceptance, a server that stays in the file does not run.
    lock_file.update(|lock| {
        lock.remove_server(name);
    })?;
    let logins = login_store(&context.user_dirs);
    if is_accepted || is_configured {
        // The name is that of a server, so it is valid.
        logins.remove(name).map_err(|error| CliError::new(error.to_string()))?;
    }
    let file = config_file(common, &context);
    let home = common.environment.home.as_deref();
    remove_server(&file, name, home).map_err(|error| {
        CliError::configuration(format!(
            "the acceptance of `{shown}` was removed, but its section stays in the \
                configuration: {error}\nhint: remove the section by hand"
        ))
    })?;
    print_line(&format!("Removed {shown}."));
    Ok(ExitCode::SUCCESS)
}
