//! What is refused although it was granted: hidden content, protected paths, files that have another name.

use cap_std::fs::{Metadata, MetadataExt as _};

use crate::policy::{Author, Code, Denial, Names, Protected, ProtectedPaths};

/// Decides on places.
#[derive(Debug)]
pub(in crate::sandbox) struct Guard {
    paths: ProtectedPaths,
    names: Names,
}

/// What a call is about to do to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sandbox) enum Doing {
    /// A new directory.
    MakeDirectory,
    /// Anything else: writing, removing, moving it away or something else to it.
    Changing,
}

impl Default for Guard {
    fn default() -> Self {
        Self::new(ProtectedPaths::default())
    }
}

impl Guard {
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
    pub(in crate::sandbox) fn reading(&self, place: &str) -> Result<(), Denial> {
        match self.of(place) {
            Some((Protected::Hidden, author)) => Err(refusal(Code::Hidden, place, "is hidden: its content is kept from tools", author)),
            Some((Protected::ReadOnly | Protected::Pinned, _)) | None => Ok(()),
        }
    }

    /// Whether a place may be changed.
    pub(in crate::sandbox) fn changing(&self, place: &str, doing: Doing) -> Result<(), Denial> {
        let (what, author) = match (self.of(place), doing) {
            (None, _) | (Some((Protected::Pinned, _)), Doing::MakeDirectory) => return Ok(()),
            (Some((Protected::Pinned, author)), Doing::Changing) => ("holds files that are protected, and stays where it is", author),
            (Some((Protected::ReadOnly, author)), _) => ("is run or obeyed by other programs, and tools may not change it", author),
            (Some((Protected::Hidden, author)), _) => ("is hidden, and tools may not change it", author),
        };
        Err(refusal(Code::Protected, place, what, author))
    }

    /// Whether a link may be made at a place: in place of a directory that holds protected files it would lead to others.
    pub(in crate::sandbox) fn linking(&self, place: &str) -> Result<(), Denial> {
        match self.paths.read_only_below(place.split('/')).first() {
            None => self.changing(place, Doing::Changing),
            Some(below) => {
                let what = format!("cannot be a link: it would decide what `{place}/{below}` is, which other programs run or obey");
                Err(refusal(Code::Protected, place, &what, &Author::BuiltIn))
            }
        }
    }

    /// Whether a file may be changed that has these metadata: one of several names may be outside of the workspace.
    pub(in crate::sandbox) fn linked(place: &str, metadata: &Metadata) -> Result<(), Denial> {
        if metadata.nlink() <= 1 {
            return Ok(());
        }
        Err(Denial::new(
            Code::HardLink,
            format!("'{place}' has {} names (hard links), some of which may be outside of the workspace.", metadata.nlink()),
            "The user can make it a file of its own, by copying it and putting the copy in its place.",
        ))
    }

    /// How a place is protected, if it is more than pinned.
    pub(in crate::sandbox) fn protection(&self, place: &str) -> Option<Protected> {
        self.of(place).map(|(how, _)| how).filter(|how| *how != Protected::Pinned)
    }

    fn of(&self, place: &str) -> Option<(Protected, &Author)> {
        if !place.split('/').any(|part| self.names.may_be(part)) {
            return None;
        }
        self.paths.find(place.split('/'))
    }
}

/// What the model is told: by whose word, and who could change that.
fn refusal(code: Code, place: &str, what: &str, author: &Author) -> Denial {
    let reason = format!("'{place}' {what}, by {author}.");
    match author {
        Author::Program => Denial::fixed(code, reason),
        Author::BuiltIn => Denial::new(code, reason, "Ask the user, who can do it by hand."),
        Author::File(_, pattern) => Denial {
            place: Some(pattern.place.clone()),
            ..Denial::new(code, reason, format!("The user can change that in {}.", pattern.place.file))
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_look_at_names_overlooks_nothing() {
        let guard = Guard::default();
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
            assert!(slow.is_some() && guard.of(place) == slow, "{place}");
        }
        for place in ["", "src/main.rs", ".environment", "git/hooks", "grüße"] {
            assert_eq!(guard.of(place), None, "{place}");
        }
        assert!(!guard.names.may_be("main.rs") && guard.names.may_be("modules"));
    }

    #[test]
    fn what_is_hidden_is_not_read_and_what_is_protected_is_not_changed() {
        let guard = Guard::default();
        let code = |denied: Result<(), Denial>| denied.err().map(|denial| denial.code);
        assert_eq!(code(guard.reading(".env")), Some(Code::Hidden));
        assert_eq!(code(guard.reading(".git/config")), None);
        assert_eq!(code(guard.changing(".git/hooks/x", Doing::Changing)), Some(Code::Protected));
        assert_eq!(code(guard.changing(".git", Doing::Changing)), Some(Code::Protected));
        assert_eq!(code(guard.changing(".git", Doing::MakeDirectory)), None);
        assert_eq!(code(guard.changing("src/a", Doing::Changing)), None);
    }
}
