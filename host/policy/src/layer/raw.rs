//! The syntax of a policy file. Every key is optional, and an unknown key is an error.

use std::collections::BTreeMap;

use serde::de::{Error, IntoDeserializer as _, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use crate::capability::CapabilityKind;
use crate::{ApprovalMode, CapName, PolicyProfile, SandboxLevel, Verdict};

/// Limits by name, with the location of each value.
pub(super) type RawLayerCaps = BTreeMap<CapName, Spanned<u64>>;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawPolicyLayer {
    pub(super) profile: Option<Spanned<PolicyProfile>>,
    pub(super) modes: Option<Spanned<Vec<ApprovalMode>>>,
    pub(super) commands: RawCommandRules,
    pub(super) read: RawReadRules,
    pub(super) write: RawRules,
    pub(super) fetch: RawFetchRules,
    pub(super) protected: RawProtected,
    pub(super) tools: BTreeMap<Spanned<String>, RawToolRules>,
    pub(super) limits: RawLayerCaps,
    pub(super) audit: RawAuditRules,
    pub(super) models: RawModelRules,
    pub(super) plugins: RawPluginRules,
    pub(super) sessions: RawSessionRules,
}

/// The keys of section `[audit]`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawAuditRules {
    pub(super) enabled: Option<Spanned<bool>>,
    pub(super) required: Option<Spanned<bool>>,
}

/// The keys of section `[models]`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawModelRules {
    pub(super) providers: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) base_urls: Option<Spanned<Vec<Spanned<String>>>>,
}

/// The keys of section `[plugins]`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawPluginRules {
    pub(super) digests: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) sources: Option<Spanned<Vec<Spanned<String>>>>,
}

/// The keys of section `[sessions]`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawSessionRules {
    pub(super) required: Option<Spanned<bool>>,
    pub(super) keep: Option<Spanned<bool>>,
}

/// The keys of section `[commands]`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawCommandRules {
    pub(super) minimum: Option<Spanned<SandboxLevel>>,
    pub(super) network: Option<Spanned<RawNetworkRules>>,
    pub(super) read: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) write: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) direct: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) allow: Option<RawPatternList>,
    pub(super) ask: Option<RawPatternList>,
    pub(super) deny: Option<RawPatternList>,
}

/// The value of `network`: a switch, or the section `[commands.network]`.
pub(super) enum RawNetworkRules {
    Switch(bool),
    Hosts(RawHostRules),
}

/// The keys of section `[commands.network]`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawHostRules {
    pub(super) allow: Option<RawPatternList>,
    pub(super) ask: Option<RawPatternList>,
    pub(super) deny: Option<RawPatternList>,
    pub(super) unlisted: Option<Spanned<Verdict>>,
}

impl<'de> Deserialize<'de> for RawNetworkRules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SwitchOrHosts;
        impl<'de> Visitor<'de> for SwitchOrHosts {
            type Value = RawNetworkRules;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(
                    "`true`, `false`, or a table with `allow`, `ask`, `deny` and `unlisted`",
                )
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<RawNetworkRules, E> {
                Ok(RawNetworkRules::Switch(value))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawNetworkRules, A::Error> {
                RawHostRules::deserialize(MapAccessDeserializer::new(map))
                    .map(RawNetworkRules::Hosts)
            }
        }
        deserializer.deserialize_any(SwitchOrHosts)
    }
}

/// The lists and the value of `[commands.network]`.
#[derive(Default)]
pub(super) struct HostLists {
    pub(super) lists: RawRules,
    pub(super) unlisted: Option<Spanned<Verdict>>,
}

/// Splits the value of `network` into the switch and the lists of hosts.
pub(super) fn split_network(
    value: Option<Spanned<RawNetworkRules>>,
) -> (Option<Spanned<bool>>, HostLists) {
    let Some(value) = value else { return (None, HostLists::default()) };
    let span = value.span();
    match value.into_inner() {
        RawNetworkRules::Switch(is_on) => (Some(Spanned::new(span, is_on)), HostLists::default()),
        RawNetworkRules::Hosts(RawHostRules { allow, ask, deny, unlisted }) => {
            (None, HostLists { lists: RawRules { allow, ask, deny }, unlisted })
        }
    }
}

/// The keys of section `[write]`. `[commands]` and `[fetch]` have these lists too.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawRules {
    pub(super) allow: Option<RawPatternList>,
    pub(super) ask: Option<RawPatternList>,
    pub(super) deny: Option<RawPatternList>,
}

/// The keys of section `[read]`. A read cannot wait for approval, so only `deny` exists.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawReadRules {
    pub(super) deny: Option<RawPatternList>,
}

/// The keys of section `[fetch]`: rules, and the local hosts that a tool with permission for every
/// host may reach.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawFetchRules {
    pub(super) allow: Option<RawPatternList>,
    pub(super) ask: Option<RawPatternList>,
    pub(super) deny: Option<RawPatternList>,
    pub(super) local: Vec<Spanned<String>>,
}

/// The keys of section `[protected]`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawProtected {
    pub(super) hidden: Vec<Spanned<String>>,
    pub(super) read_only: Vec<Spanned<String>>,
    pub(super) shown: Vec<Spanned<String>>,
    pub(super) writable: Vec<Spanned<String>>,
}

pub(super) type RawPatternList = Spanned<Vec<Spanned<RawPatternEntry>>>;

/// The keys of a section `[tools.NAME]`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawToolRules {
    #[serde(rename = "use")]
    pub(super) verdict: Option<Spanned<Verdict>>,
    pub(super) grants: Option<Spanned<Vec<RawCapability>>>,
    pub(super) deny: Option<Spanned<Vec<RawCapability>>>,
    pub(super) limits: RawLayerCaps,
}

/// The name of a capability. `None` stands for an obsolete name, which has no effect.
pub(super) struct RawCapability(pub(super) Option<CapabilityKind>);

/// A capability of contract 0.1, which no version ever granted. A list with this name stays valid,
/// so that an update does not break a policy file. No tool can request it, so the name has no
/// effect in `deny` and `grants`.
const REMOVED_CAPABILITY: &str = "read-environment";

impl<'de> Deserialize<'de> for RawCapability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CapabilityName;
        impl Visitor<'_> for CapabilityName {
            type Value = RawCapability;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the name of a capability")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<RawCapability, E> {
                if name == REMOVED_CAPABILITY {
                    return Ok(RawCapability(None));
                }
                CapabilityKind::deserialize(name.into_deserializer()).map(Some).map(RawCapability)
            }
        }
        deserializer.deserialize_str(CapabilityName)
    }
}

/// The table form of a list entry. A plain string stands for a table with only `pattern`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawPolicyTable {
    pattern: String,
    tool: Option<String>,
    methods: Option<Vec<String>>,
    writes: Option<bool>,
    #[serde(rename = "match")]
    matches: Vec<String>,
    #[serde(rename = "not-match")]
    not_matches: Vec<String>,
}

pub(super) struct RawPatternEntry {
    pub(super) pattern: String,
    pub(super) tool: Option<String>,
    pub(super) methods: Option<Vec<String>>,
    pub(super) writes: Option<bool>,
    pub(super) matches: Vec<String>,
    pub(super) not_matches: Vec<String>,
}

impl<'de> Deserialize<'de> for RawPatternEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrTable;
        impl<'de> Visitor<'de> for TextOrTable {
            type Value = RawPolicyTable;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(
                    "a pattern, or a table with `pattern` and optionally `tool`, `methods`, \
                        `writes`, `match` and `not-match`",
                )
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<RawPolicyTable, E> {
                Ok(RawPolicyTable { pattern: text.to_owned(), ..RawPolicyTable::default() })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawPolicyTable, A::Error> {
                RawPolicyTable::deserialize(MapAccessDeserializer::new(map))
            }
        }
        let RawPolicyTable { pattern, tool, methods, writes, matches, not_matches } =
            deserializer.deserialize_any(TextOrTable)?;
        Ok(Self { pattern, tool, methods, writes, matches, not_matches })
    }
}
