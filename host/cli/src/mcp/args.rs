//! Arguments of `cofferdam mcp`.

use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroU32};
use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use crate::args::ToolCallArgs;
use cofferdam::policy::{ApprovalMode, FileGrant};
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
    /// Let the model call the tools of an MCP server, after showing them and asking
    #[command(after_help = "Examples:\n  \
        cofferdam mcp add time -- mcp-server-time\n  \
        cofferdam mcp add git --files read-write -- mcp-server-git\n  \
        cofferdam mcp add github --network api.github.com --env GITHUB_TOKEN -- \
        github-mcp-server stdio\n  \
        cofferdam mcp add docs --url https://mcp.example.com/mcp\n  \
        cofferdam mcp add issues --url https://mcp.example.org/mcp --header \
        'Authorization=Bearer ISSUES_TOKEN'\n  \
        cofferdam mcp add git                     accepts a server of the configuration again\n\n\
        A program runs in the sandbox of commands. It sees only what these options allow: no \
        files of the workspace, no network, and no variable with a key by default. Before you \
        accept it, the server runs once in this sandbox to list its tools. A server with --url \
        gets the arguments of its calls and nothing else of this machine.\n\n\
        cofferdam.lock records the command or the URL, the permissions, and the names, \
        descriptions and schemas of the tools. A tool whose definition changes later is refused \
        until you accept it again.\n\n\
        Without permission to write and without network, a server cannot change anything, so its \
        calls are not asked about. All other calls need approval, unless the mode or a rule in a \
        policy allows them.")]
    Add(AddArgs),
    /// List the MCP servers of the configuration, with their state and permissions
    #[command(after_help = "Examples:\n  cofferdam mcp list\n  cofferdam mcp list --json")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Start an MCP server or connect to it, and compare its tools with the accepted ones
    #[command(after_help = "Examples:\n  \
        cofferdam mcp inspect git\n  \
        cofferdam mcp inspect git --json | jq .changes\n\n\
        Exit codes: 0 accepted and unchanged, 1 changed, not accepted or not usable, 78 invalid \
        configuration.")]
    Inspect {
        /// Name of the server
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Log in to an MCP server over HTTP with OAuth, and keep the tokens
    #[command(after_help = "Examples:\n  \
        cofferdam mcp login issues\n  \
        cofferdam mcp add issues --url https://mcp.example.org/mcp --login\n\n\
        Prints the URL of the login server. Open it in a browser on this machine. The tokens are \
        stored in a file that only you can read, are sent to the URL of the server alone, and are \
        refreshed when they expire.\n\n\
        Exit codes: 0 logged in, 1 the login failed, 78 invalid configuration.")]
    Login {
        /// Name of the server
        name: String,
    },
    /// Remove the tokens of an MCP server
    #[command(after_help = "Examples:\n  cofferdam mcp logout issues\n\n\
        The tokens are removed from this machine. They stay valid at the login server until they \
        expire.")]
    Logout {
        /// Name of the server
        name: String,
    },
    /// Remove an MCP server from the configuration and its acceptance
    #[command(after_help = "Examples:\n  cofferdam mcp remove git")]
    Remove {
        /// Name of the server
        name: String,
    },
}

/// The access of a server to the files of the workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ServerFiles {
    /// The server sees no files
    #[default]
    None,
    /// The server can read files
    Read,
    /// The server can read and change files; each change is checked like that of a command
    ReadWrite,
}

impl From<ServerFiles> for FileGrant {
    fn from(files: ServerFiles) -> Self {
        match files {
            ServerFiles::None => Self::None,
            ServerFiles::Read => Self::Read,
            ServerFiles::ReadWrite => Self::ReadWrite,
        }
    }
}

#[derive(Debug, ClapArgs)]
pub(super) struct AddArgs {
    /// Name of the server, which is a part of the names of its tools
    pub(super) name: String,
    #[command(flatten)]
    pub(super) program: ProgramArgs,
    #[command(flatten)]
    pub(super) http: ServerUrlArgs,
    /// Accept without asking for confirmation
    #[arg(long, short)]
    pub(super) yes: bool,
    /// Program and arguments of the server
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "url")]
    pub(super) command: Vec<String>,
}

/// The permissions of a program.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Programs")]
pub(super) struct ProgramArgs {
    /// Access to the files of the workspace
    #[arg(long, value_name = "ACCESS", conflicts_with = "url")]
    pub(super) files: Option<ServerFiles>,
    /// Host that the server can connect to, such as api.example.com; may be repeated
    #[arg(long, value_name = "HOST", conflicts_with = "url")]
    pub(super) network: Vec<String>,
    /// Name of an environment variable that the server gets; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "url")]
    pub(super) env: Vec<String>,
    /// Path outside the workspace that the server can read; may be repeated
    #[arg(long, value_name = "PATH", conflicts_with = "url")]
    pub(super) read: Vec<PathBuf>,
}

/// A server over HTTP.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Servers over HTTP")]
pub(super) struct ServerUrlArgs {
    /// URL of a server over streamable HTTP, in place of a program
    #[arg(long, value_name = "URL")]
    pub(super) url: Option<String>,
    /// Header of all requests with the value of an environment variable, such as 'X-Key=KEY' or
    /// 'Authorization=Bearer TOKEN'; may be repeated
    #[arg(long, value_name = "NAME=[PREFIX ]VARIABLE")]
    pub(super) header: Vec<String>,
    /// IP address that is not public and that the name of the server may have, with its port; may
    /// be repeated
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) address: Vec<String>,
    /// Allow a connection without encryption to another machine, which exposes all secrets
    #[arg(long)]
    pub(super) allow_plain_http: bool,
    /// Log in with OAuth before the tools are listed; see `cofferdam mcp login --help`
    #[arg(long)]
    pub(super) login: bool,
    /// ID of this program at the login server, if it does not register programs
    #[arg(long, value_name = "ID")]
    pub(super) client_id: Option<String>,
    /// Scope that a login asks for, in place of those that the server names; may be repeated
    #[arg(long, value_name = "SCOPE")]
    pub(super) scope: Vec<String>,
    /// Port of this machine where a login ends, in place of a free one
    #[arg(long, value_name = "PORT")]
    pub(super) callback_port: Option<NonZeroU16>,
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
