//! `cofferdam plugin`.

mod args;
mod build;
mod inspect;
mod new;
mod test;

use std::path::Path;
use std::sync::Arc;

pub(super) use args::PluginArgs;
use args::PluginCommand;

use super::args::Common;
use super::assemble;
use super::error::{CliError, Done};
use super::print::stderr_line;
use crate::sandbox::{Allocation, ComponentBytes, Plugin, Sandbox};
use crate::shown;

pub(super) fn run(common: &Common, args: PluginArgs) -> Done {
    match args.command {
        PluginCommand::New { name, language } => new::run(name, language),
        PluginCommand::Build { folder } => build::run(&folder),
        PluginCommand::Test { subject, cases } => test::run(&subject, cases),
        PluginCommand::Inspect { file, json } => inspect::run(common, &file, json),
    }
}

/// One component in an enclosure of its own, whatever else is configured.
fn load(file: &Path) -> Result<(Arc<Sandbox>, Arc<Plugin>), CliError> {
    let sandbox = Arc::new(assemble::sandbox(Allocation::OnDemand)?);
    let bytes = ComponentBytes::read(file).map_err(|error| CliError::new(error.to_string()))?;
    let name = shown::line(&file.display().to_string(), 200);
    let said = || stderr_line(&format!("preparing {name} for this machine (once) …"));
    let plugin = sandbox.load(bytes, &said).map_err(|error| CliError::new(format!("{name}: {error}")))?;
    Ok((sandbox, Arc::new(plugin)))
}
