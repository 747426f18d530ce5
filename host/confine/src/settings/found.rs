//! The search for settings in the paths that commands see, and in the files that these settings
//! include.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;

use super::format::SettingsFormat;
use super::reader::SettingsFileReader;
use crate::git::expanded;

/// Opens a directory also if its entries cannot be listed.
#[cfg(target_os = "linux")]
const PATH_ONLY: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PATH_ONLY: OFlags = OFlags::RDONLY;

/// The maximum number of matches in one directory of toolchains.
const MOST_FOUND: usize = 200;
/// The maximum number of included files, at any depth.
const MOST_INCLUDED: usize = 200;

/// The size of a directory that is read as a whole, in bytes: one block of most file systems.
const SMALL_DIRECTORY: i64 = 4096;
/// The number of names up to which a directory is read as a whole.
const MAX_LISTED: usize = 200;

/// The paths of settings below every directory that commands see as a whole, such as a toolchain, a
/// Python environment, or a repository outside the workspace.
///
/// git settings and stored passwords count only beside a `HEAD`, or in `.git`.
const IN_FOLDERS: &[(&str, SettingsFormat)] = &[
    ("config", SettingsFormat::Git),
    ("config.worktree", SettingsFormat::Git),
    ("credentials", SettingsFormat::Credentials),
    (".git-credentials", SettingsFormat::Credentials),
    (".git/config", SettingsFormat::Git),
    (".git/credentials", SettingsFormat::Credentials),
    ("modules/*/config", SettingsFormat::Git),
    ("modules/*/modules/*/config", SettingsFormat::Git),
    ("worktrees/*/config.worktree", SettingsFormat::Git),
    ("plugins/*/.git/config", SettingsFormat::Git),
    ("db/*/config", SettingsFormat::Git),
    ("checkouts/*/*/.git/config", SettingsFormat::Git),
    ("mod/cache/vcs/*/config", SettingsFormat::Git),
    (".condarc", SettingsFormat::Lines),
    ("condarc", SettingsFormat::Lines),
    ("envs/*/.condarc", SettingsFormat::Lines),
    ("envs/*/pip.conf", SettingsFormat::Lines),
    ("pip.conf", SettingsFormat::Lines),
    ("versions/*/pip.conf", SettingsFormat::Lines),
    ("installs/*/*/pip.conf", SettingsFormat::Lines),
    ("etc/npmrc", SettingsFormat::Lines),
    ("local/etc/npmrc", SettingsFormat::Lines),
    ("versions/node/*/etc/npmrc", SettingsFormat::Lines),
    ("versions/*/etc/npmrc", SettingsFormat::Lines),
    ("installs/*/*/etc/npmrc", SettingsFormat::Lines),
    ("tools/image/node/*/etc/npmrc", SettingsFormat::Lines),
    ("repo/repos-config", SettingsFormat::Text),
    ("config.yaml", SettingsFormat::Text),
    ("config.toml", SettingsFormat::Text),
];

/// The paths of settings below one specific directory, which is identified by the end of its path.
const IN_ONE_FOLDER: &[(&str, &str, SettingsFormat)] = &[
    (".fnm", "node-versions/*/installation/etc/npmrc", SettingsFormat::Lines),
    (".local/share/fnm", "node-versions/*/installation/etc/npmrc", SettingsFormat::Lines),
    (".local/share/mise/installs", "node/*/etc/npmrc", SettingsFormat::Lines),
    (".local/share/uv/python", "*/pip.conf", SettingsFormat::Lines),
    (".local/share/mise/installs", "python/*/pip.conf", SettingsFormat::Lines),
    (".opam", "config", SettingsFormat::Text),
    (".rbenv", "versions/*/etc/gemrc", SettingsFormat::Lines),
    (".rvm", "rubies/*/etc/gemrc", SettingsFormat::Lines),
    (".sdkman", "candidates/gradle/*/gradle.properties", SettingsFormat::Lines),
    (".sdkman", "candidates/gradle/*/init.d/*", SettingsFormat::Lines),
    (".sdkman", "candidates/maven/*/conf/settings.xml", SettingsFormat::Markup),
    ("/opt", "*/conf/settings.xml", SettingsFormat::Markup),
    ("/opt", "*/etc/gitconfig", SettingsFormat::Git),
    ("/opt", "*/etc/npmrc", SettingsFormat::Lines),
    ("/opt", "*/pip.conf", SettingsFormat::Lines),
    ("/opt", "cargo/config", SettingsFormat::Cargo),
    ("/opt", "cargo/config.toml", SettingsFormat::Cargo),
    ("/opt", "cargo/credentials", SettingsFormat::Cargo),
    ("/opt", "cargo/credentials.toml", SettingsFormat::Cargo),
    ("/usr", "local/cargo/config", SettingsFormat::Cargo),
    ("/usr", "local/cargo/config.toml", SettingsFormat::Cargo),
    ("/usr", "local/cargo/credentials", SettingsFormat::Cargo),
    ("/usr", "local/cargo/credentials.toml", SettingsFormat::Cargo),
    ("/usr", "local/etc/gitconfig", SettingsFormat::Git),
    ("/usr", "local/pip.conf", SettingsFormat::Lines),
    ("pipx/venvs", "*/pip.conf", SettingsFormat::Lines),
    ("pipx/venvs", "*/pipx_metadata.json", SettingsFormat::Text),
    ("uv/tools", "*/uv-receipt.toml", SettingsFormat::Text),
];

/// Returns the settings at or below a path that commands see.
pub(super) fn settings_in(place: &Path) -> Vec<(PathBuf, SettingsFormat)> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | PATH_ONLY;
    let Ok(opened) = openat(CWD, place, flags, Mode::empty()) else {
        return SettingsFormat::of_named(place)
            .map(|format| (place.to_owned(), format))
            .into_iter()
            .collect();
    };
    let mut known = FirstNames::of(opened);
    let of_this = IN_ONE_FOLDER
        .iter()
        .filter(|(folder, ..)| place.ends_with(folder))
        .map(|(_, pattern, format)| (*pattern, *format));
    let all = IN_FOLDERS.iter().copied().chain(of_this);
    let all = all.filter(|(pattern, _)| known.may_have(pattern));
    let found = all.flat_map(|(pattern, format)| {
        find(place, pattern).into_iter().map(move |path| (path, format))
    });
    // In many toolchains, `config` is not a git file.
    let is_known = |path: &Path| {
        path.ends_with("gitconfig") || path.parent().is_some_and(|parent| parent.ends_with(".git"))
    };
    let is_it = |(path, format): &(PathBuf, SettingsFormat)| {
        !matches!(format, SettingsFormat::Git | SettingsFormat::Credentials)
            || is_known(path)
            || path.with_file_name("HEAD").exists()
    };
    found.filter(is_it).collect()
}

/// Adds the files that these settings include, recursively, if commands see them. A file that
/// commands do not see may include one that they see.
pub(super) fn add_included(
    settings: &mut Vec<(PathBuf, SettingsFormat)>,
    home: Option<&Path>,
    reader: &SettingsFileReader,
    is_seen: impl Fn(&Path) -> bool,
) {
    let mut known: BTreeSet<PathBuf> =
        settings.iter().filter_map(|(path, _)| reader.resolver.canonicalize(path).ok()).collect();
    let mut all = settings.clone();
    let (mut at, most) = (0, all.len() + MOST_INCLUDED);
    while let Some((path, format)) = all.get(at).cloned() {
        at += 1;
        for named in format.included(&path, reader) {
            let Some(folder) = path.parent() else { continue };
            let whole = folder.join(expanded(&named, home));
            // A file that does not exist cannot be read either.
            let Ok(real) = reader.resolver.canonicalize(&whole) else { continue };
            if all.len() < most && real.is_file() && known.insert(real.clone()) {
                if is_seen(&real) {
                    settings.push((real.clone(), format));
                }
                all.push((real, format));
            }
        }
    }
}

/// The first components of patterns in a directory. Most patterns share them with others, and most
/// directories have none of them.
struct FirstNames {
    directory: OwnedFd,
    /// All names in the directory, if it is small.
    all: Option<BTreeSet<Vec<u8>>>,
    /// The names that were looked up, and whether they exist.
    known: Vec<(&'static str, bool)>,
}

impl FirstNames {
    fn of(directory: OwnedFd) -> Self {
        // Reading a small directory takes less time than a look-up of each name.
        let is_small = fstat(&directory).is_ok_and(|found| found.st_size <= SMALL_DIRECTORY);
        let all = is_small.then(|| list_names(&directory).ok()).flatten();
        Self { directory, all, known: Vec::new() }
    }

    /// Returns whether the directory may have entries that match a pattern.
    fn may_have(&mut self, pattern: &'static str) -> bool {
        let first = pattern.split('/').next().unwrap_or(pattern);
        if first == "*" {
            return true;
        }
        if let Some(all) = &self.all {
            return all.contains(&first.as_bytes().to_ascii_lowercase());
        }
        if let Some((_, exists)) = self.known.iter().find(|(known, _)| *known == first) {
            return *exists;
        }
        let exists = statat(&self.directory, first, AtFlags::empty()).is_ok();
        self.known.push((first, exists));
        exists
    }
}

/// Returns the names in a directory in lower case, because some file systems ignore case.
///
/// # Errors
/// The directory cannot be listed, has more names than its size lets expect, or has names whose
/// case is not a matter of ASCII.
fn list_names(directory: &OwnedFd) -> rustix::io::Result<BTreeSet<Vec<u8>>> {
    let mut names = BTreeSet::new();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    for entry in Dir::new(openat(directory, ".", flags, Mode::empty())?)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if names.len() == MAX_LISTED || !name.is_ascii() {
            return Err(Errno::FBIG);
        }
        names.insert(name.to_ascii_lowercase());
    }
    Ok(names)
}

/// Returns the files below a directory that match a pattern in which `*` stands for any name.
fn find(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for part in pattern.split('/') {
        found = match part {
            "*" => {
                let entries = found
                    .iter()
                    .filter_map(|folder| fs::read_dir(folder).ok())
                    .flat_map(|entries| entries.flatten().take(MOST_FOUND));
                entries.map(|entry| entry.path()).take(MOST_FOUND).collect()
            }
            name => found.into_iter().map(|folder| folder.join(name)).collect(),
        };
    }
    found.retain(|path| path.is_file());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_small_directories_are_known_in_any_case() {
        let directory = tempfile::tempdir().expect("a directory");
        let open = || {
            let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | PATH_ONLY;
            FirstNames::of(openat(CWD, directory.path(), flags, Mode::empty()).expect("opened"))
        };
        fs::write(directory.path().join("Config"), "").expect("written");
        let mut known = open();
        assert!(known.all.is_some());
        assert!(known.may_have("config") && known.may_have("*/x") && !known.may_have("db/*/x"));
        // A name in another alphabet can stand for an ASCII name where case is ignored.
        fs::write(directory.path().join("con\u{fb01}g"), "").expect("written");
        assert!(open().all.is_none());
    }

    #[test]
    fn settings_of_toolchains_are_found() {
        let home = tempfile::tempdir().expect("a directory");
        for (place, path) in [
            (".sdkman", "candidates/gradle/8/init.d/a.gradle"),
            (".sdkman", "candidates/gradle/8/gradle.properties"),
            (".local/share/mise/installs", "python/3.12/pip.conf"),
            (".rbenv", "versions/3.3/etc/gemrc"),
            (".opam", "config"),
        ] {
            let place = home.path().join(place);
            let path = place.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("it is made");
            fs::write(&path, "x").expect("it is written");
            let found = settings_in(&place);
            assert!(found.iter().any(|(known, _)| *known == path), "{}", path.display());
        }
    }
}
