//! The paths that a call touched, for its audit record and for later checks.

use std::collections::{BTreeMap, BTreeSet};

use crate::sandbox::file_version::FileVersion;

/// The number of paths of each kind; further ones are only counted.
const MAX_PATHS: usize = 200;

/// The workspace paths that a call touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TouchedPaths {
    /// The files that were read, with the version that was opened first.
    pub read: BTreeMap<String, FileVersion>,
    /// The paths that were written, created, moved or removed in the staged changes.
    pub written: BTreeSet<String>,
    /// The roots of walks, which read everything below them.
    pub walked: BTreeSet<String>,
    /// The number of touched paths that did not fit into a list.
    pub omitted: usize,
}

impl TouchedPaths {
    pub(super) fn record_read(&mut self, place: &str, version: FileVersion) {
        match self.read.get(place) {
            Some(_) => {}
            None if self.read.len() < MAX_PATHS => {
                drop(self.read.insert(place.to_owned(), version))
            }
            None => self.omitted += 1,
        }
    }

    pub(super) fn record_written(&mut self, place: &str) {
        Self::insert_bounded(&mut self.written, &mut self.omitted, place);
    }

    pub(in crate::sandbox) fn record_walked(&mut self, place: &str) {
        Self::insert_bounded(&mut self.walked, &mut self.omitted, place);
    }

    fn insert_bounded(places: &mut BTreeSet<String>, more: &mut usize, place: &str) {
        if places.contains(place) {
        } else if places.len() < MAX_PATHS {
            places.insert(place.to_owned());
        } else {
            *more += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_noted_once_and_counted_beyond_the_cap() {
        let mut touched = TouchedPaths::default();
        for n in 0..MAX_PATHS + 10 {
            touched.record_read(&n.to_string(), FileVersion::from(n.to_string()));
            touched.record_read("0", FileVersion::from("another".to_owned()));
            touched.record_written("0");
        }
        assert_eq!(
            (touched.read.len(), touched.written.len(), touched.omitted),
            (MAX_PATHS, 1, 10)
        );
        assert_eq!(
            touched.read.get("0").map(FileVersion::as_str),
            Some("0"),
            "what was read first is what is compared with"
        );
    }
}
