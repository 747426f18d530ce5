//! Follows the symbolic links of a path as the kernel does, also to where nothing exists yet.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// The number of links that Linux follows for one path.
const MOST_LINKS: usize = 40;
/// The number of path components that are followed, those of link targets included. The kernel follows more; nobody writes
/// such a path.
const MOST_PARTS: usize = 4096;

/// The way from a path to the file that it means.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LinkChain {
    /// The links on the way, in order: absolute paths whose directories contain no link.
    pub(super) links: Vec<PathBuf>,
    /// The absolute path without links, whether a file exists there or not. `None` if the links form a circle.
    pub(super) end: Option<PathBuf>,
    /// The number of components that were looked at.
    pub(super) parts: usize,
}

/// Follows `path` from the absolute directory `from`, which contains no link. `read_link` returns the target of a link, and
/// `None` for everything else.
pub(super) fn follow(from: &Path, path: &Path, read_link: impl Fn(&Path) -> Option<PathBuf>) -> LinkChain {
    let mut chain = LinkChain::default();
    let mut at = from.to_owned();
    // The next component last.
    let mut ahead: Vec<OsString> = Vec::new();
    enter(path, &mut at, &mut ahead);
    while let Some(part) = ahead.pop() {
        chain.parts += 1;
        if chain.parts > MOST_PARTS {
            return chain;
        }
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        match read_link(&next) {
            Some(target) => {
                chain.links.push(next);
                if chain.links.len() > MOST_LINKS {
                    return chain;
                }
                enter(&target, &mut at, &mut ahead);
            }
            None => at = next,
        }
    }
    chain.end = Some(at);
    chain
}

fn enter(path: &Path, at: &mut PathBuf, ahead: &mut Vec<OsString>) {
    for component in path.components().rev() {
        match component {
            Component::Normal(name) => ahead.push(name.to_owned()),
            Component::ParentDir => ahead.push("..".into()),
            Component::RootDir => *at = PathBuf::from("/"),
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_leads_over_every_link_to_where_the_file_would_be() {
        let folder = tempfile::tempdir().expect("a directory");
        let root = folder.path().canonicalize().expect("it exists");
        fs::create_dir_all(root.join("real/inner")).expect("directories");
        let link = |target: &str, name: &str| symlink(target, root.join(name)).expect("a link");
        link("d1/vs", "dangling");
        link("d2", "d1");
        link("real", "there");
        link("there/inner/../x", "up");
        link("b", "a");
        link("a", "b");
        link("/etc/none", "out");
        symlink(root.join("d1/y"), root.join("absolute")).expect("a link");
        let table: [(&str, &[&str], Option<&str>); 8] = [
            ("dangling", &["dangling", "d1"], Some("d2/vs")),
            ("d1/a/b", &["d1"], Some("d2/a/b")),
            ("there/inner", &["there"], Some("real/inner")),
            ("up", &["up", "there"], Some("real/x")),
            ("absolute", &["absolute", "d1"], Some("d2/y")),
            ("missing/../x", &[], Some("x")),
            ("out", &["out"], Some("/etc/none")),
            ("real", &[], Some("real")),
        ];
        for (path, links, end) in table {
            let chain = follow(&root, Path::new(path), |link| fs::read_link(link).ok());
            let links: Vec<PathBuf> = links.iter().map(|link| root.join(link)).collect();
            assert_eq!((chain.links, chain.end), (links, end.map(|end| root.join(end))), "{path}");
        }
        assert_eq!(follow(&root, Path::new("a"), |link| fs::read_link(link).ok()).end, None);
    }
}
