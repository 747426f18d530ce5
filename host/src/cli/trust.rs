//! `cofferdam trust`: the policy file of this project, with exactly its present content.

use std::path::Path;
use std::process::ExitCode;

use super::args::{CommonArgs, ModelArgs, ToolCallArgs, TrustArgs};
use super::confirm;
use super::error::{CliError, CommandResult};
use super::exit;
use super::print::{eprint_line, print_line};
use super::{audit, context};
use crate::config::{PolicyPaths, PolicyTrustStore, ProjectPolicy};
use crate::policy::{PolicyLayer, PolicyLevel};
use crate::terminal_escape;
use crate::tools::AuthorityChange;

pub(super) fn run(common: &CommonArgs, args: &TrustArgs) -> CommandResult {
    let (settings, folders) = context::load_settings(
        common,
        common.flags(ModelArgs::default(), ToolCallArgs::default(), None),
    )?;
    let places = PolicyPaths::for_current_user(&folders, &common.workspace);
    // What is trusted is on record before it counts.
    let record = |change: &AuthorityChange<'_>| {
        audit::record_change(&settings, &folders, &common.workspace, change)
    };
    let file = places.project_file()?;
    if args.show {
        return Ok(print_status(file.as_ref(), &PolicyTrustStore::read(&places.trust)?));
    }
    if args.revoke {
        let path = places.project_path().ok_or_else(no_project_error)?;
        // It is on record before it counts.
        if PolicyTrustStore::read(&places.trust)?.iter().any(|(trusted, _)| trusted == path) {
            record(&AuthorityChange::FileDistrusted { path: &path.display().to_string() })?;
        }
        let was = PolicyTrustStore::update(&places.trust, |trust| trust.revoke(&path))?;
        eprint_line(&terminal_escape::escape_line(
            &format!("{} is {} trusted.", path.display(), if was { "no longer" } else { "not" }),
            600,
        ));
        return Ok(if was { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILURE) });
    }
    let file = file.ok_or_else(no_project_error)?;
    let name = file.path.display().to_string();
    // What is not understood cannot be agreed to.
    PolicyLayer::parse(PolicyLevel::Project, &name, &file.text)
        .map_err(|error| CliError::configuration(error.to_string()))?;
    if !confirm_trust(&file, args.digest.as_deref())? {
        eprint_line("It is not trusted.");
        return Ok(ExitCode::from(exit::FAILURE));
    }
    record(&AuthorityChange::FileTrusted { path: &name, digest: &file.digest })?;
    PolicyTrustStore::update(&places.trust, |trust| trust.add(&file.path, &file.digest))?;
    eprint_line(&terminal_escape::escape_line(&format!("Trusted, with this content: {name}"), 600));
    Ok(ExitCode::SUCCESS)
}

fn no_project_error() -> CliError {
    CliError::new(
        "this project has no policy file: it would be .cofferdam/policy.toml in its root (`-C \
            DIR` names another project)",
    )
}

/// Whether somebody who has seen the file says so.
fn confirm_trust(file: &ProjectPolicy, digest: Option<&str>) -> Result<bool, CliError> {
    if let Some(digest) = digest {
        let same = digest.strip_prefix("sha256:").unwrap_or(digest) == file.digest;
        let other = || {
            CliError::new(format!(
                "the file has another content than that: its digest is sha256:{}",
                file.digest
            ))
        };
        return if same { Ok(true) } else { Err(other()) };
    }
    let path = terminal_escape::escape_name(&file.path.display().to_string(), usize::MAX);
    let shown = format!(
        "{path}\nsha256:{}\n\n{}",
        file.digest,
        indent(&terminal_escape::escape_exact(&file.text))
    );
    confirm::confirm(&shown, "Let this file, with exactly this content, allow what it says, here?")
        .ok_or_else(|| {
            CliError::new(
                "nobody can be asked here. Read the file, and say --digest \
            sha256:… with its digest",
            )
        })
}

fn print_status(file: Option<&ProjectPolicy>, trust: &PolicyTrustStore) -> ExitCode {
    let line = |path: &Path, state: &str| {
        print_line(&terminal_escape::escape_line(&format!("{}: {state}", path.display()), 1000))
    };
    if let Some(file) = file {
        let trusted = trust.contains(&file.path, &file.digest);
        line(
            &file.path,
            &format!("{}, sha256:{}", if trusted { "trusted" } else { "NOT trusted" }, file.digest),
        );
    }
    let others = trust.iter().filter(|(path, _)| file.is_none_or(|file| file.path != *path));
    others.for_each(|(path, digest)| {
        line(path, &format!("trusted with sha256:{digest}"));
    });
    let trusted = file.is_some_and(|file| trust.contains(&file.path, &file.digest));
    if trusted { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILURE) }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
