//! `cofferdam plugin`.

mod add;
mod args;
mod build;
mod inspect;
mod list;
mod new;
mod obtain;
mod remove;
mod test;
mod update;

use std::path::Path;
use std::sync::Arc;

pub(super) use args::PluginArgs;
use args::PluginCommand;

use super::args::{CallArgs, Common, ModelArgs};
use super::assemble::{self, Parts};
use super::error::{CliError, Done};
use super::print::stderr_line;
use crate::config::Folders;
use crate::plugins::Shelf;
use crate::sandbox::{Allocation, ComponentBytes, Plugin, Sandbox};
use crate::shown;
use crate::tools::objection_to;

pub(super) fn run(common: &Common, args: PluginArgs) -> Done {
    if let (true, PluginCommand::Add(_) | PluginCommand::Update(_) | PluginCommand::Remove { .. }) = (common.locked, &args.command) {
        let message = "--locked leaves what was accepted as it is, and this would change it: leave out one of the two";
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

/// One component in an enclosure of its own, whatever else is configured. One that no run would offer is refused here too.
fn load(file: &Path) -> Result<(Arc<Sandbox>, Arc<Plugin>), CliError> {
    let mut warnings = Vec::new();
    let folders = Folders::of_a_run(&mut warnings)?;
    for warning in warnings {
        stderr_line(&shown::line(&format!("warning: {warning}"), 1000));
    }
    let sandbox = Arc::new(assemble::sandbox(Allocation::OnDemand, &folders)?);
    let bytes = ComponentBytes::read(file).map_err(|error| CliError::new(error.to_string()))?;
    let plugin = load_bytes(&sandbox, &file.display().to_string(), bytes)?;
    if let Some(objection) = objection_to(&plugin) {
        return Err(CliError::new(format!("{} would be refused by every run: {objection}", file.display())));
    }
    Ok((sandbox, Arc::new(plugin)))
}

fn load_bytes(sandbox: &Sandbox, from: &str, bytes: ComponentBytes) -> Result<Plugin, CliError> {
    let name = shown::line(from, 200);
    let said = || stderr_line(&format!("preparing {name} for this machine (once) …"));
    sandbox.load(bytes, &said).map_err(|error| CliError::new(format!("{name}: {error}")))
}

/// The plugins that were added, beside the configuration that is meant.
fn shelf(common: &Common) -> Result<Shelf, CliError> {
    Ok(Shelf::of(assemble::lock_file(common, &Folders::of_this_user()?)))
}

/// All plugins there are, to look at.
fn parts(common: &Common) -> Result<Parts, CliError> {
    assemble::parts_to_look_at(common, common.flags(ModelArgs::default(), CallArgs::default(), None), Allocation::OnDemand)
}
