//! Arguments of `cofferdam mcp`.

use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroU32};
use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use crate::args::ToolCallArgs;
use cofferdam::policy::ApprovalMode;
use cofferdam_mcp::clients::KnownClient;

#[derive(Debug, ClapArgs)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(super) command: McpCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum McpCommand {
    /// Serve the tools to one client on standard input and output, or to many over HTTP
    #[command(after_help = "Examples:\n  \
        cofferdam mcp serve -C ~/project                    serves the tools of one project\n  \
        cofferdam mcp serve -C ~/project --mode auto-edit   allows file changes\n  \
        cofferdam mcp serve -C ~/project --http 127.0.0.1:8000 --token-file ~/.mcp-tokens\n  \
                                                            serves many clients over HTTP\n  \
        cofferdam mcp serve --http 0.0.0.0:8000 --oauth oauth.toml --allow-host a.example\n  \
                                                            checks the tokens of a login server\n\n\
        An MCP client starts this command; `cofferdam mcp install` shows how. With --http, start \
        it yourself; the path is /mcp. The tools run with the same policy, sandbox, limits, undo \
        history and audit log as in a chat. Whatever needs approval is asked through the client. \
        If the client cannot ask, it is denied, and the result says what would allow it.\n\n\
        Without -C, the workspace is the root of the client if it has exactly one, and otherwise \
        the current directory. With --http, it is never the root of a client.\n\n\
        Exit codes: 0 the client or a signal ended the session, 1 the client does not speak MCP \
        or the address is in use, 78 invalid configuration, workspace or plugin.")]
    Serve(ServeArgs),
    /// Show how an MCP client starts this program, or write it to the file of the client
    #[command(after_help = "Examples:\n  \
        cofferdam mcp install claude                       prints the configuration\n  \
        cofferdam mcp install claude --write               writes it to ~/.claude.json\n  \
        cofferdam mcp install codex --write -C ~/project   serves one project\n\n\
        The rest of the file stays as it is. A file that cannot be parsed is not changed. Restart \
        the client afterwards.")]
    Install(InstallArgs),
    /// Remove this program from the file of an MCP client
    Uninstall(UninstallArgs),
}

/// An MCP client, by its name on the command line.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientName(pub(super) KnownClient);

impl ValueEnum for ClientName {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self(KnownClient::Claude),
            Self(KnownClient::Codex),
            Self(KnownClient::Cursor),
            Self(KnownClient::Vscode),
            Self(KnownClient::Goose),
            Self(KnownClient::Gemini),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}

#[derive(Debug, ClapArgs)]
pub(super) struct InstallArgs {
    /// Name of the client
    pub(super) client: ClientName,
    /// Write the configuration to the file of the client
    #[arg(long)]
    pub(super) write: bool,
    /// Name of the server in the file
    #[arg(long, default_value = "cofferdam")]
    pub(super) name: String,
    /// Approval mode of the server; see `cofferdam mcp serve --help`
    #[arg(long)]
    pub(super) mode: Option<ApprovalMode>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct UninstallArgs {
    /// Name of the client
    pub(super) client: ClientName,
    /// Name of the server in the file
    #[arg(long, default_value = "cofferdam")]
    pub(super) name: String,
}

#[derive(Debug, ClapArgs)]
pub(super) struct ServeArgs {
    #[command(flatten)]
    pub(super) calls: ToolCallArgs,
    /// Time for an answer to a question of approval; without one, the effect is denied
    #[arg(long, value_name = "SECONDS", default_value = "300")]
    pub(super) approval_timeout: NonZeroU32,
    #[command(flatten)]
    pub(super) http: HttpArgs,
}

/// Options of the server over HTTP.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "HTTP")]
pub(super) struct HttpArgs {
    /// Serve many clients over streamable HTTP on this address instead; port 0 chooses a free port
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) http: Option<SocketAddr>,
    /// Accept the bearer tokens of a file: one on each line, as TOKEN or NAME TOKEN
    #[arg(long, value_name = "FILE", requires = "http")]
    #[arg(conflicts_with_all = ["token_env", "oauth"])]
    pub(super) token_file: Option<PathBuf>,
    /// Accept the bearer token of an environment variable
    #[arg(long, value_name = "NAME", requires = "http", conflicts_with = "oauth")]
    pub(super) token_env: Option<String>,
    /// Accept access tokens of OAuth 2.1 as this file says; see the guide `mcp.md`
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(super) oauth: Option<PathBuf>,
    /// Accept requests for this host name, such as that of a reverse proxy (repeatable)
    #[arg(long, value_name = "NAME[:PORT]", requires = "http")]
    pub(super) allow_host: Vec<String>,
    /// Accept requests from pages of this origin (repeatable)
    #[arg(long, value_name = "URL", requires = "http")]
    pub(super) allow_origin: Vec<String>,
    /// Time after which a session that does nothing ends, with its background commands
    #[arg(long, value_name = "SECONDS", default_value = "600", requires = "http")]
    pub(super) idle_timeout: NonZeroU32,
    /// Number of sessions at the same time
    #[arg(long, value_name = "NUMBER", default_value = "256", requires = "http")]
    pub(super) max_sessions: NonZeroU16,
}
