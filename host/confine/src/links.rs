//! Follows the symbolic links of a path as the kernel does, also to where nothing exists yet.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Returns the target of a link, and `None` for everything else.
type ReadLink<'a> = &'a dyn Fn(&Path) -> Option<PathBuf>;

/// The number of links that Linux follows for one path.
const MOST_LINKS: usize = 40;
/// The maximum number of path components, including those of link targets. The kernel allows more,
/// but such paths do not occur in practice.
const MOST_PARTS: usize = 4096;

/// The links between a path and the file that it refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkChain {
    /// The links in order, as absolute paths whose directories contain no link.
    pub links: Vec<PathBuf>,
    /// The absolute path without links, whether a file exists there or not. `None` if the links
    /// form a cycle.
    pub end: Option<PathBuf>,
    /// The number of components that were examined.
    pub parts: usize,
}

/// Follows `path` from the absolute directory `from`, which contains no link.
///
/// `read_link` returns the target of a link, and `None` for everything else.
pub fn follow(from: &Path, path: &Path, read_link: impl Fn(&Path) -> Option<PathBuf>) -> LinkChain {
    LinkFollower::default().follow(from, path, &read_link)
}

/// Follows many paths and resolves each link and each base directory once.
///
/// The results are valid as long as no link changes.
#[derive(Clone, Debug, Default)]
pub struct LinkFollower {
    /// Resolved paths whose directories contain no link.
    known: HashMap<PathBuf, ResolvedName>,
    /// Resolved chains of base directories.
    bases: HashMap<PathBuf, Arc<LinkChain>>,
    /// The number of components that were examined for all paths.
    steps: usize,
}

#[derive(Clone, Debug)]
enum ResolvedName {
    NoLink,
    /// A link with its further links, its end and the number of components on the way.
    Link(Arc<LinkChain>),
}

/// An error for a path that has no end.
struct LinkLimitExceeded;

impl LinkFollower {
    /// Returns the number of components that were examined for all paths. Every path counts as one
    /// component more.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Follows `path` from the absolute directory `base`, which may contain links.
    pub fn follow_below(&mut self, base: &Path, path: &Path, read_link: ReadLink<'_>) -> LinkChain {
        if path.is_absolute() {
            return self.follow(Path::new("/"), path, read_link);
        }
        let known = self.bases.get(base).cloned();
        let chain = known.unwrap_or_else(|| {
            let chain = Arc::new(self.follow(Path::new("/"), base, read_link));
            self.bases.insert(base.to_owned(), Arc::clone(&chain));
            chain
        });
        let mut chain = LinkChain::clone(&chain);
        if let Some(end) = chain.end.take() {
            self.steps += 1;
            chain.end = self.walk(end, path, &mut chain, read_link).ok();
        }
        chain
    }

    fn follow(&mut self, from: &Path, path: &Path, read_link: ReadLink<'_>) -> LinkChain {
        let mut chain = LinkChain::default();
        self.steps += 1;
        chain.end = self.walk(from.to_owned(), path, &mut chain, read_link).ok();
        chain
    }

    /// Resolves the end of `path`. Recurses into link targets, at most `MOST_LINKS` levels deep.
    fn walk(
        &mut self,
        mut at: PathBuf,
        path: &Path,
        chain: &mut LinkChain,
        read_link: ReadLink<'_>,
    ) -> Result<PathBuf, LinkLimitExceeded> {
        for component in path.components() {
            match component {
                Component::RootDir => at = PathBuf::from("/"),
                Component::CurDir | Component::Prefix(_) => {}
                Component::ParentDir => {
                    self.count(chain)?;
                    at.pop();
                }
                Component::Normal(name) => {
                    self.count(chain)?;
                    at = self.enter(&at, name, chain, read_link)?;
                }
            }
        }
        Ok(at)
    }

    fn count(&mut self, chain: &mut LinkChain) -> Result<(), LinkLimitExceeded> {
        self.steps += 1;
        chain.parts += 1;
        if chain.parts > MOST_PARTS { Err(LinkLimitExceeded) } else { Ok(()) }
    }

    fn enter(
        &mut self,
        at: &Path,
        name: &OsStr,
        chain: &mut LinkChain,
        read_link: ReadLink<'_>,
    ) -> Result<PathBuf, LinkLimitExceeded> {
        let next = at.join(name);
        match self.known.get(&next) {
            Some(ResolvedName::NoLink) => return Ok(next),
            Some(ResolvedName::Link(behind)) => {
                let behind = Arc::clone(behind);
                chain.links.push(next);
                chain.links.extend(behind.links.iter().cloned());
                chain.parts += behind.parts;
                chain.is_within_limits()?;
                return behind.end.clone().ok_or(LinkLimitExceeded);
            }
            None => {}
        }
        let Some(target) = read_link(&next) else {
            self.known.insert(next.clone(), ResolvedName::NoLink);
            return Ok(next);
        };
        chain.links.push(next.clone());
        chain.is_within_limits()?;
        let (links, parts) = (chain.links.len(), chain.parts);
        let end = self.walk(at.to_owned(), &target, chain, read_link)?;
        let behind = LinkChain {
            links: chain.links[links..].to_vec(),
            end: Some(end.clone()),
            parts: chain.parts - parts,
        };
        self.known.insert(next, ResolvedName::Link(Arc::new(behind)));
        Ok(end)
    }
}

impl LinkChain {
    fn is_within_limits(&self) -> Result<(), LinkLimitExceeded> {
        if self.links.len() > MOST_LINKS || self.has_too_many_parts() {
            Err(LinkLimitExceeded)
        } else {
            Ok(())
        }
    }

    /// Returns whether the path has more components than this follows. The kernel may follow it
    /// further.
    pub fn has_too_many_parts(&self) -> bool {
        self.parts > MOST_PARTS
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

    #[test]
    fn a_link_on_the_way_of_many_paths_is_resolved_once() {
        let links: HashMap<PathBuf, PathBuf> = (0..39)
            .map(|n| {
                (
                    PathBuf::from(format!("/w/l{n}")),
                    PathBuf::from("d/../".repeat(50) + &format!("l{}", n + 1)),
                )
            })
            .collect();
        let reads = std::cell::Cell::new(0);
        let read_link = |path: &Path| {
            reads.set(reads.get() + 1);
            links.get(path).cloned()
        };
        let mut follower = LinkFollower::default();
        let first = follower.follow_below(Path::new("/w"), Path::new("l5/x0"), &read_link);
        assert_eq!((first.links.len(), first.end), (34, Some("/w/l39/x0".into())));
        let (before, steps) = (reads.get(), follower.steps());
        for n in 1..1000 {
            let chain = follower.follow_below(
                Path::new("/w"),
                &PathBuf::from(format!("l5/x{n}")),
                &read_link,
            );
            assert_eq!(
                chain,
                follow(Path::new("/"), &PathBuf::from(format!("w/l5/x{n}")), |path| links
                    .get(path)
                    .cloned())
            );
        }
        assert_eq!(reads.get() - before, 999);
        assert!(follower.steps() - steps < 4000);
        assert!(follower.follow_below(Path::new("/w"), Path::new("l0"), &read_link).end.is_some());
    }

    #[test]
    fn known_links_count_for_the_limits_of_a_path() {
        let read_link = |path: &Path| {
            let number: usize = path.file_name()?.to_str()?.strip_prefix('l')?.parse().ok()?;
            (number < 50).then(|| PathBuf::from(format!("l{}", number + 1)))
        };
        let mut follower = LinkFollower::default();
        assert!(follower.follow_below(Path::new("/w"), Path::new("l20"), &read_link).end.is_some());
        assert_eq!(follower.follow_below(Path::new("/w"), Path::new("l5"), &read_link).end, None);
        assert!(follower.follow_below(Path::new("/w"), Path::new("l10"), &read_link).end.is_some());
        assert_eq!(
            follower.follow_below(Path::new("/w"), Path::new("l20/../l20"), &read_link).end,
            None
        );
        assert!(
            follower
                .follow_below(Path::new("/w"), &PathBuf::from("d/../".repeat(3000)), &read_link)
                .has_too_many_parts()
        );
    }
}
