//! `cofferdam trust`: the policy file of this project, with exactly its present content.

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;

use super::args::{CallArgs, Common, ModelArgs, TrustArgs};
use super::error::{CliError, Done};
use super::exit;
use super::print::{stderr_line, stderr_piece, stdout_line};
use super::{assemble, audit};
use crate::config::{PolicyPlaces, ProjectPolicy, Trust};
use crate::policy::{Layer, Level};
use crate::shown;
use crate::tools::{Change, Ledger as _};

pub(super) fn run(common: &Common, args: &TrustArgs) -> Done {
    let (settings, folders) = assemble::settings(common, common.flags(ModelArgs::default(), CallArgs::default(), None))?;
    let places = PolicyPlaces::of_this_user(&folders, &common.workspace);
    // What is trusted is on record before it counts.
    let record = |change: &Change<'_>| match audit::begin_without_tools(&settings, &folders, &common.workspace)? {
        Some(audit) => audit.changed(change).map_err(|error| CliError::new(format!("it cannot be put on record: {error}"))),
        None => Ok(()),
    };
    let file = places.project_file()?;
    let mut trust = Trust::read(&places.trust)?;
    if args.show {
        return Ok(show(file.as_ref(), &trust));
    }
    if args.revoke {
        let path = places.project_path().ok_or_else(no_project)?;
        let was = trust.revoke(&path);
        if was {
            record(&Change::Distrust { path: &path.display().to_string() })?;
            trust.write(&places.trust)?;
        }
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
    trust.add(&file.path, &file.digest);
    trust.write(&places.trust)?;
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
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        let problem = "nobody can be asked here. Read the file, and say --digest sha256:… with its digest";
        return Err(CliError::new(problem));
    }
    stderr_line(&format!("{}\nsha256:{}\n", shown::line(&file.path.display().to_string(), 600), file.digest));
    stderr_line(&indented(&shown::block(&file.text)));
    stderr_piece("\nLet this file, with exactly this content, allow what it says, here? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
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
