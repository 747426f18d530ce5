//! The store of session logs: a directory for each project, a file for each session.
//!
//! Only the user can access the directories and files.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use super::fold::SavedSession;
use super::journal::{self, RedactSecrets, SessionJournal};
use super::record::JournalHeader;
use super::{ModelIdentity, SessionError, SessionId};
use crate::agent::events::ToolStateDelta;
use crate::conversation::Transcript;
use crate::private_dir::{self, PrivateDirError};

const JOURNAL_EXTENSION: &str = "jsonl";

/// The store of all sessions of this user.
#[derive(Clone, Debug)]
pub struct SessionStore {
    directory: PathBuf,
}

/// The projects whose sessions are listed or searched.
#[derive(Clone, Copy, Debug)]
pub enum SessionScope<'a> {
    /// The sessions of the project with this absolute path.
    Project(&'a Path),
    /// The sessions of all projects.
    All,
}

/// A session file on the disk, which may be damaged.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredSession {
    /// The ID of the session.
    pub id: SessionId,
    /// The time at which the file was last written.
    pub modified: SystemTime,
    path: PathBuf,
}

/// A session that is open for writing.
#[non_exhaustive]
pub struct OpenSession {
    /// The conversation so far.
    pub transcript: Transcript,
    /// The session log, which receives the new records.
    pub journal: SessionJournal,
    /// The changes to tool state so far, in order.
    pub state_deltas: Vec<ToolStateDelta>,
    /// The model that received the newest request, if it is known.
    pub last_model: Option<ModelIdentity>,
    /// The model of each request so far, if it is known, to compute the cost.
    pub request_models: Vec<Option<String>>,
}

impl SessionStore {
    /// Creates a store for a directory, which does not have to exist yet.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Creates a new session for a project.
    ///
    /// # Errors
    /// The directory or the file cannot be created, or other users have access to the directory.
    pub fn create_session(
        &self,
        workspace: &Path,
        redact: RedactSecrets,
    ) -> Result<OpenSession, SessionError> {
        let project_directory = self.directory.join(project_key(workspace));
        for directory in [&self.directory, &project_directory] {
            create_private_directory(directory)?;
        }
        let header = JournalHeader::new(SessionId::random(), workspace.display().to_string());
        let path = journal_path(&project_directory, &header.id);
        let journal = SessionJournal::create(&path, &header, redact)?;
        // The file survives a power failure only after this. An error is ignored, since some file
        // systems do not support it.
        let _ = File::open(&project_directory).and_then(|directory| directory.sync_all());
        Ok(OpenSession {
            transcript: Transcript::new(),
            journal,
            state_deltas: Vec::new(),
            last_model: None,
            request_models: Vec::new(),
        })
    }

    /// Lists the sessions, newest first.
    ///
    /// # Errors
    /// A directory of the store cannot be read, or other users have access to it.
    pub fn list(&self, scope: SessionScope<'_>) -> Result<Vec<StoredSession>, SessionError> {
        let all = list_directory(&self.directory)?;
        let directories = match scope {
            SessionScope::Project(workspace) => {
                let project = self.directory.join(project_key(workspace));
                all.into_iter().filter(|path| *path == project).collect()
            }
            SessionScope::All => all,
        };
        let mut entries = Vec::new();
        for directory in directories {
            entries.extend(
                list_directory(&directory)?.into_iter().filter_map(StoredSession::from_path),
            );
        }
        entries.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.id.cmp(&b.id)));
        Ok(entries)
    }

    /// Resumes the newest session of a project that has a request and is not in use.
    ///
    /// Also returns the IDs of newer sessions that another process has open.
    ///
    /// # Errors
    /// There is no such session, or one of them is damaged. If all of them are in use, the error
    /// names the newest.
    pub fn resume_newest(
        &self,
        workspace: &Path,
        redact: impl Fn() -> RedactSecrets,
    ) -> Result<(OpenSession, Vec<SessionId>), SessionError> {
        let mut open = Vec::new();
        for entry in self.list(SessionScope::Project(workspace))? {
            if entry.load()?.requests.is_empty() {
                continue;
            }
            match entry.resume(workspace, redact()) {
                Ok(session) => return Ok((session, open)),
                Err(SessionError::InUse(id)) => open.push(id),
                Err(error) => return Err(error),
            }
        }
        Err(open.into_iter().next().map_or(SessionError::NoSessions, SessionError::InUse))
    }

    /// Finds the only session whose ID begins with a prefix.
    ///
    /// # Errors
    /// No session has such an ID, or several do.
    pub fn find(
        &self,
        scope: SessionScope<'_>,
        prefix: &str,
    ) -> Result<StoredSession, SessionError> {
        let mut matches = self.list(scope)?;
        matches.retain(|entry| !prefix.is_empty() && entry.id.as_str().starts_with(prefix));
        match (matches.pop(), matches.is_empty()) {
            (None, _) => Err(SessionError::NotFound(prefix.to_owned())),
            (Some(entry), true) => Ok(entry),
            (Some(last), false) => {
                let candidates = matches.into_iter().chain([last]).map(|entry| entry.id).collect();
                Err(SessionError::Ambiguous { prefix: prefix.to_owned(), candidates })
            }
        }
    }
}

impl StoredSession {
    /// Returns the session of a file; `None` if the file does not have the name of a session.
    fn from_path(path: PathBuf) -> Option<Self> {
        if path.extension()? != JOURNAL_EXTENSION {
            return None;
        }
        let id = SessionId::parse(path.file_stem()?.to_str()?)?;
        let metadata = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
        Some(Self { id, modified: metadata.modified().ok()?, path })
    }

    /// Reads the session, even while another process is writing it.
    ///
    /// # Errors
    /// The file cannot be read, is damaged or is too new.
    pub fn load(&self) -> Result<SavedSession, SessionError> {
        journal::load(&self.path)
    }

    /// Opens the session to continue it in a workspace.
    ///
    /// # Errors
    /// The session is in use, damaged, too new, or accessible to other users.
    pub fn resume(
        &self,
        workspace: &Path,
        redact: RedactSecrets,
    ) -> Result<OpenSession, SessionError> {
        // The directory of the project, and that of all sessions.
        for directory in self.path.ancestors().skip(1).take(2) {
            create_private_directory(directory)?;
        }
        let (journal, saved) =
            SessionJournal::open(&self.path, &self.id, &workspace.display().to_string(), redact)?;
        let last_model = saved.last_model();
        let request_models = saved.requests.into_iter().map(|request| request.model).collect();
        Ok(OpenSession {
            transcript: saved.transcript,
            journal,
            state_deltas: saved.state_deltas,
            last_model,
            request_models,
        })
    }

    /// Returns the path of the session file.
    pub fn journal_path(&self) -> &Path {
        &self.path
    }

    /// Deletes the session permanently, with the complete outputs of its calls.
    ///
    /// # Errors
    /// The session is in use, or a file cannot be deleted.
    pub fn delete(&self) -> Result<(), SessionError> {
        journal::delete_files(&self.path, &self.id)
    }
}

fn journal_path(directory: &Path, id: &SessionId) -> PathBuf {
    directory.join(format!("{id}.{JOURNAL_EXTENSION}"))
}

/// Returns the name of the directory for a project.
///
/// It consists of the last part of the path, for people, and a digest of the whole path, which
/// makes it unique.
fn project_key(workspace: &Path) -> String {
    let name = workspace.file_name().unwrap_or_default().to_string_lossy();
    let name: String =
        name.chars().filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c)).take(40).collect();
    let digest = Sha256::digest(workspace.as_os_str().as_bytes());
    let digest: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{digest}", name.trim_start_matches('.'))
}

/// Lists the paths in a directory that only the user can access. A missing directory and a file
/// count as empty.
fn list_directory(directory: &Path) -> Result<Vec<PathBuf>, SessionError> {
    let is_other = |error: &std::io::Error| {
        matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
    };
    match fs::symlink_metadata(directory) {
        Ok(found) if found.is_file() => return Ok(Vec::new()),
        Err(error) if is_other(&error) => return Ok(Vec::new()),
        Ok(_) | Err(_) => {
            private_dir::check(directory).map_err(|problem| privacy_error(directory, problem))?;
        }
    }
    match fs::read_dir(directory) {
        Ok(children) => children
            .map(|child| child.map(|child| child.path()).map_err(SessionError::io(directory)))
            .collect(),
        Err(error) if is_other(&error) => Ok(Vec::new()),
        Err(error) => Err(SessionError::io(directory)(error)),
    }
}

/// Creates a directory with mode 0700, or checks that the existing one is private to the user.
fn create_private_directory(directory: &Path) -> Result<(), SessionError> {
    private_dir::create(directory).map_err(|problem| privacy_error(directory, problem))
}

fn privacy_error(directory: &Path, problem: PrivateDirError) -> SessionError {
    match problem {
        PrivateDirError::Io(error) => SessionError::io(directory)(error),
        PrivateDirError::NotPrivate(reason) => {
            SessionError::NotPrivate { path: directory.to_owned(), reason }
        }
    }
}

#[cfg(test)]
mod tests;
