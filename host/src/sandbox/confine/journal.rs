//! The record of a command that has not ended: what was protected before it, on the disk. If
//! everything that looks after the command is killed, whoever comes next finds the record, ends
//! what is left of the command, and puts everything back.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::protocol::SupervisorRequest;
use super::queue;
use super::snapshot::{ProtectedSnapshot, SavedPath, SavedSnapshot};
use super::supervisor::restore_protected_paths;
use crate::own_file;
use crate::policy::{ProtectedPaths, SandboxLevel};
use crate::sandbox::os;

/// The largest record that is read: the most that is kept of protected files, encoded, and their
/// paths.
const LARGEST: u64 = 256 << 20;

/// The largest file of what was done that is read.
const MAX_TOLD_SIZE: u64 = 4 << 20;

/// How the name of a file ends that says what was done.
const TOLD: &str = "told";

/// The record of one command.
#[derive(Debug, Serialize, Deserialize)]
struct UnfinishedRun {
    workspace: SavedPath,
    /// When the workspace was made, which tells it from a later directory with its number.
    born: Option<SystemTime>,
    /// The directory that is the command's alone: its processes have it in their environment.
    temporary: SavedPath,
    supervisor: u32,
    keeping: bool,
    protected: ProtectedPaths,
    before: SavedSnapshot,
}

/// The record of a command that runs.
#[derive(Debug)]
pub(super) struct RestoreJournal(PathBuf);

impl RestoreJournal {
    /// Writes the record, before the command begins.
    pub(super) fn begin(
        order: &SupervisorRequest,
        temporary: &Path,
        protected: &ProtectedPaths,
        before: &ProtectedSnapshot,
    ) -> io::Result<Self> {
        let path = path_of(&order.set_aside, &order.workspace)?;
        let folder = folder_of(&order.set_aside);
        own_file::create_dir_io(&order.set_aside)?;
        own_file::create_dir_io(&folder)?;
        let unfinished = UnfinishedRun {
            workspace: SavedPath::of(&order.workspace),
            born: born(&order.workspace),
            temporary: SavedPath::of(temporary),
            supervisor: std::process::id(),
            keeping: order.level != SandboxLevel::Full,
            protected: protected.clone(),
            before: SavedSnapshot::of(before),
        };
        // Nobody but this user can read it.
        let mut file = tempfile::Builder::new().prefix("new-").tempfile_in(&folder)?;
        file.write_all(&serde_json::to_vec(&unfinished)?)?;
        file.persist(&path)?;
        Ok(Self(path))
    }

    /// Removes the record, when everything is put back.
    pub(super) fn end(self) -> io::Result<()> {
        fs::remove_file(&self.0)
    }
}

/// Puts back what an unfinished command left in a workspace, for whoever has the turn there.
/// Returns what was done.
pub(super) fn recover(set_aside: &Path, workspace: &Path) -> Vec<String> {
    match check_directories(set_aside) {
        Ok(true) => {}
        Ok(false) => return Vec::new(),
        Err(problem) => return vec![problem],
    }
    let Ok(path) = path_of(set_aside, workspace) else { return Vec::new() };
    let told = take_told(&path);
    let unfinished = match read(&path) {
        Ok(Some(unfinished)) if unfinished.born == born(workspace) => unfinished,
        Ok(Some(_)) => {
            // The workspace is gone, and another directory has its number.
            let _ = fs::remove_file(&path);
            return told;
        }
        Ok(None) => return told,
        Err(problem) => {
            let kept = path.with_extension("unreadable");
            let moved = fs::rename(&path, &kept);
            let is = if moved.is_ok() {
                format!("it is now {}", kept.display())
            } else {
                "it stays there".to_owned()
            };
            return vec![format!(
                "a command in this workspace was cut off, and what was protected before it is not \
                    known: {}: {problem}; {is}. \
                 Look whether .git/hooks and the like are as they should be",
                path.display()
            )];
        }
    };
    let done = finish(&unfinished, set_aside, workspace);
    let mut remarks = match done {
        Ok(remarks) => {
            let removed = fs::remove_file(&path)
                .map_err(|error| format!("{} cannot be removed: {error}", path.display()));
            remarks.into_iter().chain(removed.err()).collect()
        }
        Err(problem) => {
            vec![format!("what it changed of protected paths could not be looked after: {problem}")]
        }
    };
    if !remarks.is_empty() {
        remarks.insert(
            0,
            "an earlier command in this workspace was cut off by the end of this program; what it \
                changed is looked after now"
                .to_owned(),
        );
    }
    told.into_iter().chain(remarks).collect()
}

fn finish(
    unfinished: &UnfinishedRun,
    set_aside: &Path,
    workspace: &Path,
) -> Result<Vec<String>, String> {
    let broken = || "its record is not as it was written".to_owned();
    let before = unfinished.before.restore().ok_or_else(broken)?;
    let temporary = unfinished.temporary.path().ok_or_else(broken)?;
    let ended = os::end_processes_of(&temporary);
    let mut remarks = restore_protected_paths(
        (workspace, set_aside),
        &unfinished.protected,
        unfinished.keeping,
        &before,
        Duration::ZERO,
    )?;
    remarks.extend(ended.err());
    Ok(remarks)
}

/// The same for a workspace and for those above and below it, as far as no command runs there,
/// without waiting.
pub(super) fn recover_if_idle(set_aside: &Path, workspace: &Path) -> Vec<String> {
    match check_directories(set_aside) {
        Ok(true) => {}
        Ok(false) => return Vec::new(),
        Err(problem) => return vec![problem],
    }
    let is_related = |other: &PathBuf| other.starts_with(workspace) || workspace.starts_with(other);
    let records = fs::read_dir(folder_of(set_aside))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| read(&entry.path()).ok()?);
    let mut workspaces: Vec<PathBuf> =
        records.filter_map(|unfinished| unfinished.workspace.path()).filter(is_related).collect();
    if path_of(set_aside, workspace)
        .is_ok_and(|path| path.exists() || path.with_extension(TOLD).exists())
    {
        workspaces.push(workspace.to_owned());
    }
    let recovered = workspaces.into_iter().flat_map(|workspace| {
        match queue::wait_for_turn(&workspace, set_aside, || false) {
            Ok(Some(_turn)) => recover(set_aside, &workspace),
            // Whoever has the turn looks after it; a workspace that is gone needs nothing.
            Ok(None) | Err(_) => Vec::new(),
        }
    });
    recovered.collect()
}

/// The same for the workspace of a supervisor that was killed, by its number. What was done is told
/// to whoever comes next.
pub(super) fn recover_after(set_aside: &Path, supervisor: u32) {
    if !matches!(check_directories(set_aside), Ok(true)) {
        return;
    }
    let records = fs::read_dir(folder_of(set_aside))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| read(&entry.path()).ok()?);
    let ours = records.filter(|unfinished| unfinished.supervisor == supervisor);
    for workspace in ours.filter_map(|unfinished| unfinished.workspace.path()).collect::<Vec<_>>() {
        if let Ok(Some(_turn)) = queue::wait_for_turn(&workspace, set_aside, || true) {
            let remarks = recover(set_aside, &workspace);
            if let (false, Ok(path)) = (remarks.is_empty(), path_of(set_aside, &workspace)) {
                // Without it everything is put back all the same.
                let _ = fs::write(
                    path.with_extension(TOLD),
                    serde_json::to_vec(&remarks).unwrap_or_default(),
                );
            }
        }
    }
}

/// What was done when there was nobody to hear of it.
fn take_told(path: &Path) -> Vec<String> {
    let path = path.with_extension(TOLD);
    let text = own_file::read(&path, MAX_TOLD_SIZE).ok();
    let told = text.and_then(|text| serde_json::from_slice(&text).ok());
    if told.is_some() {
        let _ = fs::remove_file(path);
    }
    told.unwrap_or_default()
}

fn born(workspace: &Path) -> Option<SystemTime> {
    fs::metadata(workspace).ok()?.created().ok()
}

/// Checks that nobody else can have put records there. Returns whether there can be any.
fn check_directories(set_aside: &Path) -> Result<bool, String> {
    let is_there = own_file::find_dir_io(set_aside)
        .and_then(|there| Ok(there && own_file::find_dir_io(&folder_of(set_aside))?));
    is_there.map_err(|error| {
        format!(
            "records of commands that were cut off cannot be used: {error}\nhint: make the \
                directory yours (`chown`, `chmod go-w`), or remove it"
        )
    })
}

fn folder_of(set_aside: &Path) -> PathBuf {
    set_aside.join("unfinished")
}

fn path_of(set_aside: &Path, workspace: &Path) -> io::Result<PathBuf> {
    let metadata = fs::metadata(workspace)?;
    Ok(folder_of(set_aside).join(format!("{:x}-{:x}.json", metadata.dev(), metadata.ino())))
}

fn read(path: &Path) -> io::Result<Option<UnfinishedRun>> {
    match own_file::read(path, LARGEST) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        text => Ok(Some(serde_json::from_slice(&text?)?)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    }

    #[test]
    fn records_that_others_can_have_written_are_not_used() {
        let (state, workspace) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let set_aside = state.path().join("set-aside");
        assert!(recover(&set_aside, workspace.path()).is_empty());
        own_file::create_dir_io(&folder_of(&set_aside)).expect("they are made");
        let record = path_of(&set_aside, workspace.path()).expect("it has a name");
        for directory in [set_aside.clone(), folder_of(&set_aside)] {
            set_mode(&directory, 0o777);
            fs::write(&record, "{}").expect("it is written");
            for remarks in [
                recover(&set_aside, workspace.path()),
                recover_if_idle(&set_aside, workspace.path()),
            ] {
                let remarks = remarks.join("");
                assert!(remarks.contains("can be written by others"), "{remarks}");
                assert!(remarks.contains("\nhint: "), "{remarks}");
            }
            assert!(record.exists(), "it is not touched");
            set_mode(&directory, 0o700);
        }
        set_mode(&set_aside, 0o777);
        let turn = queue::wait_for_turn(workspace.path(), &set_aside, || false).map(|_| ());
        assert!(turn.is_err_and(|problem| problem.contains("can be written by others")));
        set_mode(&set_aside, 0o700);
        // Neither is waited for.
        for make in ["link", "fifo", "mode"] {
            let _ = fs::remove_file(&record);
            match make {
                "link" => std::os::unix::fs::symlink("/dev/zero", &record).expect("a link"),
                "fifo" => {
                    let kind = rustix::fs::FileType::Fifo;
                    let mode = rustix::fs::Mode::RWXU;
                    rustix::fs::mknodat(rustix::fs::CWD, &record, kind, mode, 0).expect("a FIFO");
                }
                _ => {
                    fs::write(&record, "{}").expect("it is written");
                    set_mode(&record, 0o666);
                }
            }
            let remarks = recover(&set_aside, workspace.path()).join("");
            assert!(remarks.contains("is not known"), "{make}: {remarks}");
            assert!(remarks.contains("can be written") == (make == "mode"), "{make}: {remarks}");
        }
    }
}
