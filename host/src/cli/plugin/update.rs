//! `cofferdam plugin update`: what was added, fetched again from where it came.

use std::path::Path;
use std::process::ExitCode;

use super::args::PluginUpdateArgs;
use super::fetch::fetch_component;
use crate::cli::args::CommonArgs;
use crate::cli::error::{CliError, CommandResult};
use crate::cli::print::{eprint_line, print_line};
use crate::cli::{audit, confirm, context::AppContext, exit};
use crate::plugins::{PluginSource, PluginStore};
use crate::sandbox::{ComponentBytes, ComponentDigest, LoadedPlugin};
use crate::terminal_escape;
use crate::tools::{AcceptanceDiff, AddedPlugin, AuthorityChange, PluginProvenance};

pub(super) fn run(common: &CommonArgs, args: &PluginUpdateArgs) -> CommandResult {
    let shelf = super::plugin_store(common)?;
    let all: Vec<(String, AddedPlugin)> = match &args.name {
        Some(name) => vec![(name.clone(), shelf.find(name)?)],
        None => shelf
            .accepted_plugins()?
            .added_plugins()
            .map(|(name, added)| (name.to_owned(), added.clone()))
            .collect(),
    };
    if all.is_empty() {
        eprint_line("No plugin was added, so there is none to update.");
        return Ok(ExitCode::SUCCESS);
    }
    let parts = super::load_context(common)?;
    let mut all_well = true;
    for (name, added) in &all {
        // One that cannot be had does not keep the others back.
        match update(common, &shelf, &parts, name, added, args) {
            Ok(what) => {
                drop(print_line(&terminal_escape::escape_line(&format!("{name}: {what}"), 1000)))
            }
            Err(error) => {
                all_well = false;
                eprint_line(&format!(
                    "cofferdam: {}: {}",
                    terminal_escape::escape_line(name, 64),
                    terminal_escape::escape_text(error.message())
                ));
            }
        }
    }
    Ok(if all_well { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILURE) })
}

/// Says what was done, or why it stays as it was.
fn update(
    common: &CommonArgs,
    shelf: &PluginStore,
    parts: &AppContext,
    name: &str,
    added: &AddedPlugin,
    args: &PluginUpdateArgs,
) -> Result<String, CliError> {
    let source = PluginSource::parse(&added.source)?;
    let component = fetch_component(&source, args.digest.as_ref())?;
    let (path, lock) = (shelf.plugin_path(added), shelf.accepted_plugins()?);
    let is_pinned = lock.accepted_digest(&path) == Some(component.digest());
    if is_pinned && has_digest(&path, component.digest()) {
        return Ok("nothing new".to_owned());
    }
    super::check_policy(parts, &source, component.digest())?;
    let plugin = super::load_bytes(&parts.sandbox, &added.source, component)?;
    if let Some(objection) =
        parts.catalog.conflict(&plugin, Some(&PluginProvenance::File(path.clone())))
    {
        return Err(CliError::new(format!(
            "{} is not taken, and the old one stays: {objection}",
            added.source
        )));
    }
    if is_pinned {
        shelf.replace(name, added, &plugin)?;
        return Ok("its file was not what had been accepted; it is again".to_owned());
    }
    let difference = lock.diff(&path, &plugin);
    confirm_update(
        name,
        &plugin,
        &difference,
        args.yes,
        &describe_update(name, &plugin, lock.accepted_digest(&path), &difference),
    )?;
    let place = shelf.component_path(name, plugin.digest()).display().to_string();
    let change = AuthorityChange::PluginAccepted {
        path: &place,
        digest: plugin.digest(),
        new_permissions: &difference.new_permissions,
    };
    audit::record_change(&parts.settings, &parts.user_dirs, &common.workspace, &change)?;
    let path = shelf.replace(name, added, &plugin)?;
    Ok(format!("updated to sha256:{}, {}", plugin.digest().short(), path.display()))
}

/// Who asks for nothing more than before was agreed to with the command itself.
fn confirm_update(
    name: &str,
    plugin: &LoadedPlugin,
    difference: &AcceptanceDiff,
    yes: bool,
    shown: &str,
) -> Result<(), CliError> {
    if difference.new_permissions.is_empty() || yes {
        eprint_line(shown);
        return Ok(());
    }
    match confirm::confirm(
        shown,
        &format!("It asks for more than you accepted. Update {name} all the same?"),
    ) {
        Some(true) => Ok(()),
        Some(false) => Err(CliError::new("the old one stays")),
        None => {
            eprint_line(shown);
            Err(CliError::new(format!(
                "it asks for more than was accepted, and nobody can be asked here, so the old one \
                    stays. To take it as shown: \
                 cofferdam plugin update {name} --yes --digest sha256:{}",
                plugin.digest()
            )))
        }
    }
}

fn describe_update(
    name: &str,
    plugin: &LoadedPlugin,
    before: Option<&ComponentDigest>,
    difference: &AcceptanceDiff,
) -> String {
    let before = before.map_or("nothing", ComponentDigest::short);
    let mut text = format!("{name}: sha256 {before} → {}", plugin.digest().short());
    let lines = difference
        .new_permissions
        .iter()
        .map(|line| ("+", line))
        .chain(difference.other_changes.iter().map(|line| (" ", line)));
    for (mark, line) in lines {
        text.push_str(&format!("\n  {mark} {}", terminal_escape::escape_name(line, usize::MAX)));
    }
    if difference.new_permissions.is_empty() {
        text.push_str("\n    it asks for nothing more");
    }
    text
}

fn has_digest(path: &Path, digest: &ComponentDigest) -> bool {
    ComponentBytes::read(path).is_ok_and(|kept| kept.digest() == digest)
}
