//! `cofferdam lock`: accepts the plugins of the configuration and of the command line in their
//! current version.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use super::args::{CommonArgs, LockArgs};
use super::error::{CliError, CommandResult};
use super::plugin_dialog::acceptance_text;
use super::print::{eprint_line, print_line};
use super::{audit, confirm, context, exit};
use cofferdam::config::HomeDirectoryError;
use cofferdam::plugins::{AcceptanceStatus, PluginAcceptance, PluginCandidate};
use cofferdam::sandbox::{InstanceAllocation, LoadedPlugin};
use cofferdam::terminal_escape;
use cofferdam::tools::PluginProvenance;

pub(super) fn run(common: &CommonArgs, args: &LockArgs) -> CommandResult {
    let context = context::load_context_for_inspection(
        common,
        common.common_flags(),
        InstanceAllocation::OnDemand,
    )?;
    if !context.user_dirs.has_home() && common.config.is_none() {
        return Err(HomeDirectoryError.into());
    }
    let lock_file = context::lock_file(common, &context.user_dirs);
    let mut acceptance = PluginAcceptance::read(lock_file)?;
    let mut plugins: Vec<(&Path, &Arc<LoadedPlugin>)> = Vec::new();
    for tool in context.catalog().tools() {
        if let PluginProvenance::File(path) = &tool.origin
            && let Some(plugin) = tool.backend.component()
            && !plugins.iter().any(|(known, _)| known == path)
        {
            plugins.push((path, plugin));
        }
    }
    let mut all_accepted = true;
    for refused in context.catalog().refused_plugins() {
        all_accepted = false;
        print_line(&terminal_escape::escape_line(
            &format!("{}: {}: {}", refused.origin, refused.status_label(), refused.reason),
            600,
        ));
    }
    let mut any_new = false;
    for (path, plugin) in &plugins {
        let candidate = acceptance.compare(path, plugin);
        let was_accepted = candidate.status == AcceptanceStatus::Accepted;
        let is_accepted =
            was_accepted || (!args.check && confirm_acceptance(&candidate, args.yes)?);
        all_accepted &= is_accepted;
        let is_new = is_accepted && !was_accepted;
        if is_new {
            acceptance.accept(&candidate, |change| {
                audit::record_change(&context.settings, &context.user_dirs, common, change)
            })?;
            any_new = true;
        }
        let state = if is_new { "accepted now".to_owned() } else { candidate.status.describe() };
        print_line(&terminal_escape::escape_line(&format!("{}: {state}", path.display()), 2000));
    }
    let is_stuck = !context.catalog().refused_plugins().is_empty() && !args.check;
    if is_stuck {
        eprint_line(
            "hint: a plugin that is invalid or that the policy denies cannot be accepted, even \
                with `--yes`; repair it, or remove it from the configuration",
        );
    }
    let is_unchanged = args.check || is_stuck && !any_new;
    if !is_unchanged {
        acceptance.write()?;
        eprint_line(&terminal_escape::escape_line(
            &format!("Wrote {}", acceptance.lock_file().path().display()),
            600,
        ));
    }
    Ok(if all_accepted { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILURE) })
}

fn confirm_acceptance(candidate: &PluginCandidate<'_>, yes: bool) -> Result<bool, CliError> {
    let text = acceptance_text(candidate);
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
