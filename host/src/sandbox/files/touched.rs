//! Which paths a call has touched, for whoever wants to know afterwards.

use std::collections::BTreeSet;

/// Of each kind; what comes after is counted.
const MOST: usize = 200;

/// Paths that a call has opened, by their places in the workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Read.
    pub read: BTreeSet<String>,
    /// Written, made, moved or removed, aside.
    pub written: BTreeSet<String>,
    /// Roots of walks, which read what lies below.
    pub walked: BTreeSet<String>,
    /// How many times something else was touched when a list was full.
    pub more: usize,
}

impl Touched {
    pub(super) fn read(&mut self, place: &str) {
        Self::note(&mut self.read, &mut self.more, place);
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
            touched.read(&n.to_string());
            touched.read("0");
        }
        assert_eq!((touched.read.len(), touched.more), (MOST, 10));
    }
}
