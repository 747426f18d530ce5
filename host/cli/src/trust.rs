//! `cofferdam trust`: trusts the policy file of this project with exactly its current content.

use std::path::Path;
use std::process::ExitCode;

use super::args::{CommonArgs, TrustArgs};
use super::confirm;
use super::error::{CliError, CommandResult};
use super::exit;
use super::print::{eprint_line, print_line};
use super::{audit, context};
use cofferdam::config::{PolicyPaths, PolicyTrustStore, ProjectPolicy};
use cofferdam::policy::{PolicyLayer, PolicyLevel};
use cofferdam::terminal_escape;
use cofferdam::tools::AuthorityChange;

pub(super) fn run(common: &CommonArgs, args: &TrustArgs) -> CommandResult {
    let (settings, user_dirs) = context::load_settings(common, common.common_flags())?;
    let paths = PolicyPaths::for_current_user(&user_dirs, &common.workspace);
    // Changes of trust are recorded before they take effect.
    let record =
        |change: &AuthorityChange<'_>| audit::record_change(&settings, &user_dirs, common, change);
    let file = paths.project_file()?;
    if args.show {
        return Ok(print_status(file.as_ref(), &PolicyTrustStore::read(&paths.trust)?));
    }
    if args.revoke {
        let path = paths.project_path().ok_or_else(no_project_error)?;
        // Recorded before it takes effect.
        if PolicyTrustStore::read(&paths.trust)?.iter().any(|(trusted, _)| trusted == path) {
            record(&AuthorityChange::FileDistrusted { path: &path.display().to_string() })?;
        }
        let was_trusted = PolicyTrustStore::update(&paths.trust, |trust| trust.revoke(&path))?;
        eprint_line(&terminal_escape::escape_line(
            &format!(
                "{} is {} trusted.",
                path.display(),
                if was_trusted { "no longer" } else { "not" }
            ),
            600,
        ));
        return Ok(if was_trusted { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILURE) });
    }
    let file = file.ok_or_else(no_project_error)?;
    let name = file.path.display().to_string();
    // An invalid file cannot be trusted.
    PolicyLayer::parse(PolicyLevel::Project, &name, &file.text)
        .map_err(|error| CliError::configuration(error.to_string()))?;
    if !confirm_trust(&file, args.digest.as_deref())? {
        eprint_line("The policy file is not trusted.");
        return Ok(ExitCode::from(exit::FAILURE));
    }
    record(&AuthorityChange::FileTrusted { path: &name, digest: &file.digest })?;
    PolicyTrustStore::update(&paths.trust, |trust| trust.add(&file.path, &file.digest))?;
    // The file may have changed while the user read it.
    let is_current = paths
        .project_file()
        .is_ok_and(|now| now.is_some_and(|now| now.path == file.path && now.digest == file.digest));
    let (result, exit_code) = if is_current {
        ("Trusted with its current content", ExitCode::SUCCESS)
    } else {
        ("Trusted only with the content that you approved", ExitCode::from(exit::FAILURE))
    };
    eprint_line(&terminal_escape::escape_line(&format!("{result}: {name}"), 600));
    if !is_current {
        eprint_line(
            "The file has changed meanwhile, so it is not trusted now.\nhint: run `cofferdam \
                trust` again to review its new content",
        );
    }
    Ok(exit_code)
}

fn no_project_error() -> CliError {
    CliError::new(
        "this project has no policy file `.cofferdam/policy.toml`\nhint: `-C DIR` selects another \
            project",
    )
}

/// Returns whether the user trusts the file, by its digest or after it was shown.
fn confirm_trust(file: &ProjectPolicy, digest: Option<&str>) -> Result<bool, CliError> {
    if let Some(digest) = digest {
        let same = digest.strip_prefix("sha256:").unwrap_or(digest) == file.digest;
        let other = || {
            CliError::new(format!(
                "digest mismatch: the digest of the file is sha256:{}",
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
    confirm::confirm(&shown, "Trust this file, with exactly this content, in this project?")
        .ok_or_else(|| {
            CliError::new(
                "there is no terminal for confirmation\nhint: read the file, and pass its digest \
                    with `--digest sha256:…`",
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
    for (path, digest) in others {
        line(path, &format!("trusted with sha256:{digest}"));
    }
    let trusted = file.is_some_and(|file| trust.contains(&file.path, &file.digest));
    if trusted { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILURE) }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
