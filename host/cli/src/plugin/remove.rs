//! `cofferdam plugin remove`: removes a plugin that was added.

use std::process::ExitCode;

use crate::args::CommonArgs;
use crate::error::CommandResult;
use crate::print::print_line;
use crate::{audit, context};
use cofferdam::terminal_escape;

pub(super) fn run(common: &CommonArgs, name: &str) -> CommandResult {
    let store = super::plugin_store(common)?;
    let flags = common.common_flags();
    let (added, path) = store.remove(name, |change| {
        let (settings, user_dirs) = context::load_settings(common, flags)?;
        audit::record_change(&settings, &user_dirs, common, change)
    })?;
    let name = terminal_escape::escape_line(name, 64);
    print_line(&terminal_escape::escape_line(
        &format!("Removed {name}: {}, from {}", path.display(), added.source),
        1500,
    ));
    print_line(&terminal_escape::escape_line(
        &format!("Removed its acceptance from {}", store.lock_file_path().display()),
        1000,
    ));
    Ok(ExitCode::SUCCESS)
}
