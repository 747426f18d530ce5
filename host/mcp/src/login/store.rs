//! The tokens of logins, in files that only the owner can read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use cofferdam::own_file;
use cofferdam::policy::HttpUrl;
use cofferdam::private_dir::{self, PrivateDirError};
use serde::{Deserialize, Serialize};

use super::metadata::IssuerMetadata;
use super::registration::RegisteredClient;
use super::token::TokenSet;

/// The largest file, in bytes.
const MAX_FILE_LEN: u64 = 256 << 10;
/// The version of the format.
const VERSION: u32 = 1;

/// The directory with the tokens of all logins.
#[derive(Clone, Debug)]
pub struct LoginStore {
    directory: PathBuf,
}

/// A login to one server, with its tokens.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StoredLogin {
    pub(super) version: u32,
    /// The URL of the server that the tokens are sent to.
    pub server: String,
    /// The server as the tokens name it.
    pub resource: String,
    /// The login server that issued the tokens.
    pub issuer: String,
    pub(super) token_endpoint: String,
    pub(super) client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client_secret: Option<String>,
    #[serde(default)]
    pub(super) password_in_form: bool,
    pub(super) access_token: String,
    /// The end of the access token, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refresh_token: Option<String>,
    /// The scopes of the tokens.
    #[serde(default)]
    pub scopes: Vec<String>,
}

/// Why the tokens of a login cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoginStoreError {
    /// The directory or a file is accessible to others.
    #[error("{0} {1}, so it is not used")]
    NotPrivate(String, String),
    /// A file cannot be read or written.
    #[error("cannot use {0}: {1}")]
    Io(String, #[source] io::Error),
    /// A file has another content than this program writes.
    #[error("{0} is damaged; `cofferdam mcp logout` removes it")]
    Damaged(String),
}

impl StoredLogin {
    /// Binds tokens to their server and their issuer.
    pub(super) fn new(
        server: &HttpUrl,
        resource: &str,
        issuer: &IssuerMetadata,
        client: RegisteredClient,
        tokens: TokenSet,
        scopes: Vec<String>,
    ) -> Self {
        Self {
            version: VERSION,
            server: server.to_string(),
            resource: resource.to_owned(),
            issuer: issuer.issuer.clone(),
            token_endpoint: issuer.token_endpoint.to_string(),
            client_id: client.id,
            client_secret: client.secret,
            password_in_form: issuer.takes_password_in_form,
            access_token: tokens.access_token,
            expires_at: tokens.expires_at,
            refresh_token: tokens.refresh_token,
            scopes,
        }
    }
}

impl std::fmt::Debug for StoredLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredLogin")
            .field("server", &self.server)
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}

impl LoginStore {
    /// Creates a store in a directory of the user. Nothing is created yet.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Returns the file of a server. Names of servers have only letters, digits, `_` and `-`.
    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }

    /// Reads the login to a server. A login to another URL of the same name does not count.
    ///
    /// # Errors
    ///
    /// The file is damaged, or accessible to others.
    pub fn read(
        &self,
        name: &str,
        server: &HttpUrl,
    ) -> Result<Option<StoredLogin>, LoginStoreError> {
        let path = self.file(name);
        let failed = |error| LoginStoreError::Io(path.display().to_string(), error);
        match private_dir::check(&self.directory) {
            Ok(()) => {}
            Err(PrivateDirError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(self.not_private(error)),
        }
        let file = match own_file::open(&path, MAX_FILE_LEN) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        if file.metadata().map_err(failed)?.mode() & 0o077 != 0 {
            let problem = "is readable by other users".to_owned();
            return Err(LoginStoreError::NotPrivate(path.display().to_string(), problem));
        }
        let bytes = own_file::read(&path, MAX_FILE_LEN).map_err(failed)?;
        let login: Option<StoredLogin> = serde_json::from_slice(&bytes).ok();
        let login = login.filter(|login| login.version == VERSION);
        let login = login.ok_or_else(|| LoginStoreError::Damaged(path.display().to_string()))?;
        Ok((login.server == server.to_string()).then_some(login))
    }

    /// Replaces the login to a server at once.
    ///
    /// # Errors
    ///
    /// The directory is accessible to others, or the file cannot be written.
    pub fn write(&self, name: &str, login: &StoredLogin) -> Result<(), LoginStoreError> {
        private_dir::create(&self.directory).map_err(|error| self.not_private(error))?;
        let path = self.file(name);
        let failed = |error| LoginStoreError::Io(path.display().to_string(), error);
        let text = serde_json::to_vec(login).map_err(|error| failed(error.into()))?;
        let new = self.directory.join(format!(".{name}.{}.new", std::process::id()));
        // What a program left here when it was ended.
        let _ = fs::remove_file(&new);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let written = options.open(&new).and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(&self.directory)?.sync_all()
        });
        written.map_err(|error| {
            let _ = fs::remove_file(&new);
            failed(error)
        })
    }

    /// Removes the login to a server. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// The file cannot be removed.
    pub fn remove(&self, name: &str) -> Result<bool, LoginStoreError> {
        let path = self.file(name);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(LoginStoreError::Io(path.display().to_string(), error)),
        }
    }

    /// Locks the login to a server until the file is closed, so that two programs do not refresh
    /// the same token. Blocks.
    pub(super) fn lock(&self, name: &str) -> Result<File, LoginStoreError> {
        private_dir::create(&self.directory).map_err(|error| self.not_private(error))?;
        let path = self.directory.join(format!("{name}.lock"));
        let failed = |error| LoginStoreError::Io(path.display().to_string(), error);
        let file = own_file::open_lock(&path).map_err(failed)?;
        file.lock().map_err(failed)?;
        Ok(file)
    }

    fn not_private(&self, error: PrivateDirError) -> LoginStoreError {
        let directory: &Path = &self.directory;
        match error {
            PrivateDirError::Io(error) => {
                LoginStoreError::Io(directory.display().to_string(), error)
            }
            PrivateDirError::NotPrivate(problem) => {
                LoginStoreError::NotPrivate(directory.display().to_string(), problem.to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn login(server: &str) -> StoredLogin {
        StoredLogin {
            version: VERSION,
            server: server.to_owned(),
            resource: server.to_owned(),
            issuer: "https://login.example.com".to_owned(),
            token_endpoint: "https://login.example.com/token".to_owned(),
            client_id: "me".to_owned(),
            client_secret: None,
            password_in_form: false,
            access_token: "very-secret".to_owned(),
            expires_at: Some(1),
            refresh_token: Some("more-secret".to_owned()),
            scopes: vec!["read".to_owned()],
        }
    }

    #[test]
    fn only_the_owner_can_read_a_login_and_only_its_server_gets_it() {
        let temp = tempfile::tempdir().expect("a directory");
        let store = LoginStore::new(temp.path().join("state/mcp-logins"));
        let url = |text: &str| HttpUrl::parse(text).expect(text);
        let server = url("https://a.com/mcp");
        assert_eq!(store.read("a", &server).expect("nothing is there"), None);
        let stored = login("https://a.com/mcp");
        store.write("a", &stored).expect("it is written");
        store.write("a", &stored).expect("it is written again");
        assert_eq!(store.read("a", &server).expect("it is read"), Some(stored.clone()));
        for other in ["https://b.com/mcp", "https://a.com/other", "https://a.com:444/mcp"] {
            assert_eq!(store.read("a", &url(other)).expect("it is read"), None, "{other}");
        }
        let (directory, file) = (temp.path().join("state/mcp-logins"), store.file("a"));
        let mode = |path: &Path| fs::metadata(path).expect("it is there").mode() & 0o777;
        assert_eq!((mode(&directory), mode(&file)), (0o700, 0o600));
        assert_eq!(fs::read_dir(&directory).expect("it is there").count(), 1);
        assert!(!format!("{stored:?}").contains("secret"));
        let set_mode = |path: &Path, mode: u32| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
        };
        for mode in [0o640, 0o604, 0o666] {
            set_mode(&file, mode);
            assert!(store.read("a", &server).is_err(), "{mode:o}");
        }
        set_mode(&file, 0o600);
        set_mode(&directory, 0o755);
        assert!(store.read("a", &server).is_err() && store.write("a", &stored).is_err());
        set_mode(&directory, 0o700);
        assert!(store.remove("a").expect("it is removed"));
        assert!(!store.remove("a").expect("nothing to do"));
        fs::write(temp.path().join("x"), serde_json::to_vec(&stored).expect("JSON"))
            .expect("a file");
        symlink(temp.path().join("x"), &file).expect("a link");
        assert!(store.read("a", &server).is_err(), "a link is not followed");
        store.write("a", &stored).expect("the link is replaced");
        fs::write(&file, "{}").expect("it is ours");
        let error = store.read("a", &server).expect_err("it is damaged").to_string();
        assert!(error.contains("is damaged"), "{error}");
    }
}
