//! `cofferdam plugin`.

mod add;
mod args;
mod build;
mod fetch;
mod inspect;
mod list;
mod new;
mod remove;
mod test;
mod update;

use std::path::Path;
use std::sync::Arc;

pub(super) use args::PluginArgs;
use args::PluginCommand;

use super::args::{CommonArgs, ModelArgs, ToolCallArgs};
use super::context::{self, AppContext};
use super::error::{CliError, CommandResult};
use super::print::eprint_line;
use crate::config::{UserDirectories, resolve_links};
use crate::plugins::{PluginSource, PluginStore};
use crate::sandbox::{
    ComponentBytes, ComponentDigest, InstanceAllocation, LoadedPlugin, WasmSandbox,
};
use crate::terminal_escape;
use crate::tools::load_error;

pub(super) fn run(common: &CommonArgs, args: PluginArgs) -> CommandResult {
    if let (true, PluginCommand::Add(_) | PluginCommand::Update(_) | PluginCommand::Remove { .. }) =
        (common.locked, &args.command)
    {
        let message = "--locked leaves what was accepted as it is, and this would change it: \
            leave out one of the two";
        return Err(CliError::configuration(message));
    }
    match args.command {
        PluginCommand::New { name, language } => new::run(name, language),
        PluginCommand::Build { folder } => build::run(&folder),
        PluginCommand::Test { subject, cases } => test::run(&subject, cases),
        PluginCommand::Inspect { file, json } => inspect::run(&file, json),
        PluginCommand::Add(args) => add::run(common, args),
        PluginCommand::List { json } => list::run(common, json),
        PluginCommand::Update(args) => update::run(common, &args),
        PluginCommand::Remove { name } => remove::run(common, &name),
    }
}

/// One component in an enclosure of its own, whatever else is configured. One that no run would
/// offer is refused here too.
fn load_plugin(file: &Path) -> Result<(Arc<WasmSandbox>, Arc<LoadedPlugin>), CliError> {
    let mut warnings = Vec::new();
    let folders = UserDirectories::for_run(&mut warnings)?;
    for warning in warnings {
        eprint_line(&terminal_escape::escape_line(&format!("warning: {warning}"), 1000));
    }
    let sandbox = Arc::new(context::create_sandbox(InstanceAllocation::OnDemand, &folders)?);
    let bytes = ComponentBytes::read(file).map_err(|error| CliError::new(error.to_string()))?;
    let plugin = load_bytes(&sandbox, &file.display().to_string(), bytes)?;
    if let Some(objection) = load_error(&plugin) {
        return Err(CliError::new(format!(
            "{} would be refused by every run: {objection}",
            file.display()
        )));
    }
    Ok((sandbox, Arc::new(plugin)))
}

fn load_bytes(
    sandbox: &WasmSandbox,
    from: &str,
    bytes: ComponentBytes,
) -> Result<LoadedPlugin, CliError> {
    let name = terminal_escape::escape_line(from, 200);
    let said = || eprint_line(&format!("preparing {name} for this machine (once) …"));
    sandbox.load(bytes, &said).map_err(|error| CliError::new(format!("{name}: {error}")))
}

/// The plugins that were added, beside the configuration that is meant.
fn plugin_store(common: &CommonArgs) -> Result<PluginStore, CliError> {
    Ok(PluginStore::new(context::lock_file(common, &UserDirectories::for_current_user()?)))
}

/// An error unless the policy allows a plugin with this digest from this source.
fn check_policy(
    parts: &AppContext,
    source: &PluginSource,
    digest: &ComponentDigest,
) -> Result<(), CliError> {
    let origin = match source {
        PluginSource::File(path) => resolve_links(path).display().to_string(),
        PluginSource::Url(_) => source.to_string(),
    };
    match parts.catalog.policy().plugin_refusal(digest.as_str(), &[origin]) {
        Some(refusal) => Err(CliError::configuration(refusal.to_string())),
        None => Ok(()),
    }
}

/// All plugins there are, to look at.
fn load_context(common: &CommonArgs) -> Result<AppContext, CliError> {
    context::load_context_for_inspection(
        common,
        common.flags(ModelArgs::default(), ToolCallArgs::default(), None),
        InstanceAllocation::OnDemand,
    )
}
