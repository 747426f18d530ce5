//! Per-session key-value storage of this tool. No other tool can read the values. Needs
//! [`Capability::KeepState`](crate::Capability::KeepState).
//!
//! A key is 1 to 64 characters of `a-z`, `A-Z`, `0-9`, `.`, `_`, `/` and `-`. A value has at most
//! 64 KiB, and a tool at most 256 keys and 256 KiB in total. Calls of a tool with this capability
//! never run in parallel.

pub use crate::bindings::cofferdam::plugin::state::StateError;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ToolError;
use crate::imports::state as host;

/// Returns the value of a key, or `None` if there is none.
pub fn get(key: &str) -> Result<Option<Vec<u8>>, StateError> {
    host::get(key)
}

/// Returns the value of a key as text.
///
/// # Errors
///
/// Returns an error if the value is not UTF-8.
pub fn get_text(key: &str) -> Result<Option<String>, ToolError> {
    get(key)?
        .map(String::from_utf8)
        .transpose()
        .map_err(|_| ToolError::failed(format!("the stored value of `{key}` is not UTF-8 text")))
}

/// Sets the value of a key: text or bytes.
pub fn set(key: &str, value: impl AsRef<[u8]>) -> Result<(), StateError> {
    host::set(key, value.as_ref())
}

/// Deletes a key. Deleting a key that does not exist is not an error.
pub fn delete(key: &str) -> Result<(), StateError> {
    host::delete(key)
}

/// Returns all keys in order.
pub fn keys() -> Result<Vec<String>, StateError> {
    host::keys()
}

/// Returns the value that [`save`] stored, or the default if there is none.
pub fn load<T: DeserializeOwned + Default>(key: &str) -> Result<T, ToolError> {
    match get(key)? {
        None => Ok(T::default()),
        Some(json) => serde_json::from_slice(&json).map_err(|error| {
            ToolError::failed(format!("the stored value of `{key}` cannot be read: {error}"))
        }),
    }
}

/// Stores a value as JSON.
pub fn save<T: Serialize>(key: &str, value: &T) -> Result<(), ToolError> {
    let json = serde_json::to_vec(value)
        .map_err(|error| ToolError::failed(format!("`{key}` cannot be stored: {error}")))?;
    Ok(set(key, json)?)
}

impl From<StateError> for ToolError {
    fn from(error: StateError) -> Self {
        match error {
            StateError::Denied(denial) => Self::Denied(denial),
            StateError::InvalidKey(message) | StateError::Full(message) => Self::Failed(message),
        }
    }
}
