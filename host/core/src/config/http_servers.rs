//! MCP servers over HTTP in the section `[mcp.servers]`.

use std::path::PathBuf;

use http::HeaderName;
use serde::Deserialize;
use toml::Spanned;

use super::servers::{RawServer, ServerProblem, is_variable_name, plain};
use crate::policy::{HostPattern, HttpUrl, NetworkRules};

/// The number of headers of a server.
const MAX_HEADERS: usize = 16;
/// The number of scopes of a login.
const MAX_SCOPES: usize = 32;

/// A header in a `[mcp.servers.NAME]` section: its value comes from the environment or from a file,
/// so that the configuration does not contain the secret.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RawHeader {
    /// The environment variable with the secret.
    pub env: Option<String>,
    /// The file with the secret, which other users must not be able to read.
    pub file: Option<PathBuf>,
    /// The text before the secret, such as `Bearer `.
    #[serde(default)]
    pub prefix: String,
}

/// An MCP server over streamable HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpServer {
    /// The address of the server.
    pub url: HttpUrl,
    /// Headers of all requests.
    pub headers: Vec<SecretHeader>,
    /// IP addresses that are not public, which the name of the server may have.
    pub addresses: Vec<String>,
    /// Whether the connection to another machine may be unencrypted.
    pub allow_plain_http: bool,
    /// The settings of a login.
    pub login: LoginSettings,
}

/// A header whose value is a secret from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SecretHeader {
    /// The name, in lower case.
    pub name: String,
    /// Where the secret is.
    pub source: SecretSource,
    /// The text before the secret.
    pub prefix: String,
}

/// Where a secret is.
///
/// This enum is closed: code that reads secrets has to treat each place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// In this environment variable.
    Variable(String),
    /// In this file.
    File(PathBuf),
}

/// How a user logs in to a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginSettings {
    /// The ID of this program at the login server. Without it, the program registers itself.
    pub client_id: Option<String>,
    /// The scopes that the login asks for. Without any, those that the server names.
    pub scopes: Vec<String>,
    /// The port of this machine where the login ends. Without it, a free port is chosen.
    pub callback_port: Option<u16>,
}

impl HttpServer {
    /// Creates a server without headers and with default settings.
    pub fn new(url: HttpUrl) -> Self {
        Self {
            url,
            headers: Vec::new(),
            addresses: Vec::new(),
            allow_plain_http: false,
            login: LoginSettings::default(),
        }
    }

    /// Returns the addresses that are not public, as rules.
    pub fn address_rules(&self) -> NetworkRules {
        // They were checked when the configuration was read.
        NetworkRules::parse(&self.addresses, &[]).unwrap_or_default()
    }

    /// Checks the keys of a section.
    pub(super) fn resolve(raw: &RawServer, url: &Spanned<String>) -> Result<Self, ServerProblem> {
        let parsed =
            HttpUrl::parse(url.get_ref()).map_err(|problem| (url.span(), problem.to_string()))?;
        let allow_plain_http = raw.allow_plain_http.as_ref().is_some_and(|allow| *allow.get_ref());
        let origin = parsed.origin();
        if !origin.is_encrypted() && !origin.is_loopback() && !allow_plain_http {
            let problem = "the connection to the server would not be encrypted\nhint: use an https \
                URL, or set `allow_plain_http = true`, which exposes all secrets and results";
            return Err((url.span(), problem.to_owned()));
        }
        for address in &raw.address {
            let pattern = HostPattern::parse(address.get_ref())
                .map_err(|problem| (address.span(), problem.to_string()))?;
            if !pattern.is_address() {
                let problem = "an entry of `address` is an IP address, such as 10.0.0.5:8443";
                return Err((address.span(), problem.to_owned()));
            }
        }
        if let Some((name, _)) = raw.headers.iter().nth(MAX_HEADERS) {
            return Err((name.span(), format!("there are more than {MAX_HEADERS} headers")));
        }
        let headers = raw.headers.iter().map(|(name, header)| {
            SecretHeader::resolve(name.get_ref(), header).map_err(|problem| (name.span(), problem))
        });
        let headers: Vec<SecretHeader> = headers.collect::<Result<_, _>>()?;
        let is_scope = |scope: &str| {
            !scope.is_empty()
                && scope.bytes().all(|b| b.is_ascii_graphic() && !b"\"\\".contains(&b))
        };
        let bad_scope = raw.scopes.iter().find(|scope| !is_scope(scope.get_ref()));
        if let Some(scope) = bad_scope.or_else(|| raw.scopes.get(MAX_SCOPES)) {
            let problem = format!("`scopes` has at most {MAX_SCOPES} words without blanks");
            return Err((scope.span(), problem));
        }
        if let Some(id) = raw.client_id.as_ref().filter(|id| !is_client_id(id.get_ref())) {
            let problem = "a client ID is 1 to 512 characters of ASCII without blanks";
            return Err((id.span(), problem.to_owned()));
        }
        if let Some(port) = raw.callback_port.as_ref().filter(|port| *port.get_ref() == 0) {
            return Err((port.span(), "`callback_port` is a number from 1 to 65535".to_owned()));
        }
        let login = LoginSettings {
            client_id: raw.client_id.as_ref().map(|id| id.get_ref().clone()),
            scopes: plain(&raw.scopes),
            callback_port: raw.callback_port.as_ref().map(|port| *port.get_ref()),
        };
        let addresses = plain(&raw.address);
        Ok(Self { url: parsed, headers, addresses, allow_plain_http, login })
    }
}

fn is_client_id(id: &str) -> bool {
    (1..=512).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
}

impl SecretHeader {
    /// Creates a header.
    pub fn new(name: &str, source: SecretSource, prefix: &str) -> Self {
        Self { name: name.to_ascii_lowercase(), source, prefix: prefix.to_owned() }
    }

    fn resolve(name: &str, raw: &RawHeader) -> Result<Self, String> {
        let parsed: HeaderName =
            name.parse().map_err(|_| "this is not the name of a header".to_owned())?;
        if is_reserved(parsed.as_str()) {
            return Err(format!("the host sets the header `{parsed}` itself"));
        }
        let source = match (&raw.env, &raw.file) {
            (Some(name), None) if is_variable_name(name) => SecretSource::Variable(name.clone()),
            (Some(_), None) => return Err("`env` is the name of a variable".to_owned()),
            (None, Some(file)) => SecretSource::File(file.clone()),
            (Some(_), Some(_)) => return Err("a header has `env` or `file`, not both".to_owned()),
            (None, None) => {
                return Err("a header needs `env`, the name of a variable, or `file`".to_owned());
            }
        };
        let is_plain = |b: u8| b == b' ' || b.is_ascii_graphic();
        if !raw.prefix.bytes().all(is_plain) {
            return Err("`prefix` contains a character that a header cannot have".to_owned());
        }
        Ok(Self { name: parsed.as_str().to_owned(), source, prefix: raw.prefix.clone() })
    }

    /// Describes the header without its secret.
    pub fn describe(&self) -> String {
        let Self { name, source, prefix } = self;
        match source {
            SecretSource::Variable(variable) => format!("{name}: {prefix}${variable}"),
            SecretSource::File(file) => format!("{name}: {prefix}(content of {})", file.display()),
        }
    }
}

/// Headers that describe the connection, the message or the session.
fn is_reserved(name: &str) -> bool {
    let reserved = [
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "last-event-id",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    reserved.contains(&name) || name.starts_with("proxy-") || name.starts_with("mcp-")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{RawConfig, ServerTransport};

    fn server(lines: &str) -> Result<HttpServer, String> {
        let text = format!("[mcp.servers.x]\n{lines}");
        let raw = RawConfig::parse(&text, Path::new("/c/config.toml"), Some(Path::new("/home/me")))
            .map_err(|error| error.to_string())?;
        let servers = raw.servers().map_err(|error| error.to_string())?;
        match servers.into_iter().next().map(|server| server.transport) {
            Some(ServerTransport::Http(server)) => Ok(server),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn secrets_of_headers_come_from_elsewhere() {
        let found = server(
            "url = \"https://Mcp.example.com/mcp\"\naddress = [\"10.0.0.5:8443\"]\n\
                [mcp.servers.x.headers]\nAuthorization = { env = \"TOKEN\", prefix = \"Bearer \" \
                }\nX-Key = { file = \"~/key\" }",
        );
        let found = found.expect("it is valid");
        assert_eq!(found.url.to_string(), "https://mcp.example.com/mcp");
        let described: Vec<String> = found.headers.iter().map(SecretHeader::describe).collect();
        assert_eq!(described, ["authorization: Bearer $TOKEN", "x-key: (content of /home/me/key)"]);
        assert_eq!(found.addresses, ["10.0.0.5:8443"]);
    }

    #[test]
    fn what_makes_no_sense_is_an_error_with_its_line() {
        let https = "url = \"https://a.com/\"\n";
        let table = [
            ("url = \"http://a.com/\"".to_owned(), "would not be encrypted"),
            ("url = \"http://10.0.0.1/\"".to_owned(), "would not be encrypted"),
            ("url = \"ws://a.com/\"".to_owned(), "does not begin with"),
            ("url = \"https://me:pw@a.com/\"".to_owned(), "a user name or a password"),
            (format!("{https}address = [\"a.com\"]"), "is an IP address"),
            (format!("{https}address = [\"10.0.0.0/8\"]"), "not a host pattern"),
            (format!("{https}headers = {{ \"a b\" = {{ env = \"X\" }} }}"), "name of a header"),
            (format!("{https}headers = {{ Host = {{ env = \"X\" }} }}"), "sets the header `host`"),
            (format!("{https}headers = {{ Mcp-Session-Id = {{ env = \"X\" }} }}"), "sets the"),
            (format!("{https}headers = {{ X = \"secret\" }}"), "invalid type"),
            (format!("{https}headers = {{ X = {{ value = \"secret\" }} }}"), "unknown field"),
            (format!("{https}headers = {{ X = {{}} }}"), "needs `env`"),
            (format!("{https}headers = {{ X = {{ env = \"A\", file = \"b\" }} }}"), "not both"),
            (format!("{https}headers = {{ X = {{ env = \"A=1\" }} }}"), "the name of a variable"),
            (format!("{https}scopes = [\"a b\"]"), "words without blanks"),
            (format!("{https}client_id = \"\""), "a client ID is"),
            (format!("{https}callback_port = 0"), "a number from 1"),
            (format!("{https}callback_port = 70000"), "invalid value"),
        ];
        for (lines, expected) in table {
            let problem = server(&lines).expect_err(&lines);
            assert!(problem.contains(expected) && problem.starts_with("/c/"), "{problem}");
        }
        for lines in ["url = \"http://localhost:1/\"", "url = \"http://[::1]/\""] {
            assert!(server(lines).is_ok(), "{lines}");
        }
        assert!(server("url = \"http://a.com/\"\nallow_plain_http = true").is_ok());
    }
}
