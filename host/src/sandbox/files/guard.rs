//! What is refused although it was granted: hidden content, protected paths, files that have another name.

use cap_std::fs::{Metadata, MetadataExt as _};
use regex::bytes::{Regex, RegexBuilder};

use crate::policy::{Code, Denial, Protected, ProtectedPaths, WorkspacePath};

/// Decides on places.
#[derive(Debug)]
pub(in crate::sandbox) struct Guard {
    paths: ProtectedPaths,
    /// Finds the few names that may be protected: a search asks about every file.
    names: Option<Regex>,
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
        let names = paths.names().unwrap_or_default();
        let tells = !names.is_empty();
        let names: Vec<String> = names.iter().map(|name| regex::escape(name).replace(r"\*", ".*").replace(r"\?", ".")).collect();
        let names =
            RegexBuilder::new(&format!("^(?:{})$", names.join("|"))).unicode(false).case_insensitive(true).build().ok().filter(|_| tells);
        Self { paths, names }
    }

    /// Whether the content of a file may be read.
    pub(in crate::sandbox) fn reading(&self, place: &str) -> Result<(), Denial> {
        match self.of(place) {
            Some(Protected::Hidden) => Err(Denial::fixed(
                Code::Hidden,
                format!(
                    "'{place}' is hidden: its content is kept from tools, since by its name it may hold secrets, or by the policy. Ask the user if you need something of it."
                ),
            )),
            Some(Protected::ReadOnly | Protected::Pinned) | None => Ok(()),
        }
    }

    /// Whether a place may be changed.
    pub(in crate::sandbox) fn changing(&self, place: &str, doing: Doing) -> Result<(), Denial> {
        let what = match (self.of(place), doing) {
            (None, _) | (Some(Protected::Pinned), Doing::MakeDirectory) => return Ok(()),
            (Some(Protected::Pinned), Doing::Changing) => "holds files that other programs run, and stays where it is",
            (Some(Protected::ReadOnly), _) => "is run or obeyed by other programs, and tools may not change it",
            (Some(Protected::Hidden), _) => "is hidden, and tools may not change it",
        };
        Err(Denial::fixed(Code::Protected, format!("'{place}' {what}. The user can do it by hand.")))
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

    fn of(&self, place: &str) -> Option<Protected> {
        // Some file systems ignore letters that are not ASCII, so that such a name may be like any other.
        let may_be = |part: &str| !part.is_ascii() || self.names.as_ref().is_none_or(|names| names.is_match(part.as_bytes()));
        if !place.split('/').any(may_be) {
            return None;
        }
        // What is at a place is a path already; a name that is none is judged by its parts.
        match WorkspacePath::parse(place, None) {
            Ok(path) => self.paths.of(&path),
            Err(_) => self.paths.of_parts(place.split('/')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_look_at_names_overlooks_nothing() {
        let guard = Guard::default();
        let paths = ProtectedPaths::default();
        let protected =
            [".env", "a/.ENV.local", ".git", "x/.git/hooks/y", ".Git/Config", "k/server.key", ".aws/x", ".ba\u{17f}hrc", ".g\u{200c}it"];
        for place in protected {
            let slow = paths.of_parts(place.split('/'));
            assert!(slow.is_some() && guard.of(place) == slow, "{place}");
        }
        for place in ["", "src/main.rs", ".environment", "git/hooks", "grüße"] {
            assert_eq!(guard.of(place), None, "{place}");
        }
        assert!(guard.names.is_some());
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
