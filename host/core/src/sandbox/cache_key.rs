//! The key that seals the files of the cache.
//!
//! Other programs write to cache directories, and users allow commands to do so. The key is stored
//! next to the sessions, where tools and commands have no access. Without the key nobody can create
//! a cache file that this program accepts.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit as _, Mac as _};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use sha2::Sha256;

use crate::private_dir::{self, PrivateDirError};

const KEY_LEN: usize = 32;
/// The name of the key file in its directory.
const FILE_NAME: &str = "cache";

/// A secret of this user: 32 random bytes.
#[derive(Clone)]
pub struct CacheKey([u8; KEY_LEN]);

/// An error that means that there is no key and none can be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheKeyError {
    /// The directory or the file cannot be used.
    #[error("cannot store the authentication key of the cache in {0}: {1}")]
    Io(PathBuf, io::Error),
    /// Other users could read the key.
    #[error(
        "cannot store the authentication key of the cache in {0}: it {1}\nhint: run `chmod 700` on \
        it, or remove it"
    )]
    NotPrivate(PathBuf, &'static str),
}

impl CacheKey {
    /// Reads the key in a directory. Creates a new one if there is none, or if others could have
    /// written or read it. Files of the cache with an old key are created again.
    pub fn load_or_create(directory: &Path) -> Result<Self, CacheKeyError> {
        private_dir::create(directory).map_err(|problem| match problem {
            PrivateDirError::Io(error) => CacheKeyError::Io(directory.to_owned(), error),
            PrivateDirError::NotPrivate(problem) => {
                CacheKeyError::NotPrivate(directory.to_owned(), problem)
            }
        })?;
        let path = directory.join(FILE_NAME);
        Self::read(&path)
            .or_else(|_| Self::regenerate(directory, &path))
            .map_err(|error| CacheKeyError::Io(path, error))
    }

    /// Reads the key file without following links or blocking.
    fn read(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut file = File::from(open(path, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        let is_own = metadata.is_file()
            && metadata.uid() == rustix::process::geteuid().as_raw()
            && metadata.mode() & 0o077 == 0;
        if !is_own || metadata.len() != KEY_LEN as u64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut key = [0; KEY_LEN];
        file.read_exact(&mut key)?;
        Ok(Self(key))
    }

    /// Replaces an unusable key file, but not the target of a link. A lock makes processes that do
    /// this at once end up with the same key.
    fn regenerate(directory: &Path, path: &Path) -> io::Result<Self> {
        let lock = File::open(directory)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        if let Ok(key) = Self::read(path) {
            return Ok(key);
        }
        let mut key = [0; KEY_LEN];
        getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
        // The temporary file is readable only by its owner.
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(directory)?;
        file.write_all(&key)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(Self(key))
    }

    /// Computes the seal that shows that this program wrote `bytes` under `name`.
    pub(super) fn seal(&self, name: &str, bytes: &[u8]) -> io::Result<[u8; SEAL_LEN]> {
        Ok(self.mac(name, bytes)?.finalize().into_bytes().into())
    }

    /// Returns whether this program wrote `bytes` under `name`.
    pub(super) fn is_valid_seal(&self, seal: &[u8], name: &str, bytes: &[u8]) -> bool {
        self.mac(name, bytes).is_ok_and(|mac| mac.verify_slice(seal).is_ok())
    }

    fn mac(&self, name: &str, bytes: &[u8]) -> io::Result<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).map_err(io::Error::other)?;
        // The length prefix keeps the name separate from the content.
        mac.update(&(name.len() as u64).to_le_bytes());
        mac.update(name.as_bytes());
        mac.update(bytes);
        Ok(mac)
    }
}

/// The size of a seal, an HMAC-SHA-256, in bytes.
pub(super) const SEAL_LEN: usize = 32;

impl std::fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CacheKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn key(directory: &Path) -> [u8; KEY_LEN] {
        CacheKey::load_or_create(directory).expect("load or create the key").0
    }

    #[test]
    fn a_key_is_created_once_and_is_private() {
        let temp = tempfile::tempdir().expect("create a temporary directory");
        let directory = temp.path().join("keys");
        let first = key(&directory);
        assert_ne!(first, [0; KEY_LEN]);
        assert_eq!(key(&directory), first);
        assert_eq!(
            fs::metadata(directory.join(FILE_NAME)).expect("read the metadata").mode() & 0o7777,
            0o600
        );
        assert_ne!(key(&temp.path().join("others")), first);
        assert_eq!(format!("{:?}", CacheKey(first)), "CacheKey(…)");
    }

    #[test]
    fn concurrent_processes_get_the_same_key() {
        let temp = tempfile::tempdir().expect("create a temporary directory");
        let directory = temp.path().join("keys");
        let keys: Vec<_> = std::thread::scope(|scope| {
            let makers: Vec<_> = (0..16).map(|_| scope.spawn(|| key(&directory))).collect();
            makers.into_iter().map(|maker| maker.join().expect("join the thread")).collect()
        });
        assert!(keys.iter().all(|made| *made == keys[0]));
        assert_eq!(
            fs::read_dir(&directory).expect("list the directory").count(),
            1,
            "nothing is left behind"
        );
        for _ in 0..20 {
            fs::write(directory.join(FILE_NAME), "spoiled").expect("write the file");
            let keys: Vec<_> = std::thread::scope(|scope| {
                let makers: Vec<_> = (0..4).map(|_| scope.spawn(|| key(&directory))).collect();
                makers.into_iter().map(|maker| maker.join().expect("join the thread")).collect()
            });
            assert!(keys.iter().all(|made| *made == keys[0]));
        }
    }

    #[test]
    fn a_key_that_others_could_read_is_replaced() {
        let temp = tempfile::tempdir().expect("create a temporary directory");
        let directory = temp.path().join("keys");
        let file = directory.join(FILE_NAME);
        let elsewhere = temp.path().join("elsewhere");
        fs::write(&elsewhere, [7; KEY_LEN]).expect("write the file");
        fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o600))
            .expect("set the permissions");
        let spoil: [(&str, &dyn Fn()); 5] = [
            ("accessible to other users", &|| {
                fs::set_permissions(&file, fs::Permissions::from_mode(0o644))
                    .expect("set the permissions")
            }),
            ("cut off", &|| fs::write(&file, [1; 31]).expect("write the file")),
            ("longer", &|| fs::write(&file, [1; 33]).expect("write the file")),
            ("empty", &|| fs::write(&file, "").expect("write the file")),
            ("a link", &|| {
                fs::remove_file(&file).expect("remove the file");
                symlink(&elsewhere, &file).expect("create the link");
            }),
        ];
        for (what, spoil) in spoil {
            let before = key(&directory);
            spoil();
            let after = key(&directory);
            assert!(after != before && after != [7; KEY_LEN], "{what}");
            assert_eq!(key(&directory), after, "{what}");
            assert!(fs::symlink_metadata(&file).expect("read the metadata").is_file(), "{what}");
        }
        assert_eq!(
            fs::read(&elsewhere).expect("read the file"),
            [7; KEY_LEN],
            "the target of a link must not change"
        );
    }

    #[test]
    fn a_key_owned_by_another_user_is_replaced() {
        if !rustix::process::geteuid().is_root() {
            // Only root can change the owner of a file. Other users cannot get a foreign file into
            // a private directory.
            return;
        }
        let temp = tempfile::tempdir().expect("create a temporary directory");
        let directory = temp.path().join("keys");
        let before = key(&directory);
        std::os::unix::fs::chown(directory.join(FILE_NAME), Some(1), None)
            .expect("change the owner");
        assert_ne!(key(&directory), before);
        assert_eq!(fs::metadata(directory.join(FILE_NAME)).expect("read the metadata").uid(), 0);
    }

    #[test]
    fn no_key_is_stored_in_a_shared_directory() {
        let temp = tempfile::tempdir().expect("create a temporary directory");
        fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o755))
            .expect("set the permissions");
        assert!(
            CacheKey::load_or_create(temp.path())
                .is_err_and(|error| error.to_string().contains("accessible to other users"))
        );
        let directory = temp.path().join("keys");
        key(&directory);
        fs::remove_file(directory.join(FILE_NAME)).expect("remove the file");
        fs::create_dir_all(directory.join(FILE_NAME).join("x")).expect("create the directory");
        assert!(
            matches!(CacheKey::load_or_create(&directory), Err(CacheKeyError::Io(..))),
            "a directory in its place must not be removed"
        );
    }

    #[test]
    fn a_seal_covers_the_name_and_the_content() {
        let (ours, theirs) = (CacheKey([1; KEY_LEN]), CacheKey([2; KEY_LEN]));
        let seal = ours.seal("name", b"bytes").expect("it can be made");
        assert!(ours.is_valid_seal(&seal, "name", b"bytes"));
        for (name, bytes) in [
            ("name", &b"byte"[..]),
            ("nam", b"ebytes"),
            ("nameb", b"ytes"),
            ("name", b"Bytes"),
            ("", b""),
        ] {
            assert!(!ours.is_valid_seal(&seal, name, bytes), "{name}");
        }
        assert!(
            !theirs.is_valid_seal(&seal, "name", b"bytes")
                && !ours.is_valid_seal(&seal[..16], "name", b"bytes")
                && !ours.is_valid_seal(b"", "name", b"bytes")
        );
    }
}
