//! Names of calls, and making them distinct within a response.

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};

/// What ties a result to its call on the wire. Distinct within a turn, not beyond it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(String);

impl CallId {
    /// Takes an id as a provider sent it, which may be empty or a duplicate: see [`distinct_ids`].
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The id as it stands on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How long an id may be, in bytes.
const LONGEST: usize = 64;

/// Gives every id of one response a value of its own: an empty one becomes `call_N`, a repeated one gets
/// a suffix, one that is longer than providers accept is cut. The first holder of an id keeps it. Otherwise an id stays as it
/// came: there are models that read the name of the tool from it, as in `functions.grep:0`.
pub fn distinct_ids<'a>(ids: impl IntoIterator<Item = &'a mut CallId>) {
    let mut taken = HashSet::new();
    // Where to go on counting for an id that many calls want.
    let mut next_suffix: HashMap<String, usize> = HashMap::new();
    for (position, id) in ids.into_iter().enumerate() {
        let wanted = match id.0.trim() {
            "" => format!("call_{}", position + 1),
            id => beginning(id, LONGEST).to_owned(),
        };
        let mut candidate = wanted.clone();
        while taken.contains(&candidate) {
            let suffix = next_suffix.entry(wanted.clone()).or_insert(2);
            let tail = format!("_{suffix}");
            candidate = format!("{}{tail}", beginning(&wanted, LONGEST - tail.len()));
            *suffix += 1;
        }
        taken.insert(candidate.clone());
        id.0 = candidate;
    }
}

/// Without spaces at its end, which would be trimmed the next time.
fn beginning(text: &str, most: usize) -> &str {
    text[..text.floor_char_boundary(most)].trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_distinct(ids: &[&str]) -> Vec<String> {
        let mut ids: Vec<CallId> = ids.iter().map(|id| CallId::new(*id)).collect();
        distinct_ids(ids.iter_mut());
        ids.into_iter().map(|id| id.0).collect()
    }

    #[test]
    fn r021_duplicate_and_empty_ids_become_distinct() {
        assert_eq!(made_distinct(&["a", "b"]), ["a", "b"]);
        assert_eq!(made_distinct(&["a", "a", "a"]), ["a", "a_2", "a_3"]);
        let spaced = format!("a{}b", " ".repeat(LONGEST));
        assert_eq!(made_distinct(&[&spaced, "a"]), ["a", "a_2"], "what is cut is an id like any other");
        assert_eq!(made_distinct(&["", ""]), ["call_1", "call_2"]);
        assert_eq!(made_distinct(&["a", "a_2", "a"]), ["a", "a_2", "a_3"]);
        assert_eq!(made_distinct(&["call_2", ""]), ["call_2", "call_2_2"]);
    }

    #[test]
    fn r021_an_id_stays_as_it_came_as_far_as_it_can() {
        assert_eq!(made_distinct(&["functions.read:0", "functions.read:1"]), ["functions.read:0", "functions.read:1"]);
        assert_eq!(made_distinct(&["functions.read:0", "functions.read:0"]), ["functions.read:0", "functions.read:0_2"]);
        for long in ["x".repeat(100), "🦀".repeat(30)] {
            let ids = made_distinct(&[&long, &long]);
            assert!(ids.iter().all(|id| id.len() <= 64), "{ids:?}");
            assert_ne!(ids[0], ids[1]);
        }
    }
}
