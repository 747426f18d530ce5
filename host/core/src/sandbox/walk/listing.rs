//! Lists the files of the workspace that tools may read, for the host's own use.

use std::sync::Arc;

use super::options::WalkPlan;
use super::tree::{PathLookups, TreeWalk};
use super::{WalkOptions, WalkProblems};
use crate::sandbox::Workspace;
use crate::sandbox::rooted_fs::FileKind;

/// A file of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadableFile {
    /// The path, relative to the workspace.
    pub path: String,
    /// The size in bytes.
    pub size: u64,
}

impl Workspace {
    /// Lists the files that a tool with the permission to read files can find and read, in the
    /// order of a walk: without hidden and ignored files, links and files that the policy denies.
    /// The listing begins after the file `after`, and has at most `max_files` files.
    pub fn list_readable_files(
        self: &Arc<Self>,
        after: Option<&str>,
        max_files: usize,
    ) -> Vec<ReadableFile> {
        let Ok(plan) = WalkPlan::new(self, WalkOptions::everything_below("")) else {
            return Vec::new();
        };
        let (problems, mut lookups) = (WalkProblems::default(), PathLookups::default());
        let files = TreeWalk::new(&plan, &problems).filter(|entry| entry.kind == FileKind::File);
        files
            .filter(|entry| after.is_none_or(|after| walk_order(&entry.path, after).is_gt()))
            .filter(|entry| self.guard().check_read(&entry.path).is_ok())
            .filter_map(|entry| {
                let metadata = lookups.metadata(self.dir(), &entry.path).ok()?;
                Some(ReadableFile { size: metadata.len(), path: entry.path })
            })
            .take(max_files)
            .collect()
    }
}

/// Compares two paths as a walk orders them: by the names of each directory.
fn walk_order(one: &str, other: &str) -> std::cmp::Ordering {
    one.split('/').cmp(other.split('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::test_environment::open_workspace;

    #[test]
    fn a_listing_has_only_readable_files_and_continues_after_any_of_them() {
        let directory = tempfile::tempdir().expect("create a temporary directory");
        for path in ["b.txt", "a/z", "a/b/c", "a.txt", ".env", "a/.env", "a/key.pem", "ignored"] {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("create it");
            std::fs::write(path, "12").expect("write the file");
        }
        std::fs::write(directory.path().join(".ignore"), "ignored\n").expect("write the file");
        std::os::unix::fs::symlink("/etc/passwd", directory.path().join("out"))
            .expect("create the link");
        let workspace = Arc::new(open_workspace(directory.path()));
        let list = |after: Option<&str>, max: usize| -> Vec<String> {
            let files = workspace.list_readable_files(after, max);
            assert!(files.iter().all(|file| file.size == 2));
            files.into_iter().map(|file| file.path).collect()
        };
        let all = list(None, 100);
        assert_eq!(all, ["a/b/c", "a/z", "a.txt", "b.txt"]);
        for n in 0..all.len() {
            assert_eq!(list(Some(&all[n]), 100), all[n + 1..]);
        }
        assert_eq!(list(None, 2), all[..2]);
        assert_eq!(list(Some("a/zz"), 1), ["a.txt"], "a file that is gone has a place too");
    }
}
