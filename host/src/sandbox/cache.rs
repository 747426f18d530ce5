//! Compiled components and declarations, kept between runs.
//!
//! A compiled component is machine code: loading one is as good as running it. A declaration says
//! what a tool may do. So each file carries a seal, made with a key that lies elsewhere, of its
//! content and of its name, and its name tells the component it was made from and everything that
//! compiling depends on. A file whose seal is not right is as good as none, and is made anew. The
//! folder belongs to the user alone (mode 0700) besides; one that somebody else could have written
//! to is not used.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

use super::cache_key::{CacheKey, SEAL_LEN};
use crate::private_dir::{self, PrivateDirError};

/// Bytes of the largest file that is read: the largest in use, CPython's, has a tenth of that.
const MAX_FILE_SIZE: u64 = 1 << 30;

/// A folder of this user's.
#[derive(Clone, Debug)]
pub struct ArtifactCache {
    directory: PathBuf,
    key: CacheKey,
    on_mismatch: Option<fn(&Path)>,
}

/// The folder cannot be trusted or made.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// It cannot be made or looked at.
    #[error("cannot use the cache folder {0}: {1}")]
    Io(PathBuf, std::io::Error),
    /// Somebody else could have put code there.
    #[error("the cache folder {0} {1}; make it yours alone (`chmod 700`), or remove it")]
    NotPrivate(PathBuf, &'static str),
}

impl ArtifactCache {
    /// Makes the directory with mode 0700 if it is not there, and checks that nobody else can write
    /// to it.
    pub fn prepare(folder: &Path) -> Result<(), CacheError> {
        private_dir::create(folder).map_err(|problem| match problem {
            PrivateDirError::Io(error) => CacheError::Io(folder.to_owned(), error),
            PrivateDirError::NotPrivate(problem) => {
                CacheError::NotPrivate(folder.to_owned(), problem)
            }
        })
    }

    /// Opens a directory, which is [prepared](Self::prepare) first.
    pub fn open(folder: &Path, key: CacheKey) -> Result<Self, CacheError> {
        Self::prepare(folder)?;
        Ok(Self { directory: folder.to_owned(), key, on_mismatch: None })
    }

    /// With somebody who is told of each file that this program did not write, or not so.
    #[must_use]
    pub fn with_mismatch_handler(self, on_mismatch: fn(&Path)) -> Self {
        Self { on_mismatch: Some(on_mismatch), ..self }
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether there is a file with this name. What is in it is found out when it is read.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.directory.join(name).exists()
    }

    /// What this program wrote under a name.
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
        if let Some(on_mismatch) = self.on_mismatch {
            on_mismatch(path);
        }
        None
    }

    /// Puts a file in its place at once or not at all: another process may be reading, or writing
    /// the same.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.directory)?;
        file.write_all(&self.key.seal(name, bytes)?)?;
        file.write_all(bytes)?;
        file.persist(self.directory.join(name)).map(drop).map_err(|error| error.error)
    }

    /// How many files it holds and how many bytes they have.
    pub fn size(&self) -> (usize, u64) {
        let files = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        files
            .filter_map(|file| file.metadata().ok())
            .fold((0, 0), |(count, bytes), m| (count + 1, bytes + m.len()))
    }
}

/// A file that this program wrote.
pub(super) struct SealedFile(Vec<u8>);

impl SealedFile {
    /// What was written.
    pub(super) fn content(&self) -> &[u8] {
        self.0.get(SEAL_LEN..).unwrap_or_default()
    }
}

/// Reads a plain file once and whole: what is checked is what is used, whatever becomes of the
/// file. Follows no link.
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

    fn key(folder: &Path) -> CacheKey {
        CacheKey::load_or_create(&folder.join("keys")).expect("there is a key")
    }

    /// Does something to a file, of which it gets what was in it.
    type Spoil<'a> = &'a dyn Fn(&[u8]);

    #[test]
    fn a_file_that_was_changed_is_as_good_as_none() {
        static MISMATCHES: AtomicUsize = AtomicUsize::new(0);
        let temp = tempfile::tempdir().expect("a folder");
        let folder = temp.path().join("cache");
        let cache = ArtifactCache::open(&folder, key(temp.path()))
            .expect("it is made")
            .with_mismatch_handler(|_| {
                MISMATCHES.fetch_add(1, Ordering::Relaxed);
            });
        let content = |name: &str| cache.read(name).map(|sealed| sealed.content().to_vec());
        let (one, two) = (folder.join("one"), folder.join("two"));
        assert_eq!(content("one"), None);
        assert_eq!(MISMATCHES.load(Ordering::Relaxed), 0, "what is not there is no mismatch");

        let spoil: [(&str, Spoil<'_>); 8] = [
            ("a byte", &|whole| {
                fs::write(&one, [&whole[..40], b"X", &whole[41..]].concat()).expect("written")
            }),
            ("a byte of the seal", &|whole| {
                fs::write(&one, [b"X", &whole[1..]].concat()).expect("written")
            }),
            ("a byte less", &|whole| fs::write(&one, &whole[..whole.len() - 1]).expect("written")),
            ("a byte more", &|whole| fs::write(&one, [whole, b"X"].concat()).expect("written")),
            ("nothing", &|_| fs::write(&one, "").expect("written")),
            ("another one's", &|_| {
                fs::copy(&two, &one).expect("copied");
            }),
            ("a link to a good one", &|_| {
                fs::rename(&one, folder.join("moved")).expect("moved");
                symlink("moved", &one).expect("a link");
            }),
            ("a folder", &|_| {
                fs::remove_file(&one).expect("it is there");
                fs::create_dir(&one).expect("made");
            }),
        ];
        for (number, (what, spoil)) in spoil.into_iter().enumerate() {
            cache.write("one", b"the content of one").expect("it can be written");
            cache.write("two", b"the content of two").expect("it can be written");
            assert_eq!(content("one").as_deref(), Some(&b"the content of one"[..]), "{what}");
            spoil(&fs::read(&one).expect("it is there"));
            assert_eq!(content("one"), None, "{what}");
            assert_eq!(MISMATCHES.load(Ordering::Relaxed), number + 1, "{what}");
        }
        assert_eq!(content("two").as_deref(), Some(&b"the content of two"[..]));
    }

    #[test]
    fn what_another_key_has_sealed_is_as_good_as_none() {
        let temp = tempfile::tempdir().expect("a folder");
        let folder = temp.path().join("cache");
        let with = |keys: &str| {
            ArtifactCache::open(&folder, key(&temp.path().join(keys))).expect("it opens")
        };
        fs::create_dir(temp.path().join("a")).expect("made");
        fs::create_dir(temp.path().join("b")).expect("made");
        with("a").write("name", b"content").expect("it can be written");
        assert!(with("b").read("name").is_none() && with("a").read("name").is_some());
    }

    #[test]
    fn those_who_write_at_once_leave_a_whole_file() {
        let temp = tempfile::tempdir().expect("a folder");
        let cache =
            ArtifactCache::open(&temp.path().join("cache"), key(temp.path())).expect("it is made");
        let contents: Vec<Vec<u8>> = (0..8_u8).map(|n| vec![n; 100_000 + usize::from(n)]).collect();
        std::thread::scope(|scope| {
            for content in &contents {
                scope.spawn(|| {
                    (0..20).for_each(|_| cache.write("name", content).expect("it can be written"))
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
    fn a_folder_that_others_can_write_to_is_not_used() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = parent.path().join("cache");
        let cache = ArtifactCache::open(&folder, key(parent.path())).expect("it is made");
        assert_eq!(fs::metadata(cache.directory()).expect("it is there").mode() & 0o777, 0o700);
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("it is ours");
        assert!(
            ArtifactCache::open(&folder, key(parent.path()))
                .unwrap_err()
                .to_string()
                .contains("open to others")
        );
    }

    #[test]
    fn a_link_in_place_of_the_folder_is_not_followed() {
        let parent = tempfile::tempdir().expect("a folder");
        let link = parent.path().join("cache");
        fs::create_dir(parent.path().join("elsewhere")).expect("it is made");
        std::os::unix::fs::symlink(parent.path().join("elsewhere"), &link).expect("it is made");
        assert!(matches!(
            ArtifactCache::open(&link, key(parent.path())),
            Err(CacheError::NotPrivate(..))
        ));
    }
}
