//! Which remarks the host may make to the model, as written.

use serde::Deserialize;

use crate::agent::InterventionSettings;

/// `[interventions]`: each is on or off.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RawInterventions {
    /// The limit on turns is reached.
    pub limit: Option<bool>,
    /// A response was empty.
    pub empty: Option<bool>,
    /// Several responses in a row were cut off.
    pub unproductive: Option<bool>,
    /// From time to time, to look back.
    pub react: Option<bool>,
    /// The same call gave the same result again.
    pub repetition: Option<bool>,
}

impl RawInterventions {
    /// With the defaults for what is not said.
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
