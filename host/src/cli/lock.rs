//! `cofferdam lock`: accept the plugins of the configuration and of the command line as they are now.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use super::admission::{describe, summary};
use super::args::{CallArgs, Common, LockArgs, ModelArgs};
use super::error::{CliError, Done};
use super::print::{stderr_line, stdout_line};
use super::{ask, assemble, audit, exit};
use crate::config::NoHome;
use crate::sandbox::{Allocation, Plugin};
use crate::shown;
use crate::tools::{Change, Lock, Origin, Standing};

pub(super) fn run(common: &Common, args: &LockArgs) -> Done {
    let parts = assemble::parts_to_look_at(common, common.flags(ModelArgs::default(), CallArgs::default(), None), Allocation::OnDemand)?;
    if !parts.folders.has_home() && common.config.is_none() {
        return Err(NoHome.into());
    }
    let file = assemble::lock_file(common, &parts.folders);
    let mut lock = file.read()?;
    let mut plugins: Vec<(&Path, &Arc<Plugin>)> = Vec::new();
    for tool in parts.catalog.tools() {
        if let Origin::File(path) = &tool.origin
            && !plugins.iter().any(|(known, _)| known == path)
        {
            plugins.push((path, &tool.plugin));
        }
    }
    let mut all_well = true;
    for refused in parts.catalog.refused() {
        all_well = false;
        stdout_line(&shown::line(&format!("{}: {}: {}", refused.origin, refused.word(), refused.reason), 600));
    }
    let mut accepted = Vec::new();
    for (path, plugin) in &plugins {
        let standing = lock.standing(path, plugin);
        let well = standing == Standing::Accepted || (!args.check && accepts(&lock, path, plugin, &standing, args.yes)?);
        all_well &= well;
        let is_new = well && standing != Standing::Accepted;
        if is_new {
            let (name, wider) = (path.display().to_string(), lock.wider(path, plugin));
            let change = Change::PluginAccepted { path: &name, digest: plugin.digest(), wider: &wider };
            audit::record(&parts.settings, &parts.folders, &common.workspace, &change)?;
            lock.accept(path, plugin);
            accepted.push((*path, *plugin));
        }
        let state = if is_new { "accepted now".to_owned() } else { summary(&standing) };
        stdout_line(&shown::line(&format!("{}: {state}", path.display()), 2000));
    }
    let is_stuck = !parts.catalog.refused().is_empty() && !args.check;
    if is_stuck {
        stderr_line(
            "hint: a plugin that is broken or that the policy refuses cannot be accepted, also not with --yes: mend it, or name it no longer",
        );
    }
    let is_for_nothing = args.check || is_stuck && accepted.is_empty();
    if !is_for_nothing {
        // Whatever else was accepted while somebody was asked stays.
        file.change(|lock| accepted.iter().for_each(|(path, plugin)| lock.accept(path, plugin)))?;
        stderr_line(&shown::line(&format!("Written: {}", file.path().display()), 600));
    }
    Ok(if all_well { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

fn accepts(lock: &Lock, path: &Path, plugin: &Plugin, standing: &Standing, yes: bool) -> Result<bool, CliError> {
    let text = describe(path, plugin, standing, lock.remark(path, plugin).as_deref());
    if yes {
        stderr_line(&text);
        return Ok(true);
    }
    ask::yes_or_no(&text, "Accept it, as it is?").ok_or_else(|| {
        CliError::new("there is no terminal to ask at; use --yes to accept all plugins as they are, or --check to only look")
    })
}
