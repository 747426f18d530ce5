//! Where journals are: a folder for each project, a file for each session, all of them the user's
//! alone.

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

/// All sessions of this user.
#[derive(Clone, Debug)]
pub struct SessionStore {
    directory: PathBuf,
}

/// Whose sessions are meant.
#[derive(Clone, Copy, Debug)]
pub enum SessionScope<'a> {
    /// Those of the project with this absolute path.
    Project(&'a Path),
    /// Those of all projects.
    All,
}

/// A session on the disk, which may be damaged.
#[derive(Clone, Debug)]
pub struct StoredSession {
    /// Its name.
    pub id: SessionId,
    /// When it was last written.
    pub modified: SystemTime,
    path: PathBuf,
}

/// A session that goes on.
pub struct OpenSession {
    /// What was said so far.
    pub transcript: Transcript,
    /// Where the rest goes.
    pub journal: SessionJournal,
    /// What calls have left to later ones, in order.
    pub state_deltas: Vec<ToolStateDelta>,
    /// Whom its newest request went to, if that is known.
    pub last_model: Option<ModelIdentity>,
    /// The model of each request so far, as far as that is known: what it used has a price.
    pub request_models: Vec<Option<String>>,
}

impl SessionStore {
    /// The sessions below a folder, which need not be there yet.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Begins a session of a project.
    pub fn create_session(
        &self,
        workspace: &Path,
        redact: RedactSecrets,
    ) -> Result<OpenSession, SessionError> {
        let folder = self.directory.join(project_key(workspace));
        for folder in [&self.directory, &folder] {
            create_private_directory(folder)?;
        }
        let header = JournalHeader::new(SessionId::random(), workspace.display().to_string());
        let journal = SessionJournal::create(&path(&folder, &header.id), &header, redact)?;
        // Only then does the file survive a power cut; a file system that cannot do it does what it
        // can.
        drop(File::open(&folder).and_then(|folder| folder.sync_all()));
        Ok(OpenSession {
            transcript: Transcript::new(),
            journal,
            state_deltas: Vec::new(),
            last_model: None,
            request_models: Vec::new(),
        })
    }

    /// Newest first.
    pub fn list(&self, scope: SessionScope<'_>) -> Result<Vec<StoredSession>, SessionError> {
        let folders = match scope {
            SessionScope::Project(workspace) => vec![self.directory.join(project_key(workspace))],
            SessionScope::All => list_directory(&self.directory)?,
        };
        let mut entries = Vec::new();
        for folder in folders {
            entries
                .extend(list_directory(&folder)?.into_iter().filter_map(StoredSession::from_path));
        }
        entries.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.id.cmp(&b.id)));
        Ok(entries)
    }

    /// Goes on with the newest session of a project in which something was said and that no other
    /// process has open. Those that one has open and that are newer are named too. If all of them
    /// are, the newest is the error.
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

    /// The one session whose name begins so.
    pub fn find(
        &self,
        scope: SessionScope<'_>,
        prefix: &str,
    ) -> Result<StoredSession, SessionError> {
        let mut meant = self.list(scope)?;
        meant.retain(|entry| !prefix.is_empty() && entry.id.as_str().starts_with(prefix));
        match (meant.pop(), meant.is_empty()) {
            (None, _) => Err(SessionError::NotFound(prefix.to_owned())),
            (Some(entry), true) => Ok(entry),
            (Some(last), false) => {
                let candidates = meant.into_iter().chain([last]).map(|entry| entry.id).collect();
                Err(SessionError::Ambiguous { prefix: prefix.to_owned(), candidates })
            }
        }
    }
}

impl StoredSession {
    /// A file that has the name of a session.
    fn from_path(path: PathBuf) -> Option<Self> {
        if path.extension()? != JOURNAL_EXTENSION {
            return None;
        }
        let id = SessionId::parse(path.file_stem()?.to_str()?)?;
        let metadata = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
        Some(Self { id, modified: metadata.modified().ok()?, path })
    }

    /// Reads it, whether or not another process is writing it.
    pub fn load(&self) -> Result<SavedSession, SessionError> {
        journal::load(&self.path)
    }

    /// Goes on with it in a workspace.
    pub fn resume(
        &self,
        workspace: &Path,
        redact: RedactSecrets,
    ) -> Result<OpenSession, SessionError> {
        if let Some(folder) = self.path.parent() {
            create_private_directory(folder)?;
        }
        let (journal, saved) =
            SessionJournal::open(&self.path, &self.id, &workspace.display().to_string(), redact)?;
        let held_with = saved.last_model();
        let models = saved.requests.into_iter().map(|request| request.model).collect();
        Ok(OpenSession {
            transcript: saved.transcript,
            journal,
            state_deltas: saved.state_deltas,
            last_model: held_with,
            request_models: models,
        })
    }

    /// The file.
    pub fn journal_path(&self) -> &Path {
        &self.path
    }

    /// Removes it for good, with the whole outputs of its calls.
    pub fn delete(&self) -> Result<(), SessionError> {
        journal::delete_files(&self.path, &self.id)
    }
}

fn path(folder: &Path, id: &SessionId) -> PathBuf {
    folder.join(format!("{id}.{JOURNAL_EXTENSION}"))
}

/// The last part of the path, for people, and a digest of the whole, which is what tells two
/// projects apart.
fn project_key(workspace: &Path) -> String {
    let name = workspace.file_name().unwrap_or_default().to_string_lossy();
    let name: String =
        name.chars().filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c)).take(40).collect();
    let digest = Sha256::digest(workspace.as_os_str().as_bytes());
    let digest: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{digest}", name.trim_start_matches('.'))
}

/// What a folder holds; nothing if it is not there.
fn list_directory(folder: &Path) -> Result<Vec<PathBuf>, SessionError> {
    match fs::read_dir(folder) {
        Ok(children) => children
            .map(|child| child.map(|child| child.path()).map_err(SessionError::io(folder)))
            .collect(),
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(Vec::new())
        }
        Err(error) => Err(SessionError::io(folder)(error)),
    }
}

/// Makes a folder with mode 0700; one that is there has to be this user's alone.
fn create_private_directory(folder: &Path) -> Result<(), SessionError> {
    private_dir::create(folder).map_err(|problem| match problem {
        PrivateDirError::Io(error) => SessionError::io(folder)(error),
        PrivateDirError::NotPrivate(problem) => {
            SessionError::NotPrivate { path: folder.to_owned(), reason: problem }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::process::{Command, Stdio};

    use super::super::scripted_run::{WORKSPACE, only_session, session_with_every_event};
    use super::*;

    fn no_redaction() -> RedactSecrets {
        Box::new(str::to_owned)
    }

    fn new_store(folder: &tempfile::TempDir) -> SessionStore {
        SessionStore::new(folder.path().join("sessions"))
    }

    fn create(store: &SessionStore, workspace: &str) -> SessionId {
        store
            .create_session(Path::new(workspace), no_redaction())
            .expect("created")
            .journal
            .id()
            .clone()
    }

    #[test]
    fn r109_files_are_0600_in_folders_of_0700() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = new_store(&folder);
        create(&store, WORKSPACE);
        let entry = only_session(&store);
        let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o777;
        assert_eq!(mode(entry.journal_path()), 0o600);
        assert_eq!(mode(entry.journal_path().parent().expect("a folder")), 0o700);
        assert_eq!(mode(&store.directory), 0o700);
        fs::set_permissions(&store.directory, fs::Permissions::from_mode(0o755))
            .expect("it is ours");
        assert!(matches!(
            store.create_session(Path::new(WORKSPACE), no_redaction()),
            Err(SessionError::NotPrivate { .. })
        ));
    }

    #[test]
    fn r109_a_session_that_others_can_write_is_not_loaded() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = new_store(&folder);
        create(&store, WORKSPACE);
        let entry = only_session(&store);
        fs::set_permissions(entry.journal_path(), fs::Permissions::from_mode(0o666))
            .expect("it is ours");
        let refused = entry
            .resume(Path::new(WORKSPACE), no_redaction())
            .map(|_| ())
            .expect_err("anybody can have written it");
        assert!(
            refused.to_string().contains("can be written by others, so nothing was loaded"),
            "{refused}"
        );
        fs::set_permissions(entry.journal_path(), fs::Permissions::from_mode(0o600))
            .expect("it is ours");
        drop(entry.resume(Path::new(WORKSPACE), no_redaction()).expect("it is the user's alone"));
    }

    #[test]
    fn r109_two_never_write_one_session() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = new_store(&folder);
        let first = store.create_session(Path::new(WORKSPACE), no_redaction()).expect("created");
        let entry = only_session(&store);
        let refused = entry
            .resume(Path::new(WORKSPACE), no_redaction())
            .map(|_| ())
            .expect_err("it is in use");
        assert!(matches!(&refused, SessionError::InUse(id) if *id == entry.id), "{refused}");
        assert!(refused.to_string().contains(entry.id.as_str()), "{refused}");
        assert!(matches!(entry.delete(), Err(SessionError::InUse(_))));
        drop(first);
        drop(entry.resume(Path::new(WORKSPACE), no_redaction()).expect("nobody has it now"));
    }

    #[test]
    fn r109_a_child_that_lives_on_does_not_keep_the_lock() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = new_store(&folder);
        let session = store.create_session(Path::new(WORKSPACE), no_redaction()).expect("created");
        let mut child =
            Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("it starts");
        drop(session);
        let resumed = only_session(&store).resume(Path::new(WORKSPACE), no_redaction()).map(|_| ());
        child.kill().and_then(|()| child.wait()).expect("it ends");
        resumed.expect("the child has no part in it");
    }

    #[test]
    fn r109_a_session_that_was_deleted_is_not_written_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = new_store(&folder);
        create(&store, WORKSPACE);
        let entry = only_session(&store);
        let file = fs::OpenOptions::new().append(true).open(entry.journal_path()).expect("there");
        entry.delete().expect("nobody has it");
        assert!(matches!(
            journal::lock_file(file, entry.journal_path(), &entry.id),
            Err(SessionError::Deleted(_))
        ));
        assert!(store.list(SessionScope::All).expect("readable").is_empty());
    }

    #[test]
    fn r114_whole_outputs_go_with_their_session() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = new_store(&folder);
        let outputs = || {
            let session =
                store.create_session(Path::new(WORKSPACE), no_redaction()).expect("created");
            private_dir::create(session.journal.outputs_directory()).expect("made");
            fs::write(session.journal.outputs_directory().join("bash-1.txt"), "all of it")
                .expect("written");
            (session.journal.id().clone(), session.journal.outputs_directory().to_owned())
        };
        let ((id, of_it), (_, of_another)) = (outputs(), outputs());
        assert_eq!(
            store.list(SessionScope::All).expect("readable").len(),
            2,
            "a folder of outputs is no session"
        );
        store.find(SessionScope::All, id.as_str()).expect("there").delete().expect("nobody has it");
        assert_eq!((of_it.exists(), of_another.join("bash-1.txt").exists()), (false, true));
    }

    #[test]
    fn r113_sessions_belong_to_their_project() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = new_store(&folder);
        let (here, there) = (create(&store, "/a/project"), create(&store, "/b/project"));
        let ids = |scope| {
            store
                .list(scope)
                .expect("readable")
                .into_iter()
                .map(|entry| entry.id)
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(SessionScope::Project(Path::new("/a/project"))), [here]);
        assert_eq!(
            ids(SessionScope::Project(Path::new("/b/project"))),
            std::slice::from_ref(&there)
        );
        assert_eq!(ids(SessionScope::Project(Path::new("/c"))), []);
        assert_eq!(ids(SessionScope::All).len(), 2);
        let not_here = store.find(SessionScope::Project(Path::new("/a/project")), there.as_str());
        assert!(matches!(not_here, Err(SessionError::NotFound(_))));
    }

    #[test]
    fn r113_the_newest_comes_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = new_store(&folder);
        for age in [30, 10, 20] {
            let id = create(&store, WORKSPACE);
            let entry = store.find(SessionScope::All, id.as_str()).expect("it is there");
            let file =
                fs::OpenOptions::new().append(true).open(entry.journal_path()).expect("there");
            file.set_modified(SystemTime::now() - std::time::Duration::from_secs(age))
                .expect("it is ours");
        }
        let ages: Vec<_> = store
            .list(SessionScope::All)
            .expect("readable")
            .iter()
            .map(|e| e.modified.elapsed().expect("past").as_secs() / 10)
            .collect();
        assert_eq!(ages, [1, 2, 3]);
    }

    #[test]
    fn r111_a_session_without_an_end_is_not_read_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = new_store(&folder);
        create(&store, WORKSPACE);
        let entry = only_session(&store);
        let file = fs::OpenOptions::new().append(true).open(entry.journal_path()).expect("there");
        file.set_len(1 << 30).expect("it can be sparse");
        for refused in
            [entry.load().map(drop), entry.resume(Path::new(WORKSPACE), no_redaction()).map(drop)]
        {
            let problem = refused.expect_err("it is too long").to_string();
            assert!(
                problem.contains("has 1024 MiB, more than the 1 MiB that are read"),
                "{problem}"
            );
        }
    }

    #[test]
    fn r113_a_prefix_must_be_unique() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = new_store(&folder);
        create(&store, WORKSPACE);
        let entry = only_session(&store);
        let place = entry.journal_path().parent().expect("a folder").to_owned();
        for name in [
            "aaaa00000000.jsonl",
            "aaab00000000.jsonl",
            "not-a-session.jsonl",
            "aaaa.jsonl",
            "aaaa00000000.txt",
        ] {
            fs::write(place.join(name), "").expect("writable");
        }
        let find = |prefix: &str| {
            store
                .find(SessionScope::All, prefix)
                .map(|entry| entry.id.to_string())
                .map_err(|error| error.to_string())
        };
        assert_eq!(find("aaab"), Ok("aaab00000000".into()));
        let ambiguous = find("aaa").expect_err("there are two");
        assert!(
            ambiguous.contains("aaaa00000000") && ambiguous.contains("aaab00000000"),
            "{ambiguous}"
        );
        for prefix in ["", "AAAA", "../", "not-a", "aaaa000000000"] {
            assert!(
                find(prefix).is_err_and(|error| error.contains("no session begins with")),
                "{prefix}"
            );
        }
    }

    #[tokio::test]
    async fn the_newest_session_is_one_in_which_something_was_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, eventful, _) = session_with_every_event(folder.path()).await;
        create(&store, WORKSPACE);
        let newest = |workspace: &str| store.resume_newest(Path::new(workspace), no_redaction);
        let (session, open) = newest(WORKSPACE).expect("there is one");
        assert_eq!((session.journal.id(), open), (&eventful.id, Vec::new()));
        // The model of each request goes along, so that its price is known.
        assert_eq!(session.request_models.len(), session.transcript.exchanges().len());
        assert!(matches!(newest("/elsewhere").map(drop), Err(SessionError::NoSessions)));
        // It is the only one, and open.
        assert!(
            matches!(newest(WORKSPACE).map(drop), Err(SessionError::InUse(id)) if id == eventful.id)
        );
    }

    #[tokio::test]
    async fn r111_a_damaged_session_is_reported_and_left_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, entry, _) = session_with_every_event(folder.path()).await;
        let text = fs::read_to_string(entry.journal_path()).expect("readable").replacen(
            "{\"started\"",
            "{\"startet\"",
            1,
        ) + "{\"torn";
        fs::write(entry.journal_path(), &text).expect("writable");
        let line =
            text.lines().position(|line| line.starts_with("{\"startet\"")).expect("it is there")
                + 1;
        let refused = entry
            .resume(Path::new(WORKSPACE), no_redaction())
            .map(|_| ())
            .expect_err("it is damaged");
        assert!(
            matches!(&refused, SessionError::Damaged { line: told, .. } if *told == line),
            "{refused}"
        );
        let newest = store.resume_newest(Path::new(WORKSPACE), no_redaction).map(drop);
        assert!(
            matches!(newest, Err(SessionError::Damaged { .. })),
            "the next older one is not taken instead"
        );
        assert_eq!(fs::read_to_string(entry.journal_path()).expect("readable"), text);
    }
}
