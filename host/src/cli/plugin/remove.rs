//! `cofferdam plugin remove`: takes away what `plugin add` brought.

use std::process::ExitCode;

use crate::cli::args::{CommonArgs, ModelArgs, ToolCallArgs};
use crate::cli::error::CommandResult;
use crate::cli::print::print_line;
use crate::cli::{audit, context};
use crate::terminal_escape;
use crate::tools::AuthorityChange;

pub(super) fn run(common: &CommonArgs, name: &str) -> CommandResult {
    let shelf = super::plugin_store(common)?;
    let place = shelf.plugin_path(&shelf.find(name)?).display().to_string();
    let (settings, folders) = context::load_settings(
        common,
        common.flags(ModelArgs::default(), ToolCallArgs::default(), None),
    )?;
    audit::record_change(
        &settings,
        &folders,
        &common.workspace,
        &AuthorityChange::PluginRemoved { name, path: &place },
    )?;
    let (added, path) = shelf.remove(name)?;
    let name = terminal_escape::escape_line(name, 64);
    print_line(&terminal_escape::escape_line(
        &format!("{name} was removed: {}, which came from {}", path.display(), added.source),
        1500,
    ));
    print_line(&terminal_escape::escape_line(
        &format!("What it was accepted as is no longer in {}", shelf.lock_file_path().display()),
        1000,
    ));
    Ok(ExitCode::SUCCESS)
}
