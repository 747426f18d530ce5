//! `cofferdam mcp login`: logs in to a server over HTTP, and keeps the tokens.

use std::process::ExitCode;

use super::{find_server, load_context, login_store, secrets};
use crate::args::CommonArgs;
use crate::context::AppContext;
use crate::error::{CliError, CommandResult};
use crate::print::{eprint_line, print_line};
use cofferdam::config::{HttpServer, ServerSettings, ServerTransport};
use cofferdam::sandbox::ComponentDigest;
use cofferdam::terminal_escape::{escape_line, escape_text};
use cofferdam_mcp::login::{LoginRequest, StoredLogin, log_in};
use cofferdam_mcp::servers::HttpServerTarget;

pub(in crate::mcp) fn run(common: &CommonArgs, name: &str) -> CommandResult {
    let context = load_context(common)?;
    let settings = find_server(&context, name)?.clone();
    let login = log_in_to(common, &context, &settings)?;
    print_line(&describe(&settings.name, &login));
    Ok(ExitCode::SUCCESS)
}

/// Logs in to a server, and keeps the tokens.
pub(super) fn log_in_to(
    common: &CommonArgs,
    context: &AppContext,
    settings: &ServerSettings,
) -> Result<StoredLogin, CliError> {
    let name = &settings.name;
    let refused =
        |problem: &str| CliError::configuration(format!("cannot log in to `{name}`: {problem}"));
    let server = match &settings.transport {
        ServerTransport::Http(server) => server,
        ServerTransport::Program(_) => {
            return Err(refused("it is a program on this machine, which needs no login"));
        }
    };
    if server.headers.iter().any(|header| header.name == "authorization") {
        return Err(refused(
            "its configuration has the header `authorization`, which would be sent",
        ));
    }
    let origin = server.url.origin();
    if !origin.is_encrypted() && !origin.is_loopback() {
        return Err(refused("its connection is not encrypted, and would expose the token"));
    }
    let login = request_tokens(common, context, (name, server))?;
    let written = login_store(&context.user_dirs).write(name, &login);
    written.map_err(|error| CliError::new(format!("the login was not stored: {error}")))?;
    Ok(login)
}

fn request_tokens(
    common: &CommonArgs,
    context: &AppContext,
    (name, server): (&str, &HttpServer),
) -> Result<StoredLogin, CliError> {
    let failed = |problem: &str| {
        CliError::new(escape_text(&format!("cannot log in to `{name}`: {problem}")))
    };
    let endpoint = HttpServerTarget::new(server, |source| secrets::read(common, source))
        .map_err(|problem| failed(&problem))?;
    let host = context.open_host()?;
    let request = LoginRequest::new(server.url.clone(), server.login.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let show = |url: &str, origin: &str| {
        eprint_line(&format!("Log in at {} with your browser:", escape_line(origin, 400)));
        // The whole URL, in one line: it is copied.
        print_line(&escape_line(url, url.len()));
        eprint_line("Waiting for the login. Ctrl-C ends it.");
    };
    let logged_in = runtime.block_on(async {
        let access = host.inspect_source(name, &ComponentDigest::compute(b""));
        log_in(&request, &endpoint.reach(&access), show).await
    });
    logged_in.map_err(|error| failed(&error.to_string()))
}

/// Describes a login without its tokens.
pub(super) fn describe(name: &str, login: &StoredLogin) -> String {
    let scopes = match login.scopes.as_slice() {
        [] => String::new(),
        scopes => format!(", with the scopes {}", scopes.join(", ")),
    };
    let text = format!("Logged in to {name} at {}{scopes}.", login.issuer);
    escape_line(&text, 2000)
}
