//! A few texts that this tool finds again at its next call of the session, and nobody else ever
//! sees. Needs [`Capability::KeepState`](crate::Capability::KeepState).
//!
//! A key is 1 to 64 characters of `a-z`, `A-Z`, `0-9`, `.`, `_`, `/` and `-`. A value has at most
//! 64 KiB, and a tool at most 256 keys and 256 KiB in all. Calls of a tool that keeps state never
//! run beside each other.

pub use crate::bindings::cofferdam::plugin::state::StateError;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ToolError;
use crate::lent::state as host;

/// The value of a key, if it has one.
pub fn get(key: &str) -> Result<Option<String>, StateError> {
    host::get(key)
}

/// Sets a key, in place of what it had.
pub fn set(key: &str, value: &str) -> Result<(), StateError> {
    host::set(key, value)
}

/// Forgets a key, if it is there.
pub fn delete(key: &str) -> Result<(), StateError> {
    host::delete(key)
}

/// All keys, in order.
pub fn keys() -> Result<Vec<String>, StateError> {
    host::keys()
}

/// The value of a key as [`save`] left it; its default if there is none.
pub fn load<T: DeserializeOwned + Default>(key: &str) -> Result<T, ToolError> {
    match get(key)? {
        None => Ok(T::default()),
        Some(text) => serde_json::from_str(&text).map_err(|error| {
            ToolError::failed(format!("what is kept as `{key}` cannot be read: {error}"))
        }),
    }
}

/// Keeps a value as JSON.
pub fn save<T: Serialize>(key: &str, value: &T) -> Result<(), ToolError> {
    let text = serde_json::to_string(value)
        .map_err(|error| ToolError::failed(format!("`{key}` cannot be kept: {error}")))?;
    Ok(set(key, &text)?)
}

impl From<StateError> for ToolError {
    fn from(error: StateError) -> Self {
        match error {
            StateError::Denied(denial) => Self::Denied(denial),
            StateError::InvalidKey(message) | StateError::Full(message) => Self::Failed(message),
        }
    }
}
