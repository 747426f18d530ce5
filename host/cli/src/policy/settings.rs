//! The settings in force under the policy, for `cofferdam policy show`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::context::model_settings;
use crate::policy_checks::check_model;
use cofferdam::config::{PresetHosts, RunSettings};
use cofferdam::model::ModelSpec;
use cofferdam::policy::{CommandNetwork, Policy, PolicyRule, SettingRules};

/// Describes each setting that a policy can limit: its value, its origin, and what the policy
/// overrides.
pub(super) fn describe_settings(
    chosen: RunSettings,
    policy: &Policy,
    home: Option<&Path>,
) -> Vec<String> {
    let hosts = describe_hosts(&chosen);
    let (settings, all) = chosen.with_policy(policy, home);
    let mut lines: Vec<String> = all.iter().map(ToString::to_string).collect();
    lines.extend(hosts);
    lines.push(describe_model(&settings, policy));
    lines.push(match (policy.session_denied_by(), policy.session_required_by()) {
        (Some(place), _) => format!("sessions = not saved  (by {place})"),
        (None, Some(place)) => {
            format!("sessions = saved; --no-session is not allowed  (by {place})")
        }
        (None, None) => "sessions = saved unless --no-session is given  (default)".to_owned(),
    });
    lines
}

/// Describes the hosts that the configuration lists, one line for each rule.
fn describe_hosts(chosen: &RunSettings) -> Vec<String> {
    let CommandNetwork::Listed(rules) = &chosen.commands.network else { return Vec::new() };
    let presets = chosen.preset_hosts.iter();
    let from_preset: BTreeMap<&String, &PresetHosts> =
        presets.flat_map(|found| found.hosts.keys().map(move |host| (host, found))).collect();
    let layer = rules.to_layer();
    let mut lines: Vec<String> = layer
        .rules
        .iter()
        .map(|PolicyRule { source_rule: rule, .. }| {
            let preset = from_preset.get(&rule.text).and_then(|found| {
                Some(format!("preset {}, {}", found.preset, found.hosts.get(&rule.text)?))
            });
            let origin = preset.unwrap_or_else(|| rule.place.to_string());
            format!("commands.network {}: {}  ({origin})", rule.verdict, rule.text)
        })
        .collect();
    let empty = chosen.preset_hosts.iter().filter(|found| found.hosts.is_empty());
    lines.extend(empty.map(|PresetHosts { preset, .. }| {
        format!("commands.network preset {preset}: NO HOST found; {}", preset.hint())
    }));
    let unlisted = layer.settings.unlisted_hosts;
    lines.extend(
        unlisted.map(|(verdict, place)| format!("commands.network unlisted: {verdict}  ({place})")),
    );
    lines
}

fn describe_model(settings: &RunSettings, policy: &Policy) -> String {
    let at = |origin: &Option<String>| {
        origin.as_ref().map(|origin| format!("  ({origin})")).unwrap_or_default()
    };
    let address = settings.provider.base_url.as_ref();
    let address = address
        .map(|url| format!(" at {url}{}", at(&settings.origins.base_url)))
        .unwrap_or_default();
    let Some(name) = &settings.model else { return format!("model = not configured{address}") };
    let line = format!("model = {name}{}{address}", at(&settings.origins.model));
    let refused = name
        .parse::<ModelSpec>()
        .ok()
        .and_then(|spec| check_model(policy, &spec, &model_settings(settings)).err());
    match refused {
        Some(error) => {
            format!("{line}; NOT ALLOWED by {}", error.message().lines().next().unwrap_or_default())
        }
        None => line,
    }
}

/// Describes the rules of all layers for models, plugins and sessions.
pub(super) fn describe_rules(policy: &Policy) -> Vec<String> {
    let mut lines = Vec::new();
    for (_, layer) in policy.layers() {
        let SettingRules {
            providers,
            base_urls,
            digests,
            sources,
            session_required,
            session_keep,
            read,
            write,
            direct,
            unlisted_hosts,
            ..
        } = &layer.settings;
        let mut list =
            |name: &str, entries: Option<(Vec<String>, String)>| {
                lines.extend(entries.map(|(entries, place)| {
                    format!("{name}: {}  ({place})", join_or_none(&entries))
                }));
            };
        list(
            "[commands.network] unlisted",
            unlisted_hosts
                .as_ref()
                .map(|(verdict, place)| (vec![verdict.to_string()], place.to_string())),
        );
        list(
            "[commands] read at most",
            read.as_ref().map(|(paths, place)| (paths.clone(), place.to_string())),
        );
        list(
            "[commands] write at most",
            write.as_ref().map(|(paths, place)| (paths.clone(), place.to_string())),
        );
        list(
            "[commands] direct at most",
            direct.as_ref().map(|(all, place)| (to_strings(all), place.to_string())),
        );
        list(
            "[models] providers",
            providers
                .as_ref()
                .map(|(names, place)| (names.iter().cloned().collect(), place.to_string())),
        );
        list(
            "[models] base_urls",
            base_urls.as_ref().map(|(urls, place)| (to_strings(urls), place.to_string())),
        );
        let digest = |digest: &String| format!("sha256:{digest}");
        list(
            "[plugins] digests",
            digests
                .as_ref()
                .map(|(all, place)| (all.iter().map(digest).collect(), place.to_string())),
        );
        list(
            "[plugins] sources",
            sources.as_ref().map(|(all, place)| (to_strings(all), place.to_string())),
        );
        for (name, value) in
            [("[sessions] required", session_required), ("[sessions] keep", session_keep)]
        {
            list(
                name,
                value.as_ref().map(|(value, place)| (vec![value.to_string()], place.to_string())),
            );
        }
    }
    lines
}

fn to_strings<T: ToString>(all: &[T]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

fn join_or_none(entries: &[String]) -> String {
    if entries.is_empty() { "none".to_owned() } else { entries.join(", ") }
}
