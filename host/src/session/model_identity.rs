//! Whom a session was held with.

use std::fmt;

use crate::agent::ports::ModelInfo;

/// A model, and where it was asked: whoever goes on with a session must not send what was said in
/// it to somebody else unasked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelIdentity {
    /// Such as `openai`.
    pub provider: String,
    /// As the provider names it.
    pub model: String,
    /// If it is not the provider's own.
    pub address: Option<String>,
}

impl ModelIdentity {
    /// Whether what is said goes to the same place.
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
