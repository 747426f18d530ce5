//! The protected paths of a workspace before and after a command. What a sandbox cannot keep from being changed, since it
//! has no means to, or since the name was not there to be guarded, is put back as it was.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, FileType};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::policy::{Protected, ProtectedPaths};

/// Entries that are looked at; a walk goes from the outside in, so that what is left out is the deepest.
const MOST_ENTRIES: usize = 1_000_000;
/// Bytes that are kept to be put back.
const MOST_KEPT: u64 = 64 << 20;
/// Folders of a repository that only hold what it stores.
const STORES: &[&str] = &["objects", "refs", "logs", "lfs"];

/// What there was.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub(super) entries: BTreeMap<PathBuf, Entry>,
    /// Not all of the workspace was looked at.
    pub(super) cut: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) how: Protected,
    /// Since it lies in something that is protected, and not by its own name.
    pub(super) inherited: bool,
    /// Hidden, and a program runs it by itself: a new one is not harmless.
    pub(super) runs: bool,
    pub(super) kind: FileType,
    pub(super) mode: u32,
    pub(super) kept: Kept,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    File(Vec<u8>),
    Link(PathBuf),
    /// There is nothing to keep, or no need.
    Nothing,
}

/// A folder that is to be looked through.
struct Folder {
    path: PathBuf,
    inherited: Option<Protected>,
    in_repository: bool,
    /// A name on the way here is one that protected paths have.
    telling: bool,
}

impl Snapshot {
    /// Looks through the workspace; with `keeping`, so that everything can be put back. What was protected before is looked
    /// at first: no crowd of new files keeps the eye from it.
    pub(super) fn take(root: &Path, protected: &ProtectedPaths, keeping: bool, before: &Self) -> Result<Self, String> {
        let mut all = Self::default();
        let mut looked_at = 0;
        let mut kept = 0;
        let names = protected.names();
        // Not through links, which the command may have put in the way.
        let is_itself = |folder: &Folder| root.join(&folder.path).canonicalize().is_ok_and(|path| path == root.join(&folder.path));
        let is_looked_into = |folder: &Folder| keeping || folder.inherited != Some(Protected::Hidden);
        let mut folders: VecDeque<Folder> = before.folders().filter(|folder| is_looked_into(folder) && is_itself(folder)).collect();
        folders.push_back(Folder { path: PathBuf::new(), inherited: None, in_repository: false, telling: false });
        let mut seen = BTreeSet::new();
        while let Some(folder) = folders.pop_front() {
            if folder.telling && !seen.insert(folder.path.clone()) {
                continue;
            }
            // A folder that cannot be listed can hold nothing that the command could list.
            for entry in fs::read_dir(root.join(&folder.path)).into_iter().flatten().flatten() {
                looked_at += 1;
                if looked_at > MOST_ENTRIES {
                    all.cut = true;
                    return Ok(all);
                }
                let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else { continue };
                let name = name.to_string_lossy();
                let path = folder.path.join(entry.file_name());
                let telling = folder.telling || names.may_be(&name);
                let own = telling.then(|| protected.of_parts(path.to_string_lossy().split('/'))).flatten();
                // As a file or as a link, `.git` says where hooks are.
                let own = own.map(|how| if how == Protected::Pinned && !kind.is_dir() { Protected::ReadOnly } else { how });
                let how = own.max(folder.inherited);
                if let Some(how) = how {
                    let (mode, what) = if keeping { keep(&entry.path(), kind, &mut kept)? } else { (0, link(&entry.path(), kind)) };
                    let inherited = folder.inherited == Some(how);
                    let runs = how == Protected::Hidden && protected.is_read_only(path.to_string_lossy().split('/'));
                    all.entries.insert(path.clone(), Entry { how, inherited, runs, kind, mode, kept: what });
                }
                let store = folder.in_repository && STORES.contains(&name.as_ref());
                let unseen = how == Some(Protected::Hidden) && !keeping;
                if kind.is_dir() && !store && !unseen {
                    let in_repository = folder.in_repository || name.eq_ignore_ascii_case(".git");
                    let inherited = how.filter(|how| *how != Protected::Pinned);
                    folders.push_back(Folder { path, inherited, in_repository, telling });
                }
            }
        }
        Ok(all)
    }

    /// The folders among what is protected.
    fn folders(&self) -> impl Iterator<Item = Folder> {
        self.entries.iter().filter(|(_, entry)| entry.kind.is_dir()).map(|(path, entry)| Folder {
            path: path.clone(),
            inherited: Some(entry.how).filter(|how| *how != Protected::Pinned),
            in_repository: path.iter().any(|part| part.eq_ignore_ascii_case(".git")),
            telling: true,
        })
    }
}

fn keep(path: &Path, kind: FileType, kept: &mut u64) -> Result<(u32, Kept), String> {
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok((0, Kept::Nothing)) };
    let mode = metadata.permissions().mode() & 0o7777;
    if !kind.is_file() {
        return Ok((mode, link(path, kind)));
    }
    *kept += metadata.len();
    if *kept > MOST_KEPT {
        return Err(format!(
            "the protected files of the workspace have more than {} MiB, which is more than can be kept to be put back. \
             In the sandbox `full` (install bubblewrap) they need not be.",
            MOST_KEPT >> 20
        ));
    }
    // What this user cannot read, a command of this user cannot change but by replacing it, which shows in the mode.
    Ok((mode, fs::read(path).map_or(Kept::Nothing, Kept::File)))
}

fn link(path: &Path, kind: FileType) -> Kept {
    if kind.is_symlink() { fs::read_link(path).map_or(Kept::Nothing, Kept::Link) } else { Kept::Nothing }
}
