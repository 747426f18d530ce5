//! `cofferdam plugin`: develops, inspects and manages plugins.

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

use super::args::CommonArgs;
use super::context::{self, AppContext};
use super::error::{CliError, CommandResult};
use super::print::eprint_line;
use super::user_dirs;

use cofferdam::HelperProcesses;
use cofferdam::host::{NoticeHandler, create_sandbox};
use cofferdam::plugins::{PluginSource, PluginStore};
use cofferdam::policy::Policy;
use cofferdam::sandbox::{
    ComponentBytes, ComponentDigest, HostEnvironment, InstanceAllocation, LoadedPlugin, WasmSandbox,
};
use cofferdam::terminal_escape;
use cofferdam::tools::load_error;

pub(super) fn run(common: &CommonArgs, args: PluginArgs) -> CommandResult {
    if let (true, PluginCommand::Add(_) | PluginCommand::Update(_) | PluginCommand::Remove { .. }) =
        (common.locked, &args.command)
    {
        let message = "this command changes the accepted plugins, which `--locked` does not allow";
        return Err(CliError::configuration(message));
    }
    match args.command {
        PluginCommand::New { name, language } => new::run(name, language),
        PluginCommand::Build { directory } => build::run(&common.environment, &directory),
        PluginCommand::Test { subject, cases } => test::run(common, &subject, cases),
        PluginCommand::Inspect { file, json } => inspect::run(&common.environment, &file, json),
        PluginCommand::Add(args) => add::run(common, args),
        PluginCommand::List { json } => list::run(common, json),
        PluginCommand::Update(args) => update::run(common, &args),
        PluginCommand::Remove { name } => remove::run(common, &name),
    }
}

/// Loads a component in a sandbox of its own, whatever plugins are configured.
///
/// # Errors
///
/// If the component is not valid, or every run would refuse it.
fn load_plugin(
    environment: &HostEnvironment,
    file: &Path,
) -> Result<(Arc<WasmSandbox>, Arc<LoadedPlugin>), CliError> {
    let mut warnings = Vec::new();
    let user_dirs = user_dirs::for_run(environment, &mut warnings)?;
    for warning in warnings {
        eprint_line(&terminal_escape::escape_line(&format!("warning: {warning}"), 1000));
    }
    let show: NoticeHandler = Arc::new(context::warn);
    let sandbox = Arc::new(create_sandbox(
        InstanceAllocation::OnDemand,
        Some(HelperProcesses::init()),
        Some(&user_dirs),
        &show,
    )?);
    let bytes = ComponentBytes::read(file).map_err(|error| CliError::new(error.to_string()))?;
    let plugin = load_bytes(&sandbox, &file.display().to_string(), bytes)?;
    if let Some(objection) = load_error(&plugin) {
        return Err(CliError::new(format!("cannot use plugin `{}`: {objection}", file.display())));
    }
    Ok((sandbox, Arc::new(plugin)))
}

fn load_bytes(
    sandbox: &WasmSandbox,
    from: &str,
    bytes: ComponentBytes,
) -> Result<LoadedPlugin, CliError> {
    let name = terminal_escape::escape_line(from, 200);
    let on_compile = || eprint_line(&format!("preparing {name} for this machine (once) …"));
    sandbox.load(bytes, &on_compile).map_err(|error| CliError::new(format!("{name}: {error}")))
}

/// Returns the directory of added plugins next to the configuration in use.
fn plugin_store(common: &CommonArgs) -> Result<PluginStore, CliError> {
    Ok(PluginStore::new(context::lock_file(
        common,
        &user_dirs::for_current_user(&common.environment)?,
    )))
}

/// Checks that the policy allows a plugin with this digest from this source.
fn check_policy(
    policy: &Policy,
    source: &PluginSource,
    digest: &ComponentDigest,
) -> Result<(), CliError> {
    let origins = [source.policy_origin()];
    match policy.plugin_refusal(digest.as_str(), &origins) {
        Some(refusal) => Err(CliError::configuration(refusal.to_string())),
        None => Ok(()),
    }
}

/// Loads the context with all plugins, for inspection.
fn load_context(common: &CommonArgs) -> Result<AppContext, CliError> {
    context::load_context_for_inspection(
        common,
        common.common_flags(),
        InstanceAllocation::OnDemand,
    )
}
