//! The key that binds what the cache holds to the component it was made from.
//!
//! Other programs write to cache folders, and users let commands do so. The key lies elsewhere,
//! beside the sessions, where tools and commands cannot look. Who does not have it cannot make a
//! cached file that is taken for this program's own.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit as _, Mac as _};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use sha2::Sha256;

use crate::private_dir::{self, PrivateDirError};

const KEY_LEN: usize = 32;
/// The name of the file in its folder.
const FILE_NAME: &str = "cache";

/// A secret of this user's, 32 random bytes.
#[derive(Clone)]
pub struct CacheKey([u8; KEY_LEN]);

/// There is no key, and none can be made.
#[derive(Debug, thiserror::Error)]
pub enum CacheKeyError {
    /// A folder or file cannot be used.
    #[error("cannot keep a key in {0}: {1}")]
    Io(PathBuf, io::Error),
    /// Others could read the key.
    #[error("cannot keep a key in {0}: it {1}; make it yours alone (`chmod 700`), or remove it")]
    NotPrivate(PathBuf, &'static str),
}

impl CacheKey {
    /// Reads the key in a folder. If there is none, or one that others could have written or read,
    /// makes a new one: what was cached before is then made anew.
    pub fn load_or_create(folder: &Path) -> Result<Self, CacheKeyError> {
        private_dir::create(folder).map_err(|problem| match problem {
            PrivateDirError::Io(error) => CacheKeyError::Io(folder.to_owned(), error),
            PrivateDirError::NotPrivate(problem) => {
                CacheKeyError::NotPrivate(folder.to_owned(), problem)
            }
        })?;
        let path = folder.join(FILE_NAME);
        Self::read(&path)
            .or_else(|_| Self::regenerate(folder, &path))
            .map_err(|error| CacheKeyError::Io(path, error))
    }

    /// Follows no link and waits for nothing.
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

    /// Takes the place of what cannot be used, and not of what a link leads to. One at a time: two
    /// that do so at once end with the same key.
    fn regenerate(folder: &Path, path: &Path) -> io::Result<Self> {
        let turn = File::open(folder)?;
        flock(&turn, FlockOperation::LockExclusive)?;
        if let Ok(key) = Self::read(path) {
            return Ok(key);
        }
        let mut key = [0; KEY_LEN];
        getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
        // Made for its owner alone.
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(folder)?;
        file.write_all(&key)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(Self(key))
    }

    /// What shows that this program wrote `bytes` under `name`.
    pub(super) fn seal(&self, name: &str, bytes: &[u8]) -> io::Result<[u8; SEAL_LEN]> {
        Ok(self.mac(name, bytes)?.finalize().into_bytes().into())
    }

    /// Whether this program wrote `bytes` under `name`.
    pub(super) fn is_valid_seal(&self, seal: &[u8], name: &str, bytes: &[u8]) -> bool {
        self.mac(name, bytes).is_ok_and(|mac| mac.verify_slice(seal).is_ok())
    }

    fn mac(&self, name: &str, bytes: &[u8]) -> io::Result<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).map_err(io::Error::other)?;
        // With its length, so that no name goes over into what is named.
        mac.update(&(name.len() as u64).to_le_bytes());
        mac.update(name.as_bytes());
        mac.update(bytes);
        Ok(mac)
    }
}

/// Bytes of a seal: HMAC-SHA-256.
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

    fn key(folder: &Path) -> [u8; KEY_LEN] {
        CacheKey::load_or_create(folder).expect("there is a key").0
    }

    #[test]
    fn a_key_is_made_once_for_its_owner_alone() {
        let temp = tempfile::tempdir().expect("a folder");
        let folder = temp.path().join("keys");
        let first = key(&folder);
        assert_ne!(first, [0; KEY_LEN]);
        assert_eq!(key(&folder), first);
        assert_eq!(
            fs::metadata(folder.join(FILE_NAME)).expect("it is there").mode() & 0o7777,
            0o600
        );
        assert_ne!(key(&temp.path().join("others")), first);
        assert_eq!(format!("{:?}", CacheKey(first)), "CacheKey(…)");
    }

    #[test]
    fn those_who_make_a_key_at_once_have_the_same() {
        let temp = tempfile::tempdir().expect("a folder");
        let folder = temp.path().join("keys");
        let keys: Vec<_> = std::thread::scope(|scope| {
            let makers: Vec<_> = (0..16).map(|_| scope.spawn(|| key(&folder))).collect();
            makers.into_iter().map(|maker| maker.join().expect("it made one")).collect()
        });
        assert!(keys.iter().all(|made| *made == keys[0]));
        assert_eq!(
            fs::read_dir(&folder).expect("it is there").count(),
            1,
            "nothing is left behind"
        );
        for _ in 0..20 {
            fs::write(folder.join(FILE_NAME), "spoiled").expect("it can be written");
            let keys: Vec<_> = std::thread::scope(|scope| {
                let makers: Vec<_> = (0..4).map(|_| scope.spawn(|| key(&folder))).collect();
                makers.into_iter().map(|maker| maker.join().expect("it made one")).collect()
            });
            assert!(keys.iter().all(|made| *made == keys[0]));
        }
    }

    #[test]
    fn a_key_that_others_could_know_is_replaced() {
        let temp = tempfile::tempdir().expect("a folder");
        let folder = temp.path().join("keys");
        let file = folder.join(FILE_NAME);
        let elsewhere = temp.path().join("elsewhere");
        fs::write(&elsewhere, [7; KEY_LEN]).expect("it can be written");
        fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o600)).expect("it is ours");
        let spoil: [(&str, &dyn Fn()); 5] = [
            ("open to others", &|| {
                fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("it is ours")
            }),
            ("cut off", &|| fs::write(&file, [1; 31]).expect("it can be written")),
            ("longer", &|| fs::write(&file, [1; 33]).expect("it can be written")),
            ("empty", &|| fs::write(&file, "").expect("it can be written")),
            ("a link", &|| {
                fs::remove_file(&file).expect("it is there");
                symlink(&elsewhere, &file).expect("a link");
            }),
        ];
        for (what, spoil) in spoil {
            let before = key(&folder);
            spoil();
            let after = key(&folder);
            assert!(after != before && after != [7; KEY_LEN], "{what}");
            assert_eq!(key(&folder), after, "{what}");
            assert!(fs::symlink_metadata(&file).expect("it is there").is_file(), "{what}");
        }
        assert_eq!(
            fs::read(&elsewhere).expect("it is there"),
            [7; KEY_LEN],
            "what a link leads to is not touched"
        );
    }

    #[test]
    fn a_key_of_somebody_else_is_replaced() {
        if !rustix::process::geteuid().is_root() {
            // Only root can give a file away; others cannot be given one in a folder that is theirs
            // alone.
            return;
        }
        let temp = tempfile::tempdir().expect("a folder");
        let folder = temp.path().join("keys");
        let before = key(&folder);
        std::os::unix::fs::chown(folder.join(FILE_NAME), Some(1), None).expect("root can");
        assert_ne!(key(&folder), before);
        assert_eq!(fs::metadata(folder.join(FILE_NAME)).expect("it is there").uid(), 0);
    }

    #[test]
    fn there_is_no_key_in_a_folder_of_all() {
        let temp = tempfile::tempdir().expect("a folder");
        fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        assert!(
            CacheKey::load_or_create(temp.path())
                .is_err_and(|error| error.to_string().contains("open to others"))
        );
        let folder = temp.path().join("keys");
        key(&folder);
        fs::remove_file(folder.join(FILE_NAME)).expect("it is there");
        fs::create_dir_all(folder.join(FILE_NAME).join("x")).expect("it is made");
        assert!(
            matches!(CacheKey::load_or_create(&folder), Err(CacheKeyError::Io(..))),
            "a folder in its place is nobody's to remove"
        );
    }

    #[test]
    fn a_seal_is_of_one_name_and_one_content() {
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
