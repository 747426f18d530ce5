//! Adds sections `[mcp.servers.NAME]` to the configuration file of the user, and removes them.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::http_servers::{HttpServer, SecretSource};
use super::policy::replace_file;
use super::raw::{ConfigError, RawConfig};
use super::servers::{ProgramServer, ServerSettings, ServerTransport};
use super::trusted_file::{MAX_BYTES, TrustedFileError, read_own_file};
use crate::policy::FileGrant;

/// The reason why a server could not be added to the configuration file or removed from it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerEditError {
    /// The file cannot be read or cannot be trusted.
    #[error(transparent)]
    File(#[from] TrustedFileError),
    /// The file is invalid.
    #[error(transparent)]
    Invalid(#[from] ConfigError),
    /// The file has a form that the program does not change.
    #[error("{0}: the section of the server has a form that the program does not change")]
    Form(String),
    /// The file would be too large to be read again.
    #[error("{0}: the configuration would have more than {MAX_BYTES} bytes")]
    TooLarge(String),
    /// The file cannot be written.
    #[error("cannot write {0}: {1}")]
    Write(String, #[source] io::Error),
}

/// Returns the header of the section of a server.
fn header(name: &str) -> String {
    format!("[mcp.servers.{name}]")
}

impl ServerSettings {
    /// Returns the section of the server in a configuration file. Limits have their defaults.
    pub fn to_section(&self) -> String {
        let mut lines = vec![header(&self.name)];
        match &self.transport {
            ServerTransport::Program(program) => push_program(program, &mut lines),
            ServerTransport::Http(server) => push_http(server, &mut lines),
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

fn quote(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quote(text)).collect();
    format!("[{}]", texts.join(", "))
}

fn push_program(program: &ProgramServer, lines: &mut Vec<String>) {
    lines.push(format!("command = {}", quote(&program.command)));
    match program.files {
        FileGrant::None => {}
        FileGrant::Read => lines.push("workspace = \"read\"".to_owned()),
        FileGrant::ReadWrite => lines.push("workspace = \"read-write\"".to_owned()),
    }
    let read: Vec<String> =
        program.read.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let lists = [
        ("args", &program.args),
        ("network", &program.network),
        ("env", &program.env),
        ("read", &read),
    ];
    for (key, texts) in lists {
        if !texts.is_empty() {
            lines.push(format!("{key} = {}", list(texts)));
        }
    }
}

fn push_http(server: &HttpServer, lines: &mut Vec<String>) {
    lines.push(format!("url = {}", quote(&server.url.to_string())));
    let headers: Vec<String> = server
        .headers
        .iter()
        .map(|header| {
            let source = match &header.source {
                SecretSource::Variable(name) => format!("env = {}", quote(name)),
                SecretSource::File(path) => format!("file = {}", quote(&path.to_string_lossy())),
            };
            let prefix = match header.prefix.as_str() {
                "" => String::new(),
                prefix => format!(", prefix = {}", quote(prefix)),
            };
            format!("{} = {{ {source}{prefix} }}", quote(&header.name))
        })
        .collect();
    if !headers.is_empty() {
        lines.push(format!("headers = {{ {} }}", headers.join(", ")));
    }
    if !server.addresses.is_empty() {
        lines.push(format!("address = {}", list(&server.addresses)));
    }
    if server.allow_plain_http {
        lines.push("allow_plain_http = true".to_owned());
    }
    if let Some(id) = &server.login.client_id {
        lines.push(format!("client_id = {}", quote(id)));
    }
    if !server.login.scopes.is_empty() {
        lines.push(format!("scopes = {}", list(&server.login.scopes)));
    }
    if let Some(port) = server.login.callback_port {
        lines.push(format!("callback_port = {port}"));
    }
}

/// Adds the section of a server at the end of a configuration file, which is created if it does not
/// exist. Everything else in the file stays as it is. `home` is the home directory of the user.
///
/// # Errors
/// The file cannot be trusted, read or written, or it would be invalid. It is then unchanged.
pub fn add_server(
    file: &Path,
    server: &ServerSettings,
    home: Option<&Path>,
) -> Result<(), ServerEditError> {
    edit(file, home, |text, old| {
        if old.mcp.servers.keys().any(|name| *name.get_ref() == server.name) {
            return None;
        }
        let gap = match text {
            "" => "",
            _ if text.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        Some(format!("{text}{gap}{}", server.to_section()))
    })
}

/// Removes the section of a server from a configuration file. Everything else in the file stays as
/// it is. Returns whether the file had one. `home` is the home directory of the user.
///
/// # Errors
/// The file cannot be trusted, read or written, or has the section in another form. It is then
/// unchanged.
pub fn remove_server(
    file: &Path,
    name: &str,
    home: Option<&Path>,
) -> Result<bool, ServerEditError> {
    let text = read_own_file(file, "configuration")?.unwrap_or_default();
    let raw = RawConfig::parse(&text, file, home)?;
    if !raw.mcp.servers.keys().any(|known| known.get_ref() == name) {
        return Ok(false);
    }
    edit(file, home, |text, _| {
        let changed = without_section(text, &header(name))?;
        // Nothing but this server is gone.
        let mut before: toml::Table = toml::from_str(text).ok()?;
        let after: toml::Table = toml::from_str(&changed).ok()?;
        let mcp = before.get_mut("mcp")?.as_table_mut()?;
        let servers = mcp.get_mut("servers")?.as_table_mut()?;
        servers.remove(name)?;
        if servers.is_empty() {
            mcp.remove("servers");
        }
        if mcp.is_empty() {
            before.remove("mcp");
        }
        (before == after).then_some(changed)
    })?;
    Ok(true)
}

/// Removes the lines of a section, from its header to the next one.
fn without_section(text: &str, header: &str) -> Option<String> {
    let mut kept = String::with_capacity(text.len());
    let (mut is_inside, mut found) = (false, false);
    for line in text.split_inclusive('\n') {
        let code = line.split('#').next().unwrap_or_default().trim();
        if line.trim_start().starts_with('[') {
            is_inside = code == header;
            found |= is_inside;
        }
        if !is_inside {
            kept.push_str(line);
        }
    }
    let rest = kept.trim_end_matches('\n');
    found.then(|| if rest.is_empty() { String::new() } else { format!("{rest}\n") })
}

/// Changes a configuration file at once, if the result is valid.
fn edit(
    file: &Path,
    home: Option<&Path>,
    change: impl FnOnce(&str, &RawConfig) -> Option<String>,
) -> Result<(), ServerEditError> {
    let name = file.display().to_string();
    let failed = |error| ServerEditError::Write(name.clone(), error);
    // A link to the file stays a link.
    let target = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let directory = target.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(directory).map_err(failed)?;
    // Programs that change the file at the same time wait for each other.
    let locked = File::open(directory).map_err(failed)?;
    locked.lock().map_err(failed)?;
    let text = read_own_file(file, "configuration")?.unwrap_or_default();
    let old = RawConfig::parse(&text, file, home)?;
    let changed = change(&text, &old).ok_or_else(|| ServerEditError::Form(name.clone()))?;
    if changed.len() as u64 > MAX_BYTES {
        return Err(ServerEditError::TooLarge(name));
    }
    RawConfig::parse(&changed, file, home)?.servers()?;
    replace_file(&target, directory, &changed).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SecretHeader;

    fn server() -> ServerSettings {
        let args = vec!["a \"b\"".to_owned(), "$x".to_owned()];
        let mut program = ProgramServer::new("node", args);
        program.files = FileGrant::ReadWrite;
        program.network = vec!["*.example.com".to_owned()];
        program.env = vec!["TOKEN".to_owned()];
        program.read = vec!["/opt/notes".into()];
        // Limits have their defaults in a section.
        program.limits.processes = 512;
        program.limits.memory = None;
        ServerSettings::new("notes", ServerTransport::Program(program))
    }

    fn http_server() -> ServerSettings {
        let url = crate::policy::HttpUrl::parse("http://mcp.example.com:8443/mcp?a=b");
        let mut server = HttpServer::new(url.expect("a URL"));
        let variable = SecretSource::Variable("TOKEN".to_owned());
        server.headers = vec![
            SecretHeader::new("Authorization", variable, "Bearer "),
            SecretHeader::new("X-Key", SecretSource::File("/k \"1\"".into()), ""),
        ];
        server.addresses = vec!["10.0.0.5:8443".to_owned()];
        server.allow_plain_http = true;
        server.login.client_id = Some("me".to_owned());
        server.login.scopes = vec!["read".to_owned()];
        server.login.callback_port = Some(7000);
        ServerSettings::new("notes", ServerTransport::Http(server))
    }

    fn read(file: &Path) -> Vec<ServerSettings> {
        let raw = RawConfig::read(file, None).expect("it is valid");
        raw.servers().expect("they are valid")
    }

    #[test]
    fn a_server_is_added_and_removed_and_all_else_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("config.toml");
        let texts = [
            "",
            "model = \"x\" # mine",
            "# one\n[commands] # two\nminimum = \"full\"\n",
            "[mcp.servers.other]\ncommand = \"x\"\n\n[limits]\nseconds = 5\n",
        ];
        for (text, server) in
            texts.iter().flat_map(|text| [(*text, server()), (*text, http_server())])
        {
            fs::write(&file, text).expect("it is written");
            add_server(&file, &server, None).expect("it is added");
            let added = fs::read_to_string(&file).expect("it is there");
            assert!(added.starts_with(text), "{added}");
            let found = read(&file).into_iter().find(|found| found.name == "notes");
            assert_eq!(found, Some(server.clone()), "{added}");
            assert!(add_server(&file, &server, None).is_err(), "the name is taken");
            assert!(remove_server(&file, "notes", None).expect("it is removed"));
            let removed = fs::read_to_string(&file).expect("it is there");
            assert_eq!(removed.trim_end(), text.trim_end());
            assert!(!remove_server(&file, "notes", None).expect("nothing to do"));
        }
    }

    #[test]
    fn a_section_in_another_form_is_not_changed() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("config.toml");
        for text in [
            "[mcp.servers]\nnotes = { command = \"x\" }\n",
            "[mcp]\nservers.notes.command = \"x\"\n",
            "[mcp.servers.\"notes\"]\ncommand = \"x\"\n",
        ] {
            fs::write(&file, text).expect("it is written");
            let error = remove_server(&file, "notes", None).expect_err(text).to_string();
            assert!(error.contains("has a form that the program does not change"), "{error}");
            assert_eq!(fs::read_to_string(&file).expect("it is there"), text);
        }
        fs::write(&file, "unknown = 1\n").expect("it is written");
        assert!(add_server(&file, &server(), None).is_err());
    }
}
