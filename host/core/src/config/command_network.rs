//! The key `[commands] network`: a switch, or a table of hosts.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::commands::InvalidCommands;
use super::presets::NetworkPreset;
use crate::policy::{CommandNetwork, NetworkRules, SourceLocation, Verdict};

/// The value of the key as written.
#[derive(Clone, Debug, PartialEq)]
pub enum RawCommandNetwork {
    /// Everything, or nothing.
    Switch(bool),
    /// The hosts that commands may connect to.
    Hosts(RawCommandHosts),
}

/// The section `[commands.network]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RawCommandHosts {
    /// Patterns of hosts that commands may connect to.
    pub allow: Vec<String>,
    /// Patterns of hosts that need approval.
    pub ask: Vec<String>,
    /// Patterns of hosts that commands must not connect to, with priority.
    pub deny: Vec<String>,
    /// The verdict about hosts that no list contains; the default is `deny`.
    pub unlisted: Option<Verdict>,
    /// Ecosystems whose hosts are allowed.
    pub presets: Vec<NetworkPreset>,
}

impl RawCommandNetwork {
    /// Returns the presets.
    pub(super) fn presets(&self) -> &[NetworkPreset] {
        match self {
            Self::Switch(_) => &[],
            Self::Hosts(hosts) => &hosts.presets,
        }
    }

    /// Parses the host patterns. `place` is the location of the key.
    pub(super) fn resolve(self, place: SourceLocation) -> Result<CommandNetwork, InvalidCommands> {
        match self {
            Self::Switch(true) => Ok(CommandNetwork::All),
            Self::Switch(false) => Ok(CommandNetwork::Closed),
            Self::Hosts(RawCommandHosts { allow, ask, deny, unlisted, presets: _ }) => {
                let rules = NetworkRules::parse(&allow, &deny)
                    .and_then(|rules| rules.with_ask(&ask))
                    .map_err(InvalidCommands::Host)?
                    .at(place);
                let rules = match unlisted {
                    Some(verdict) => rules.with_unlisted(verdict),
                    None => rules,
                };
                Ok(CommandNetwork::Listed(rules))
            }
        }
    }
}

impl<'de> Deserialize<'de> for RawCommandNetwork {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SwitchOrTable;
        impl<'de> Visitor<'de> for SwitchOrTable {
            type Value = RawCommandNetwork;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "`true`, `false`, or a table with `allow`, `ask`, `deny`, `unlisted` and \
                        `presets`",
                )
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<RawCommandNetwork, E> {
                Ok(RawCommandNetwork::Switch(value))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawCommandNetwork, A::Error> {
                RawCommandHosts::deserialize(MapAccessDeserializer::new(map))
                    .map(RawCommandNetwork::Hosts)
            }
        }
        deserializer.deserialize_any(SwitchOrTable)
    }
}
