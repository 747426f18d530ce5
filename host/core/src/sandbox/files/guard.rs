//! Denies access to hidden content, protected paths, and files with hard links, even with a
//! permission.

use cap_std::fs::{Metadata, MetadataExt as _};

use crate::policy::{
    Denial, DenialCode, PathProtection, PatternAuthor, ProtectedPathNames, ProtectedPaths,
    TrustLevel,
};

/// Decides on access to single paths of the workspace.
#[derive(Debug)]
pub(in crate::sandbox) struct PathAccessGuard {
    paths: ProtectedPaths,
    names: ProtectedPathNames,
}

/// The change that a call is about to make at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sandbox) enum FileAccess {
    /// Creating a directory.
    CreateDirectory,
    /// Creating a symbolic link.
    MakeLink,
    /// Any other change: writing, removing, moving the path, or moving something to it.
    Change,
}

impl Default for PathAccessGuard {
    fn default() -> Self {
        Self::new(ProtectedPaths::default())
    }
}

impl PathAccessGuard {
    /// Creates a guard with these protected paths.
    pub(in crate::sandbox) fn new(paths: ProtectedPaths) -> Self {
        let names = paths.names();
        Self { paths, names }
    }

    /// Returns the protected paths.
    pub(in crate::sandbox) fn paths(&self) -> &ProtectedPaths {
        &self.paths
    }

    /// Checks whether the content of a file may be read.
    pub(in crate::sandbox) fn check_read(&self, place: &str) -> Result<(), Denial> {
        match self.find(place) {
            Some((PathProtection::Hidden, author)) => {
                Err(path_denial(DenialCode::Hidden, place, "is hidden from tools", author))
            }
            Some((PathProtection::ReadOnly | PathProtection::Pinned, _)) | None => Ok(()),
        }
    }

    /// Checks whether a path may be changed.
    pub(in crate::sandbox) fn check_change(
        &self,
        place: &str,
        doing: FileAccess,
    ) -> Result<(), Denial> {
        let (what, author) = match (self.find(place), doing) {
            (None, FileAccess::MakeLink) if self.is_above(place) => {
                let reason = format!(
                    "other programs run or use the files in `{place}`, so tools cannot replace \
                        this directory with a link."
                );
                return Err(Denial::new(
                    DenialCode::Protected,
                    reason,
                    "Ask the user to make the change.",
                ));
            }
            (None, _) | (Some((PathProtection::Pinned, _)), FileAccess::CreateDirectory) => {
                return Ok(());
            }
            (Some((PathProtection::Pinned, author)), FileAccess::Change | FileAccess::MakeLink) => {
                ("contains protected files, so tools cannot move, replace or delete it", author)
            }
            (Some((PathProtection::ReadOnly, author)), _) => ("is read-only for tools", author),
            (Some((PathProtection::Hidden, author)), _) => {
                ("is hidden, so tools cannot change it", author)
            }
        };
        Err(path_denial(DenialCode::Protected, place, what, author))
    }

    /// Checks whether a command may change a path: no hidden one. `has_secrets` is false where the
    /// built-in list does not apply.
    pub(in crate::sandbox) fn check_command_change(
        &self,
        place: &str,
        has_secrets: bool,
    ) -> Result<(), Denial> {
        match self.find(place) {
            Some((PathProtection::Hidden, PatternAuthor::Program)) => Err(Denial::without_remedy(
                DenialCode::Protected,
                "it is the place of a file of Cofferdam itself.",
            )),
            Some((PathProtection::Hidden, author))
                if has_secrets || *author != PatternAuthor::BuiltIn =>
            {
                let reason = format!("commands cannot change hidden files ({author}).");
                Err(protection_denial(DenialCode::Protected, reason, author))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Checks whether a file with this metadata may be changed. If a file has several hard links,
    /// one may be outside of the workspace.
    pub(in crate::sandbox) fn check_hard_links(
        place: &str,
        metadata: &Metadata,
    ) -> Result<(), Denial> {
        if metadata.nlink() <= 1 {
            return Ok(());
        }
        Err(Denial::new(
            DenialCode::HardLink,
            format!(
                "`{place}` has {} hard links, some of which may be outside the workspace.",
                metadata.nlink()
            ),
            "The user can replace the file with a copy of itself, which has no other hard links.",
        ))
    }

    /// Returns the protection of a path, if it is more than pinned.
    pub(in crate::sandbox) fn protection(&self, place: &str) -> Option<PathProtection> {
        self.find(place).map(|(how, _)| how).filter(|how| *how != PathProtection::Pinned)
    }

    /// Returns whether a link at this path would determine the targets of protected paths below it.
    fn is_above(&self, place: &str) -> bool {
        let name = place.rsplit('/').next().unwrap_or(place);
        self.names.may_be_above(name) && !self.paths.read_only_below(place.split('/')).is_empty()
    }

    fn find(&self, place: &str) -> Option<(PathProtection, &PatternAuthor)> {
        if !place.split('/').any(|part| self.names.may_match(part)) {
            return None;
        }
        self.paths.find(place.split('/'))
    }
}

/// Builds the denial for the model: who protects the path, and who could change that.
fn path_denial(code: DenialCode, place: &str, what: &str, author: &PatternAuthor) -> Denial {
    let reason = format!("`{place}` {what}; it is protected by {author}.");
    protection_denial(code, reason, author)
}

fn protection_denial(code: DenialCode, reason: String, author: &PatternAuthor) -> Denial {
    match author {
        PatternAuthor::Program => Denial::without_remedy(code, reason),
        PatternAuthor::BuiltIn => Denial::new(code, reason, "Ask the user to make the change."),
        PatternAuthor::File(level, pattern) => {
            let who = match level {
                TrustLevel::System => "Only the administrator of this machine",
                TrustLevel::User | TrustLevel::Stranger => "The user",
            };
            let remedy = format!("{who} can change that in {}.", pattern.place.file);
            Denial { place: Some(pattern.place.clone()), ..Denial::new(code, reason, remedy) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_filter_has_no_false_negatives() {
        let guard = PathAccessGuard::default();
        let paths = ProtectedPaths::default();
        let protected = [
            ".env",
            "a/.ENV.local",
            ".git",
            "x/.git/hooks/y",
            ".Git/Config",
            "k/server.key",
            ".aws/x",
            ".ba\u{17f}hrc",
            ".g\u{200c}it",
            "a\nb.pem",
        ];
        for place in protected {
            let slow = paths.find(place.split('/'));
            assert!(slow.is_some() && guard.find(place) == slow, "{place}");
        }
        for place in ["", "src/main.rs", ".environment", "git/hooks", "grüße"] {
            assert_eq!(guard.find(place), None, "{place}");
        }
        assert!(!guard.names.may_match("main.rs") && guard.names.may_match("modules"));
    }

    #[test]
    fn hidden_files_cannot_be_read_and_protected_files_cannot_be_changed() {
        let guard = PathAccessGuard::default();
        let code = |denied: Result<(), Denial>| denied.err().map(|denial| denial.code);
        assert_eq!(code(guard.check_read(".env")), Some(DenialCode::Hidden));
        assert_eq!(code(guard.check_read(".git/config")), None);
        assert_eq!(
            code(guard.check_change(".git/hooks/x", FileAccess::Change)),
            Some(DenialCode::Protected)
        );
        assert_eq!(
            code(guard.check_change(".git", FileAccess::Change)),
            Some(DenialCode::Protected)
        );
        assert_eq!(code(guard.check_change(".git", FileAccess::CreateDirectory)), None);
        assert_eq!(code(guard.check_change("src/a", FileAccess::Change)), None);
        assert_eq!(
            code(guard.check_change(".git/info", FileAccess::MakeLink)),
            Some(DenialCode::Protected)
        );
        assert_eq!(
            code(guard.check_change("src/.config", FileAccess::MakeLink)),
            Some(DenialCode::Protected)
        );
        assert_eq!(code(guard.check_change("src/info", FileAccess::MakeLink)), None);
        assert_eq!(code(guard.check_change(".git/info", FileAccess::CreateDirectory)), None);
    }
}
