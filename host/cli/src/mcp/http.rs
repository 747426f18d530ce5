//! `cofferdam mcp serve --http`: many clients over HTTP, and who may connect.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::args::HttpArgs;
use crate::args::CommonArgs;
use crate::context;
use crate::error::CliError;
use crate::print::eprint_line;
use crate::secret_file::{Privacy, read_checked};
use cofferdam::terminal_escape::escape_line;
use cofferdam_mcp::{
    BearerTokens, ClientAuthentication, HttpError, HttpListener, HttpOptions, ResourceServer,
    ToolServer,
};

/// Reads how clients prove who they are.
pub(super) fn options(common: &CommonArgs, args: &HttpArgs) -> Result<HttpOptions, CliError> {
    let address = args.http.ok_or_else(|| CliError::configuration("there is no address"))?;
    let authentication = if let Some(file) = &args.token_file {
        let text = read_checked(file, Privacy::Secret)?;
        let tokens = BearerTokens::parse(&text).map_err(|error| unusable(file, &error))?;
        ClientAuthentication::Tokens(tokens)
    } else if let Some(name) = &args.token_env {
        let value = common.environment.variable(name).and_then(|value| value.into_string().ok());
        let problem = |problem: &str| {
            let text =
                format!("cannot use the tokens of the environment variable {name}: {problem}");
            CliError::configuration(escape_line(&text, 1000))
        };
        let value = value.ok_or_else(|| problem("it is not set, or not text"))?;
        let tokens = BearerTokens::parse(&value).map_err(|error| problem(&error.to_string()))?;
        ClientAuthentication::Tokens(tokens)
    } else if let Some(file) = &args.oauth {
        let text = read_checked(file, Privacy::Public)?;
        let read_keys = |keys: PathBuf| {
            let keys = file.parent().unwrap_or(Path::new(".")).join(keys);
            read_checked(&keys, Privacy::Public).map_err(|error| error.message().to_owned())
        };
        let server = ResourceServer::parse(&text, read_keys);
        ClientAuthentication::OAuth(Box::new(server.map_err(|error| unusable(file, &error))?))
    } else {
        ClientAuthentication::None
    };
    let mut options = HttpOptions::new(address, authentication);
    options.allowed_hosts.clone_from(&args.allow_host);
    options.allowed_origins.clone_from(&args.allow_origin);
    options.limits.idle_timeout = Duration::from_secs(args.idle_timeout.get().into());
    options.limits.sessions = usize::from(args.max_sessions.get());
    Ok(options)
}

/// Listens, says where, and serves until the server shuts down.
pub(super) async fn serve(options: HttpOptions, server: ToolServer) -> Result<(), CliError> {
    let authentication = options.authentication.describe();
    let is_open = options.authentication.is_none();
    let listener = HttpListener::bind(options).await.map_err(to_error)?;
    let line = format!("MCP server: {} (authentication: {authentication})", listener.url());
    eprint_line(&escape_line(&line, 1000));
    if is_open {
        context::warn(
            "every user and program of this machine can call the tools; `--token-file` protects \
                them",
        );
    } else if listener.is_public() {
        context::warn(
            "tokens and files are sent without encryption; put a reverse proxy with TLS in front",
        );
    }
    listener.serve(server).await.map_err(to_error)
}

fn to_error(error: HttpError) -> CliError {
    match error {
        HttpError::Bind { .. } => CliError::new(error.to_string()),
        error => CliError::configuration(error.to_string()),
    }
}

fn unusable(file: &Path, error: &dyn std::fmt::Display) -> CliError {
    CliError::configuration(format!("cannot use {}: {error}", file.display()))
}
