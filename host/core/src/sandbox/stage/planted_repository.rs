//! Staged changes that would create a repository, or change what git runs in one.

use std::io;

use cap_std::fs::Dir;

use super::Staged;
use super::repository_parts::{RepositoryParts, find_parts, has_repository_shape, is_control_part};
use super::staged::TargetState;
use crate::policy::{Denial, DenialCode};
use crate::sandbox::rooted_fs;
use crate::terminal_escape::escape_line;

impl Staged {
    /// Returns whether the changes have parts of a repository, so that
    /// [`Self::find_planted_repository`] has something to look for.
    pub(crate) fn has_repository_parts(&self) -> bool {
        !self.repository_parts().is_empty()
    }

    /// Returns the denial of changes that would create a repository, or change its settings or
    /// hooks. Reads directories of the workspace.
    pub(crate) fn find_planted_repository(&self) -> Option<Denial> {
        let root = self.workspace().dir();
        self.repository_parts().into_iter().find_map(|(directory, names)| {
            match find_changed_part(root, directory, &names) {
                Ok(part) => part.map(|name| planted_denial(directory, name)),
                Err(error) => Some(Denial::without_remedy(
                    DenialCode::Protected,
                    format!("the directory `{}` cannot be read: {error}", escape(directory)),
                )),
            }
        })
    }

    /// A directory that is created becomes a repository by the entries in it, so the names of new
    /// directories count, too.
    fn repository_parts(&self) -> RepositoryParts<'_> {
        let new = self.steps().iter().filter(|step| match step.target {
            TargetState::Absent => false,
            TargetState::Directory { .. } | TargetState::Link(_) | TargetState::File { .. } => true,
        });
        find_parts(new.map(|step| step.path.as_str()))
    }
}

/// Returns the name of the entry by which a directory becomes a repository, or by which its
/// settings change.
fn find_changed_part<'a>(
    root: &Dir,
    directory: &str,
    names: &[&'a str],
) -> io::Result<Option<&'a str>> {
    let shape = match rooted_fs::open_dir(root, directory) {
        Ok(opened) => (has_repository_shape(&opened, &[])?, has_repository_shape(&opened, names)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let new =
                cofferdam_confine::git::is_repository(names.iter().map(|name| (*name, false)));
            (false, new)
        }
        Err(error) => return Err(error),
    };
    Ok(match shape {
        (_, false) => None,
        (false, true) => names.first().copied(),
        (true, true) => names.iter().copied().find(|name| is_control_part(name)),
    })
}

fn planted_denial(directory: &str, name: &str) -> Denial {
    let separator = if directory.is_empty() { "" } else { "/" };
    let place = escape(&format!("{directory}{separator}{name}"));
    let reason = format!(
        "`{place}` would be a part of a git repository, and git runs programs that the files of a \
            repository name; tools cannot create or configure one."
    );
    Denial::new(DenialCode::Protected, reason, "Use git in a command, or ask the user to do it.")
}

fn escape(path: &str) -> String {
    escape_line(path, 200)
}

/// Returns a path that would be a part of a repository if these paths had their earlier state, or
/// that settings of a repository are read from. The state that a change left may be part of a
/// repository by now.
///
/// # Errors
/// A directory cannot be read.
pub(super) fn find_restored_part(root: &Dir, paths: &[String]) -> io::Result<Option<String>> {
    for (directory, names) in find_parts(paths.iter().map(String::as_str)) {
        if let Some(name) = find_changed_part(root, directory, &names)? {
            return Ok(Some(rooted_fs::join(directory, name)));
        }
    }
    Ok(None)
}
