//! `cofferdam policy check`.

use std::path::Path;
use std::process::ExitCode;

use crate::cli::args::{CallArgs, Common, ModelArgs};
use crate::cli::assemble;
use crate::cli::error::{CliError, Done};
use crate::cli::print::stdout_line;
use crate::config::{PolicyPlaces, SettingInForce, SourceState};
use crate::policy::{Layer, Level};
use crate::sandbox::Allocation;
use crate::shown;

/// Whether somebody chose another value than is in force.
fn is_overruled(setting: &SettingInForce) -> bool {
    setting.overruled.as_ref().is_some_and(|(_, origin)| origin.is_some())
}

pub(super) fn run(common: &Common, file: Option<&Path>) -> Done {
    if let Some(path) = file {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| CliError::configuration(format!("cannot read {name}: {error}")))?;
        // What a project may not say depends on whose file it is; every other may say at least as much as the user's.
        let path = std::path::absolute(path)?;
        let in_project = path.parent().and_then(Path::file_name).is_some_and(|folder| folder == ".cofferdam");
        let layer = Layer::parse(if in_project { Level::Project } else { Level::User }, &name, &text);
        let layer = layer.map_err(|error| CliError::configuration(error.to_string()))?;
        stdout_line(&shown::line(&format!("{name}: understood, {} rules", layer.rules.len()), 400));
        return Ok(ExitCode::SUCCESS);
    }
    let flags = || common.flags(ModelArgs::default(), CallArgs::default(), None);
    let (chosen, folders) = assemble::chosen_settings(common, flags())?;
    let loaded = PolicyPlaces::of_this_user(&folders, &common.workspace).load(chosen.profile)?;
    let overruled: Vec<_> = chosen.under(&loaded.policy).1.into_iter().filter(is_overruled).collect();
    for source in loaded.sources {
        let state = match source.state {
            SourceState::Absent => "not there",
            SourceState::InForce => "understood",
            SourceState::Untrusted { .. } => "understood; not trusted, so it can tighten and not loosen (`cofferdam trust`)",
        };
        stdout_line(&format!("{:8} {}: {state}", source.level.to_string(), shown::line(&source.name, 400)));
    }
    for setting in overruled {
        stdout_line(&shown::line(&format!("overruled: {setting}"), 600));
    }
    for unknown in assemble::parts_to_look_at(common, flags(), Allocation::OnDemand)?.catalog.unknown_subjects() {
        stdout_line(&shown::line(&format!("warning: {unknown}"), 600));
    }
    Ok(ExitCode::SUCCESS)
}
