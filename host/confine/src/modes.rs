//! The permissions of this program's own files, and of the directories around them and around the
//! workspace.
//!
//! Landlock does not restrict changes of permissions, so a command at the level `kernel` can make
//! them. This program rejects files that others can write or read, and it cannot restore paths that
//! it cannot reach. Therefore it restores these permissions before anything else.

use std::collections::BTreeSet;
use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The maximum directory depth: down to the file of a session and the file of an undoable change.
const DEEPEST: usize = 4;
/// The maximum number of recorded files and directories.
const MOST: usize = 20_000;

/// The recorded permissions, outer directories first.
#[derive(Debug, Default)]
pub(super) struct RecordedFileModes(Vec<RecordedFileMode>);

#[derive(Debug)]
struct RecordedFileMode {
    path: PathBuf,
    inode: u64,
    device: u64,
    mode: u32,
}

impl RecordedFileModes {
    /// Records the permissions of `own`, of the directories around these files, and of their
    /// contents.
    ///
    /// Also records all directories above `own` and `reached` that belong to this user.
    pub(super) fn of(own: &[PathBuf], reached: &[&Path]) -> Self {
        let mut modes = Self::default();
        let mut parents = BTreeSet::new();
        for path in own.iter().map(PathBuf::as_path).chain(reached.iter().copied()) {
            parents.extend(path.ancestors().skip(1));
        }
        // The sort order puts outer directories first.
        for parent in parents {
            modes.add_parent(parent);
        }
        for path in own {
            if path.is_file()
                && let Some(folder) = path.parent()
            {
                modes.add(folder, 0);
            }
            modes.add(path, DEEPEST);
        }
        modes
    }

    fn add_parent(&mut self, path: &Path) {
        let user = rustix::process::geteuid().as_raw();
        if let Some(metadata) = itself(path).filter(|metadata| metadata.uid() == user) {
            self.push(path, &metadata);
        }
    }

    fn push(&mut self, path: &Path, metadata: &Metadata) {
        self.0.push(RecordedFileMode {
            path: path.to_owned(),
            inode: metadata.ino(),
            device: metadata.dev(),
            mode: metadata.mode() & 0o7777,
        });
    }

    fn add(&mut self, path: &Path, depth: usize) {
        let Some(metadata) = itself(path).filter(|_| self.0.len() < MOST) else { return };
        self.push(path, &metadata);
        if metadata.is_dir() && depth > 0 {
            for entry in fs::read_dir(path).into_iter().flatten().flatten().take(MOST) {
                self.add(&entry.path(), depth - 1);
            }
        }
    }

    /// Restores the permissions that a command changed, and returns a notice.
    ///
    /// No process of the command may be left, since it could replace files meanwhile.
    pub(super) fn put_back(&self) -> Option<String> {
        let (mut changed, mut problem) = (0, None);
        for RecordedFileMode { path, inode, device, mode } in &self.0 {
            let is_changed = |now: &Metadata| {
                (now.ino(), now.dev()) == (*inode, *device) && now.mode() & 0o7777 != *mode
            };
            if itself(path).is_some_and(|now| is_changed(&now)) {
                changed += 1;
                let set = fs::set_permissions(path, Permissions::from_mode(*mode));
                problem = problem.or_else(|| Some(format!("{}: {}", path.display(), set.err()?)));
            }
        }
        let what = format!(
            "the command changed the permissions of {changed} of Cofferdam's files or directories, \
             or of directories above them or the workspace"
        );
        match problem {
            _ if changed == 0 => None,
            None => Some(format!("{what}; they were restored")),
            Some(problem) => Some(cofferdam_policy::terminal_escape::escape_line(
                &format!("{what}, and they COULD NOT be restored: {problem}"),
                400,
            )),
        }
    }
}

/// Returns the metadata of a path, unless it is a link.
fn itself(path: &Path) -> Option<Metadata> {
    fs::symlink_metadata(path).ok().filter(|metadata| !metadata.is_symlink())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_as_they_were_after_a_command() {
        let temp = tempfile::tempdir().expect("a folder");
        let at = |path: &str| temp.path().join(path);
        let set = |path: &str, mode| {
            fs::set_permissions(at(path), Permissions::from_mode(mode)).expect("it is ours")
        };
        let mode = |path: &str| fs::metadata(at(path)).expect("it is there").mode() & 0o7777;
        fs::create_dir_all(at("config")).expect("it is made");
        fs::create_dir_all(at("state/sessions/p")).expect("it is made");
        let files = ["config/config.toml", "config/policy.toml", "state/sessions/p/s.jsonl"];
        files.iter().for_each(|path| fs::write(at(path), "").expect("it is written"));
        let all = [
            "config",
            "config/config.toml",
            "config/policy.toml",
            "state",
            "state/sessions",
            "state/sessions/p",
            files[2],
        ];
        all.iter().for_each(|path| set(path, if at(path).is_dir() { 0o700 } else { 0o600 }));
        let own = ["config/config.toml", "config", "state", "missing"].map(at);
        let own_modes = RecordedFileModes::of(&own, &[]);
        assert_eq!(own_modes.put_back(), None);
        // Inner paths come first, since nothing below a closed directory can be changed.
        all.iter()
            .rev()
            .for_each(|path| set(path, if path.ends_with("policy.toml") { 0o666 } else { 0o777 }));
        ["state/sessions/p", "state"].iter().for_each(|path| set(path, 0));
        let notice = own_modes.put_back().expect("it was changed");
        assert!(notice.ends_with("; they were restored"), "{notice}");
        for path in all {
            assert_eq!(mode(path), if at(path).is_dir() { 0o700 } else { 0o600 }, "{path}");
        }
        // The directories around the files and around the workspace.
        fs::create_dir_all(at("outer/work")).expect("it is made");
        fs::create_dir_all(at("home/.local/state")).expect("it is made");
        let own = [at("home/.local/state/own")];
        let modes = RecordedFileModes::of(&own, &[&at("outer/work")]);
        let around = ["home", "home/.local", "home/.local/state", "outer"];
        around.iter().rev().for_each(|path| set(path, 0));
        let notice = modes.put_back().expect("it was changed");
        assert!(notice.contains("permissions of 4 of Cofferdam"), "{notice}");
        around.iter().for_each(|path| assert_eq!(mode(path), 0o755, "{path}"));
        // The same name now refers to another file.
        fs::remove_file(at("config/config.toml")).expect("it goes");
        fs::write(at("other"), "").expect("it is written");
        set("other", 0o644);
        std::os::unix::fs::symlink(at("other"), at("config/config.toml")).expect("a link");
        own_modes.put_back();
        assert_eq!(mode("other"), 0o644);
    }
}
