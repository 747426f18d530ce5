//! Where a path leads, link by link, as the kernel goes.

use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Symbolic links that one path may go through: the limit of Linux.
const MOST_LINKS: usize = 40;

/// The way of a path through the file system.
#[derive(Debug)]
pub(super) struct Trace {
    /// The symbolic links on the way, each at its real path.
    pub(super) links: Vec<PathBuf>,
    /// The end. Directories that do not exist stay as they are named.
    pub(super) end: PathBuf,
}

/// Follows an absolute path. A path of too many links ends at the last of them, where the kernel gives up too.
pub(super) fn trace(path: &Path) -> Trace {
    let mut ahead = parts(path);
    let mut trace = Trace { links: Vec::new(), end: PathBuf::from("/") };
    while let Some(part) = ahead.pop() {
        match part.to_str() {
            Some("/") => trace.end = PathBuf::from("/"),
            Some("..") => drop(trace.end.pop()),
            _ => {
                let next = trace.end.join(&part);
                match fs::read_link(&next) {
                    Ok(target) if trace.links.len() < MOST_LINKS => {
                        trace.links.push(next);
                        ahead.extend(parts(&target));
                    }
                    Ok(_) => return trace,
                    Err(_) => trace.end = next,
                }
            }
        }
    }
    trace
}

/// The parts of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let part = |component: Component<'_>| match component {
        Component::CurDir => None,
        other => Some(other.as_os_str().to_owned()),
    };
    path.components().rev().filter_map(part).collect()
}

/// The paths of the workspace that decide what an absolute path is: as it is written, the links on its way, and its end.
pub(in crate::sandbox) fn ways_to(root: &Path, path: &Path) -> Vec<PathBuf> {
    let Trace { links, end } = trace(path);
    let mut ways: Vec<PathBuf> = Vec::new();
    for way in [path].into_iter().chain(links.iter().map(PathBuf::as_path)).chain([end.as_path()]) {
        if let Some(way) = below(root, way)
            && !ways.contains(&way)
        {
            ways.push(way);
        }
    }
    ways
}

/// A path as it is from the workspace on, if it is in there, and not the workspace itself.
pub(super) fn below(root: &Path, path: &Path) -> Option<PathBuf> {
    let path = if path.is_absolute() { normalized(path) } else { normalized(&root.join(path)) };
    let path = path.strip_prefix(root).ok()?;
    (!path.as_os_str().is_empty()).then(|| path.to_owned())
}

/// An absolute path without `.` and `..`, as if it had no links.
fn normalized(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => drop(clean.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_link_on_the_way_decides_what_a_path_is() {
        let folder = tempfile::tempdir().expect("a directory");
        let root = folder.path().canonicalize().expect("it is there");
        fs::create_dir_all(root.join("s/deep")).expect("it is made");
        let link = |to: &str, at: &str| symlink(to, root.join(at)).expect("a link");
        link("m", "l");
        link("s/deep", "m");
        link("../../missing", "s/deep/out");
        link("loop", "loop");
        let ways = |path: &str| ways_to(&root, &root.join(path)).iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
        assert_eq!(ways("l/hooks"), ["l/hooks", "l", "m", "s/deep/hooks"]);
        assert_eq!(ways("l/../x"), ["x", "l", "m", "s/x"]);
        assert_eq!(ways("l/out/a"), ["l/out/a", "l", "m", "s/deep/out", "missing/a"]);
        assert_eq!(ways("a/./b"), ["a/b"]);
        assert_eq!(ways("../x"), Vec::<String>::new());
        assert_eq!(ways("loop"), ["loop"]);
        assert_eq!(ways(&format!("../{}/y", root.file_name().expect("a name").display())), ["y"]);
    }
}
