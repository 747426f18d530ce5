//! The `[interventions]` section of the configuration.

use serde::Deserialize;

use crate::agent::InterventionSettings;

/// The switches of the host's notes to the model, each on, off or unset.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RawInterventions {
    /// The note that the turn limit is reached.
    pub limit: Option<bool>,
    /// The note after an empty response.
    pub empty: Option<bool>,
    /// The note after several truncated responses in a row.
    pub unproductive: Option<bool>,
    /// An occasional note that asks the model to reflect.
    pub react: Option<bool>,
    /// The note that a repeated call gave the same result again.
    pub repetition: Option<bool>,
}

impl RawInterventions {
    /// Resolves the switches and fills in the defaults.
    pub(super) fn resolve(&self) -> InterventionSettings {
        let InterventionSettings { limit, empty, unproductive, react } =
            InterventionSettings::default();
        InterventionSettings {
            limit: self.limit.unwrap_or(limit),
            empty: self.empty.unwrap_or(empty),
            unproductive: self.unproductive.unwrap_or(unproductive),
            react: self.react.unwrap_or(react),
        }
    }
}
