//! `cofferdam mcp logout`: removes the tokens of a server.

use std::process::ExitCode;

use super::{load_context, login_store};
use crate::args::CommonArgs;
use crate::error::{CliError, CommandResult};
use crate::exit;
use crate::print::{eprint_line, print_line};
use cofferdam::terminal_escape::escape_line;
use cofferdam::tools::SourceDescription;

pub(in crate::mcp) fn run(common: &CommonArgs, name: &str) -> CommandResult {
    let context = load_context(common)?;
    let shown = escape_line(name, 64);
    // The name is a part of the path of a file.
    let digest = cofferdam::sandbox::ComponentDigest::compute(b"");
    SourceDescription::new(name, digest, Vec::new())
        .map_err(|problem| CliError::configuration(format!("the name `{shown}` {problem}")))?;
    let removed = login_store(&context.user_dirs).remove(name);
    if removed.map_err(|error| CliError::new(error.to_string()))? {
        print_line(&format!("Removed the tokens of {shown}."));
        Ok(ExitCode::SUCCESS)
    } else {
        eprint_line(&format!("There is no login to {shown}."));
        Ok(ExitCode::from(exit::FAILURE))
    }
}
