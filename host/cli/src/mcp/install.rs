//! `cofferdam mcp install` and `uninstall`: the entry of this program in the file of a client.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::args::{InstallArgs, UninstallArgs};
use crate::args::CommonArgs;
use crate::error::{CliError, CommandResult};
use crate::print::{eprint_line, print_line, print_text};
use crate::user_dirs;
use cofferdam::terminal_escape::escape_line;
use cofferdam_mcp::clients::{KnownClient, ServerEntry};

/// The largest file that is edited. Some clients keep their whole history in it.
const MAX_FILE_LEN: u64 = 64 << 20;

pub(super) fn install(common: &CommonArgs, args: &InstallArgs) -> CommandResult {
    let entry = server_entry(common, args)?;
    let file = client_file(common, args.client.0)?;
    if !args.write {
        print_text(&args.client.0.snippet(&entry));
        eprint_line(&escape_line(
            &format!("Add this to {}, or use `--write`.", file.display()),
            1000,
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let text = read_file(&file)?;
    let changed = args.client.0.add(&entry, &text).map_err(|error| unchanged(&file, &error))?;
    write_file(&file, &changed)?;
    print_line(&escape_line(&format!("Added `{}` to {}.", entry.name, file.display()), 1000));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn uninstall(common: &CommonArgs, args: &UninstallArgs) -> CommandResult {
    let file = client_file(common, args.client.0)?;
    let text = read_file(&file)?;
    let removed = args.client.0.remove(&args.name, &text).map_err(|e| unchanged(&file, &e))?;
    let Some(changed) = removed else {
        let problem =
            format!("cannot remove `{}`: {} has no such server", args.name, file.display());
        return Err(CliError::new(escape_line(&problem, 1000)));
    };
    write_file(&file, &changed)?;
    print_line(&escape_line(&format!("Removed `{}` from {}.", args.name, file.display()), 1000));
    Ok(ExitCode::SUCCESS)
}

fn unchanged(file: &Path, error: &dyn std::fmt::Display) -> CliError {
    CliError::new(format!(
        "cannot change {}: {error}\nhint: repair the file, or edit it by hand; nothing was written",
        file.display()
    ))
}

/// Returns how the client starts this program.
fn server_entry(common: &CommonArgs, args: &InstallArgs) -> Result<ServerEntry, CliError> {
    let unreadable = |path: &Path| {
        CliError::new(format!("cannot write the path {}: it is not UTF-8", path.display()))
    };
    let program = std::env::current_exe()?;
    let command = program.to_str().ok_or_else(|| unreadable(&program))?.to_owned();
    let mut arguments = vec!["mcp".to_owned(), "serve".to_owned()];
    if common.has_chosen_workspace {
        let workspace = common.workspace.canonicalize().map_err(|error| {
            CliError::configuration(format!(
                "cannot use {} as the workspace: {error}",
                common.workspace.display()
            ))
        })?;
        let workspace = workspace.to_str().ok_or_else(|| unreadable(&workspace))?;
        arguments.extend(["-C".to_owned(), workspace.to_owned()]);
    }
    if let Some(mode) = args.mode {
        arguments.extend(["--mode".to_owned(), mode.name().to_owned()]);
    }
    Ok(ServerEntry { name: args.name.clone(), command, args: arguments })
}

fn client_file(common: &CommonArgs, client: KnownClient) -> Result<PathBuf, CliError> {
    let home = common.environment.home.as_deref().ok_or_else(|| {
        CliError::configuration("cannot find the file of the client: there is no home directory")
    })?;
    let config = user_dirs::config_directory(home);
    Ok(client.config_file(home, &config))
}

/// Reads a file; one that does not exist is empty.
fn read_file(file: &Path) -> Result<String, CliError> {
    let problem = |error: &dyn std::fmt::Display| {
        CliError::new(format!("cannot read {}: {error}", file.display()))
    };
    match fs::metadata(file) {
        Ok(metadata) if metadata.len() > MAX_FILE_LEN || !metadata.is_file() => {
            Err(problem(&"it is too large, or not a file"))
        }
        Ok(_) => fs::read_to_string(file).map_err(|error| problem(&error)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(problem(&error)),
    }
}

/// Replaces a file in one step, with its permissions. A link stays a link.
fn write_file(file: &Path, text: &str) -> Result<(), CliError> {
    let write = || -> std::io::Result<()> {
        let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        let directory = file.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(directory)?;
        let mut new = tempfile::NamedTempFile::new_in(directory)?;
        if let Ok(metadata) = fs::metadata(&file) {
            new.as_file().set_permissions(metadata.permissions())?;
        }
        new.write_all(text.as_bytes())?;
        new.as_file().sync_all()?;
        new.persist(&file).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|error| CliError::new(format!("cannot write {}: {error}", file.display())))
}
