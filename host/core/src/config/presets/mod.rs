//! Presets of hosts by ecosystem.
//!
//! A preset takes its hosts from the user's own clients: their settings, and the defaults in their
//! installed files. It reads files only and runs no program. Files of the workspace, and files that
//! commands can write, count for nothing: a repository must not open the network.

mod cargo;
mod debian;
mod git;
mod go;
mod host_url;
mod node;
mod python;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The largest file that is read, in bytes.
const MAX_FILE_SIZE: u64 = 1 << 20;
/// The number of entries of a directory that are looked at.
const MAX_ENTRIES: usize = 1000;

/// An ecosystem whose hosts commands may connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NetworkPreset {
    /// The registries of cargo.
    Rust,
    /// The registries of npm.
    Node,
    /// The package indexes of pip.
    Python,
    /// The module proxy and the checksum database of go.
    Go,
    /// The package sources of apt.
    Debian,
    /// Forges of git repositories.
    Git,
}

/// The files and variables in which presets look for hosts.
#[derive(Clone, Debug, Default)]
pub struct PresetSearch {
    /// The root of the file system; another one in tests.
    pub root: PathBuf,
    /// The home directory of the user.
    pub home: Option<PathBuf>,
    /// The environment of the program.
    pub variables: BTreeMap<OsString, OsString>,
    /// Directories whose files count for nothing: the workspace, and directories that commands can
    /// write.
    pub untrusted: Vec<PathBuf>,
}

/// The hosts of a preset on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PresetHosts {
    /// The preset.
    pub preset: NetworkPreset,
    /// The host patterns, each with the file that names it. Sorted, without duplicates.
    pub hosts: BTreeMap<String, String>,
}

impl NetworkPreset {
    /// All presets, in the order of the enum.
    pub const ALL: [Self; 6] =
        [Self::Rust, Self::Node, Self::Python, Self::Go, Self::Debian, Self::Git];

    /// Returns the name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Node => "node",
            Self::Python => "python",
            Self::Go => "go",
            Self::Debian => "debian",
            Self::Git => "git",
        }
    }

    /// Returns what to do if the preset found no host.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Rust => {
                "run `cargo search serde` once outside Cofferdam, which creates the index, or list \
                    the hosts in `allow`"
            }
            Self::Node => "run `npm config set registry URL`, or list the hosts in `allow`",
            Self::Python => {
                "run `pip config set global.index-url URL`, or list the hosts in `allow`"
            }
            Self::Go => "run `go env -w GOPROXY=URL`, or list the hosts in `allow`",
            Self::Debian => {
                "check the files of /etc/apt/sources.list.d, or list the hosts in `allow`"
            }
            Self::Git => "list the hosts in `allow`",
        }
    }

    /// Finds the hosts of the preset.
    pub fn find_hosts(self, search: &PresetSearch) -> PresetHosts {
        let mut found = FoundHosts { search, hosts: BTreeMap::new() };
        match self {
            Self::Rust => cargo::find(&mut found),
            Self::Node => node::find(&mut found),
            Self::Python => python::find(&mut found),
            Self::Go => go::find(&mut found),
            Self::Debian => debian::find(&mut found),
            Self::Git => git::find(&mut found),
        }
        PresetHosts { preset: self, hosts: found.hosts }
    }
}

impl fmt::Display for NetworkPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The hosts that were found so far.
struct FoundHosts<'a> {
    search: &'a PresetSearch,
    hosts: BTreeMap<String, String>,
}

impl FoundHosts<'_> {
    /// Adds the host of a URL that this file names, if it is one with a host.
    fn add_url(&mut self, url: &str, file: &Path) {
        if let Some(pattern) = host_url::host_pattern(url) {
            self.hosts.entry(pattern).or_insert_with(|| file.display().to_string());
        }
    }

    /// Returns an absolute path of the system.
    fn system(&self, path: &str) -> PathBuf {
        self.search.root.join(path.trim_start_matches('/'))
    }

    /// Returns a path below the home directory.
    fn home(&self, path: &str) -> Option<PathBuf> {
        self.search.home.as_deref().map(|home| home.join(path))
    }

    /// Returns the path that a variable contains, if it is absolute.
    fn variable(&self, name: &str) -> Option<PathBuf> {
        let value = self.search.variables.get(std::ffi::OsStr::new(name))?;
        Some(PathBuf::from(value)).filter(|path| path.is_absolute())
    }

    /// Returns the configuration directory of the user.
    fn config_home(&self, path: &str) -> Option<PathBuf> {
        let base = self.variable("XDG_CONFIG_HOME").or_else(|| self.home(".config"))?;
        Some(base.join(path))
    }

    /// Finds a program in `PATH`, and follows its links.
    fn program(&self, name: &str) -> Option<PathBuf> {
        let path = self.search.variables.get(std::ffi::OsStr::new("PATH"))?;
        std::env::split_paths(path)
            .filter(|directory| directory.is_absolute())
            .filter_map(|directory| directory.join(name).canonicalize().ok())
            .find(|program| program.is_file() && self.is_trusted(program))
    }

    /// Returns whether neither a repository nor a command decides about this path.
    fn is_trusted(&self, path: &Path) -> bool {
        let Ok(real) = path.canonicalize() else { return false };
        !self.search.untrusted.iter().any(|directory| {
            let directory = directory.canonicalize().unwrap_or_else(|_| directory.clone());
            real.starts_with(directory)
        })
    }

    /// Reads a file, if it is trusted and not too large.
    fn read(&self, path: &Path) -> Option<String> {
        if !self.is_trusted(path) || !path.is_file() {
            return None;
        }
        let mut text = String::new();
        fs::File::open(path).ok()?.take(MAX_FILE_SIZE).read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Lists a directory in the order of its names.
    fn list(&self, directory: &Path) -> Vec<PathBuf> {
        if !self.is_trusted(directory) {
            return Vec::new();
        }
        let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
        let mut all: Vec<PathBuf> =
            entries.take(MAX_ENTRIES).filter_map(|entry| Some(entry.ok()?.path())).collect();
        all.sort();
        all
    }
}

#[cfg(test)]
mod tests;
