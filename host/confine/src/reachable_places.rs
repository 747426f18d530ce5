//! The paths outside the workspace that no command can have redirected.
//!
//! A path that commands see is looked up anew for each command. If it leads through a directory
//! that commands write, an earlier command can have put a link there. Such a path is left out: what
//! is in that directory is accessible anyway, and what a link in it points to is not for commands.
//!
//! A link of the user into such a directory stays, as long as its target is there: settings in the
//! home can be links into a workspace.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::path_resolver::{PathResolver, names};
use crate::protocol::CommandPaths;
use cofferdam_policy::SandboxLevel;

/// The number of links on one path, as for the kernel.
const MAX_LINKS: usize = 40;

/// Removes the paths that lead through the workspace, or through another path that commands write.
pub(crate) fn remove_redirectable(
    places: &mut CommandPaths,
    workspace: &Path,
    resolver: &PathResolver,
) {
    let real = |path: &Path| resolver.real(path);
    let mut written: Vec<PathBuf> = places.write.iter().map(|path| real(path)).collect();
    written.push(real(workspace));
    let is_below = |path: &Path| {
        written.iter().any(|directory| path != directory && path.starts_with(directory))
    };
    let is_link_into = |path: &Path| !is_below(path) && is_below(&real(path));
    for list in [&mut places.read, &mut places.write, &mut places.list] {
        list.retain(|path| !leads_through(path, &written, resolver) || is_link_into(path));
    }
}

/// Makes each path that leads into the workspace of a command that only reads it readable instead
/// of writable. A path above the workspace stays writable at the level `full`, where the workspace
/// is mounted over its place in that path; a link to such a path does not.
pub(crate) fn close_ways_into(
    places: &mut CommandPaths,
    workspace: &Path,
    level: SandboxLevel,
    resolver: &PathResolver,
) {
    let workspace = resolver.real(workspace);
    let is_way = |path: &PathBuf| {
        let target = resolver.real(path);
        let is_covered = level == SandboxLevel::Full && target == *path;
        target.starts_with(&workspace) || workspace.starts_with(&target) && !is_covered
    };
    let (read, write) = std::mem::take(&mut places.write).into_iter().partition(is_way);
    places.write = write;
    places.read.extend::<Vec<_>>(read);
}

/// Returns whether some entry on the way to a path, or the path itself, is below one of these
/// directories. Follows links.
fn leads_through(path: &Path, directories: &[PathBuf], resolver: &PathResolver) -> bool {
    let mut rest: VecDeque<OsString> = names(path);
    let mut current = PathBuf::from("/");
    let mut links = 0;
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            current.pop();
            continue;
        }
        let next = current.join(&name);
        if directories.iter().any(|directory| next != *directory && next.starts_with(directory)) {
            return true;
        }
        match resolver.read_link(&next) {
            Ok(target) => {
                links += 1;
                if links > MAX_LINKS {
                    return true;
                }
                if target.is_absolute() {
                    current = PathBuf::from("/");
                }
                let mut all = names(&target);
                all.append(&mut rest);
                rest = all;
            }
            // It is no link, or does not exist.
            Err(_) => current = next,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_leads_into_a_workspace_is_only_read() {
        let home = tempfile::tempdir().expect("a directory");
        let home = home.path().canonicalize().expect("it exists");
        for directory in ["all/ws/kept", "tools"] {
            fs::create_dir_all(home.join(directory)).expect("it is made");
        }
        symlink("all/ws/kept", home.join("into")).expect("a link");
        symlink("../all", home.join("tools/above")).expect("a link");
        let names = ["all", "all/ws", "into", "tools", "tools/above"];
        for (level, write, read) in [
            (SandboxLevel::Full, vec!["all", "tools"], vec!["all/ws", "into", "tools/above"]),
            (SandboxLevel::Kernel, vec!["tools"], vec!["all", "all/ws", "into", "tools/above"]),
        ] {
            let at = |names: &[&str]| names.iter().map(|name| home.join(name)).collect::<Vec<_>>();
            let mut places = CommandPaths { write: at(&names), ..CommandPaths::default() };
            close_ways_into(&mut places, &home.join("all/ws"), level, &PathResolver::default());
            assert_eq!((places.write, places.read), (at(&write), at(&read)), "{level}");
        }
    }

    #[test]
    fn a_path_through_a_place_that_commands_write_is_left_out() {
        let home = tempfile::tempdir().expect("a directory");
        let home = home.path().canonicalize().expect("it exists");
        for directory in ["ws/bin", "ws/.venv", "private", "tools", "cache/inner", "opt"] {
            fs::create_dir_all(home.join(directory)).expect("it is made");
        }
        symlink(home.join("private"), home.join("ws/link")).expect("a link");
        symlink(home.join("ws/link"), home.join("opt/through")).expect("a link");
        symlink("../cache/inner", home.join("opt/inner")).expect("a link");
        symlink("../tools", home.join("opt/tools")).expect("a link");
        let at = |names: &[&str]| names.iter().map(|name| home.join(name)).collect::<Vec<_>>();
        let mut places = CommandPaths {
            read: at(&[
                "tools",
                "opt/tools",
                "ws",
                "ws/bin",
                "ws/missing",
                "ws/link",
                "opt/through",
                "cache/inner",
                "opt/inner",
                "tools/../ws/bin",
            ]),
            write: at(&["cache", "cache/inner", "ws/.venv", "tools"]),
            list: at(&["ws/bin"]),
        };
        remove_redirectable(&mut places, &home.join("ws"), &PathResolver::default());
        assert_eq!(places.read, at(&["tools", "opt/tools", "ws", "opt/inner"]));
        assert_eq!(places.write, at(&["cache", "tools"]));
        assert!(places.list.is_empty());
    }
}
