//! Which paths a call has touched, for whoever wants to know afterwards.

use std::collections::{BTreeMap, BTreeSet};

use crate::sandbox::file_version::FileVersion;

/// Of each kind; what comes after is counted.
const MAX_PATHS: usize = 200;

/// Paths that a call has opened, by their places in the workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TouchedPaths {
    /// Read, and which version of each: the first one that was opened.
    pub read: BTreeMap<String, FileVersion>,
    /// Written, made, moved or removed, aside.
    pub written: BTreeSet<String>,
    /// Roots of walks, which read what lies below.
    pub walked: BTreeSet<String>,
    /// How many times something else was touched when a list was full.
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
