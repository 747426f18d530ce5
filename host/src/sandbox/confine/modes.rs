//! Permissions of the files of this program itself, and of the directories around them and around
//! the workspace. Landlock does not look at permissions, so that a command at the level `kernel` can
//! change them; what others could write or read, this program does not believe or use, and what it
//! cannot reach, it cannot look after. So they are put back, before anything else is done.

use std::collections::BTreeSet;
use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Folders in folders are looked into so far: to the file of a session, and to that of a change
/// that can be undone.
const DEEPEST: usize = 4;
/// Files and folders that are remembered.
const MOST: usize = 20_000;

/// The permissions that there were, outer folders first.
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
    /// Those of these files, of the folders around them, and of what is in these folders; and those
    /// of all directories around `reached`, and around these files, that belong to this user.
    pub(super) fn of(own: &[PathBuf], reached: &[&Path]) -> Self {
        let mut modes = Self::default();
        let mut parents = BTreeSet::new();
        for path in own.iter().map(PathBuf::as_path).chain(reached.iter().copied()) {
            parents.extend(path.ancestors().skip(1));
        }
        // In this order outer directories come first.
        parents.into_iter().for_each(|parent| modes.add_parent(parent));
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

    /// Puts back what a command has changed, and tells of it. No process of the command is left
    /// that could put something else there.
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
            "the permissions of {changed} files and directories of this program, or around its files or the workspace, were changed"
        );
        match problem {
            _ if changed == 0 => None,
            None => Some(format!("{what}, which is not allowed; they are as they were")),
            Some(problem) => Some(crate::terminal_escape::escape_line(
                &format!("{what}, and COULD NOT be put back: {problem}"),
                400,
            )),
        }
    }
}

/// What is at a path, unless that is a link.
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
        // From the inside out, as nothing below a closed folder can be changed.
        all.iter()
            .rev()
            .for_each(|path| set(path, if path.ends_with("policy.toml") { 0o666 } else { 0o777 }));
        ["state/sessions/p", "state"].iter().for_each(|path| set(path, 0));
        let told = own_modes.put_back().expect("it was changed");
        assert!(told.ends_with("which is not allowed; they are as they were"), "{told}");
        for path in all {
            assert_eq!(mode(path), if at(path).is_dir() { 0o700 } else { 0o600 }, "{path}");
        }
        // What is around the files and around the workspace.
        fs::create_dir_all(at("outer/work")).expect("it is made");
        fs::create_dir_all(at("home/.local/state")).expect("it is made");
        let own = [at("home/.local/state/own")];
        let modes = RecordedFileModes::of(&own, &[&at("outer/work")]);
        let around = ["home", "home/.local", "home/.local/state", "outer"];
        around.iter().rev().for_each(|path| set(path, 0));
        let told = modes.put_back().expect("it was changed");
        assert!(told.contains("of 4 files and directories"), "{told}");
        around.iter().for_each(|path| assert_eq!(mode(path), 0o755, "{path}"));
        // What is there now under the same name is another file.
        fs::remove_file(at("config/config.toml")).expect("it goes");
        fs::write(at("other"), "").expect("it is written");
        set("other", 0o644);
        std::os::unix::fs::symlink(at("other"), at("config/config.toml")).expect("a link");
        own_modes.put_back();
        assert_eq!(mode("other"), 0o644);
    }
}
