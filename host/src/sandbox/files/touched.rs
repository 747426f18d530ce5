//! Which paths a call has touched, for whoever wants to know afterwards.

use std::collections::{BTreeMap, BTreeSet};

use crate::sandbox::version::Version;

/// Of each kind; what comes after is counted.
const MOST: usize = 200;

/// Paths that a call has opened, by their places in the workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Read, and which version of each: the first one that was opened.
    pub read: BTreeMap<String, Version>,
    /// Written, made, moved or removed, aside.
    pub written: BTreeSet<String>,
    /// Roots of walks, which read what lies below.
    pub walked: BTreeSet<String>,
    /// How many times something else was touched when a list was full.
    pub more: usize,
}

impl Touched {
    pub(super) fn read(&mut self, place: &str, version: Version) {
        match self.read.get(place) {
            Some(_) => {}
            None if self.read.len() < MOST => drop(self.read.insert(place.to_owned(), version)),
            None => self.more += 1,
        }
    }

    pub(super) fn written(&mut self, place: &str) {
        Self::note(&mut self.written, &mut self.more, place);
    }

    pub(in crate::sandbox) fn walked(&mut self, place: &str) {
        Self::note(&mut self.walked, &mut self.more, place);
    }

    fn note(places: &mut BTreeSet<String>, more: &mut usize, place: &str) {
        if places.contains(place) {
        } else if places.len() < MOST {
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
        let mut touched = Touched::default();
        for n in 0..MOST + 10 {
            touched.read(&n.to_string(), Version::from(n.to_string()));
            touched.read("0", Version::from("another".to_owned()));
            touched.written("0");
        }
        assert_eq!((touched.read.len(), touched.written.len(), touched.more), (MOST, 1, 10));
        assert_eq!(touched.read.get("0").map(Version::as_str), Some("0"), "what was read first is what is compared with");
    }
}
