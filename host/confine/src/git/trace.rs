//! The workspace paths that decide what a path resolves to.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::links::{LinkChain, LinkFollower};

/// Follows a path that starts in an absolute directory, and caches the results.
pub(super) fn trace_below(follower: &mut LinkFollower, base: &Path, path: &Path) -> LinkChain {
    follower.follow_below(base, path, &|link| fs::read_link(link).ok())
}

/// Returns the workspace paths that decide what an absolute path resolves to: the path as written,
/// the links on its way, and its end.
pub(super) fn ways_along(root: &Path, path: &Path, chain: &LinkChain) -> Vec<PathBuf> {
    let LinkChain { links, end, .. } = chain;
    let mut ways: Vec<PathBuf> = Vec::new();
    for way in [path].into_iter().chain(links.iter().map(PathBuf::as_path)).chain(end.as_deref()) {
        if let Some(way) = below(root, way)
            && !ways.contains(&way)
        {
            ways.push(way);
        }
    }
    ways
}

/// Returns the path relative to the workspace if it lies inside, but not for the workspace itself.
pub(crate) fn below(root: &Path, path: &Path) -> Option<PathBuf> {
    let path = if path.is_absolute() { normalized(path) } else { normalized(&root.join(path)) };
    let path = path.strip_prefix(root).ok()?;
    (!path.as_os_str().is_empty()).then(|| path.to_owned())
}

/// Removes `.` and `..` from an absolute path without resolving links.
fn normalized(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => {
                clean.pop();
            }
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
        let ways = |path: &str| {
            let chain = trace_below(&mut LinkFollower::default(), &root, Path::new(path));
            ways_along(&root, &root.join(path), &chain)
                .iter()
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(ways("l/hooks"), ["l/hooks", "l", "m", "s/deep/hooks"]);
        assert_eq!(ways("l/../x"), ["x", "l", "m", "s/x"]);
        assert_eq!(ways("l/out/a"), ["l/out/a", "l", "m", "s/deep/out", "missing/a"]);
        assert_eq!(ways("a/./b"), ["a/b"]);
        assert_eq!(ways("../x"), Vec::<String>::new());
        assert_eq!(ways("loop"), ["loop"]);
        assert_eq!(ways(&format!("../{}/y", root.file_name().expect("a name").display())), ["y"]);
    }
}
