//! Effective settings: each as the user chose it, or as the strictest policy layer requires.
//!
//! No security setting is looser than any layer of the policy requires.

use std::fmt;
use std::path::{Path, PathBuf};

use toml::Spanned;

use super::own_paths::resolve_links;
use super::raw::RawConfig;
use super::servers::ServerTransport;
use super::settings::{RunSettings, SettingsFlags};
use crate::policy::{ApprovalMode, DirectDirectory, Policy, SourceLocation};

/// The origins of the settings, such as `--model` or `config.toml:3:1`.
///
/// `None` means that the setting has its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingOrigins {
    /// The origin of `[audit] enabled`.
    pub audit_enabled: Option<String>,
    /// The origin of `[audit] required`.
    pub audit_required: Option<String>,
    /// The origin of `mode`.
    pub mode: Option<String>,
    /// The origin of `[commands] minimum`.
    pub minimum: Option<String>,
    /// The origin of `[commands] network`.
    pub network: Option<String>,
    /// Each path of `[commands] read` with its origin.
    pub read: Vec<(PathBuf, String)>,
    /// Each path of `[commands] write` with its origin.
    pub write: Vec<(PathBuf, String)>,
    /// Each directory of `[commands] direct` with its origin.
    pub direct: Vec<(String, String)>,
    /// The origin of the model.
    pub model: Option<String>,
    /// The origin of the model's address.
    pub base_url: Option<String>,
}

/// A setting with its effective value and the source of that value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingInForce {
    /// The name of the setting, such as `commands.network`.
    pub name: &'static str,
    /// The effective value, as text.
    pub value: String,
    /// The origin of the chosen value; `None` for a default or a value that the policy overrides.
    pub chosen_at: Option<String>,
    /// The policy rule that requires the value, if there is one.
    pub required_by: Option<SourceLocation>,
    /// The value that the policy overrides, with its origin (`None` for a default).
    pub overridden: Option<(String, Option<String>)>,
}

impl SettingOrigins {
    /// Finds the origins in the flags, the environment and the file, in this order of precedence.
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
            network: raw.commands.network.as_ref().map(|network| at(network.span())),
            read: paths(&raw.commands.read),
            write: paths(&raw.commands.write),
            direct: raw
                .commands
                .direct
                .iter()
                .map(|text| (text.get_ref().clone(), at(text.span())))
                .collect(),
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
    /// Applies a policy to the settings.
    ///
    /// `home` is the home directory of the user, which `~` in the policy means. Also returns each
    /// setting that a policy can restrict, with its effective value.
    pub fn with_policy(
        mut self,
        policy: &Policy,
        home: Option<&Path>,
    ) -> (Self, Vec<SettingInForce>) {
        let origins = self.origins.clone();
        let mut all = Vec::new();
        let mut switch = |name,
                          value: &mut bool,
                          strict: bool,
                          rule: Option<&SourceLocation>,
                          origin: &Option<String>| {
            let chosen = *value;
            *value = if rule.is_some() { strict } else { chosen };
            let overridden = (chosen != *value).then(|| (chosen.to_string(), origin.clone()));
            let chosen_at = origin.clone().filter(|_| overridden.is_none());
            all.push(SettingInForce {
                name,
                value: value.to_string(),
                chosen_at,
                required_by: rule.cloned(),
                overridden,
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
        let (chosen, chosen_minimum) = (self.commands.network.name(), self.commands.minimum);
        let direct: Vec<_> =
            describe_direct(&self.commands.direct, &origins.direct, policy).collect();
        self.commands = self.commands.with_policy(policy);
        let network = self.commands.network.name();
        let by_hosts = || policy.hosts_ruled_by().filter(|_| chosen != network);
        let by = policy.network_denied_by().or_else(by_hosts).cloned();
        all.push(setting_in_force("commands.network", chosen, network, by, origins.network));
        let home = home.and_then(Path::to_str).unwrap_or_default();
        let read = |path: &str| policy.read_denied_by(path, home).cloned();
        all.extend(bound_paths("commands.read", &mut self.commands.read, &origins.read, &read));
        let write = |path: &str| policy.write_denied_by(path, home).cloned();
        all.extend(bound_paths("commands.write", &mut self.commands.write, &origins.write, &write));
        for server in &mut self.servers {
            // As for commands, a path that the policy forbids is left out.
            let read = |path: &PathBuf| {
                let real = resolve_links(path);
                policy.read_denied_by(real.to_str().unwrap_or_default(), home).is_none()
            };
            match &mut server.transport {
                ServerTransport::Program(program) => program.read.retain(read),
                // It reads nothing of this machine.
                ServerTransport::Http(_) => {}
            }
        }
        all.extend(direct);
        let required_by = self.commands.required_by.clone();
        all.push(setting_in_force(
            "commands.minimum",
            chosen_minimum.name(),
            self.commands.minimum.name(),
            required_by,
            origins.minimum,
        ));
        // The mode itself is checked together with the flag: a flag that asks for a forbidden mode
        // is an error.
        let nearest = policy.nearest_mode(self.mode).map_or("none", ApprovalMode::name);
        all.push(setting_in_force(
            "mode",
            self.mode.name(),
            nearest,
            policy.mode_denied_by(self.mode).cloned(),
            origins.mode,
        ));
        (self, all)
    }
}

/// Describes a setting whose value the policy may have changed.
fn setting_in_force(
    name: &'static str,
    chosen: &str,
    value: &str,
    required_by: Option<SourceLocation>,
    origin: Option<String>,
) -> SettingInForce {
    let overridden = (chosen != value).then(|| (chosen.to_owned(), origin.clone()));
    let chosen_at = origin.filter(|_| overridden.is_none());
    SettingInForce { name, value: value.to_owned(), chosen_at, required_by, overridden }
}

/// Removes the paths that the policy forbids and describes each path.
fn bound_paths(
    name: &'static str,
    paths: &mut Vec<PathBuf>,
    origins: &[(PathBuf, String)],
    denied_by: &dyn Fn(&str) -> Option<SourceLocation>,
) -> Vec<SettingInForce> {
    let mut all = Vec::new();
    paths.retain(|path| {
        let origin = origins
            .iter()
            .find(|(origin_path, _)| origin_path == path)
            .map(|(_, location)| location.clone());
        // Links are resolved first. A path that is not valid UTF-8 is checked as an empty path.
        let rule = denied_by(resolve_links(path).to_str().unwrap_or_default());
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
            Some(location) => SettingInForce {
                name,
                value: "not allowed".into(),
                chosen_at: None,
                required_by: Some(location),
                overridden: Some((value, origin)),
            },
        });
        in_force
    });
    all
}

/// Describes each directory that commands write directly. The policy is applied with the other
/// rules for commands.
fn describe_direct<'a>(
    directories: &'a [DirectDirectory],
    origins: &'a [(String, String)],
    policy: &'a Policy,
) -> impl Iterator<Item = SettingInForce> + 'a {
    directories.iter().enumerate().map(move |(number, directory)| {
        // Nothing has removed an entry yet.
        let origin = origins.get(number).map(|(_, location)| location.clone());
        let denied_by = policy.direct_denied_by(directory).cloned();
        let value = if denied_by.is_some() { "not allowed" } else { directory.as_str() };
        setting_in_force("commands.direct", directory.as_str(), value, denied_by, origin)
    })
}

impl fmt::Display for SettingInForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.name, self.value)?;
        match (&self.required_by, &self.overridden, &self.chosen_at) {
            (Some(location), Some((value, Some(origin))), _) => {
                write!(f, "  (by {location}, overrides {value} at {origin})")
            }
            (Some(location), Some((value, None)), _) => {
                write!(f, "  (by {location}, overrides the default {value})")
            }
            (Some(location), None, _) => write!(f, "  (by {location})"),
            (None, _, Some(origin)) => write!(f, "  ({origin})"),
            (None, _, None) => f.write_str("  (default)"),
        }
    }
}

#[cfg(test)]
#[path = "bounds_tests.rs"]
mod tests;
