//! Where journals are: a folder for each project, a file for each session, all of them the user's alone.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use super::fold::Saved;
use super::journal::{self, Journal, Redact};
use super::record::Header;
use super::{HeldWith, SessionError, SessionId};
use crate::agent::events::Remembered;
use crate::conversation::Transcript;
use crate::private::{self, NotPrivate};

const ENDING: &str = "jsonl";

/// All sessions of this user.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

/// Whose sessions are meant.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// Those of the project with this absolute path.
    Project(&'a Path),
    /// Those of all projects.
    All,
}

/// A session on the disk, which may be damaged.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name.
    pub id: SessionId,
    /// When it was last written.
    pub changed: SystemTime,
    path: PathBuf,
}

/// A session that goes on.
pub struct Session {
    /// What was said so far.
    pub transcript: Transcript,
    /// Where the rest goes.
    pub journal: Journal,
    /// What calls have left to later ones, in order.
    pub remembered: Vec<Remembered>,
    /// Whom its newest request went to, if that is known.
    pub held_with: Option<HeldWith>,
    /// The model of each request so far, as far as that is known: what it used has a price.
    pub models: Vec<Option<String>>,
}

impl Store {
    /// The sessions below a folder, which need not be there yet.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Begins a session of a project.
    pub fn create(&self, workspace: &Path, redact: Redact) -> Result<Session, SessionError> {
        let folder = self.root.join(project_key(workspace));
        for folder in [&self.root, &folder] {
            make_private(folder)?;
        }
        let header = Header::new(SessionId::random(), workspace.display().to_string());
        let journal = Journal::create(&path(&folder, &header.id), &header, redact)?;
        // Only then does the file survive a power cut; a file system that cannot do it does what it can.
        drop(File::open(&folder).and_then(|folder| folder.sync_all()));
        Ok(Session { transcript: Transcript::new(), journal, remembered: Vec::new(), held_with: None, models: Vec::new() })
    }

    /// Newest first.
    pub fn list(&self, scope: Scope<'_>) -> Result<Vec<Entry>, SessionError> {
        let folders = match scope {
            Scope::Project(workspace) => vec![self.root.join(project_key(workspace))],
            Scope::All => children(&self.root)?,
        };
        let mut entries = Vec::new();
        for folder in folders {
            entries.extend(children(&folder)?.into_iter().filter_map(Entry::at));
        }
        entries.sort_by(|a, b| b.changed.cmp(&a.changed).then_with(|| a.id.cmp(&b.id)));
        Ok(entries)
    }

    /// Goes on with the newest session of a project in which something was said and that no other process has open. Those that one
    /// has open and that are newer are named too. If all of them are, the newest is the error.
    pub fn resume_newest(&self, workspace: &Path, redact: impl Fn() -> Redact) -> Result<(Session, Vec<SessionId>), SessionError> {
        let mut open = Vec::new();
        for entry in self.list(Scope::Project(workspace))? {
            if entry.look()?.requests.is_empty() {
                continue;
            }
            match entry.resume(workspace, redact()) {
                Ok(session) => return Ok((session, open)),
                Err(SessionError::InUse(id)) => open.push(id),
                Err(error) => return Err(error),
            }
        }
        Err(open.into_iter().next().map_or(SessionError::NoneYet, SessionError::InUse))
    }

    /// The one session whose name begins so.
    pub fn find(&self, scope: Scope<'_>, prefix: &str) -> Result<Entry, SessionError> {
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

impl Entry {
    /// A file that has the name of a session.
    fn at(path: PathBuf) -> Option<Self> {
        if path.extension()? != ENDING {
            return None;
        }
        let id = SessionId::parse(path.file_stem()?.to_str()?)?;
        let metadata = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
        Some(Self { id, changed: metadata.modified().ok()?, path })
    }

    /// Reads it, whether or not another process is writing it.
    pub fn look(&self) -> Result<Saved, SessionError> {
        journal::look(&self.path)
    }

    /// Goes on with it in a workspace.
    pub fn resume(&self, workspace: &Path, redact: Redact) -> Result<Session, SessionError> {
        if let Some(folder) = self.path.parent() {
            make_private(folder)?;
        }
        let (journal, saved) = Journal::open(&self.path, &self.id, &workspace.display().to_string(), redact)?;
        let held_with = saved.held_with();
        let models = saved.requests.into_iter().map(|request| request.model).collect();
        Ok(Session { transcript: saved.transcript, journal, remembered: saved.remembered, held_with, models })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it for good, with the whole outputs of its calls.
    pub fn delete(&self) -> Result<(), SessionError> {
        journal::delete(&self.path, &self.id)
    }
}

fn path(folder: &Path, id: &SessionId) -> PathBuf {
    folder.join(format!("{id}.{ENDING}"))
}

/// The last part of the path, for people, and a digest of the whole, which is what tells two projects apart.
fn project_key(workspace: &Path) -> String {
    let name = workspace.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c)).take(40).collect();
    let digest = Sha256::digest(workspace.as_os_str().as_bytes());
    let digest: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{digest}", name.trim_start_matches('.'))
}

/// What a folder holds; nothing if it is not there.
fn children(folder: &Path) -> Result<Vec<PathBuf>, SessionError> {
    match fs::read_dir(folder) {
        Ok(children) => children.map(|child| child.map(|child| child.path()).map_err(SessionError::io(folder))).collect(),
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => Ok(Vec::new()),
        Err(error) => Err(SessionError::io(folder)(error)),
    }
}

/// Makes a folder with mode 0700; one that is there has to be this user's alone.
fn make_private(folder: &Path) -> Result<(), SessionError> {
    private::folder(folder).map_err(|problem| match problem {
        NotPrivate::Io(error) => SessionError::io(folder)(error),
        NotPrivate::Is(problem) => SessionError::NotPrivate { path: folder.to_owned(), problem },
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::process::{Command, Stdio};

    use super::super::test_run::{WORKSPACE, eventful, only};
    use super::*;

    fn plain() -> Redact {
        Box::new(str::to_owned)
    }

    fn store(folder: &tempfile::TempDir) -> Store {
        Store::new(folder.path().join("sessions"))
    }

    fn create(store: &Store, workspace: &str) -> SessionId {
        store.create(Path::new(workspace), plain()).expect("created").journal.id().clone()
    }

    #[test]
    fn r109_files_are_0600_in_folders_of_0700() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        create(&store, WORKSPACE);
        let entry = only(&store);
        let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o777;
        assert_eq!(mode(entry.path()), 0o600);
        assert_eq!(mode(entry.path().parent().expect("a folder")), 0o700);
        assert_eq!(mode(&store.root), 0o700);
        fs::set_permissions(&store.root, fs::Permissions::from_mode(0o755)).expect("it is ours");
        assert!(matches!(store.create(Path::new(WORKSPACE), plain()), Err(SessionError::NotPrivate { .. })));
    }

    #[test]
    fn r109_a_session_that_others_can_write_is_not_loaded() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        create(&store, WORKSPACE);
        let entry = only(&store);
        fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o666)).expect("it is ours");
        let refused = entry.resume(Path::new(WORKSPACE), plain()).map(|_| ()).expect_err("anybody can have written it");
        assert!(refused.to_string().contains("can be written by others, so nothing was loaded"), "{refused}");
        fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o600)).expect("it is ours");
        drop(entry.resume(Path::new(WORKSPACE), plain()).expect("it is the user's alone"));
    }

    #[test]
    fn r109_two_never_write_one_session() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        let first = store.create(Path::new(WORKSPACE), plain()).expect("created");
        let entry = only(&store);
        let refused = entry.resume(Path::new(WORKSPACE), plain()).map(|_| ()).expect_err("it is in use");
        assert!(matches!(&refused, SessionError::InUse(id) if *id == entry.id), "{refused}");
        assert!(refused.to_string().contains(entry.id.as_str()), "{refused}");
        assert!(matches!(entry.delete(), Err(SessionError::InUse(_))));
        drop(first);
        drop(entry.resume(Path::new(WORKSPACE), plain()).expect("nobody has it now"));
    }

    #[test]
    fn r109_a_child_that_lives_on_does_not_keep_the_lock() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        let session = store.create(Path::new(WORKSPACE), plain()).expect("created");
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("it starts");
        drop(session);
        let resumed = only(&store).resume(Path::new(WORKSPACE), plain()).map(|_| ());
        child.kill().and_then(|()| child.wait()).expect("it ends");
        resumed.expect("the child has no part in it");
    }

    #[test]
    fn r109_a_session_that_was_deleted_is_not_written_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        create(&store, WORKSPACE);
        let entry = only(&store);
        let file = fs::OpenOptions::new().append(true).open(entry.path()).expect("there");
        entry.delete().expect("nobody has it");
        assert!(matches!(journal::lock(file, entry.path(), &entry.id), Err(SessionError::Gone(_))));
        assert!(store.list(Scope::All).expect("readable").is_empty());
    }

    #[test]
    fn r114_whole_outputs_go_with_their_session() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        let outputs = || {
            let session = store.create(Path::new(WORKSPACE), plain()).expect("created");
            private::folder(session.journal.outputs()).expect("made");
            fs::write(session.journal.outputs().join("bash-1.txt"), "all of it").expect("written");
            (session.journal.id().clone(), session.journal.outputs().to_owned())
        };
        let ((id, of_it), (_, of_another)) = (outputs(), outputs());
        assert_eq!(store.list(Scope::All).expect("readable").len(), 2, "a folder of outputs is no session");
        store.find(Scope::All, id.as_str()).expect("there").delete().expect("nobody has it");
        assert_eq!((of_it.exists(), of_another.join("bash-1.txt").exists()), (false, true));
    }

    #[test]
    fn r113_sessions_belong_to_their_project() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        let (here, there) = (create(&store, "/a/project"), create(&store, "/b/project"));
        let ids = |scope| store.list(scope).expect("readable").into_iter().map(|entry| entry.id).collect::<Vec<_>>();
        assert_eq!(ids(Scope::Project(Path::new("/a/project"))), [here]);
        assert_eq!(ids(Scope::Project(Path::new("/b/project"))), std::slice::from_ref(&there));
        assert_eq!(ids(Scope::Project(Path::new("/c"))), []);
        assert_eq!(ids(Scope::All).len(), 2);
        let not_here = store.find(Scope::Project(Path::new("/a/project")), there.as_str());
        assert!(matches!(not_here, Err(SessionError::NotFound(_))));
    }

    #[test]
    fn r113_the_newest_comes_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        for age in [30, 10, 20] {
            let id = create(&store, WORKSPACE);
            let entry = store.find(Scope::All, id.as_str()).expect("it is there");
            let file = fs::OpenOptions::new().append(true).open(entry.path()).expect("there");
            file.set_modified(SystemTime::now() - std::time::Duration::from_secs(age)).expect("it is ours");
        }
        let ages: Vec<_> =
            store.list(Scope::All).expect("readable").iter().map(|e| e.changed.elapsed().expect("past").as_secs() / 10).collect();
        assert_eq!(ages, [1, 2, 3]);
    }

    #[test]
    fn r111_a_session_without_an_end_is_not_read_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        create(&store, WORKSPACE);
        let entry = only(&store);
        let file = fs::OpenOptions::new().append(true).open(entry.path()).expect("there");
        file.set_len(1 << 30).expect("it can be sparse");
        for refused in [entry.look().map(drop), entry.resume(Path::new(WORKSPACE), plain()).map(drop)] {
            let problem = refused.expect_err("it is too long").to_string();
            assert!(problem.contains("has 1024 MiB, more than the 1 MiB that are read"), "{problem}");
        }
    }

    #[test]
    fn r113_a_prefix_must_be_unique() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        create(&store, WORKSPACE);
        let entry = only(&store);
        let place = entry.path().parent().expect("a folder").to_owned();
        for name in ["aaaa00000000.jsonl", "aaab00000000.jsonl", "not-a-session.jsonl", "aaaa.jsonl", "aaaa00000000.txt"] {
            fs::write(place.join(name), "").expect("writable");
        }
        let find = |prefix: &str| store.find(Scope::All, prefix).map(|entry| entry.id.to_string()).map_err(|error| error.to_string());
        assert_eq!(find("aaab"), Ok("aaab00000000".into()));
        let ambiguous = find("aaa").expect_err("there are two");
        assert!(ambiguous.contains("aaaa00000000") && ambiguous.contains("aaab00000000"), "{ambiguous}");
        for prefix in ["", "AAAA", "../", "not-a", "aaaa000000000"] {
            assert!(find(prefix).is_err_and(|error| error.contains("no session begins with")), "{prefix}");
        }
    }

    #[tokio::test]
    async fn the_newest_session_is_one_in_which_something_was_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, eventful, _) = eventful(folder.path()).await;
        create(&store, WORKSPACE);
        let newest = |workspace: &str| store.resume_newest(Path::new(workspace), plain);
        let (session, open) = newest(WORKSPACE).expect("there is one");
        assert_eq!((session.journal.id(), open), (&eventful.id, Vec::new()));
        // The model of each request goes along, so that its price is known.
        assert_eq!(session.models.len(), session.transcript.exchanges().len());
        assert!(matches!(newest("/elsewhere").map(drop), Err(SessionError::NoneYet)));
        // It is the only one, and open.
        assert!(matches!(newest(WORKSPACE).map(drop), Err(SessionError::InUse(id)) if id == eventful.id));
    }

    #[tokio::test]
    async fn r111_a_damaged_session_is_reported_and_left_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, entry, _) = eventful(folder.path()).await;
        let text = fs::read_to_string(entry.path()).expect("readable").replacen("{\"started\"", "{\"startet\"", 1) + "{\"torn";
        fs::write(entry.path(), &text).expect("writable");
        let line = text.lines().position(|line| line.starts_with("{\"startet\"")).expect("it is there") + 1;
        let refused = entry.resume(Path::new(WORKSPACE), plain()).map(|_| ()).expect_err("it is damaged");
        assert!(matches!(&refused, SessionError::Damaged { line: told, .. } if *told == line), "{refused}");
        let newest = store.resume_newest(Path::new(WORKSPACE), plain).map(drop);
        assert!(matches!(newest, Err(SessionError::Damaged { .. })), "the next older one is not taken instead");
        assert_eq!(fs::read_to_string(entry.path()).expect("readable"), text);
    }
}
