//! Adds sections `[mcp.servers.NAME]` to the configuration file of the user, and removes them.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::policy::replace_file;
use super::raw::{ConfigError, RawConfig};
use super::servers::ServerSettings;
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
    /// Creates the settings of a program without permissions.
    pub fn for_program(name: &str, command: &str, args: Vec<String>) -> Self {
        Self {
            name: name.to_owned(),
            command: command.to_owned(),
            args,
            files: FileGrant::None,
            network: Vec::new(),
            env: Vec::new(),
            read: Vec::new(),
            limits: crate::policy::CommandLimits::default(),
        }
    }

    /// Returns the section of the server in a configuration file. Limits have their defaults.
    pub fn to_section(&self) -> String {
        let quote = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let list = |texts: &mut dyn Iterator<Item = String>| {
            let texts: Vec<String> = texts.map(|text| quote(&text)).collect();
            format!("[{}]", texts.join(", "))
        };
        let mut lines = vec![header(&self.name)];
        lines.push(format!("command = {}", quote(&self.command)));
        if !self.args.is_empty() {
            lines.push(format!("args = {}", list(&mut self.args.iter().cloned())));
        }
        match self.files {
            FileGrant::None => {}
            FileGrant::Read => lines.push("workspace = \"read\"".to_owned()),
            FileGrant::ReadWrite => lines.push("workspace = \"read-write\"".to_owned()),
        }
        let read: Vec<String> =
            self.read.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        for (key, texts) in [("network", &self.network), ("env", &self.env), ("read", &read)] {
            if !texts.is_empty() {
                lines.push(format!("{key} = {}", list(&mut texts.iter().cloned())));
            }
        }
        lines.push(String::new());
        lines.join("\n")
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

    fn server() -> ServerSettings {
        let args = vec!["a \"b\"".to_owned(), "$x".to_owned()];
        let mut server = ServerSettings::for_program("notes", "node", args);
        server.files = FileGrant::ReadWrite;
        server.network = vec!["*.example.com".to_owned()];
        server.env = vec!["TOKEN".to_owned()];
        server.read = vec!["/opt/notes".into()];
        server
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
        for text in texts {
            fs::write(&file, text).expect("it is written");
            add_server(&file, &server(), None).expect("it is added");
            let added = fs::read_to_string(&file).expect("it is there");
            assert!(added.starts_with(text), "{added}");
            let found = read(&file).into_iter().find(|found| found.name == "notes");
            let found = found.expect("it is there");
            assert_eq!(found.command_text(), server().command_text());
            assert_eq!(found.network, server().network);
            assert_eq!((&found.env, &found.read), (&server().env, &server().read));
            assert_eq!(found.files, FileGrant::ReadWrite);
            assert!(add_server(&file, &server(), None).is_err(), "the name is taken");
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
