//! `cofferdam lock`: accepts the plugins of the configuration and of the command line in their
//! current version.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use super::args::{CommonArgs, LockArgs, ModelArgs, ToolCallArgs};
use super::error::{CliError, CommandResult};
use super::plugin_gate::{acceptance_text, describe_status};
use super::print::{eprint_line, print_line};
use super::{audit, confirm, context, exit};
use cofferdam::config::HomeDirectoryError;
use cofferdam::sandbox::{InstanceAllocation, LoadedPlugin};
use cofferdam::terminal_escape;
use cofferdam::tools::{AcceptanceStatus, AcceptedPlugins, AuthorityChange, PluginProvenance};

pub(super) fn run(common: &CommonArgs, args: &LockArgs) -> CommandResult {
    let context = context::load_context_for_inspection(
        common,
        common.flags(ModelArgs::default(), ToolCallArgs::default(), None),
        InstanceAllocation::OnDemand,
    )?;
    if !context.user_dirs.has_home() && common.config.is_none() {
        return Err(HomeDirectoryError.into());
    }
    let file = context::lock_file(common, &context.user_dirs);
    let mut lock = file.read()?;
    let mut plugins: Vec<(&Path, &Arc<LoadedPlugin>)> = Vec::new();
    for tool in context.catalog.tools() {
        if let PluginProvenance::File(path) = &tool.origin
            && !plugins.iter().any(|(known, _)| known == path)
        {
            plugins.push((path, &tool.plugin));
        }
    }
    let mut all_accepted = true;
    for refused in context.catalog.refused_plugins() {
        all_accepted = false;
        print_line(&terminal_escape::escape_line(
            &format!("{}: {}: {}", refused.origin, refused.status_label(), refused.reason),
            600,
        ));
    }
    let mut accepted = Vec::new();
    for (path, plugin) in &plugins {
        let status = lock.status(path, plugin);
        let is_accepted = status == AcceptanceStatus::Accepted
            || (!args.check && confirm_acceptance(&lock, path, plugin, &status, args.yes)?);
        all_accepted &= is_accepted;
        let is_new = is_accepted && status != AcceptanceStatus::Accepted;
        if is_new {
            let (name, new_permissions) =
                (path.display().to_string(), lock.new_permissions(path, plugin));
            let change = AuthorityChange::PluginAccepted {
                path: &name,
                digest: plugin.digest(),
                new_permissions: &new_permissions,
            };
            audit::record_change(&context.settings, &context.user_dirs, common, &change)?;
            lock.accept_plugin(path, plugin);
            accepted.push((*path, *plugin));
        }
        let state = if is_new { "accepted now".to_owned() } else { describe_status(&status) };
        print_line(&terminal_escape::escape_line(&format!("{}: {state}", path.display()), 2000));
    }
    let is_stuck = !context.catalog.refused_plugins().is_empty() && !args.check;
    if is_stuck {
        eprint_line(
            "hint: a plugin that is invalid or that the policy denies cannot be accepted, even \
                with `--yes`; repair it, or remove it from the configuration",
        );
    }
    let is_unchanged = args.check || is_stuck && accepted.is_empty();
    if !is_unchanged {
        // Updates the file instead of replacing it, since a dialog of another process may have
        // accepted plugins meanwhile.
        file.update(|lock| {
            accepted.iter().for_each(|(path, plugin)| lock.accept_plugin(path, plugin))
        })?;
        eprint_line(&terminal_escape::escape_line(
            &format!("Wrote {}", file.path().display()),
            600,
        ));
    }
    Ok(if all_accepted { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILURE) })
}

fn confirm_acceptance(
    lock: &AcceptedPlugins,
    path: &Path,
    plugin: &LoadedPlugin,
    status: &AcceptanceStatus,
    yes: bool,
) -> Result<bool, CliError> {
    let text =
        acceptance_text(path, plugin, status, lock.similarity_notice(path, plugin).as_deref());
    if yes {
        eprint_line(&text);
        return Ok(true);
    }
    confirm::confirm(&text, "Accept this plugin?").ok_or_else(|| {
        CliError::new(
            "there is no terminal for confirmation\nhint: use `--yes` to accept all plugins, or \
                `--check` to only list them",
        )
    })
}
