//! `cofferdam mcp serve`: one client on standard input and output, or many over HTTP.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::args::ServeArgs;
use super::http;
use crate::args::{CommonArgs, ModelArgs, ToolCallArgs};
use crate::context::{self, broad_workspace_warning};
use crate::error::{CliError, CommandResult};
use crate::interrupt;
use cofferdam::Host;
use cofferdam::sandbox::InstanceAllocation;
use cofferdam_mcp::{HostOpener, ServerOptions, ToolServer, WorkspaceChoice, serve_stdio};

pub(super) fn run(common: &CommonArgs, args: ServeArgs) -> CommandResult {
    let mut options = ServerOptions::default();
    options.approval_timeout = Duration::from_secs(args.approval_timeout.get().into());
    let http = match args.http.http {
        Some(_) => Some(http::options(common, &args.http)?),
        None => None,
    };
    let workspace = match http {
        Some(_) => {
            if !common.has_chosen_workspace {
                check_extent(common)?;
            }
            WorkspaceChoice::Fixed(Box::new(open_host(common, args.calls)?))
        }
        None => choose_workspace(common, args.calls)?,
    };
    let mut runtime = match http {
        Some(_) => tokio::runtime::Builder::new_multi_thread(),
        // Tools run on threads of their own. The messages of one client are so little work that
        // switching between threads would take most of the time.
        None => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = runtime.enable_all().build()?;
    let served = runtime.block_on(async {
        let shutdown = CancellationToken::new();
        interrupt::watch_signals(shutdown.clone(), None)?;
        let server = ToolServer::new(workspace, options, shutdown);
        match http {
            Some(options) => http::serve(options, server).await,
            None => serve_stdio(server).await.map_err(|error| CliError::new(error.to_string())),
        }
    });
    // A read of standard input may still wait for the client.
    runtime.shutdown_background();
    served.map(|()| ExitCode::SUCCESS)
}

/// Opens the workspace of `-C`, or prepares to open the root of the client.
fn choose_workspace(common: &CommonArgs, calls: ToolCallArgs) -> Result<WorkspaceChoice, CliError> {
    if common.has_chosen_workspace {
        return Ok(WorkspaceChoice::Fixed(Box::new(open_host(common, calls)?)));
    }
    let (common, home) = (common.clone(), common.environment.home.clone());
    let open = move |root: Option<&Path>| {
        let workspace = root.unwrap_or(&common.workspace).to_owned();
        let common = CommonArgs { workspace, ..common.clone() };
        let opened = check_extent(&common).and_then(|()| open_host(&common, calls.clone()));
        opened.map_err(|error| {
            // The client may not show it.
            context::warn(error.message());
            error.message().to_owned()
        })
    };
    Ok(WorkspaceChoice::OfClient(HostOpener::new(home, open)))
}

/// Refuses a directory that nobody chose and that is no project.
fn check_extent(common: &CommonArgs) -> Result<(), CliError> {
    let root = common.workspace.canonicalize().unwrap_or_else(|_| common.workspace.clone());
    match broad_workspace_warning(&root) {
        Some(problem) => {
            Err(CliError::configuration(format!("{problem}, or name it with `-C DIR`")))
        }
        None => Ok(()),
    }
}

fn open_host(common: &CommonArgs, calls: ToolCallArgs) -> Result<Host, CliError> {
    let flags = common.flags(ModelArgs::default(), calls, None);
    let context = context::load_context_unattended(common, flags, InstanceAllocation::Pooled)?;
    context.check_named_plugins()?;
    context.warn_refused_plugins();
    context.open_host()
}
