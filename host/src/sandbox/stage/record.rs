//! What was there before a change: enough to have it back, on the disk before the change begins.
//!
//! A record is a folder with `record.json` and the old contents, each a file by its number. While it is *pending* the change
//! may have been made by halves; whoever finds it so, and holds the lock of the history, takes it back.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};

use super::commit::{self, New};
use super::staged::{Becomes, Step, digest};
use super::was::Was;
use crate::sandbox::below;

const NAME: &str = "record.json";
/// Of the format.
const VERSION: u32 = 1;
/// Of `record.json`: a thousand paths of the longest kind.
const LARGEST: u64 = 16 << 20;

/// A record on the disk.
#[derive(Debug)]
pub(super) struct Record {
    folder: PathBuf,
    pub(super) written: Written,
}

/// What stands in it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Written {
    version: u32,
    pending: bool,
    /// Seconds since 1970.
    pub(super) time: u64,
    /// Of the tool that made the change.
    pub(super) tool: String,
    pub(super) places: Vec<Place>,
}

/// One place, before and after.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) place: String,
    before: Held,
    after: Held,
}

/// What a place held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Held {
    Nothing,
    Directory,
    Link {
        to: String,
    },
    File {
        digest: String,
        /// Permissions and the name of the kept content, of what was there before.
        #[serde(skip_serializing_if = "Option::is_none")]
        kept: Option<Kept>,
    },
    Special,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    name: String,
    mode: u32,
    owner: (u32, u32),
}

impl Record {
    /// Copies what will be replaced or removed, and notes what is about to happen. All of it is durable before this returns.
    pub(super) fn begin(folder: PathBuf, time: u64, tool: &str, root: &Dir, steps: &[Step]) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let mut places = Vec::with_capacity(steps.len());
        for (number, step) in steps.iter().enumerate() {
            let before = match &step.was {
                Was::Nothing => Held::Nothing,
                Was::Directory(..) => Held::Directory,
                Was::Link(to) => Held::Link { to: to.clone() },
                Was::Special => Held::Special,
                Was::File(stamp) => {
                    let (mut file, _) = below::open(root, &step.place)?;
                    let name = number.to_string();
                    let mut copy = private(&folder.join(&name))?;
                    io::copy(&mut file, &mut copy)?;
                    copy.sync_all()?;
                    let digest = digest(&mut File::open(folder.join(&name))?)?;
                    Held::File { digest, kept: Some(Kept { name, mode: stamp.mode, owner: stamp.owner }) }
                }
            };
            let after = match &step.becomes {
                Becomes::Nothing => Held::Nothing,
                Becomes::Directory => Held::Directory,
                Becomes::Link(to) => Held::Link { to: to.clone() },
                Becomes::File { digest, .. } => Held::File { digest: digest.clone(), kept: None },
            };
            places.push(Place { place: step.place.clone(), before, after });
        }
        let record = Self { folder, written: Written { version: VERSION, pending: true, time, tool: tool.to_owned(), places } };
        record.save()?;
        Ok(record)
    }

    /// Reads one; an error if it is none of this version.
    pub(super) fn read(folder: PathBuf) -> io::Result<Self> {
        let path = folder.join(NAME);
        if path.metadata()?.len() > LARGEST {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        let written: Written = serde_json::from_slice(&std::fs::read(path)?)?;
        if written.version != VERSION {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("it has the format {}, and this program knows {VERSION}", written.version),
            ));
        }
        Ok(Self { folder, written })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the change was begun and not ended.
    pub(super) fn is_pending(&self) -> bool {
        self.written.pending
    }

    /// The change is complete.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.written.pending = false;
        self.save()
    }

    /// The change is about to be taken back; whoever finds the record from now on goes on with that.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        self.written.pending = true;
        self.save()
    }

    /// Under which a new content waits beside its place.
    pub(super) fn temporary_name(&self, number: usize) -> String {
        let id = self.folder.file_name().unwrap_or_default().to_string_lossy();
        format!(".cofferdam-{id}-{number}.tmp")
    }

    /// Places that hold something else than what the change left there.
    pub(super) fn changed_since(&self, root: &Dir) -> Vec<&str> {
        let differs = |place: &&Place| !Held::look(root, &place.place).is_ok_and(|now| now.is_same(&place.after));
        self.written.places.iter().filter(differs).map(|place| place.place.as_str()).collect()
    }

    /// Puts back what was there, and removes the record. A place that holds neither what was there nor what the change
    /// put there is somebody else's: it stays, unless `force`.
    pub(super) fn roll_back(&self, root: &Dir) -> io::Result<()> {
        self.put_back(root, false)
    }

    pub(super) fn put_back(&self, root: &Dir, force: bool) -> io::Result<()> {
        let mut foreign = None;
        let mut steps = Vec::new();
        for (number, place) in self.written.places.iter().enumerate() {
            self.tidy(root, &place.place, number);
            let now = Held::look(root, &place.place)?;
            if now.is_same(&place.before) {
                continue;
            }
            if !force && now != Held::Nothing && !now.is_same(&place.after) {
                foreign.get_or_insert(&place.place);
                continue;
            }
            steps.push((number, place, now));
        }
        for (_, place, now) in steps.iter().rev() {
            // A file and a link give way to their like by themselves.
            if now.is_directory() != place.before.is_directory() || place.before == Held::Nothing {
                let was = Was::look(root, &place.place)?;
                commit::remove(root, &place.place, &was)?;
            }
        }
        for (number, place, _) in &steps {
            let name = self.temporary_name(*number);
            match &place.before {
                Held::Nothing | Held::Special => {}
                Held::Directory => commit::make_directory(root, &place.place)?,
                Held::Link { to } => commit::link(root, &place.place, to, &name)?,
                Held::File { digest, kept: Some(kept) } => {
                    let data = self.folder.join(&kept.name);
                    let file = New { data: &data, digest, mode: Some(kept.mode), owner: Some(kept.owner) };
                    commit::write(root, &place.place, &file, &name).map(drop)?;
                }
                Held::File { kept: None, .. } => return Err(io::Error::other("the record does not hold the old content")),
            }
        }
        match foreign {
            Some(place) => Err(io::Error::other(format!("'{place}' was changed by somebody else"))),
            None => std::fs::remove_dir_all(&self.folder),
        }
    }

    /// Removes what a crash has left beside a place.
    fn tidy(&self, root: &Dir, place: &str, number: usize) {
        if let Ok(parent) = below::directory(root, below::split(place).0) {
            // Mostly there is none.
            let _ = rustix::fs::unlinkat(&parent, self.temporary_name(number), rustix::fs::AtFlags::empty());
        }
    }

    fn save(&self) -> io::Result<()> {
        let new = self.folder.join("record.json.new");
        let mut file = private(&new)?;
        file.write_all(&serde_json::to_vec(&self.written)?)?;
        file.sync_all()?;
        std::fs::rename(new, self.folder.join(NAME))?;
        File::open(&self.folder)?.sync_all()
    }
}

fn private(path: &Path) -> io::Result<File> {
    File::options().write(true).create(true).truncate(true).mode(0o600).open(path)
}

impl Held {
    fn look(root: &Dir, place: &str) -> io::Result<Self> {
        Ok(match Was::look(root, place)? {
            Was::Nothing => Self::Nothing,
            Was::Directory(..) => Self::Directory,
            Was::Link(to) => Self::Link { to },
            Was::Special => Self::Special,
            Was::File(_) => Self::File { digest: digest(&mut below::open(root, place)?.0)?, kept: None },
        })
    }

    /// What is kept of it does not count.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { digest: one, .. }, Self::File { digest: other, .. }) => one == other,
            _ => self == other,
        }
    }

    fn is_directory(&self) -> bool {
        *self == Self::Directory
    }
}
