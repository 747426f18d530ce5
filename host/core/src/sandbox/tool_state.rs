//! The `state` interface: key-value storage of one tool, for the session.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use super::call_state::not_granted;
use super::contract::v0_2::state as wit;
use crate::policy::ComponentDigest;

/// The limits of the WIT contract. The values stay in memory during the session, so their sum is
/// limited too.
const MAX_KEY_LEN: usize = 64;
const MAX_VALUE_LEN: usize = 64 << 10;
const MAX_KEYS: usize = 256;
const MAX_TOTAL_BYTES: usize = 256 << 10;

/// The key-value storage of all tools in one session.
#[derive(Debug, Default)]
pub struct ToolStateStore {
    by_tool: Mutex<HashMap<(ComponentDigest, String), ToolState>>,
}

/// The key-value storage of one tool. Clones share the same storage.
#[derive(Clone, Debug, Default)]
pub struct ToolState(Arc<Mutex<StoredState>>);

#[derive(Debug, Default)]
struct StoredState {
    values: BTreeMap<String, Vec<u8>>,
    /// The bytes of all keys and values.
    bytes: usize,
    /// The keys that were set or deleted since the last [`ToolState::take_changes`].
    changed_keys: BTreeSet<String>,
}

/// A changed key with its value; `None` if the key was deleted.
pub type StateChange = (String, Option<Vec<u8>>);

impl ToolStateStore {
    /// Returns the storage of a tool. A component with another digest starts with empty storage.
    pub fn for_tool(&self, component: &ComponentDigest, tool: &str) -> ToolState {
        lock(&self.by_tool).entry((component.clone(), tool.to_owned())).or_default().clone()
    }
}

impl ToolState {
    /// Returns the changes since the last call of this method.
    pub fn take_changes(&self) -> Vec<StateChange> {
        let mut stored = lock(&self.0);
        let changed = std::mem::take(&mut stored.changed_keys);
        changed.into_iter().map(|key| (key.clone(), stored.values.get(&key).cloned())).collect()
    }

    /// Applies the changes of an earlier run of the session. Ignores changes that exceed a limit,
    /// because the session file may have been edited.
    pub fn restore(&self, changes: &[StateChange]) {
        let mut stored = lock(&self.0);
        for (key, value) in changes {
            match value {
                Some(value) if check_key(key).is_ok() => {
                    let _ = stored.set(key.clone(), value.clone());
                }
                Some(_) => {}
                None => stored.delete(key),
            }
        }
        stored.changed_keys.clear();
    }
}

impl StoredState {
    fn set(&mut self, key: String, value: Vec<u8>) -> Result<(), wit::StateError> {
        if value.len() > MAX_VALUE_LEN {
            return Err(full_error(format!(
                "the value has {} bytes; the limit is {MAX_VALUE_LEN}",
                value.len()
            )));
        }
        let before = self.values.get(&key).map(|old| key.len() + old.len());
        if before.is_none() && self.values.len() >= MAX_KEYS {
            return Err(full_error(format!(
                "the limit of {MAX_KEYS} keys is reached; delete some"
            )));
        }
        let bytes = self.bytes - before.unwrap_or_default() + key.len() + value.len();
        if bytes > MAX_TOTAL_BYTES {
            return Err(full_error(format!(
                "the state would have {bytes} bytes; the limit is {MAX_TOTAL_BYTES}"
            )));
        }
        self.bytes = bytes;
        self.changed_keys.insert(key.clone());
        self.values.insert(key, value);
        Ok(())
    }

    fn delete(&mut self, key: &str) {
        if let Some(value) = self.values.remove(key) {
            self.bytes -= key.len() + value.len();
            self.changed_keys.insert(key.to_owned());
        }
    }
}

/// The host's part of the `state` interface for one call. `None` without the permission to keep
/// state.
pub(super) struct ToolStateHost(pub(super) Option<ToolState>);

impl wit::Host for ToolStateHost {
    fn get(&mut self, key: String) -> Result<Option<Vec<u8>>, wit::StateError> {
        let state = self.tool_state()?;
        check_key(&key)?;
        Ok(lock(&state.0).values.get(&key).cloned())
    }

    fn set(&mut self, key: String, value: Vec<u8>) -> Result<(), wit::StateError> {
        let state = self.tool_state()?;
        check_key(&key)?;
        lock(&state.0).set(key, value)
    }

    fn delete(&mut self, key: String) -> Result<(), wit::StateError> {
        let state = self.tool_state()?;
        check_key(&key)?;
        lock(&state.0).delete(&key);
        Ok(())
    }

    fn keys(&mut self) -> Result<Vec<String>, wit::StateError> {
        Ok(lock(&self.tool_state()?.0).values.keys().cloned().collect())
    }
}

impl ToolStateHost {
    fn tool_state(&self) -> Result<&ToolState, wit::StateError> {
        self.0
            .as_ref()
            .ok_or_else(|| wit::StateError::Denied(not_granted("keep state", "keep-state").into()))
    }
}

fn check_key(key: &str) -> Result<(), wit::StateError> {
    let fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'/' | b'-');
    if !key.is_empty() && key.len() <= MAX_KEY_LEN && key.bytes().all(fine) {
        return Ok(());
    }
    let shown: String = key.chars().take(MAX_KEY_LEN).collect();
    Err(wit::StateError::InvalidKey(format!(
        "{shown:?} is not a valid key: use 1 to {MAX_KEY_LEN} of a-z, A-Z, 0-9, '.', '_', '/' and \
            '-'"
    )))
}

fn full_error(message: String) -> wit::StateError {
    wit::StateError::Full(message)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(stored: &mut StoredState, key: &str, bytes: usize) -> Result<(), String> {
        stored.set(key.to_owned(), vec![b'x'; bytes]).map_err(|error| match error {
            wit::StateError::Full(message) => message,
            wit::StateError::Denied(_) | wit::StateError::InvalidKey(_) => panic!("{error:?}"),
        })
    }

    #[test]
    fn stored_bytes_are_counted_and_freed() {
        let mut stored = StoredState::default();
        for n in 0..3 {
            assert_eq!(set(&mut stored, &format!("k{n}"), MAX_VALUE_LEN), Ok(()));
        }
        assert!(
            set(&mut stored, "k3", MAX_VALUE_LEN)
                .is_err_and(|message| message.contains("the limit is 262144"))
        );
        assert!(
            set(&mut stored, "k3", MAX_VALUE_LEN + 1)
                .is_err_and(|message| message.contains("the limit is 65536"))
        );
        // Setting a key again replaces its value.
        assert_eq!(set(&mut stored, "k0", MAX_VALUE_LEN), Ok(()));
        stored.delete("k0");
        stored.delete("k0");
        assert_eq!(set(&mut stored, "k3", MAX_VALUE_LEN), Ok(()));
        assert_eq!(
            stored.bytes,
            stored.values.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>()
        );
    }

    #[test]
    fn the_number_of_keys_is_limited() {
        let mut stored = StoredState::default();
        assert!((0..MAX_KEYS).all(|n| set(&mut stored, &n.to_string(), 1).is_ok()));
        assert!(set(&mut stored, "more", 1).is_err_and(|message| message.contains("256 keys")));
        assert_eq!(set(&mut stored, "7", 2), Ok(()));
    }

    #[test]
    fn each_tool_has_its_own_storage() {
        let store = ToolStateStore::default();
        let (one, other) = (ComponentDigest::compute(b"one"), ComponentDigest::compute(b"other"));
        assert_eq!(set(&mut lock(&store.for_tool(&one, "a").0), "k", 1), Ok(()));
        let keys = |component, tool| lock(&store.for_tool(component, tool).0).values.len();
        assert_eq!([keys(&one, "a"), keys(&one, "b"), keys(&other, "a")], [1, 0, 0]);
    }

    #[test]
    fn changes_are_returned_once_and_can_be_restored() {
        let (state, again) = (ToolState::default(), ToolState::default());
        let changes = |state: &ToolState| {
            let changes = state.take_changes();
            again.restore(&changes);
            changes
                .into_iter()
                .map(|(key, value)| {
                    let value = value.unwrap_or_else(|| b"gone".to_vec());
                    format!("{key}={}", String::from_utf8_lossy(&value))
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(set(&mut lock(&state.0), "a", 1), Ok(()));
        assert_eq!(set(&mut lock(&state.0), "b", 2), Ok(()));
        assert_eq!(changes(&state), ["a=x", "b=xx"]);
        lock(&state.0).delete("a");
        lock(&state.0).delete("never there");
        assert_eq!(set(&mut lock(&state.0), "b", 3), Ok(()));
        assert_eq!(changes(&state), ["a=gone", "b=xxx"]);
        assert_eq!((changes(&state), changes(&again)), (vec![], vec![]));
        assert_eq!(lock(&again.0).values, lock(&state.0).values);
        again.restore(&[
            ("no key!".into(), Some(b"x".to_vec())),
            ("c".into(), Some(vec![0; MAX_VALUE_LEN + 1])),
        ]);
        assert_eq!(
            lock(&again.0).values,
            lock(&state.0).values,
            "invalid entries must not be restored"
        );
    }
}
