//! Settings under a policy: each as the user chose it, or as the strictest layer demands. No
//! setting that matters for safety is looser than any layer of the policy says.

use std::fmt;
use std::path::PathBuf;

use toml::Spanned;

use super::own_paths::resolve_links;
use super::raw::RawConfig;
use super::settings::{RunSettings, SettingsFlags};
use crate::policy::{ApprovalMode, Policy, SourceLocation};

/// Where settings were chosen, in words such as `--model` or `config.toml:3:1`; absent: nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingOrigins {
    /// `[audit] enabled`
    pub audit_enabled: Option<String>,
    /// `[audit] required`
    pub audit_required: Option<String>,
    /// `mode`
    pub mode: Option<String>,
    /// `[commands] minimum`
    pub minimum: Option<String>,
    /// `[commands] network`
    pub network: Option<String>,
    /// `[commands] read`, each path with its place.
    pub read: Vec<(PathBuf, String)>,
    /// `[commands] write`, each path with its place.
    pub write: Vec<(PathBuf, String)>,
    /// The model.
    pub model: Option<String>,
    /// The address of the model.
    pub base_url: Option<String>,
}

/// A setting as it is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingInForce {
    /// Its name, such as `commands.network`.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// Where that value was chosen; absent: it is the default.
    pub chosen_at: Option<String>,
    /// The rule of the policy that demands it.
    pub required_by: Option<SourceLocation>,
    /// What is overruled, and where that was chosen; absent: it is the default.
    pub overridden: Option<(String, Option<String>)>,
}

impl SettingOrigins {
    /// Of the flags, the environment and the file, in their order of precedence.
    pub(super) fn from_sources(
        raw: &RawConfig,
        flags: &SettingsFlags,
        env: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let at = |span: std::ops::Range<usize>| raw.location(span).to_string();
        let switch = |value: &Option<Spanned<bool>>| value.as_ref().map(|value| at(value.span()));
        let paths = |paths: &[Spanned<PathBuf>]| {
            paths.iter().map(|path| (path.get_ref().clone(), at(path.span()))).collect()
        };
        let chosen = |flag: (&Option<String>, &str),
                      variable: &str,
                      key: &Option<Spanned<String>>| match flag {
            (Some(_), name) => Some(name.to_owned()),
            (None, _) if env(variable).is_some() => Some(variable.to_owned()),
            (None, _) => key.as_ref().map(|key| at(key.span())),
        };
        Self {
            audit_enabled: switch(&raw.audit.enabled),
            audit_required: switch(&raw.audit.required),
            mode: match flags.mode {
                Some(_) => Some("--mode".to_owned()),
                None => raw.mode.as_ref().map(|mode| at(mode.span())),
            },
            minimum: raw.commands.minimum.as_ref().map(|minimum| at(minimum.span())),
            network: switch(&raw.commands.network),
            read: paths(&raw.commands.read),
            write: paths(&raw.commands.write),
            model: chosen((&flags.model, "--model"), "COFFERDAM_MODEL", &raw.model),
            base_url: chosen(
                (&flags.base_url, "--base-url"),
                "COFFERDAM_BASE_URL",
                &raw.provider.base_url,
            ),
        }
    }
}

impl RunSettings {
    /// The settings under a policy, and how each that the policy can bound is in force.
    pub fn with_policy(mut self, policy: &Policy) -> (Self, Vec<SettingInForce>) {
        let origins = self.origins.clone();
        let mut all = Vec::new();
        let mut switch = |name,
                          value: &mut bool,
                          strict: bool,
                          rule: Option<&SourceLocation>,
                          origin: &Option<String>| {
            let chosen = *value;
            *value = if rule.is_some() { strict } else { chosen };
            let overruled = (chosen != *value).then(|| (chosen.to_string(), origin.clone()));
            let chosen_at = origin.clone().filter(|_| overruled.is_none());
            all.push(SettingInForce {
                name,
                value: value.to_string(),
                chosen_at,
                required_by: rule.cloned(),
                overridden: overruled,
            });
        };
        switch(
            "audit.enabled",
            &mut self.audit.enabled,
            true,
            policy.audit_enabled_by(),
            &origins.audit_enabled,
        );
        switch(
            "audit.required",
            &mut self.audit.required,
            true,
            policy.audit_required_by(),
            &origins.audit_required,
        );
        switch(
            "commands.network",
            &mut self.commands.network,
            false,
            policy.network_denied_by(),
            &origins.network,
        );
        let home = std::env::home_dir()
            .and_then(|home| home.to_str().map(str::to_owned))
            .unwrap_or_default();
        let read = |path: &str| policy.read_denied_by(path, &home).cloned();
        all.extend(bound_paths("commands.read", &mut self.commands.read, &origins.read, &read));
        let write = |path: &str| policy.write_denied_by(path, &home).cloned();
        all.extend(bound_paths("commands.write", &mut self.commands.write, &origins.write, &write));
        let chosen = self.commands.minimum;
        self.commands = self.commands.with_policy(policy);
        let demanded_at = self.commands.required_by.clone();
        all.push(setting_in_force(
            "commands.minimum",
            chosen.name(),
            self.commands.minimum.name(),
            demanded_at,
            origins.minimum,
        ));
        // The mode itself is settled with the flag: one that is asked for there and is not to be
        // had is an error.
        let left = policy.nearest_mode(self.mode).map_or("none", ApprovalMode::name);
        all.push(setting_in_force(
            "mode",
            self.mode.name(),
            left,
            policy.mode_denied_by(self.mode).cloned(),
            origins.mode,
        ));
        (self, all)
    }
}

/// A setting of which the policy leaves another value.
fn setting_in_force(
    name: &'static str,
    chosen: &str,
    value: &str,
    demanded_at: Option<SourceLocation>,
    origin: Option<String>,
) -> SettingInForce {
    let overruled = (chosen != value).then(|| (chosen.to_owned(), origin.clone()));
    let chosen_at = origin.filter(|_| overruled.is_none());
    SettingInForce {
        name,
        value: value.to_owned(),
        chosen_at,
        required_by: demanded_at,
        overridden: overruled,
    }
}

/// Takes out of a list of paths what the policy does not leave; a line for each path.
fn bound_paths(
    name: &'static str,
    paths: &mut Vec<PathBuf>,
    origins: &[(PathBuf, String)],
    forbids: &dyn Fn(&str) -> Option<SourceLocation>,
) -> Vec<SettingInForce> {
    let mut all = Vec::new();
    paths.retain(|path| {
        let origin = origins.iter().find(|(of, _)| of == path).map(|(_, place)| place.clone());
        // What is no text is covered by no rule, and where it leads is what counts.
        let rule = forbids(resolve_links(path).to_str().unwrap_or_default());
        let value = path.display().to_string();
        let in_force = rule.is_none();
        all.push(match rule {
            None => SettingInForce {
                name,
                value,
                chosen_at: origin,
                required_by: None,
                overridden: None,
            },
            Some(place) => SettingInForce {
                name,
                value: "not open".into(),
                chosen_at: None,
                required_by: Some(place),
                overridden: Some((value, origin)),
            },
        });
        in_force
    });
    all
}

impl fmt::Display for SettingInForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.name, self.value)?;
        match (&self.required_by, &self.overridden, &self.chosen_at) {
            (Some(place), Some((value, Some(origin))), _) => {
                write!(f, "  (by {place}, which overrules {value} at {origin})")
            }
            (Some(place), Some((value, None)), _) => {
                write!(f, "  (by {place}, which overrules the default, {value})")
            }
            (Some(place), None, _) => write!(f, "  (by {place})"),
            (None, _, Some(origin)) => write!(f, "  ({origin})"),
            (None, _, None) => f.write_str("  (default)"),
        }
    }
}

#[cfg(test)]
#[path = "bounds_tests.rs"]
mod tests;
