//! `cofferdam plugin add`: adds a plugin from a file or a server after confirmation, pinned to its
//! content.

use std::process::ExitCode;

use super::args::PluginAddArgs;
use super::fetch::fetch_component;
use super::inspect;
use crate::args::CommonArgs;
use crate::authoring::PluginName;
use crate::error::{CliError, CommandResult};
use crate::print::{eprint_line, print_line};
use crate::{audit, confirm, exit};
use cofferdam::plugins::PluginSource;
use cofferdam::terminal_escape;

pub(super) fn run(common: &CommonArgs, args: PluginAddArgs) -> CommandResult {
    let source = PluginSource::parse(&args.source)?;
    let name = match args.name {
        Some(name) => name,
        None => default_name(&source)?,
    };
    let store = super::plugin_store(common)?;
    store.check_name_free(name.as_str())?;
    let component = fetch_component(&source, args.digest.as_ref())?;
    let context = super::load_context(common)?;
    super::check_policy(context.policy(), &source, component.digest())?;
    let from = source.to_string();
    let plugin = super::load_bytes(context.sandbox(), &from, component)?;
    if let Some(objection) = context.catalog().conflict(&plugin, None) {
        return Err(CliError::new(format!("cannot add {from}: {objection}")));
    }
    let page = inspect::describe_plugin(&from, &plugin);
    if args.yes {
        eprint_line(&page);
    } else {
        let answer = confirm::confirm(&page, &format!("Add this plugin as {name}?"));
        match answer {
            Some(true) => {}
            Some(false) => {
                eprint_line("No plugin was added.");
                return Ok(ExitCode::from(exit::FAILURE));
            }
            None => {
                eprint_line(&page);
                let digest = plugin.digest();
                let problem = format!(
                    "no plugin was added: there is no terminal for confirmation\nhint: to add it \
                        as shown, pass `--yes --digest sha256:{digest}`"
                );
                return Err(CliError::new(problem));
            }
        }
    }
    let path = store.add(name.as_str(), from, &plugin, |change| {
        audit::record_change(&context.settings, &context.user_dirs, common, change)
    })?;
    print_line(&terminal_escape::escape_line(&format!("Added {name}: {}", path.display()), 1000));
    let tools: Vec<&str> =
        plugin.declaration().tools.iter().map(|tool| tool.name.as_str()).collect();
    let tools = terminal_escape::escape_line(&tools.join(", "), 400);
    eprint_line(&format!(
        "Every run can now use {tools}. `cofferdam plugin remove {name}` removes the plugin again."
    ));
    Ok(ExitCode::SUCCESS)
}

fn default_name(source: &PluginSource) -> Result<PluginName, CliError> {
    let name = source.default_plugin_name();
    name.parse()
        .map_err(|error| CliError::new(format!("{error}\nhint: choose another name with `--name`")))
}
