//! `cofferdam mcp add`: accepts a server with its command, permissions and tools.

use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::description::{describe_server, describe_unusable, find_unusable};
use super::{inspect_settings, load_context, login};
use crate::args::CommonArgs;
use crate::context::AppContext;
use crate::error::{CliError, CommandResult};
use crate::mcp::args::{AddArgs, ProgramArgs, ServerUrlArgs};
use crate::print::{eprint_line, print_line};
use crate::{audit, confirm, context, exit};
use cofferdam::config::{
    HttpServer, ProgramServer, RawConfig, SecretHeader, SecretSource, ServerSettings,
    ServerTransport, add_server, resolve_links,
};
use cofferdam::plugins::AcceptedServer;
use cofferdam::policy::HttpUrl;
use cofferdam::sandbox::ComponentDigest;
use cofferdam::terminal_escape::{escape_line, escape_text};
use cofferdam::tools::{AuthorityChange, SourceDescription};

pub(in crate::mcp) fn run(common: &CommonArgs, args: AddArgs) -> CommandResult {
    let context = load_context(common)?;
    let configured = context.settings.servers.iter().find(|server| server.name == args.name);
    let (settings, is_new) = match (configured, args.is_only_name()) {
        (Some(server), true) => (server.clone(), false),
        (Some(_), false) => {
            return Err(CliError::new(format!(
                "cannot add `{0}`: the configuration has a server of this name\nhint: edit its \
                    section and run `cofferdam mcp add {0}`, or remove it with `cofferdam mcp \
                    remove {0}`",
                args.name
            )));
        }
        (None, _) => (args.to_settings(common, &context)?, true),
    };
    let lock_file = context::lock_file(common, &context.user_dirs);
    if args.http.login {
        eprint_line(&login::describe(&args.name, &login::log_in_to(common, &context, &settings)?));
    }
    let inspection = inspect_settings(common, &context, &settings)?;
    if inspection.tools.is_empty() {
        return Err(CliError::new(format!("the server `{}` offers no tools", settings.name)));
    }
    let accepted = AcceptedServer::new(&settings, inspection.tools);
    let unusable = find_unusable(&context, &settings, &accepted)?;
    if unusable.len() == accepted.tools.len() {
        let problem = format!("none of the tools of the server `{}` can be used:", settings.name);
        return Err(CliError::new(format!("{problem}\n{}", describe_unusable(&unusable))));
    }
    let mut page = describe_server(&context, &settings, &accepted);
    page.push_str(&describe_unusable(&unusable));
    page.push_str(&format!(
        "  The server calls itself {} and speaks version {} of the protocol.\n",
        inspection.server, inspection.protocol
    ));
    if let Some(before) = lock_file.read()?.find_server(&settings.name) {
        let mut changes = before.unaccepted_settings(&settings);
        changes.extend(before.tool_changes(&accepted.tools));
        if changes.is_empty() && *before == accepted && !is_new {
            print_line(&format!("{} is accepted already, and nothing changed.", settings.name));
            return Ok(ExitCode::SUCCESS);
        }
        page.push_str("  Changes since you accepted it:\n");
        for change in changes {
            page.push_str(&format!("    {}\n", escape_line(&change, 400)));
        }
    }
    if args.yes {
        eprint_line(page.trim_end());
    } else {
        match confirm::confirm(&page, &format!("Accept the server {}?", settings.name)) {
            Some(true) => {}
            Some(false) => {
                eprint_line("No server was added.");
                return Ok(ExitCode::from(exit::FAILURE));
            }
            None => {
                eprint_line(page.trim_end());
                return Err(CliError::new(
                    "no server was added: there is no terminal for confirmation\nhint: to add it \
                        as shown, pass `--yes`",
                ));
            }
        }
    }
    accept(common, &context, (&settings, is_new), accepted)
}

fn accept(
    common: &CommonArgs,
    context: &AppContext,
    (settings, is_new): (&ServerSettings, bool),
    accepted: AcceptedServer,
) -> CommandResult {
    let name = &settings.name;
    let change = AuthorityChange::PluginAccepted {
        path: &format!("server {name}"),
        digest: &accepted.digest,
        new_permissions: &super::description::permissions(settings, &accepted),
    };
    audit::record_change(&context.settings, &context.user_dirs, common, &change)?;
    let count = accepted.tools.len();
    let lock_file = context::lock_file(common, &context.user_dirs);
    lock_file.update(|lock| lock.accept_server(name, accepted))?;
    if is_new {
        let file = config_file(common, context);
        let home = common.environment.home.as_deref();
        if let Err(error) = add_server(&file, settings, home) {
            return Err(CliError::configuration(format!(
                "cannot add `{name}`: {error}\nhint: add this to the file:\n\n{}",
                settings.to_section()
            )));
        }
    }
    print_line(&format!("Added {name} with {count} tools."));
    eprint_line(&format!(
        "Every run can now use {name}/*. `cofferdam mcp remove {name}` removes the server again."
    ));
    Ok(ExitCode::SUCCESS)
}

/// Returns the configuration file.
pub(super) fn config_file(common: &CommonArgs, context: &AppContext) -> PathBuf {
    common.config.clone().unwrap_or_else(|| context.user_dirs.config_file())
}

impl AddArgs {
    /// Returns whether nothing but the name of a configured server is given.
    fn is_only_name(&self) -> bool {
        let Self { name: _, program, http, yes: _, command } = self;
        let ProgramArgs { files, network, env, read } = program;
        let is_program = files.is_some()
            || !network.is_empty()
            || !env.is_empty()
            || !read.is_empty()
            || !command.is_empty();
        !is_program && http.url.is_none() && http.first_option().is_none()
    }

    /// Returns the settings of a new server, checked like those of a configuration file.
    fn to_settings(
        &self,
        common: &CommonArgs,
        context: &AppContext,
    ) -> Result<ServerSettings, CliError> {
        // The name is a part of the section, so it is checked first.
        let name = SourceDescription::new(&self.name, ComponentDigest::compute(b""), Vec::new());
        if let Err(problem) = name {
            let name = escape_line(&self.name, 64);
            let problem = format!("invalid server: the name `{name}` {problem}");
            return Err(CliError::configuration(problem));
        }
        let is_without_url = self.http.url.is_none();
        if let Some(option) = self.http.first_option().filter(|_| is_without_url) {
            let problem = format!("invalid server: `{option}` needs `--url`");
            return Err(CliError::configuration(problem));
        }
        let transport = match (&self.http.url, self.command.split_first()) {
            (Some(url), _) => ServerTransport::Http(self.http.to_server(url)?),
            (None, Some((command, args))) => {
                ServerTransport::Program(self.program.to_program(command, args)?)
            }
            (None, None) => {
                return Err(CliError::configuration(format!(
                    "there is no MCP server `{0}` in the configuration\nhint: name its program or \
                        its URL, as in `cofferdam mcp add {0} -- PROGRAM ARGUMENTS` or `cofferdam \
                        mcp add {0} --url URL`",
                    self.name
                )));
            }
        };
        let section = ServerSettings::new(&self.name, transport).to_section();
        let file = Path::new("the command line");
        let home = common.environment.home.as_deref();
        let own = context::own_paths(common, &context.user_dirs);
        let parsed = RawConfig::parse(&section, file, home).and_then(|raw| {
            raw.check_own_paths(&own)?;
            raw.servers()
        });
        let parsed = parsed.map_err(|error| {
            CliError::configuration(escape_text(&format!("invalid server: {error}")))
        })?;
        let home = home.and_then(Path::to_str).unwrap_or_default();
        for path in &self.program.read {
            let real = resolve_links(path);
            let real = real.to_str().unwrap_or_default();
            if let Some(location) = context.policy().read_denied_by(real, home) {
                let real = escape_line(real, 400);
                let problem = format!("{location}: servers may not read {real}");
                return Err(CliError::configuration(problem));
            }
        }
        parsed.into_iter().next().ok_or_else(|| CliError::new("the server has no section"))
    }
}

impl ProgramArgs {
    fn to_program(&self, command: &str, args: &[String]) -> Result<ProgramServer, CliError> {
        let mut program = ProgramServer::new(command, args.to_vec());
        program.files = self.files.unwrap_or_default().into();
        program.network.clone_from(&self.network);
        program.env.clone_from(&self.env);
        for path in &self.read {
            program.read.push(std::path::absolute(path)?);
        }
        Ok(program)
    }
}

impl ServerUrlArgs {
    /// Returns an option in use that only a server with a URL has.
    fn first_option(&self) -> Option<&'static str> {
        let Self {
            url: _,
            header,
            address,
            allow_plain_http,
            login,
            client_id,
            scope,
            callback_port,
        } = self;
        let options = [
            ("--header", !header.is_empty()),
            ("--address", !address.is_empty()),
            ("--allow-plain-http", *allow_plain_http),
            ("--login", *login),
            ("--client-id", client_id.is_some()),
            ("--scope", !scope.is_empty()),
            ("--callback-port", callback_port.is_some()),
        ];
        options.into_iter().find(|(_, is_used)| *is_used).map(|(option, _)| option)
    }

    fn to_server(&self, url: &str) -> Result<HttpServer, CliError> {
        let url = HttpUrl::parse(url)
            .map_err(|problem| CliError::configuration(format!("invalid server: {problem}")))?;
        let mut server = HttpServer::new(url);
        for text in &self.header {
            server.headers.push(parse_header(text)?);
        }
        server.addresses.clone_from(&self.address);
        server.allow_plain_http = self.allow_plain_http;
        server.login.client_id.clone_from(&self.client_id);
        server.login.scopes.clone_from(&self.scope);
        server.login.callback_port = self.callback_port.map(NonZeroU16::get);
        Ok(server)
    }
}

/// Parses `NAME=VARIABLE` or `NAME=PREFIX VARIABLE`.
fn parse_header(text: &str) -> Result<SecretHeader, CliError> {
    let is_variable = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let parsed = text.split_once('=').and_then(|(name, value)| {
        let (prefix, variable) = match value.rsplit_once(' ') {
            Some((prefix, variable)) => (format!("{prefix} "), variable),
            None => (String::new(), value),
        };
        let source = SecretSource::Variable(variable.to_owned());
        is_variable(variable).then(|| SecretHeader::new(name, source, &prefix))
    });
    parsed.ok_or_else(|| {
        // The text may contain a secret by mistake.
        CliError::configuration(
            "invalid server: `--header` needs the name of a header and the name of an environment \
                variable, as in `--header X-Key=MY_KEY`\nhint: the value itself belongs into the \
                variable, not on the command line",
        )
    })
}
