//! `cofferdam policy check`: validates policy files.

use std::path::Path;
use std::process::ExitCode;

use crate::args::CommonArgs;
use crate::context;
use crate::error::{CliError, CommandResult};
use crate::print::print_line;
use cofferdam::config::{PolicyPaths, SettingInForce, SourceState};
use cofferdam::own_file;
use cofferdam::policy::{PolicyLayer, PolicyLevel};
use cofferdam::sandbox::InstanceAllocation;
use cofferdam::terminal_escape;

/// The largest policy that is read.
const MAX_POLICY_SIZE: u64 = 1 << 20;

/// Whether a chosen value differs from the value in force.
fn is_overruled(setting: &SettingInForce) -> bool {
    setting.overridden.as_ref().is_some_and(|(_, origin)| origin.is_some())
}

pub(super) fn run(common: &CommonArgs, file: Option<&Path>) -> CommandResult {
    if let Some(path) = file {
        let name = path.display().to_string();
        let text = own_file::read_regular_text(path, MAX_POLICY_SIZE)
            .map_err(|error| CliError::configuration(format!("cannot read {name}: {error}")))?;
        // Some keys are not allowed in the policy of a project. Any other file may contain at least
        // the keys of the user's policy.
        let path = std::path::absolute(path)?;
        let in_project = path
            .parent()
            .and_then(Path::file_name)
            .is_some_and(|directory| directory == ".cofferdam");
        let layer = PolicyLayer::parse(
            if in_project { PolicyLevel::Project } else { PolicyLevel::User },
            &name,
            &text,
        );
        let layer = layer.map_err(|error| CliError::configuration(error.to_string()))?;
        print_line(&terminal_escape::escape_line(
            &format!("{name}: valid, {} rules", layer.rules.len()),
            400,
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let flags = || common.common_flags();
    let (chosen, user_dirs) = context::load_chosen_settings(common, flags())?;
    let loaded =
        PolicyPaths::for_current_user(&user_dirs, &common.workspace).load(chosen.profile)?;
    let home = common.environment.home.as_deref();
    let overruled: Vec<_> =
        chosen.with_policy(&loaded.policy, home).1.into_iter().filter(is_overruled).collect();
    for source in loaded.sources {
        let state = match source.state {
            SourceState::Absent => "no file",
            SourceState::InForce => "valid",
            SourceState::Untrusted { .. } => {
                "valid; not trusted, so it can only tighten the rules until you run `cofferdam \
                    trust`"
            }
        };
        print_line(&format!(
            "{:8} {}: {state}",
            source.level.to_string(),
            terminal_escape::escape_line(&source.name, 400)
        ));
    }
    for setting in overruled {
        print_line(&terminal_escape::escape_line(&format!("overridden: {setting}"), 600));
    }
    for unknown in
        context::load_context_for_inspection(common, flags(), InstanceAllocation::OnDemand)?
            .catalog()
            .unknown_tools()
    {
        print_line(&terminal_escape::escape_line(&format!("warning: {unknown}"), 600));
    }
    Ok(ExitCode::SUCCESS)
}
