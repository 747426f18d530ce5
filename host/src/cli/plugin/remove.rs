//! `cofferdam plugin remove`: takes away what `plugin add` brought.

use std::process::ExitCode;

use crate::cli::args::{CallArgs, Common, ModelArgs};
use crate::cli::error::Done;
use crate::cli::print::stdout_line;
use crate::cli::{assemble, audit};
use crate::shown;
use crate::tools::Change;

pub(super) fn run(common: &Common, name: &str) -> Done {
    let shelf = super::shelf(common)?;
    let place = shelf.path(&shelf.find(name)?).display().to_string();
    let (settings, folders) = assemble::settings(common, common.flags(ModelArgs::default(), CallArgs::default(), None))?;
    audit::record(&settings, &folders, &common.workspace, &Change::PluginRemoved { name, path: &place })?;
    let (added, path) = shelf.remove(name)?;
    let name = shown::line(name, 64);
    stdout_line(&shown::line(&format!("{name} was removed: {}, which came from {}", path.display(), added.source), 1500));
    stdout_line(&shown::line(&format!("What it was accepted as is no longer in {}", shelf.lock_path().display()), 1000));
    Ok(ExitCode::SUCCESS)
}
