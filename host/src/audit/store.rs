//! Where logs are: one file for each run of the program in one folder, all of them the user's alone.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::AuditError;
use super::chain::{Chain, End};
use super::head;

const LOG: &str = "jsonl";
const HEAD: &str = "head";

/// All logs of this user.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// The name of a log: when it began, and eight digits that make it unique. In the order of their names they are in the order
/// of time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogName(String);

impl LogName {
    fn new() -> Self {
        use std::hash::{BuildHasher as _, RandomState};
        let bits = RandomState::new().hash_one(std::process::id());
        Self(format!("{}-{:08x}", jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%3fZ"), bits >> 32))
    }

    /// From a file name without its ending, if it is one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_name = text.len() == 28 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        is_name.then(|| Self(text.to_owned()))
    }

    /// The name itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Store {
    /// The logs in a folder, which need not be there yet.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// From the oldest to the newest: those with a file, and those that only a head is left of.
    pub fn list(&self) -> Result<Vec<LogName>, AuditError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(AuditError::io(&self.folder)(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let path = entry.map_err(AuditError::io(&self.folder))?.path();
            let is_ours = path.extension().is_some_and(|ending| ending == LOG || ending == HEAD);
            names.extend(path.file_stem().and_then(|stem| stem.to_str()).filter(|_| is_ours).and_then(LogName::parse));
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Makes the folder, and finds a name and what was the end of the newest log before.
    pub(super) fn next(&self) -> Result<(LogName, Option<(LogName, End)>), AuditError> {
        make_private(&self.folder)?;
        let before = self.list()?.into_iter().rev().find_map(|name| Some((name.clone(), self.head(&name).ok()??)));
        Ok((LogName::new(), before))
    }

    pub(super) fn log_path(&self, name: &LogName) -> PathBuf {
        self.folder.join(name.as_str()).with_extension(LOG)
    }

    pub(super) fn head_path(&self, name: &LogName) -> PathBuf {
        self.folder.join(name.as_str()).with_extension(HEAD)
    }

    /// The head of a log; `None` if the file holds none.
    pub(super) fn head(&self, name: &LogName) -> io::Result<Option<End>> {
        fs::read_to_string(self.head_path(name)).map(|text| head::parse(&text))
    }

    /// Reads and checks a log.
    pub(super) fn chain(&self, name: &LogName) -> io::Result<Chain> {
        fs::read(self.log_path(name)).map(|bytes| Chain::read(&bytes))
    }
}

/// Makes a folder with mode 0700; one that is there has to be this user's alone.
fn make_private(folder: &Path) -> Result<(), AuditError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(AuditError::io(folder))?;
    let metadata = fs::symlink_metadata(folder).map_err(AuditError::io(folder))?;
    let problem = if !metadata.is_dir() {
        "is not a folder"
    } else if metadata.uid() != rustix::process::geteuid().as_raw() {
        "belongs to somebody else"
    } else if metadata.mode() & 0o077 != 0 {
        "is open to others"
    } else {
        return Ok(());
    };
    Err(AuditError::NotPrivate { path: folder.to_owned(), problem })
}
