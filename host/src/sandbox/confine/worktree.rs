//! The repository of a workspace that is a linked worktree lies outside of it. Without reading it, git knows nothing.

use std::fs;
use std::path::{Path, PathBuf};

/// A pointer is one line with a path.
const LONGEST: u64 = 8 << 10;

/// The folder of the repository, if the workspace is one of its worktrees: only if that folder says so too, since the
/// workspace alone could name any.
pub(super) fn repository(workspace: &Path) -> Option<PathBuf> {
    let pointer = workspace.join(".git");
    let own = workspace.join(line(&pointer)?.strip_prefix("gitdir: ")?).canonicalize().ok()?;
    let back = own.join(line(&own.join("gitdir"))?).canonicalize().ok()?;
    if back != pointer {
        return None;
    }
    own.join(line(&own.join("commondir"))?).canonicalize().ok()
}

fn line(path: &Path) -> Option<String> {
    let is_one = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LONGEST);
    let text = if is_one { fs::read_to_string(path).ok() } else { None };
    text.map(|text| text.trim_end_matches(['\n', '\r']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worktree_is_one_if_both_sides_say_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("it is there");
        let write = |path: &str, text: &str| {
            fs::create_dir_all(root.join(path).parent().expect("a parent")).expect("it is made");
            fs::write(root.join(path), text).expect("it is written");
        };
        write("main/.git/HEAD", "ref: refs/heads/main\n");
        write("main/.git/worktrees/w/commondir", "../..\n");
        write("main/.git/worktrees/w/gitdir", &format!("{}/w/.git\n", root.display()));
        write("w/.git", &format!("gitdir: {}/main/.git/worktrees/w\n", root.display()));
        write("liar/.git", &format!("gitdir: {}/main/.git/worktrees/w\n", root.display()));
        write("keys/.git", "gitdir: /root/.ssh\n");
        assert_eq!(repository(&root.join("w")), Some(root.join("main/.git")));
        for none in ["liar", "keys", "main", "nowhere"] {
            assert_eq!(repository(&root.join(none)), None, "{none}");
        }
    }
}
