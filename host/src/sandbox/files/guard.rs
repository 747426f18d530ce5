//! What is refused although it was granted: hidden content, protected paths, files that have another name.

use cap_std::fs::{Metadata, MetadataExt as _};

use crate::policy::{Code, Denial, Protected, ProtectedPaths, WorkspacePath};

/// Decides on places.
#[derive(Debug, Default)]
pub(in crate::sandbox) struct Guard {
    paths: ProtectedPaths,
}

/// What a call is about to do to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sandbox) enum Doing {
    /// A new directory.
    MakeDirectory,
    /// Anything else: writing, removing, moving it away or something else to it.
    Changing,
}

impl Guard {
    /// With this list of paths.
    pub(in crate::sandbox) fn new(paths: ProtectedPaths) -> Self {
        Self { paths }
    }

    /// Whether the content of a file may be read.
    pub(in crate::sandbox) fn reading(&self, place: &str) -> Result<(), Denial> {
        match self.of(place) {
            Some(Protected::Hidden) => Err(Denial::fixed(
                Code::Hidden,
                format!("'{place}' may hold secrets by its name, and its content is kept from tools. Ask the user if you need something of it."),
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
            (Some(Protected::Hidden), _) => "may hold secrets by its name, and tools may not change it",
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
        // What is at a place is a path already; a name that is none is judged by its parts.
        match WorkspacePath::parse(place, None) {
            Ok(path) => self.paths.of(&path),
            Err(_) => self.paths.of_parts(place.split('/')),
        }
    }
}
