//! A cache of compiled components and declarations.
//!
//! A compiled component is machine code, so loading one is the same as running it. A declaration
//! says what a tool may do. The cache therefore protects its files:
//!
//! - Each file has a seal of its content and its name, made with a key that is stored elsewhere.
//! - The name contains the digest of the component and everything else that the compilation depends
//!   on.
//! - A file with an invalid seal is ignored and created again.
//! - The directory belongs to the user alone (mode 0700). A directory that others could write to is
//!   not used.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, open};

use super::cache_key::{CacheKey, SEAL_LEN};
use crate::private_dir::{self, PrivateDirError};

/// The largest file that is read, in bytes. The largest in use, CPython's, has a tenth of that.
const MAX_FILE_SIZE: u64 = 1 << 30;

/// A cache in a directory of this user.
#[derive(Clone, Debug)]
pub struct ArtifactCache {
    directory: PathBuf,
    key: CacheKey,
    on_mismatch: Option<MismatchHandler>,
}

/// A function that is called for each file with an invalid seal.
#[derive(Clone)]
struct MismatchHandler(Arc<dyn Fn(&Path) + Send + Sync>);

impl fmt::Debug for MismatchHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MismatchHandler")
    }
}

/// An error that makes the cache directory unusable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The directory cannot be created or inspected.
    #[error("cannot use the cache directory {0}: {1}")]
    Io(PathBuf, std::io::Error),
    /// Other users could have written to the directory.
    #[error(
        "cannot use the cache directory {0}: it {1}\n\
        hint: run `chmod 700` on it, or remove it"
    )]
    NotPrivate(PathBuf, &'static str),
}

impl ArtifactCache {
    /// Creates the directory with mode 0700 if it does not exist, and checks that nobody else can
    /// write to it.
    pub fn prepare(directory: &Path) -> Result<(), CacheError> {
        private_dir::create(directory).map_err(|problem| match problem {
            PrivateDirError::Io(error) => CacheError::Io(directory.to_owned(), error),
            PrivateDirError::NotPrivate(problem) => {
                CacheError::NotPrivate(directory.to_owned(), problem)
            }
        })
    }

    /// Opens a cache directory, after [preparing](Self::prepare) it.
    pub fn open(directory: &Path, key: CacheKey) -> Result<Self, CacheError> {
        Self::prepare(directory)?;
        Ok(Self { directory: directory.to_owned(), key, on_mismatch: None })
    }

    /// Sets a function that is called for each file with an invalid seal.
    #[must_use]
    pub fn with_mismatch_handler(
        self,
        on_mismatch: impl Fn(&Path) + Send + Sync + 'static,
    ) -> Self {
        Self { on_mismatch: Some(MismatchHandler(Arc::new(on_mismatch))), ..self }
    }

    /// Returns the path of the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns whether a file with this name exists, without checking its content.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.directory.join(name).exists()
    }

    /// Returns the file that this program wrote under a name.
    pub(super) fn read(&self, name: &str) -> Option<SealedFile> {
        let path = self.directory.join(name);
        let bytes = match read_file(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(_) => return self.report_mismatch(&path),
        };
        match bytes.split_first_chunk::<SEAL_LEN>() {
            Some((seal, content)) if self.key.is_valid_seal(seal, name, content) => {
                Some(SealedFile(bytes))
            }
            _ => self.report_mismatch(&path),
        }
    }

    fn report_mismatch<T>(&self, path: &Path) -> Option<T> {
        if let Some(MismatchHandler(on_mismatch)) = &self.on_mismatch {
            on_mismatch(path);
        }
        None
    }

    /// Writes a file atomically, because another process may read or write the same file.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.directory)?;
        file.write_all(&self.key.seal(name, bytes)?)?;
        file.write_all(bytes)?;
        file.persist(self.directory.join(name)).map(drop).map_err(|error| error.error)
    }

    /// Returns the number of files and their total size in bytes.
    pub fn size(&self) -> (usize, u64) {
        let files = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        files
            .filter_map(|file| file.metadata().ok())
            .fold((0, 0), |(count, bytes), m| (count + 1, bytes + m.len()))
    }
}

/// A file that this program wrote, with its seal.
pub(super) struct SealedFile(Vec<u8>);

impl SealedFile {
    /// Returns the content without the seal.
    pub(super) fn content(&self) -> &[u8] {
        self.0.get(SEAL_LEN..).unwrap_or_default()
    }
}

/// Reads a regular file completely, without following links. The checked bytes are the used ones,
/// even if the file changes.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > MAX_FILE_SIZE {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes =
        Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0).saturating_add(1));
    file.take(MAX_FILE_SIZE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn key(directory: &Path) -> CacheKey {
        CacheKey::load_or_create(&directory.join("keys")).expect("load or create the key")
    }

    /// Damages a file. The argument is its previous content.
    type Spoil<'a> = &'a dyn Fn(&[u8]);

    #[test]
    fn a_changed_file_is_ignored() {
        static MISMATCHES: AtomicUsize = AtomicUsize::new(0);
        let temp = tempfile::tempdir().expect("create a temporary directory");
        let directory = temp.path().join("cache");
        let cache = ArtifactCache::open(&directory, key(temp.path()))
            .expect("it is made")
            .with_mismatch_handler(|_| {
                MISMATCHES.fetch_add(1, Ordering::Relaxed);
            });
        let content = |name: &str| cache.read(name).map(|sealed| sealed.content().to_vec());
        let (one, two) = (directory.join("one"), directory.join("two"));
        assert_eq!(content("one"), None);
        assert_eq!(MISMATCHES.load(Ordering::Relaxed), 0, "a missing file is not a mismatch");

        let spoil: [(&str, Spoil<'_>); 8] = [
            ("a byte", &|whole| {
                fs::write(&one, [&whole[..40], b"X", &whole[41..]].concat())
                    .expect("write the file")
            }),
            ("a byte of the seal", &|whole| {
                fs::write(&one, [b"X", &whole[1..]].concat()).expect("write the file")
            }),
            ("a byte less", &|whole| {
                fs::write(&one, &whole[..whole.len() - 1]).expect("write the file")
            }),
            ("a byte more", &|whole| {
                fs::write(&one, [whole, b"X"].concat()).expect("write the file")
            }),
            ("nothing", &|_| fs::write(&one, "").expect("write the file")),
            ("another one's", &|_| {
                fs::copy(&two, &one).expect("copied");
            }),
            ("a link to a good one", &|_| {
                fs::rename(&one, directory.join("moved")).expect("rename the file");
                symlink("moved", &one).expect("create the link");
            }),
            ("a directory in its place", &|_| {
                fs::remove_file(&one).expect("remove the file");
                fs::create_dir(&one).expect("create the directory");
            }),
        ];
        for (number, (what, spoil)) in spoil.into_iter().enumerate() {
            cache.write("one", b"the content of one").expect("write the file");
            cache.write("two", b"the content of two").expect("write the file");
            assert_eq!(content("one").as_deref(), Some(&b"the content of one"[..]), "{what}");
            spoil(&fs::read(&one).expect("read the file"));
            assert_eq!(content("one"), None, "{what}");
            assert_eq!(MISMATCHES.load(Ordering::Relaxed), number + 1, "{what}");
        }
        assert_eq!(content("two").as_deref(), Some(&b"the content of two"[..]));
    }

    #[test]
    fn a_file_sealed_with_another_key_is_ignored() {
        let temp = tempfile::tempdir().expect("create a temporary directory");
        let directory = temp.path().join("cache");
        let with = |keys: &str| {
            ArtifactCache::open(&directory, key(&temp.path().join(keys))).expect("it opens")
        };
        fs::create_dir(temp.path().join("a")).expect("create the directory");
        fs::create_dir(temp.path().join("b")).expect("create the directory");
        with("a").write("name", b"content").expect("write the file");
        assert!(with("b").read("name").is_none() && with("a").read("name").is_some());
    }

    #[test]
    fn concurrent_writers_leave_a_complete_file() {
        let temp = tempfile::tempdir().expect("create a temporary directory");
        let cache =
            ArtifactCache::open(&temp.path().join("cache"), key(temp.path())).expect("it is made");
        let contents: Vec<Vec<u8>> = (0..8_u8).map(|n| vec![n; 100_000 + usize::from(n)]).collect();
        std::thread::scope(|scope| {
            for content in &contents {
                scope.spawn(|| {
                    (0..20).for_each(|_| cache.write("name", content).expect("write the file"))
                });
            }
            for _ in 0..200 {
                let read = cache.read("name");
                assert!(read.is_none_or(|sealed| {
                    contents.iter().any(|content| content == sealed.content())
                }));
            }
        });
        assert!(cache.read("name").is_some());
        assert_eq!(cache.size().0, 1, "nothing is left behind");
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_not_used() {
        let parent = tempfile::tempdir().expect("create a temporary directory");
        let directory = parent.path().join("cache");
        let cache = ArtifactCache::open(&directory, key(parent.path())).expect("it is made");
        assert_eq!(
            fs::metadata(cache.directory()).expect("read the metadata").mode() & 0o777,
            0o700
        );
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777))
            .expect("set the permissions");
        assert!(
            ArtifactCache::open(&directory, key(parent.path()))
                .unwrap_err()
                .to_string()
                .contains("accessible to other users")
        );
    }

    #[test]
    fn a_link_instead_of_the_directory_is_not_followed() {
        let parent = tempfile::tempdir().expect("create a temporary directory");
        let link = parent.path().join("cache");
        fs::create_dir(parent.path().join("elsewhere")).expect("create the directory");
        std::os::unix::fs::symlink(parent.path().join("elsewhere"), &link)
            .expect("create the link");
        assert!(matches!(
            ArtifactCache::open(&link, key(parent.path())),
            Err(CacheError::NotPrivate(..))
        ));
    }
}
