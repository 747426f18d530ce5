//! `cofferdam trust`: the policy file of this project, with exactly its present content.

use std::path::Path;
use std::process::ExitCode;

use super::args::{CallArgs, Common, ModelArgs, TrustArgs};
use super::ask;
use super::error::{CliError, Done};
use super::exit;
use super::print::{stderr_line, stdout_line};
use super::{assemble, audit};
use crate::config::{PolicyPlaces, ProjectPolicy, Trust};
use crate::policy::{Layer, Level};
use crate::shown;
use crate::tools::Change;

pub(super) fn run(common: &Common, args: &TrustArgs) -> Done {
    let (settings, folders) = assemble::settings(common, common.flags(ModelArgs::default(), CallArgs::default(), None))?;
    let places = PolicyPlaces::of_this_user(&folders, &common.workspace);
    // What is trusted is on record before it counts.
    let record = |change: &Change<'_>| audit::record(&settings, &folders, &common.workspace, change);
    let file = places.project_file()?;
    if args.show {
        return Ok(show(file.as_ref(), &Trust::read(&places.trust)?));
    }
    if args.revoke {
        let path = places.project_path().ok_or_else(no_project)?;
        // It is on record before it counts.
        if Trust::read(&places.trust)?.iter().any(|(trusted, _)| trusted == path) {
            record(&Change::Distrust { path: &path.display().to_string() })?;
        }
        let was = Trust::change(&places.trust, |trust| trust.revoke(&path))?;
        stderr_line(&shown::line(&format!("{} is {} trusted.", path.display(), if was { "no longer" } else { "not" }), 600));
        return Ok(if was { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) });
    }
    let file = file.ok_or_else(no_project)?;
    let name = file.path.display().to_string();
    // What is not understood cannot be agreed to.
    Layer::parse(Level::Project, &name, &file.text).map_err(|error| CliError::configuration(error.to_string()))?;
    if !agreed(&file, args.digest.as_deref())? {
        stderr_line("It is not trusted.");
        return Ok(ExitCode::from(exit::FAILED));
    }
    record(&Change::Trust { path: &name, digest: &file.digest })?;
    Trust::change(&places.trust, |trust| trust.add(&file.path, &file.digest))?;
    stderr_line(&shown::line(&format!("Trusted, with this content: {name}"), 600));
    Ok(ExitCode::SUCCESS)
}

fn no_project() -> CliError {
    CliError::new("this project has no policy file: it would be .cofferdam/policy.toml in its root (`-C DIR` names another project)")
}

/// Whether somebody who has seen the file says so.
fn agreed(file: &ProjectPolicy, digest: Option<&str>) -> Result<bool, CliError> {
    if let Some(digest) = digest {
        let same = digest.strip_prefix("sha256:").unwrap_or(digest) == file.digest;
        let other = || CliError::new(format!("the file has another content than that: its digest is sha256:{}", file.digest));
        return if same { Ok(true) } else { Err(other()) };
    }
    let path = shown::name(&file.path.display().to_string(), usize::MAX);
    let shown = format!("{path}\nsha256:{}\n\n{}", file.digest, indented(&shown::exact(&file.text)));
    ask::yes_or_no(&shown, "Let this file, with exactly this content, allow what it says, here?")
        .ok_or_else(|| CliError::new("nobody can be asked here. Read the file, and say --digest sha256:… with its digest"))
}

fn show(file: Option<&ProjectPolicy>, trust: &Trust) -> ExitCode {
    let line = |path: &Path, state: &str| stdout_line(&shown::line(&format!("{}: {state}", path.display()), 1000));
    if let Some(file) = file {
        let trusted = trust.covers(&file.path, &file.digest);
        line(&file.path, &format!("{}, sha256:{}", if trusted { "trusted" } else { "NOT trusted" }, file.digest));
    }
    let others = trust.iter().filter(|(path, _)| file.is_none_or(|file| file.path != *path));
    others.for_each(|(path, digest)| {
        line(path, &format!("trusted with sha256:{digest}"));
    });
    let trusted = file.is_some_and(|file| trust.covers(&file.path, &file.digest));
    if trusted { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
