//! Detection of the outer repository of a workspace that is a linked worktree or a submodule. git
//! does not work there without reading that repository.

use std::fs;
use std::path::{Path, PathBuf};

/// The maximum size of a pointer file, in bytes. It holds one line with a path.
const MAX_POINTER_SIZE: u64 = 8 << 10;

/// Returns the directory of the repository if the workspace is one of its worktrees or submodules.
///
/// The repository must lie outside and confirm the connection, because files in the workspace could
/// name any directory. A repository that contains the home directory does not count.
pub(super) fn find_outer_repository(workspace: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let pointer = workspace.join(".git");
    let own = workspace.join(read_line(&pointer)?.strip_prefix("gitdir: ")?).canonicalize().ok()?;
    let found = match read_line(&own.join("commondir")) {
        Some(common) => {
            let back = own.join(read_line(&own.join("gitdir"))?).canonicalize().ok()?;
            let common = own.join(common).canonicalize().ok()?;
            (back == pointer && own.parent()? == common.join("worktrees")).then_some(common)?
        }
        None => {
            let modules = own.ancestors().skip(1).any(|above| above.ends_with(".git/modules"));
            (modules && configured_worktree(&own)?.canonicalize().ok()? == workspace)
                .then_some(own)?
        }
    };
    let is_repository = ["HEAD", "objects", "refs"].iter().all(|name| found.join(name).exists());
    let is_apart = !found.starts_with(workspace) && !workspace.starts_with(&found);
    let holds_home = home.is_some_and(|home| home.starts_with(&found));
    (is_repository && is_apart && !holds_home).then_some(found)
}

/// Returns the worktree path in the settings of a submodule.
fn configured_worktree(repository: &Path) -> Option<PathBuf> {
    let settings = repository.join("config");
    let is_small = fs::symlink_metadata(&settings)
        .is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_POINTER_SIZE);
    let text = if is_small { fs::read_to_string(settings).ok()? } else { return None };
    let value = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("worktree")?.trim_start().strip_prefix('='))?;
    Some(repository.join(value.trim().trim_matches('"')))
}

fn read_line(path: &Path) -> Option<String> {
    let is_one = fs::symlink_metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_POINTER_SIZE);
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
        let repository_at = |path: &str| {
            write(&format!("{path}/HEAD"), "ref: refs/heads/main\n");
            write(&format!("{path}/objects/x"), "");
            write(&format!("{path}/refs/x"), "");
        };
        repository_at("main/.git");
        repository_at("main/.git/modules/sub");
        write("main/.git/modules/sub/config", "[core]\n\tworktree = ../../../sub\n");
        write("main/sub/.git", "gitdir: ../.git/modules/sub\n");
        write("main/other/.git", "gitdir: ../.git/modules/sub\n");
        write("main/.git/worktrees/w/commondir", "../..\n");
        write("main/.git/worktrees/w/gitdir", &format!("{}/w/.git\n", root.display()));
        write("w/.git", &format!("gitdir: {}/main/.git/worktrees/w\n", root.display()));
        write("liar/.git", &format!("gitdir: {}/main/.git/worktrees/w\n", root.display()));
        write("keys/.git", "gitdir: /root/.ssh\n");
        // Both sides of this connection are in the workspace itself.
        write("inside/.git", "gitdir: g\n");
        write("inside/g/gitdir", "../.git\n");
        write("inside/g/commondir", &format!("{}\n", root.join("main").display()));
        write("bare/.git", "gitdir: .bare/worktrees/w\n");
        repository_at("bare/.bare");
        write("bare/.bare/worktrees/w/gitdir", "../../../.git\n");
        write("bare/.bare/worktrees/w/commondir", "../..\n");
        assert_eq!(find_outer_repository(&root.join("w"), None), Some(root.join("main/.git")));
        let home = root.join("main/.git/home");
        assert_eq!(find_outer_repository(&root.join("w"), Some(&home)), None);
        assert_eq!(
            find_outer_repository(&root.join("main/sub"), None),
            Some(root.join("main/.git/modules/sub"))
        );
        for none in ["liar", "keys", "main", "nowhere", "inside", "bare", "main/other"] {
            assert_eq!(find_outer_repository(&root.join(none), None), None, "{none}");
        }
    }
}
