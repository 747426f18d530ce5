//! `cofferdam plugin add`: a plugin from a file or a server, accepted as what it is.

use std::process::ExitCode;

use super::args::AddArgs;
use super::inspect;
use super::obtain::obtain;
use crate::authoring::PluginName;
use crate::cli::args::Common;
use crate::cli::error::{CliError, Done};
use crate::cli::print::{stderr_line, stdout_line};
use crate::cli::{ask, audit, exit};
use crate::plugins::Source;
use crate::shown;
use crate::tools::Change;

pub(super) fn run(common: &Common, args: AddArgs) -> Done {
    let source = Source::parse(&args.source)?;
    let name = match args.name {
        Some(name) => name,
        None => named_after(&source)?,
    };
    let shelf = super::shelf(common)?;
    shelf.is_free(name.as_str())?;
    let component = obtain(&source, args.digest.as_ref())?;
    let parts = super::parts(common)?;
    let from = source.to_string();
    let plugin = super::load_bytes(&parts.sandbox, &from, component)?;
    if let Some(objection) = parts.catalog.objection(&plugin, None) {
        return Err(CliError::new(format!("{from} cannot be added: {objection}")));
    }
    let page = inspect::page(&from, &plugin);
    if args.yes {
        stderr_line(&page);
    } else {
        let agreed = ask::yes_or_no(&page, &format!("Add it as {name}, as it is?"));
        match agreed {
            Some(true) => {}
            Some(false) => {
                stderr_line("Nothing was added.");
                return Ok(ExitCode::from(exit::FAILED));
            }
            None => {
                stderr_line(&page);
                let digest = plugin.digest();
                let problem = format!("nobody can be asked here, so nothing was added. To add it as shown: --yes --digest sha256:{digest}");
                return Err(CliError::new(problem));
            }
        }
    }
    let place = shelf.place_for(name.as_str(), plugin.digest());
    let accepted = (place.display().to_string(), shelf.lock()?.wider(&place, &plugin));
    let change = Change::PluginAccepted { path: &accepted.0, digest: plugin.digest(), wider: &accepted.1 };
    audit::record(&parts.settings, &parts.folders, &common.workspace, &change)?;
    let path = shelf.add(name.as_str(), from, &plugin)?;
    stdout_line(&shown::line(&format!("{name} was added: {}", path.display()), 1000));
    let tools: Vec<&str> = plugin.declaration().tools.iter().map(|tool| tool.name.as_str()).collect();
    let tools = shown::line(&tools.join(", "), 400);
    stderr_line(&format!("From now on every run has {tools}. `cofferdam plugin remove {name}` takes it away again."));
    Ok(ExitCode::SUCCESS)
}

fn named_after(source: &Source) -> Result<PluginName, CliError> {
    let name = source.name();
    name.parse().map_err(|error| CliError::new(format!("{error}. Say --name NAME to call it something else than its file")))
}
