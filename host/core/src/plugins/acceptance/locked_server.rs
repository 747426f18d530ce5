//! A server as the lock file has it, with the keys of both kinds.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::servers::{
    AcceptedHttpServer, AcceptedProgram, AcceptedServer, AcceptedServerTool, AcceptedTransport,
};
use crate::policy::FileGrant;
use crate::sandbox::ComponentDigest;

/// A `[server.NAME]` section of the lock file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LockedServer {
    digest: ComponentDigest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workspace: Option<FileGrant>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    network: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    env: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    read: Vec<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    address: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    allow_plain_http: bool,
    #[serde(default, rename = "tool", skip_serializing_if = "Vec::is_empty")]
    tools: Vec<AcceptedServerTool>,
}

impl TryFrom<LockedServer> for AcceptedServer {
    type Error = &'static str;

    fn try_from(locked: LockedServer) -> Result<Self, Self::Error> {
        let LockedServer {
            digest,
            command,
            workspace,
            network,
            env,
            read,
            url,
            headers,
            address: addresses,
            allow_plain_http,
            tools,
        } = locked;
        let has_http_keys = !headers.is_empty() || !addresses.is_empty() || allow_plain_http;
        let has_program_keys =
            workspace.is_some() || !network.is_empty() || !env.is_empty() || !read.is_empty();
        let transport = match (command, url) {
            (Some(command), None) if !has_http_keys => {
                let workspace = workspace.ok_or("the server has no key `workspace`")?;
                AcceptedTransport::Program(AcceptedProgram {
                    command,
                    workspace,
                    network,
                    env,
                    read,
                })
            }
            (None, Some(url)) if !has_program_keys => AcceptedTransport::Http(AcceptedHttpServer {
                url,
                headers,
                addresses,
                allow_plain_http,
            }),
            _ => return Err("a server is either a program or a URL, with the keys of its kind"),
        };
        Ok(Self { digest, transport, tools })
    }
}

impl From<AcceptedServer> for LockedServer {
    fn from(server: AcceptedServer) -> Self {
        let AcceptedServer { digest, transport, tools } = server;
        let empty = Self {
            digest,
            command: None,
            workspace: None,
            network: Vec::new(),
            env: Vec::new(),
            read: Vec::new(),
            url: None,
            headers: Vec::new(),
            address: Vec::new(),
            allow_plain_http: false,
            tools,
        };
        match transport {
            AcceptedTransport::Program(program) => Self {
                command: Some(program.command),
                workspace: Some(program.workspace),
                network: program.network,
                env: program.env,
                read: program.read,
                ..empty
            },
            AcceptedTransport::Http(server) => Self {
                url: Some(server.url),
                headers: server.headers,
                address: server.addresses,
                allow_plain_http: server.allow_plain_http,
                ..empty
            },
        }
    }
}
