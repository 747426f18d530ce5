//! `cofferdam plugin update`: fetches added plugins again from their sources.

use std::path::Path;
use std::process::ExitCode;

use super::args::PluginUpdateArgs;
use super::fetch::fetch_component;
use crate::args::CommonArgs;
use crate::error::{CliError, CommandResult};
use crate::print::{eprint_line, print_line};
use crate::{audit, confirm, context::AppContext, exit};
use cofferdam::plugins::{AcceptanceDiff, AddedPlugin, PluginSource, PluginStore};
use cofferdam::sandbox::{ComponentBytes, ComponentDigest, LoadedPlugin};
use cofferdam::terminal_escape;
use cofferdam::tools::PluginProvenance;

pub(super) fn run(common: &CommonArgs, args: &PluginUpdateArgs) -> CommandResult {
    let store = super::plugin_store(common)?;
    let all: Vec<(String, AddedPlugin)> = match &args.name {
        Some(name) => vec![(name.clone(), store.find(name)?)],
        None => store
            .accepted_plugins()?
            .added_plugins()
            .map(|(name, added)| (name.to_owned(), added.clone()))
            .collect(),
    };
    if all.is_empty() {
        eprint_line("There are no added plugins to update.");
        return Ok(ExitCode::SUCCESS);
    }
    let context = super::load_context(common)?;
    let mut all_updated = true;
    for (name, added) in &all {
        // A plugin that cannot be updated does not stop the others.
        match update(common, &store, &context, name, added, args) {
            Ok(what) => {
                print_line(&terminal_escape::escape_line(&format!("{name}: {what}"), 1000));
            }
            Err(error) => {
                all_updated = false;
                eprint_line(&format!(
                    "cofferdam: {}: {}",
                    terminal_escape::escape_line(name, 64),
                    terminal_escape::escape_text(error.message())
                ));
            }
        }
    }
    Ok(if all_updated { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILURE) })
}

/// Updates one plugin and describes what was done.
fn update(
    common: &CommonArgs,
    store: &PluginStore,
    context: &AppContext,
    name: &str,
    added: &AddedPlugin,
    args: &PluginUpdateArgs,
) -> Result<String, CliError> {
    let source = PluginSource::parse(&added.source)?;
    let component = fetch_component(&source, args.digest.as_ref())?;
    let (path, lock) = (store.plugin_path(added), store.accepted_plugins()?);
    let is_pinned = lock.accepted_digest(&path) == Some(component.digest());
    if is_pinned && has_digest(&path, component.digest()) {
        return Ok("up to date".to_owned());
    }
    super::check_policy(context.policy(), &source, component.digest())?;
    let plugin = super::load_bytes(context.sandbox(), &added.source, component)?;
    if let Some(objection) =
        context.catalog().conflict(&plugin, Some(&PluginProvenance::File(path.clone())))
    {
        return Err(CliError::new(format!(
            "cannot use {}, so the current version was kept: {objection}",
            added.source
        )));
    }
    if is_pinned {
        store.restore(name, added, &plugin)?;
        return Ok("restored the accepted file".to_owned());
    }
    let difference = lock.diff(&path, &plugin);
    confirm_update(
        name,
        &plugin,
        &difference,
        args.yes,
        &describe_update(name, &plugin, lock.accepted_digest(&path), &difference),
    )?;
    let path = store.replace(name, added, &plugin, |change| {
        audit::record_change(&context.settings, &context.user_dirs, common, change)
    })?;
    Ok(format!("updated to sha256:{}, {}", plugin.digest().short(), path.display()))
}

/// Asks for confirmation if the plugin requests new permissions. Otherwise the command itself is
/// consent enough.
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
        &format!("It requests more permissions than you accepted. Update {name} anyway?"),
    ) {
        Some(true) => Ok(()),
        Some(false) => Err(CliError::new("the current version was kept")),
        None => {
            eprint_line(shown);
            Err(CliError::new(format!(
                "it requests more permissions than you accepted, and there is no terminal for \
                    confirmation, so the current version was kept\nhint: to accept it as shown, \
                    run `cofferdam plugin update {name} --yes --digest sha256:{}`",
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
        text.push_str("\n    it requests no new permissions");
    }
    text
}

fn has_digest(path: &Path, digest: &ComponentDigest) -> bool {
    ComponentBytes::read(path).is_ok_and(|bytes| bytes.digest() == digest)
}
