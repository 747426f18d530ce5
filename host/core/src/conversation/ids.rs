//! IDs of calls, and the code that makes them distinct within a conversation.

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};

/// The ID that links a result to its call, distinct within a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(String);

impl CallId {
    /// Wraps an ID as a provider sent it, which may be empty or a duplicate.
    ///
    /// [`OpenTurn`](super::OpenTurn) and [`Transcript`](super::Transcript) make it distinct.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// Returns the ID as it is sent to the provider.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The maximum length of an ID, in bytes.
///
/// It is the limit of the Chat Completions format, and a conversation can switch to that format at
/// any time.
const MAX_LEN: usize = 40;

/// The IDs that a conversation already uses.
#[derive(Clone, Debug, Default)]
pub(super) struct CallIdAllocator {
    taken: HashSet<String>,
    /// The next suffix to try for an ID that several calls have.
    next_suffix: HashMap<String, usize>,
}

impl CallIdAllocator {
    /// Makes the IDs of new calls distinct from each other and from those of the conversation.
    ///
    /// The IDs of the conversation do not change. Providers find a result by its call ID, so with a
    /// duplicate ID a result is lost or the request is refused.
    ///
    /// An empty ID becomes `call_N`, a duplicate gets a suffix, and an ID over the limit is
    /// truncated. Any other ID is unchanged, because some models read the name of the tool from it,
    /// as in `functions.grep:0`.
    ///
    /// Returns the new IDs.
    pub(super) fn make_distinct<'a>(&self, ids: impl IntoIterator<Item = &'a mut CallId>) -> Self {
        let mut new = Self::default();
        for id in ids {
            id.0 = new.unique_id(&id.0, self);
            new.taken.insert(id.0.clone());
        }
        new
    }

    /// Makes the IDs of new calls distinct and adds them to the conversation.
    pub(super) fn add<'a>(&mut self, ids: impl IntoIterator<Item = &'a mut CallId>) {
        let new = self.make_distinct(ids);
        self.taken.extend(new.taken);
        self.next_suffix.extend(new.next_suffix);
    }

    fn unique_id(&mut self, id: &str, earlier: &Self) -> String {
        let number = earlier.taken.len() + self.taken.len() + 1;
        let wanted = match id.trim() {
            "" => format!("call_{number}"),
            id => truncate(id, MAX_LEN).to_owned(),
        };
        let is_taken = |id: &String| self.taken.contains(id) || earlier.taken.contains(id);
        if !is_taken(&wanted) {
            return wanted;
        }
        let mut suffix = self
            .next_suffix
            .get(&wanted)
            .or(earlier.next_suffix.get(&wanted))
            .copied()
            .unwrap_or(number);
        let free = loop {
            let tail = format!("_{suffix}");
            let candidate = format!("{}{tail}", truncate(&wanted, MAX_LEN - tail.len()));
            suffix += 1;
            if !is_taken(&candidate) {
                break candidate;
            }
        };
        self.next_suffix.insert(wanted, suffix);
        free
    }
}

/// Truncates an ID and removes spaces at its end, which the next pass would trim.
fn truncate(text: &str, max_bytes: usize) -> &str {
    text[..text.floor_char_boundary(max_bytes)].trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_distinct(ids: &[&str]) -> Vec<String> {
        added(&mut CallIdAllocator::default(), ids)
    }

    /// Adds the calls of one turn and returns their distinct IDs.
    fn added(conversation: &mut CallIdAllocator, ids: &[&str]) -> Vec<String> {
        let mut ids: Vec<CallId> = ids.iter().map(|id| CallId::new(*id)).collect();
        conversation.add(ids.iter_mut());
        ids.into_iter().map(|id| id.0).collect()
    }

    #[test]
    fn r021_ids_are_distinct_in_the_whole_conversation() {
        let mut conversation = CallIdAllocator::default();
        assert_eq!(added(&mut conversation, &["", "call_0", ""]), ["call_1", "call_0", "call_3"]);
        assert_eq!(added(&mut conversation, &["call_0", "", "x"]), ["call_0_4", "call_5", "x"]);
        assert_eq!(added(&mut conversation, &["call_0", "x_8", "x"]), ["call_0_5", "x_8", "x_9"]);
        // The IDs of a turn do not change when it becomes a part of the conversation.
        let mut proposed = [CallId::new("x"), CallId::new("x")];
        let _ = conversation.make_distinct(&mut proposed);
        let proposed: Vec<&str> = proposed.iter().map(CallId::as_str).collect();
        assert_eq!(added(&mut conversation, &proposed), proposed);
    }

    #[test]
    fn r062_many_duplicate_ids_take_linear_time() {
        let started = std::time::Instant::now();
        let mut conversation = CallIdAllocator::default();
        let names: Vec<String> = (0..20_000).map(|n| format!("same_{n}")).collect();
        for name in &names {
            let _ = added(&mut conversation, &[name]);
        }
        for _ in 0..20_000 {
            let _ = added(&mut conversation, &["same"]);
        }
        assert_eq!(conversation.taken.len(), 40_000);
        assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
    }

    #[test]
    fn r021_duplicate_and_empty_ids_become_distinct() {
        assert_eq!(made_distinct(&["a", "b"]), ["a", "b"]);
        assert_eq!(made_distinct(&["a", "a", "a"]), ["a", "a_2", "a_3"]);
        let spaced = format!("a{}b", " ".repeat(MAX_LEN));
        assert_eq!(
            made_distinct(&[&spaced, "a"]),
            ["a", "a_2"],
            "a truncated id is an ordinary id"
        );
        assert_eq!(made_distinct(&["", ""]), ["call_1", "call_2"]);
        assert_eq!(made_distinct(&["a", "a_2", "a"]), ["a", "a_2", "a_3"]);
        assert_eq!(made_distinct(&["call_2", ""]), ["call_2", "call_2_2"]);
    }

    #[test]
    fn r021_a_valid_id_is_unchanged_where_possible() {
        assert_eq!(
            made_distinct(&["functions.read:0", "functions.read:1"]),
            ["functions.read:0", "functions.read:1"]
        );
        assert_eq!(
            made_distinct(&["functions.read:0", "functions.read:0"]),
            ["functions.read:0", "functions.read:0_2"]
        );
        for long in ["x".repeat(100), "🦀".repeat(30)] {
            let ids = made_distinct(&[&long, &long]);
            assert!(ids.iter().all(|id| id.len() <= 40), "{ids:?}");
            assert_ne!(ids[0], ids[1]);
        }
    }
}
