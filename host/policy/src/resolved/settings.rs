//! The combination of all rules about settings. The strictest layer wins; no layer loosens another
//! one.

use super::Policy;
use crate::layer::{Located, PluginOrigin, SettingRules, is_within};
use crate::pattern::BaseUrl;
use crate::{DirectDirectory, SourceLocation};

/// A model endpoint, as far as rules consider it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelEndpoint<'a> {
    /// The name of the provider, such as `anthropic`.
    pub provider: &'a str,
    /// The base URL of requests; `None` for a recording, which sends none.
    pub base_url: Option<&'a str>,
    /// Whether this is the default URL of the provider.
    pub is_default_address: bool,
}

/// The rule that refuses a setting, with a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingRefusal {
    /// The location of the rule.
    pub location: SourceLocation,
    /// A description of the refused value and the allowed values.
    pub problem: String,
    /// Advice on how to resolve the problem.
    pub hint: String,
}

impl std::fmt::Display for SettingRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}\nhint: {}", self.location, self.problem, self.hint)
    }
}

impl Policy {
    /// Returns the rules about settings, those of the layer with the highest authority first.
    fn setting_rules(&self) -> impl Iterator<Item = &SettingRules> {
        let mut layers: Vec<_> = self.layers().collect();
        layers.sort_by_key(|(voice, _)| *voice);
        layers.into_iter().map(|(_, layer)| &layer.settings)
    }

    /// Returns the location of a rule that sets a switch to this value, if there is one.
    fn switch_set_by(
        &self,
        to: bool,
        of: impl Fn(&SettingRules) -> &Option<Located<bool>>,
    ) -> Option<&SourceLocation> {
        self.setting_rules()
            .filter_map(|rules| of(rules).as_ref())
            .find(|(value, _)| *value == to)
            .map(|(_, place)| place)
    }

    /// Returns the location of the rule that enables the audit log. Requiring the log enables it
    /// too.
    pub fn audit_enabled_by(&self) -> Option<&SourceLocation> {
        self.switch_set_by(true, |rules| &rules.audit_enabled).or_else(|| self.audit_required_by())
    }

    /// Returns the location of the rule that requires every action to be recorded in the audit log.
    pub fn audit_required_by(&self) -> Option<&SourceLocation> {
        self.switch_set_by(true, |rules| &rules.audit_required)
    }

    /// Returns the location of the rule that denies the network to commands.
    pub fn network_denied_by(&self) -> Option<&SourceLocation> {
        self.switch_set_by(false, |rules| &rules.network)
    }

    /// Returns the location of the rule that requires every prompt to be recorded in a session.
    pub fn session_required_by(&self) -> Option<&SourceLocation> {
        self.switch_set_by(true, |rules| &rules.session_required)
    }

    /// Returns the location of the rule that forbids saving sessions on disk.
    pub fn session_denied_by(&self) -> Option<&SourceLocation> {
        self.switch_set_by(false, |rules| &rules.session_keep)
    }

    /// Returns the location of the rule that does not let commands read this additional path. A
    /// leading `~` in a rule stands for `home`.
    pub fn read_denied_by(&self, path: &str, home: &str) -> Option<&SourceLocation> {
        self.path_denied_by(path, home, |rules| &rules.read)
    }

    /// Returns the location of the rule that does not let commands write this path outside the
    /// workspace. A leading `~` in a rule stands for `home`.
    pub fn write_denied_by(&self, path: &str, home: &str) -> Option<&SourceLocation> {
        self.path_denied_by(path, home, |rules| &rules.write)
    }

    /// Returns the location of the rule that does not let commands write this directory of the
    /// workspace directly.
    pub fn direct_denied_by(&self, directory: &DirectDirectory) -> Option<&SourceLocation> {
        let mut lists = self.setting_rules().filter_map(|rules| rules.direct.as_ref());
        lists
            .find(|(list, _)| !list.iter().any(|outer| directory.is_within(outer)))
            .map(|(_, place)| place)
    }

    fn path_denied_by(
        &self,
        path: &str,
        home: &str,
        of: impl Fn(&SettingRules) -> &Option<Located<Vec<String>>>,
    ) -> Option<&SourceLocation> {
        let covers = |outer: &String| match outer.strip_prefix('~') {
            Some(rest) => is_within(path, &format!("{}{rest}", home.trim_end_matches('/'))),
            None => is_within(path, outer),
        };
        let mut lists = self.setting_rules().filter_map(|rules| of(rules).as_ref());
        lists.find(|(list, _)| !list.iter().any(covers)).map(|(_, place)| place)
    }

    /// Returns the refusal of the rule that does not allow a model, by its provider or its URL.
    pub fn model_refusal(&self, model: &ModelEndpoint<'_>) -> Option<SettingRefusal> {
        self.setting_rules().find_map(|rules| {
            let by_provider =
                rules.providers.as_ref().filter(|(allowed, _)| !allowed.contains(model.provider));
            if let Some((allowed, place)) = by_provider {
                let allowed = join_or_none(allowed);
                return Some(SettingRefusal {
                    location: place.clone(),
                    problem: format!(
                        "the policy does not allow the model provider `{}` (allowed: \
                        {allowed})",
                        model.provider
                    ),
                    hint: "choose a model of an allowed provider with `--model`, or ask the \
                        author of the policy"
                        .to_owned(),
                });
            }
            let address = model.base_url?;
            let hint =
                "choose another URL with `--base-url`, or ask the author of the policy".to_owned();
            match (&rules.base_urls, &rules.providers) {
                (Some((allowed, place)), _)
                    if !allowed.iter().any(|pattern: &BaseUrl| pattern.covers(address)) =>
                {
                    Some(SettingRefusal {
                        location: place.clone(),
                        problem: format!(
                            "the policy does not allow the model URL `{address}` (allowed: {})",
                            join_or_none(allowed)
                        ),
                        hint,
                    })
                }
                (None, Some((_, place))) if !model.is_default_address => Some(SettingRefusal {
                    location: place.clone(),
                    problem: format!(
                        "the policy allows the provider `{}` only at its default URL, not at \
                            `{address}`",
                        model.provider
                    ),
                    hint: "leave out the base URL, or ask the author of the policy to add it to \
                        `base_urls`"
                        .to_owned(),
                }),
                (Some(_), _) | (None, Some(_) | None) => None,
            }
        })
    }

    /// Returns the refusal of the rule that does not allow a plugin with this digest (64 digits)
    /// and these origins. An origin is the path of its file with links resolved, or the URL that it
    /// was downloaded from. One allowed origin is enough.
    pub fn plugin_refusal(&self, digest: &str, origins: &[String]) -> Option<SettingRefusal> {
        self.setting_rules().find_map(|rules| {
            let by_digest = rules.digests.as_ref().filter(|(allowed, _)| !allowed.contains(digest));
            if let Some((_, place)) = by_digest {
                return Some(SettingRefusal {
                    location: place.clone(),
                    problem: format!(
                        "the policy does not allow a plugin with the digest \
                        sha256:{digest}"
                    ),
                    hint: "ask the author of the policy to add the digest to `digests` under \
                        [plugins]"
                        .to_owned(),
                });
            }
            let covers =
                |allowed: &PluginOrigin| origins.iter().any(|origin| allowed.covers(origin));
            let (allowed, place) =
                rules.sources.as_ref().filter(|(allowed, _)| !allowed.iter().any(covers))?;
            Some(SettingRefusal {
                location: place.clone(),
                problem: format!(
                    "the policy does not allow plugins from {} (allowed: {})",
                    origins.join(", "),
                    join_or_none(allowed)
                ),
                hint: "use an allowed source, or ask the author of the policy".to_owned(),
            })
        })
    }
}

fn join_or_none<T: std::fmt::Display>(all: impl IntoIterator<Item = T>) -> String {
    let all: Vec<String> = all.into_iter().map(|one| one.to_string()).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}
