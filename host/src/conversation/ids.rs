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

/// Gives every id of one response a value of its own: an empty one becomes `call_N`, a repeated one gets
/// a suffix. The first holder of an id keeps it. Ids that are not the form both providers accept
/// (`[a-zA-Z0-9_-]`, at most 64 characters) are rewritten to it.
pub fn distinct_ids<'a>(ids: impl IntoIterator<Item = &'a mut CallId>) {
    let mut taken = HashSet::new();
    // Where to go on counting for an id that many calls want.
    let mut next_suffix: HashMap<String, usize> = HashMap::new();
    for (position, id) in ids.into_iter().enumerate() {
        let mut wanted: String = id.0.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_' || *c == '-').take(64).collect();
        if wanted.is_empty() {
            wanted = format!("call_{}", position + 1);
        }
        let mut candidate = wanted.clone();
        while taken.contains(&candidate) {
            let suffix = next_suffix.entry(wanted.clone()).or_insert(2);
            let tail = format!("_{suffix}");
            let keep = wanted.len().min(64 - tail.len());
            candidate = format!("{}{tail}", &wanted[..keep]);
            *suffix += 1;
        }
        taken.insert(candidate.clone());
        id.0 = candidate;
    }
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
        assert_eq!(made_distinct(&["", ""]), ["call_1", "call_2"]);
        assert_eq!(made_distinct(&["a", "a_2", "a"]), ["a", "a_2", "a_3"]);
        assert_eq!(made_distinct(&["call_2", ""]), ["call_2", "call_2_2"]);
    }

    #[test]
    fn r021_ids_are_rewritten_to_what_both_providers_accept() {
        assert_eq!(made_distinct(&["functions.read:0"]), ["functionsread0"]);
        let long = "x".repeat(100);
        let ids = made_distinct(&[&long, &long]);
        assert!(ids.iter().all(|id| id.len() <= 64));
        assert_ne!(ids[0], ids[1]);
    }
}
