//! The workspace files that settings include, for tools that read them. Their names can be any.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::format::SettingsFormat;
use super::found::add_included;
use super::reader::SettingsFileReader;
use crate::git::{GitNamedPaths, UserSettings, expanded};

/// The maximum number of files whose changes are noticed at once. Most workspaces have one
/// repository with a few files.
const MOST_WATCHED: usize = 300;
/// Settings in the top directory of a workspace or repository that can include other files.
const INCLUDING: &[&str] = &[".bazelrc", ".cargo/config", ".cargo/config.toml", ".hg/hgrc"];

/// The files from which the search for included settings starts.
#[derive(Clone, Copy, Debug)]
pub struct SettingsRoots<'a> {
    /// The root of the workspace, without links.
    pub root: &'a Path,
    /// The git settings of the user.
    pub user: &'a UserSettings,
    /// The directories of repositories, relative to the workspace.
    pub repositories: &'a [PathBuf],
    /// Further settings files, relative to the workspace.
    pub files: &'a [PathBuf],
}

/// The workspace files that settings include.
#[derive(Clone, Debug, Default)]
pub struct IncludedSettings {
    /// The formats by path, relative to the workspace and without links.
    formats: BTreeMap<PathBuf, SettingsFormat>,
    /// The files on which the result depends, and their state at that time.
    watched: Vec<(PathBuf, Option<WatchedFileState>)>,
}

/// The state of a file. It changes whenever the content changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WatchedFileState {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl WatchedFileState {
    fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        Some(Self {
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

impl IncludedSettings {
    /// Follows the includes of all settings, whatever their conditions are.
    pub fn find(roots: SettingsRoots<'_>) -> Self {
        let SettingsRoots { root, user, repositories, files } = roots;
        let mut settings: Vec<(PathBuf, SettingsFormat)> =
            user.files().iter().map(|file| (file.clone(), SettingsFormat::Git)).collect();
        // The repositories that contain the workspace apply in it too.
        let above = root.ancestors().filter(|top| top.join(".git").exists());
        let tops = above.map(Path::to_owned).chain(repositories.iter().map(|top| root.join(top)));
        for top in [root.to_owned()].into_iter().chain(tops) {
            let of_git = GitNamedPaths::settings_files(&top).into_iter();
            settings.extend(of_git.map(|file| (file, SettingsFormat::Git)));
            settings.extend(known_formats(INCLUDING.iter().map(|file| top.join(file))));
        }
        settings.extend(known_formats(files.iter().map(|file| root.join(file))));
        settings.sort_by(|one, other| one.0.cmp(&other.0));
        settings.dedup_by(|one, other| one.0 == other.0);
        let roots = settings.len();
        // The states come first, so that a change during the search is noticed.
        let mut watched = states(settings.iter().map(|(path, _)| path.clone()));
        // The states were taken before, so that a text from this reader is not older than they are.
        let reader = SettingsFileReader::default();
        add_included(&mut settings, user.home(), &reader, |_| true);
        let named = settings.iter().flat_map(|(path, format)| {
            let folder = path.parent().unwrap_or(path);
            let named = format.included(path, &reader).into_iter();
            named.map(|named| folder.join(expanded(&named, user.home()))).collect::<Vec<_>>()
        });
        watched.extend(states(named));
        watched.truncate(MOST_WATCHED);
        let inside = settings.iter().skip(roots).chain(&settings[..roots]);
        let formats = inside
            .filter_map(|(path, format)| {
                let real = reader.resolver.canonicalize(path).ok()?;
                Some((real.strip_prefix(root).ok()?.to_owned(), *format))
            })
            .collect();
        Self { formats, watched }
    }

    /// Returns whether none of the files has changed since the search.
    pub fn is_current(&self) -> bool {
        self.watched.iter().all(|(path, state)| WatchedFileState::of(path) == *state)
    }

    /// Returns the format of a file that settings include, by its path relative to the workspace.
    pub fn format(&self, path: &str) -> Option<SettingsFormat> {
        self.formats.get(Path::new(path)).copied()
    }
}

fn known_formats(
    files: impl Iterator<Item = PathBuf>,
) -> impl Iterator<Item = (PathBuf, SettingsFormat)> {
    files.filter_map(|file| SettingsFormat::of(&file).map(|format| (file, format)))
}

fn states(paths: impl Iterator<Item = PathBuf>) -> Vec<(PathBuf, Option<WatchedFileState>)> {
    paths
        .map(|path| (WatchedFileState::of(&path), path))
        .map(|(state, path)| (path, state))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostEnvironment;

    #[test]
    fn included_settings_are_found_wherever_they_are_named() {
        let folder = tempfile::tempdir().expect("a directory");
        let home = folder.path().canonicalize().expect("it is there");
        let root = home.join("ws");
        let write = |path: &str, text: &str| {
            let path = home.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("it is made");
            fs::write(path, text).expect("it is written");
        };
        write("ws/.git/config", "[include]\n\tpath = ../shared.cfg\n\tpath = ~/outside\n");
        write("ws/shared.cfg", "[includeIf \"gitdir:x\"]\n\tpath = more/deep\n");
        write("ws/more/deep", "");
        write("outside", "[include]\n\tpath = ws/back\n");
        write("ws/back", "");
        write(".gitconfig", "[include]\n\tpath = ws/of-user\n");
        write("ws/of-user", "");
        write("ws/nested/.git/config", "[include]\n\tpath = ../inner\n");
        write("ws/nested/inner", "");
        write("ws/.cargo/config.toml", "include = \"more.toml\"\n");
        write("ws/.cargo/more.toml", "");
        write("ws/.bazelrc", "try-import %workspace%/user.rc\n");
        write("ws/user.rc", "");
        write("ws/.hg/hgrc", "%include ../hg-more\n");
        write("ws/hg-more", "");
        let environment =
            HostEnvironment { home: Some(home.clone()), ..HostEnvironment::default() };
        let user = UserSettings::new(&environment);
        let find = || {
            let repositories = [PathBuf::from("nested")];
            let roots =
                SettingsRoots { root: &root, user: &user, repositories: &repositories, files: &[] };
            IncludedSettings::find(roots)
        };
        let found = find();
        for (path, expected) in [
            ("shared.cfg", Some(SettingsFormat::Git)),
            ("more/deep", Some(SettingsFormat::Git)),
            ("back", Some(SettingsFormat::Git)),
            ("of-user", Some(SettingsFormat::Git)),
            ("nested/inner", Some(SettingsFormat::Git)),
            (".cargo/more.toml", Some(SettingsFormat::Cargo)),
            ("user.rc", Some(SettingsFormat::Words)),
            ("hg-more", Some(SettingsFormat::Lines)),
            ("later", None),
            ("src/main.rs", None),
        ] {
            assert_eq!(found.format(path), expected, "{path}");
        }
        assert!(found.is_current());
        write("ws/.git/config", "[include]\n\tpath = ../later\n");
        assert!(!found.is_current());
        let found = find();
        assert!(found.format("later").is_none() && found.is_current());
        write("ws/later", "");
        assert!(!found.is_current(), "a file that settings name exists now");
        assert_eq!(find().format("later"), Some(SettingsFormat::Git));
    }
}
