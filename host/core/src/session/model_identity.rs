//! The identity of the model that a session was held with.

use std::fmt;

use crate::agent::ports::ModelInfo;

/// A model and the address of its API.
///
/// When a session is resumed, its conversation must not be sent to another address without
/// approval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelIdentity {
    /// The provider, such as `openai`.
    pub provider: String,
    /// The model, as its provider names it.
    pub model: String,
    /// The address of the API, if it is not the provider's own.
    pub address: Option<String>,
}

impl ModelIdentity {
    /// Returns whether both models receive their requests at the same address.
    pub fn is_same_endpoint(&self, other: &Self) -> bool {
        (&self.provider, &self.address) == (&other.provider, &other.address)
    }
}

impl From<&ModelInfo> for ModelIdentity {
    fn from(info: &ModelInfo) -> Self {
        Self {
            provider: info.provider.clone(),
            model: info.model.clone(),
            address: info.address.clone(),
        }
    }
}

impl fmt::Display for ModelIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.provider, self.model)?;
        match &self.address {
            Some(address) => write!(f, " at {address}"),
            None => Ok(()),
        }
    }
}
