//! What was there before a change: enough to have it back, on the disk before the change begins.
//!
//! A record is a folder with `record.json` and the old contents, each a file by its number. While it is *pending* the change
//! may have been made by halves; whoever finds it so, and holds the lock of the history, takes it back. That is tried once: what
//! cannot be put back is *abandoned* to the user, for later it might destroy newer work.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};

use super::rights::Rights;
use super::staged::{Becomes, Step, digest};
use super::was::Was;
use crate::sandbox::below;

pub(super) const NAME: &str = "record.json";
/// Of the format.
const VERSION: u32 = 2;
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
    state: State,
    /// Seconds since 1970.
    pub(super) time: u64,
    /// Of the tool that made the change.
    pub(super) tool: String,
    pub(super) places: Vec<Place>,
}

/// How far a change has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    /// It was begun, or is being taken back.
    Pending,
    Made,
    /// It was made or taken back by halves, and is nobody's but the user's. The record is kept for the contents in it.
    Abandoned,
}

/// One place, before and after.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) place: String,
    pub(super) before: Held,
    pub(super) after: Held,
}

/// What a place held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum Held {
    Nothing,
    Directory {
        /// Those of what was there before.
        #[serde(skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<(u32, u32)>,
    },
    Link {
        to: String,
    },
    File {
        digest: String,
        /// The rights of what was there before, and the name of the kept content.
        #[serde(skip_serializing_if = "Option::is_none")]
        kept: Option<Kept>,
    },
    Special,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) rights: Rights,
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
                Was::Directory(stamp) => Held::Directory { mode: Some(stamp.rights.mode), owner: stamp.rights.owner },
                Was::Link(to) => Held::Link { to: to.clone() },
                Was::Special => Held::Special,
                Was::File(stamp) => {
                    let (mut file, _) = below::open(root, &step.place)?;
                    let name = number.to_string();
                    let mut copy = private(&folder.join(&name))?;
                    io::copy(&mut file, &mut copy)?;
                    copy.sync_all()?;
                    let digest = digest(&mut File::open(folder.join(&name))?)?;
                    Held::File { digest, kept: Some(Kept { name, rights: stamp.rights }) }
                }
            };
            let after = match &step.becomes {
                Becomes::Nothing => Held::Nothing,
                Becomes::Directory { .. } => Held::directory(),
                Becomes::Link(to) => Held::Link { to: to.clone() },
                Becomes::File { digest, .. } => Held::File { digest: digest.clone(), kept: None },
            };
            places.push(Place { place: step.place.clone(), before, after });
        }
        let record = Self { folder, written: Written { version: VERSION, state: State::Pending, time, tool: tool.to_owned(), places } };
        record.save()?;
        // The name of its folder too.
        record.folder.parent().map_or(Ok(()), |history| File::open(history)?.sync_all())?;
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

    pub(super) fn state(&self) -> State {
        self.written.state
    }

    /// Writes down how far the change has come.
    pub(super) fn becomes(&mut self, state: State) -> io::Result<()> {
        self.written.state = state;
        self.save()
    }

    /// Nobody asks for it any more.
    pub(super) fn forget(&self) -> io::Result<()> {
        std::fs::remove_dir_all(&self.folder)
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

    /// Whether the old content of a place can still be had.
    pub(super) fn kept(&self, held: &Held) -> io::Result<()> {
        let Held::File { digest: expected, kept } = held else { return Ok(()) };
        let Some(kept) = kept else { return Err(io::Error::from(io::ErrorKind::NotFound)) };
        let found = digest(&mut File::open(self.folder.join(&kept.name))?)?;
        if found == *expected { Ok(()) } else { Err(io::Error::from(io::ErrorKind::InvalidData)) }
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
        Self::of(root, place, &Was::look(root, place)?)
    }

    pub(super) fn of(root: &Dir, place: &str, was: &Was) -> io::Result<Self> {
        Ok(match was {
            Was::Nothing => Self::Nothing,
            Was::Directory(_) => Self::directory(),
            Was::Link(to) => Self::Link { to: to.clone() },
            Was::Special => Self::Special,
            Was::File(_) => Self::File { digest: digest(&mut below::open(root, place)?.0)?, kept: None },
        })
    }

    /// What is kept of it does not count.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { digest: one, .. }, Self::File { digest: other, .. }) => one == other,
            (Self::Directory { .. }, Self::Directory { .. }) => true,
            _ => self == other,
        }
    }

    pub(super) fn is_directory(&self) -> bool {
        matches!(self, Self::Directory { .. })
    }

    /// One of which nothing more is known.
    fn directory() -> Self {
        Self::Directory { mode: None, owner: None }
    }

    /// Those of a directory that was there before.
    pub(super) fn rights_of_directory(&self) -> Option<Rights> {
        match self {
            Self::Directory { mode, owner } => mode.map(|mode| Rights { mode, owner: *owner }),
            Self::Nothing | Self::Link { .. } | Self::File { .. } | Self::Special => None,
        }
    }
}
