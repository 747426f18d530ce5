//! `cofferdam plugin update`: what was added, fetched again from where it came.

use std::path::Path;
use std::process::ExitCode;

use super::args::UpdateArgs;
use super::obtain::obtain;
use crate::cli::args::Common;
use crate::cli::error::{CliError, Done};
use crate::cli::print::{stderr_line, stdout_line};
use crate::cli::{ask, assemble::Parts, audit, exit};
use crate::plugins::{Shelf, Source};
use crate::sandbox::{ComponentBytes, Digest, Plugin};
use crate::shown;
use crate::tools::{Added, Change, Difference, Origin};

pub(super) fn run(common: &Common, args: &UpdateArgs) -> Done {
    let shelf = super::shelf(common)?;
    let all: Vec<(String, Added)> = match &args.name {
        Some(name) => vec![(name.clone(), shelf.find(name)?)],
        None => shelf.lock()?.added().map(|(name, added)| (name.to_owned(), added.clone())).collect(),
    };
    if all.is_empty() {
        stderr_line("No plugin was added, so there is none to update.");
        return Ok(ExitCode::SUCCESS);
    }
    let parts = super::parts(common)?;
    let mut all_well = true;
    for (name, added) in &all {
        // One that cannot be had does not keep the others back.
        match update(common, &shelf, &parts, name, added, args) {
            Ok(what) => drop(stdout_line(&shown::line(&format!("{name}: {what}"), 1000))),
            Err(error) => {
                all_well = false;
                stderr_line(&format!("cofferdam: {}: {}", shown::line(name, 64), shown::block(error.message())));
            }
        }
    }
    Ok(if all_well { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

/// Says what was done, or why it stays as it was.
fn update(common: &Common, shelf: &Shelf, parts: &Parts, name: &str, added: &Added, args: &UpdateArgs) -> Result<String, CliError> {
    let source = Source::parse(&added.source)?;
    let component = obtain(&source, args.digest.as_ref())?;
    let (path, lock) = (shelf.path(added), shelf.lock()?);
    let is_pinned = lock.pinned(&path) == Some(component.digest());
    if is_pinned && is_whole(&path, component.digest()) {
        return Ok("nothing new".to_owned());
    }
    let plugin = super::load_bytes(&parts.sandbox, &added.source, component)?;
    if let Some(objection) = parts.catalog.objection(&plugin, Some(&Origin::File(path.clone()))) {
        return Err(CliError::new(format!("{} is not taken, and the old one stays: {objection}", added.source)));
    }
    if is_pinned {
        shelf.replace(name, added, &plugin)?;
        return Ok("its file was not what had been accepted; it is again".to_owned());
    }
    let difference = lock.difference(&path, &plugin);
    agree(name, &plugin, &difference, args.yes, &describe(name, &plugin, lock.pinned(&path), &difference))?;
    let place = shelf.place_for(name, plugin.digest()).display().to_string();
    let change = Change::PluginAccepted { path: &place, digest: plugin.digest(), wider: &difference.wider };
    audit::record(&parts.settings, &parts.folders, &common.workspace, &change)?;
    let path = shelf.replace(name, added, &plugin)?;
    Ok(format!("updated to sha256:{}, {}", plugin.digest().short(), path.display()))
}

/// Who asks for nothing more than before was agreed to with the command itself.
fn agree(name: &str, plugin: &Plugin, difference: &Difference, yes: bool, shown: &str) -> Result<(), CliError> {
    if difference.wider.is_empty() || yes {
        stderr_line(shown);
        return Ok(());
    }
    match ask::yes_or_no(shown, &format!("It asks for more than you accepted. Update {name} all the same?")) {
        Some(true) => Ok(()),
        Some(false) => Err(CliError::new("the old one stays")),
        None => {
            stderr_line(shown);
            Err(CliError::new(format!(
                "it asks for more than was accepted, and nobody can be asked here, so the old one stays. To take it as shown: \
                 cofferdam plugin update {name} --yes --digest sha256:{}",
                plugin.digest()
            )))
        }
    }
}

fn describe(name: &str, plugin: &Plugin, before: Option<&Digest>, difference: &Difference) -> String {
    let before = before.map_or("nothing", Digest::short);
    let mut text = format!("{name}: sha256 {before} → {}", plugin.digest().short());
    let lines = difference.wider.iter().map(|line| ("+", line)).chain(difference.other.iter().map(|line| (" ", line)));
    for (mark, line) in lines {
        text.push_str(&format!("\n  {mark} {}", shown::name(line, usize::MAX)));
    }
    if difference.wider.is_empty() {
        text.push_str("\n    it asks for nothing more");
    }
    text
}

fn is_whole(path: &Path, digest: &Digest) -> bool {
    ComponentBytes::read(path).is_ok_and(|kept| kept.digest() == digest)
}
