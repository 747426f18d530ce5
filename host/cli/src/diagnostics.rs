//! The diagnostic log: what the program does, never with what content.
//!
//! `-v` logs requests, turns and calls; `-vv` adds decisions, model requests and commands. Records
//! have names, numbers and durations. They never have prompts, answers, arguments, paths, outputs
//! or secrets. Only records of this program are written: libraries could log headers and bodies.

use std::fs::OpenOptions;
use std::io::IsTerminal as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tracing::Metadata;
use tracing_subscriber::filter::{EnvFilter, FilterExt as _, filter_fn};
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use super::args::LogArgs;
use super::error::CliError;
use super::print::eprint_line;
use super::user_dirs;
use cofferdam::sandbox::HostEnvironment;

/// The environment variable with filter directives.
const VARIABLE: &str = "COFFERDAM_LOG";
/// The log of a chat, below the state directory.
const CHAT_LOG: &str = "chat.log";

/// Starts the log that the command line or `COFFERDAM_LOG` asks for.
///
/// `draws_on_terminal` says that standard error shows a chat, which a log must not disturb. The log
/// then goes to a file.
///
/// # Errors
///
/// If the filter is not valid or the file cannot be opened.
pub(super) fn init(
    args: &LogArgs,
    environment: &HostEnvironment,
    draws_on_terminal: bool,
) -> Result<(), CliError> {
    let Some(directives) = directives(args.verbose, std::env::var(VARIABLE).ok()) else {
        return Ok(());
    };
    let filter = EnvFilter::builder().parse(&directives).map_err(|error| {
        CliError::configuration(format!(
            "cannot parse the log filter `{directives}`: {error}\nhint: use a level such as \
                `debug`, or `MODULE=LEVEL` as in `cofferdam::model=trace`"
        ))
    })?;
    let file = match &args.log_file {
        Some(path) => Some(path.clone()),
        None if draws_on_terminal => Some(chat_log(environment)?),
        None => None,
    };
    let (writer, is_terminal) = match &file {
        Some(path) => (BoxMakeWriter::new(Mutex::new(open(path)?)), false),
        None => (BoxMakeWriter::new(std::io::stderr), std::io::stderr().is_terminal()),
    };
    if let (Some(path), None) = (&file, &args.log_file) {
        eprint_line(&format!("log: {}", path.display()));
    }
    let layer = fmt::layer().with_writer(writer).with_ansi(is_terminal);
    // Another subscriber in this process, as in a test, keeps its place.
    let _ = tracing_subscriber::registry()
        .with(layer.with_filter(filter.and(filter_fn(is_own_record))))
        .try_init();
    Ok(())
}

/// Returns the filter directives, or `None` if nothing is logged.
fn directives(verbose: u8, variable: Option<String>) -> Option<String> {
    match (variable.filter(|text| !text.trim().is_empty()), verbose) {
        (Some(directives), _) => Some(directives),
        (None, 0) => None,
        (None, 1) => Some("info".to_owned()),
        (None, 2) => Some("debug".to_owned()),
        (None, 3..) => Some("trace".to_owned()),
    }
}

/// Returns whether a record comes from a package of this program.
fn is_own_record(metadata: &Metadata<'_>) -> bool {
    let package = metadata.target().split("::").next().unwrap_or_default();
    package == "cofferdam" || package.starts_with("cofferdam_")
}

fn chat_log(environment: &HostEnvironment) -> Result<PathBuf, CliError> {
    let directory = user_dirs::for_current_user(environment)?.state().to_owned();
    cofferdam::private_dir::create(&directory).map_err(|error| {
        CliError::new(format!("cannot create {}: {error}", directory.display()))
    })?;
    Ok(directory.join(CHAT_LOG))
}

/// Opens a log file for appending. A new file can be read by this user only.
fn open(path: &Path) -> Result<std::fs::File, CliError> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| CliError::new(format!("cannot open log {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_overrides_the_flag() {
        let table = [
            (0, None, None),
            (0, Some(" "), None),
            (1, None, Some("info")),
            (2, None, Some("debug")),
            (9, None, Some("trace")),
            (2, Some("cofferdam::model=trace"), Some("cofferdam::model=trace")),
        ];
        for (verbose, variable, expected) in table {
            let found = directives(verbose, variable.map(str::to_owned));
            assert_eq!(found.as_deref(), expected, "{verbose} {variable:?}");
        }
    }
}
