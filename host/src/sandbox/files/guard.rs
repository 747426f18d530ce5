//! What is refused although it was granted: hidden content, protected paths, files that have
//! another name.

use cap_std::fs::{Metadata, MetadataExt as _};

use crate::policy::{
    Denial, DenialCode, PathProtection, PatternAuthor, ProtectedPathNames, ProtectedPaths,
};

/// Decides on places.
#[derive(Debug)]
pub(in crate::sandbox) struct PathAccessGuard {
    paths: ProtectedPaths,
    names: ProtectedPathNames,
}

/// What a call is about to do to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sandbox) enum FileAccess {
    /// A new directory.
    CreateDirectory,
    /// A new symbolic link.
    MakeLink,
    /// Anything else: writing, removing, moving it away or something else to it.
    Change,
}

impl Default for PathAccessGuard {
    fn default() -> Self {
        Self::new(ProtectedPaths::default())
    }
}

impl PathAccessGuard {
    /// With this list of paths.
    pub(in crate::sandbox) fn new(paths: ProtectedPaths) -> Self {
        let names = paths.names();
        Self { paths, names }
    }

    /// The list.
    pub(in crate::sandbox) fn paths(&self) -> &ProtectedPaths {
        &self.paths
    }

    /// Whether the content of a file may be read.
    pub(in crate::sandbox) fn check_read(&self, place: &str) -> Result<(), Denial> {
        match self.find(place) {
            Some((PathProtection::Hidden, author)) => Err(path_denial(
                DenialCode::Hidden,
                place,
                "is hidden: its content is kept from tools",
                author,
            )),
            Some((PathProtection::ReadOnly | PathProtection::Pinned, _)) | None => Ok(()),
        }
    }

    /// Whether a place may be changed.
    pub(in crate::sandbox) fn check_change(
        &self,
        place: &str,
        doing: FileAccess,
    ) -> Result<(), Denial> {
        let (what, author) = match (self.find(place), doing) {
            (None, FileAccess::MakeLink) if self.is_above(place) => {
                let reason = format!(
                    "'{place}' is a directory of files that other programs run or obey, and tools \
                        may not make a link of it."
                );
                return Err(Denial::new(
                    DenialCode::Protected,
                    reason,
                    "Ask the user, who can do it by hand.",
                ));
            }
            (None, _) | (Some((PathProtection::Pinned, _)), FileAccess::CreateDirectory) => {
                return Ok(());
            }
            (Some((PathProtection::Pinned, author)), FileAccess::Change | FileAccess::MakeLink) => {
                ("holds files that are protected, and stays where it is", author)
            }
            (Some((PathProtection::ReadOnly, author)), _) => {
                ("is run or obeyed by other programs, and tools may not change it", author)
            }
            (Some((PathProtection::Hidden, author)), _) => {
                ("is hidden, and tools may not change it", author)
            }
        };
        Err(path_denial(DenialCode::Protected, place, what, author))
    }

    /// Whether a file may be changed that has these metadata: one of several names may be outside
    /// of the workspace.
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
                "'{place}' has {} names (hard links), some of which may be outside of the \
                    workspace.",
                metadata.nlink()
            ),
            "The user can make it a file of its own, by copying it and putting the copy in its \
                place.",
        ))
    }

    /// How a place is protected, if it is more than pinned.
    pub(in crate::sandbox) fn protection(&self, place: &str) -> Option<PathProtection> {
        self.find(place).map(|(how, _)| how).filter(|how| *how != PathProtection::Pinned)
    }

    /// Whether a link in this place would decide what protected paths below it are.
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

/// What the model is told: by whose word, and who could change that.
fn path_denial(code: DenialCode, place: &str, what: &str, author: &PatternAuthor) -> Denial {
    let reason = format!("'{place}' {what}, by {author}.");
    match author {
        PatternAuthor::Program => Denial::without_remedy(code, reason),
        PatternAuthor::BuiltIn => Denial::new(code, reason, "Ask the user, who can do it by hand."),
        PatternAuthor::File(_, pattern) => Denial {
            place: Some(pattern.place.clone()),
            ..Denial::new(
                code,
                reason,
                format!("The user can change that in {}.", pattern.place.file),
            )
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_look_at_names_overlooks_nothing() {
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
    fn what_is_hidden_is_not_read_and_what_is_protected_is_not_changed() {
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
