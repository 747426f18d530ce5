//! The project policy files that the user trusts.
//!
//! A file is trusted by its path and its content, so a changed file is untrusted again.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::own_file;

/// The largest file that is read.
const MAX_SIZE: u64 = 16 << 20;

/// What was trusted, as it is kept in a file for the user alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyTrustStore {
    version: TrustFormat,
    /// The SHA-256 digest of each trusted file, by its absolute path.
    trusted: BTreeMap<PathBuf, String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
struct TrustFormat;

impl TryFrom<u32> for TrustFormat {
    type Error = String;

    fn try_from(number: u32) -> Result<Self, String> {
        if number == 1 { Ok(Self) } else { Err(format!("unsupported format {number}")) }
    }
}

impl From<TrustFormat> for u32 {
    fn from(TrustFormat: TrustFormat) -> Self {
        1
    }
}

/// The reason why the record of trusted files cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the trust records {}: {problem}", path.display())]
pub struct PolicyTrustError {
    path: PathBuf,
    problem: String,
}

impl PolicyTrustStore {
    /// Reads the trusted files; a missing record contains none.
    ///
    /// # Errors
    /// The record cannot be read, is invalid, or is accessible to other users.
    pub fn read(path: &Path) -> Result<Self, PolicyTrustError> {
        let problem = |problem: String| PolicyTrustError { path: path.to_owned(), problem };
        // A FIFO is not waited for.
        let flags = own_file::safe_flags();
        let file = match std::fs::File::options().read(true).custom_flags(flags).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(problem(error.to_string())),
        };
        let metadata = file.metadata().map_err(|error| problem(error.to_string()))?;
        if !metadata.is_file()
            || metadata.uid() != rustix::process::geteuid().as_raw()
            || metadata.mode() & 0o077 != 0
        {
            return Err(problem(
                "it must be a file that only you can read and write; remove it and run `cofferdam \
                    trust` again"
                    .into(),
            ));
        }
        serde_json::from_reader(io::BufReader::new(file.take(MAX_SIZE)))
            .map_err(|error| problem(error.to_string()))
    }

    /// Returns whether a file with this content is trusted.
    pub fn contains(&self, path: &Path, digest: &str) -> bool {
        self.trusted.get(path).is_some_and(|trusted| trusted == digest)
    }

    /// Returns all trusted files with their digests.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.trusted.iter().map(|(path, digest)| (path.as_path(), digest.as_str()))
    }

    /// Changes the record of trusted files.
    ///
    /// A lock prevents another process from changing it at the same time.
    ///
    /// # Errors
    /// The record or its lock cannot be read or written.
    pub fn update<T>(
        path: &Path,
        change: impl FnOnce(&mut Self) -> T,
    ) -> Result<T, PolicyTrustError> {
        let problem = |error: io::Error| PolicyTrustError {
            path: path.to_owned(),
            problem: error.to_string(),
        };
        let parent = path.parent().unwrap_or(Path::new("."));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(problem)?;
        let lock = own_file::open_lock(&path.with_extension("lock")).map_err(problem)?;
        lock.lock().map_err(problem)?;
        let mut trust = Self::read(path)?;
        let before = trust.clone();
        let outcome = change(&mut trust);
        if trust != before {
            trust.write(path)?;
        }
        Ok(outcome)
    }

    /// Trusts a file with this content.
    pub fn add(&mut self, path: &Path, digest: &str) {
        self.trusted.insert(path.to_owned(), digest.to_owned());
    }

    /// Removes a file from the record; returns whether it was trusted.
    pub fn revoke(&mut self, path: &Path) -> bool {
        self.trusted.remove(path).is_some()
    }

    /// Replaces the record atomically with a file that only this user can access.
    fn write(&self, path: &Path) -> Result<(), PolicyTrustError> {
        let problem = |error: io::Error| PolicyTrustError {
            path: path.to_owned(),
            problem: error.to_string(),
        };
        let directory = path.parent().unwrap_or(Path::new("."));
        let text = serde_json::to_string_pretty(self).map_err(|error| problem(error.into()))?;
        // A temporary file has mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(directory).map_err(problem)?;
        file.write_all(text.as_bytes())
            .and_then(|()| file.as_file().sync_all())
            .map_err(problem)?;
        file.persist(path).map(drop).map_err(|error| problem(error.error))
    }
}

/// Returns the SHA-256 digest of a text in lower-case hexadecimal.
pub(super) fn digest(text: &str) -> String {
    use std::fmt::Write as _;
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}
