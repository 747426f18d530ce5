//! No layer loosens a setting, and each overridden setting names the rule that overrides it.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::policy::{CommandNetwork, ModelEndpoint, PolicyLayer, PolicyLevel, SandboxLevel};

fn settings_from(text: &str) -> RunSettings {
    let raw = RawConfig::parse(text, Path::new("/c/config.toml"), None).expect("it parses");
    RunSettings::resolve(SettingsFlags::default(), |_| None, raw).expect("it resolves")
}

fn layer(level: PolicyLevel, text: &str) -> PolicyLayer {
    PolicyLayer::parse(level, &format!("{level}.toml"), text)
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn policy(layers: &[(PolicyLevel, &str)]) -> Policy {
    let mut policy = Policy::default();
    for (level, text) in layers {
        policy.add_layer(layer(*level, text));
    }
    policy
}

const LOOSE: &str = r#"
[audit]
enabled = false
[commands]
network = true
read = ["/srv/a", "/srv/b/c"]
write = ["/srv/a"]
direct = ["target", "out/"]
"#;

#[test]
fn a_policy_overrides_looser_settings_and_names_the_rule() {
    let text = "modes = [\"plan\"]\n[audit]\nenabled = true\n[commands]\nnetwork = false\nread = \
        [\"/srv/b\"]\nwrite = []\ndirect = [\"out\"]\nminimum = \"full\"";
    let (settings, all) =
        settings_from(LOOSE).with_policy(&policy(&[(PolicyLevel::System, text)]), None);
    assert!(settings.audit.enabled && settings.commands.network == CommandNetwork::None);
    assert_eq!(
        (settings.commands.read, settings.commands.write),
        (vec![PathBuf::from("/srv/b/c")], vec![])
    );
    let lines: Vec<String> = all.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    audit.enabled = true  (by system.toml:3:11, overrides false at /c/config.toml:3:11)
    audit.required = false  (default)
    commands.network = false  (by system.toml:5:11, overrides true at /c/config.toml:5:11)
    commands.read = not allowed  (by system.toml:6:8, overrides /srv/a at /c/config.toml:6:9)
    commands.read = /srv/b/c  (/c/config.toml:6:19)
    commands.write = not allowed  (by system.toml:7:9, overrides /srv/a at /c/config.toml:7:10)
    commands.direct = not allowed  (by system.toml:8:10, overrides target at /c/config.toml:8:11)
    commands.direct = out  (/c/config.toml:8:21)
    commands.minimum = full  (by system.toml:9:11, overrides the default kernel)
    mode = plan  (by system.toml:1:9, overrides the default ask)
    ");
}

#[test]
fn a_required_audit_log_is_enabled() {
    let (settings, _) = settings_from("[audit]\nenabled = false")
        .with_policy(&policy(&[(PolicyLevel::User, "[audit]\nrequired = true")]), None);
    assert!(settings.audit.enabled && settings.audit.required);
}

#[test]
fn a_looser_policy_changes_nothing() {
    let loose = "[audit]\nenabled = false\nrequired = false\n[commands]\nnetwork = \
        true\n[sessions]\nrequired = false\nkeep = true";
    let policy = policy(&[(PolicyLevel::System, loose), (PolicyLevel::User, loose)]);
    let (settings, _) = settings_from("[audit]\nrequired = true").with_policy(&policy, None);
    assert!(
        settings.audit.enabled
            && settings.audit.required
            && settings.commands.network == CommandNetwork::None
    );
    assert_eq!((policy.session_required_by(), policy.session_denied_by()), (None, None));
}

#[test]
fn a_model_must_be_allowed_by_every_layer() {
    let models = |providers: &str, urls: &str| {
        let providers =
            if providers.is_empty() { String::new() } else { format!("providers = {providers}\n") };
        let urls = if urls.is_empty() { String::new() } else { format!("base_urls = {urls}\n") };
        format!("[models]\n{providers}{urls}")
    };
    let own = "https://api.anthropic.com";
    let gateway = "https://gw.example.com/v1";
    let table = [
        // system policy, user policy, provider, address, address is the provider's own, allowed
        (models("", ""), models("", ""), "openai", gateway, false, true),
        (models("['anthropic']", ""), models("", ""), "anthropic", own, true, true),
        (models("['anthropic']", ""), models("", ""), "openai", own, true, false),
        (models("['anthropic']", ""), models("", ""), "anthropic", gateway, false, false),
        (
            models("['anthropic']", "['https://gw.example.com']"),
            models("", ""),
            "anthropic",
            gateway,
            false,
            true,
        ),
        (
            models("['anthropic']", "['https://gw.example.com']"),
            models("", ""),
            "anthropic",
            own,
            true,
            false,
        ),
        (
            models("", "['https://gw.example.com']"),
            models("['anthropic', 'openai']", "['https://gw.example.com']"),
            "openai",
            gateway,
            false,
            true,
        ),
        (
            models("['anthropic']", ""),
            models("['anthropic']", "['https://gw.example.com']"),
            "anthropic",
            gateway,
            false,
            false,
        ),
        (models("[]", ""), models("", ""), "anthropic", own, true, false),
        (models("", "[]"), models("", ""), "anthropic", own, true, false),
    ];
    for (system, user, provider, address, is_default_address, allowed) in table {
        let policy = policy(&[(PolicyLevel::System, &system), (PolicyLevel::User, &user)]);
        let refusal = policy.model_refusal(&ModelEndpoint {
            provider,
            base_url: Some(address),
            is_default_address,
        });
        assert_eq!(
            refusal.is_none(),
            allowed,
            "{system}{user}{provider} at {address}: {refusal:?}"
        );
    }
    let policy = policy(&[(PolicyLevel::System, "[models]\nproviders = ['ollama']")]);
    let refusal = policy
        .model_refusal(&ModelEndpoint {
            provider: "openai",
            base_url: None,
            is_default_address: true,
        })
        .expect("it is refused");
    insta::assert_snapshot!(refusal, @r"
    system.toml:2:13: the policy does not allow the model provider `openai` (allowed: ollama)
    hint: choose a model of an allowed provider with `--model`, or ask the author of the policy
    ");
}

#[test]
fn a_plugin_must_be_on_every_list() {
    let (one, other) = ("a".repeat(64), "b".repeat(64));
    let origins =
        ["/opt/plugins/x.wasm".to_owned(), "https://plugins.example.com/x.wasm".to_owned()];
    let allowed = |text: &str, digest: &str| {
        policy(&[(PolicyLevel::System, text)]).plugin_refusal(digest, &origins).is_none()
    };
    assert!(allowed("", &one));
    let digests = format!("[plugins]\ndigests = ['sha256:{one}']\n");
    assert!(allowed(&digests, &one) && !allowed(&digests, &other));
    assert!(
        allowed("[plugins]\nsources = ['/opt/plugins']", &one)
            && allowed("[plugins]\nsources = ['https://plugins.example.com']", &one)
    );
    assert!(
        !allowed("[plugins]\nsources = ['/opt/other']", &one)
            && !allowed("[plugins]\nsources = []", &one)
    );
    assert!(!allowed(&format!("{digests}sources = ['/opt/other']"), &one), "both lists hold");
}

#[test]
fn policy_errors_have_a_location() {
    let table = [
        ("[audit]\nenabled = 1", "system.toml:2:11: invalid type: integer"),
        ("[audit]\nrequire = true", "system.toml:2:1: unknown field `require`"),
        ("[models]\nproviders = ['opneai']", "system.toml:2:14: unknown provider \"opneai\""),
        (
            "[models]\nbase_urls = ['gw.example.com']",
            "system.toml:2:14: \"gw.example.com\" is not a URL",
        ),
        ("[plugins]\ndigests = ['12']", "system.toml:2:12: a digest is"),
        ("[plugins]\nsources = ['plugins']", "system.toml:2:12: "),
        ("[commands]\nread = ['data']", "system.toml:2:9: \"data\" is not an absolute path"),
        ("[commands]\nwrite = ['/a/../b']", "system.toml:2:10: "),
        ("[sessions]\nkept = true", "system.toml:2:1: unknown field `kept`"),
    ];
    for (text, expected) in table {
        let problem = PolicyLayer::parse(PolicyLevel::System, "system.toml", text)
            .expect_err(text)
            .to_string();
        assert!(problem.starts_with(expected), "{text}\n{problem}");
    }
    let problem = PolicyLayer::parse(PolicyLevel::Project, "p.toml", "[sessions]\nkeep = false")
        .expect_err("not a project's")
        .to_string();
    assert!(
        problem.starts_with("p.toml:2:8: the policy file of a project cannot set `keep`"),
        "{problem}"
    );
}

fn any_rules() -> impl Strategy<Value = BTreeMap<&'static str, String>> {
    let switch = || prop::option::of(any::<bool>().prop_map(|value| value.to_string()));
    let list = |all: &'static [&'static str]| {
        prop::option::of(
            prop::collection::vec(prop::sample::select(all), 0..3)
                .prop_map(|list| format!("{list:?}")),
        )
    };
    const DIGESTS: &[&str] = &[
        "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
    ];
    let minimum = prop::option::of(
        prop::sample::select(vec!["\"none\"", "\"kernel\"", "\"full\""]).prop_map(str::to_owned),
    );
    let switches = (switch(), switch(), switch(), switch(), minimum);
    let lists = (
        list(&["/srv", "/srv/a", "/srv/b"]),
        list(&["/srv", "/srv/a"]),
        list(&["anthropic", "openai", "ollama"]),
        list(&["https://a.example.com", "https://*.example.com", "http://127.0.0.1:11434"]),
        list(DIGESTS),
        list(&["/opt", "/opt/plugins", "https://plugins.example.com"]),
    );
    (switches, lists).prop_map(
        |(
            (enabled, required, network, session, minimum),
            (read, write, providers, urls, digests, sources),
        )| {
            let keys = [
                ("audit.enabled", enabled),
                ("audit.required", required),
                ("commands.network", network),
                ("sessions.required", session),
                ("commands.minimum", minimum),
                ("commands.read", read),
                ("commands.write", write),
                ("models.providers", providers),
                ("models.base_urls", urls),
                ("plugins.digests", digests),
                ("plugins.sources", sources),
            ];
            keys.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
        },
    )
}

fn to_toml(rules: &BTreeMap<&'static str, String>) -> String {
    rules.iter().map(|(key, value)| format!("{key} = {value}\n")).collect()
}

/// Returns for each setting whether the policy allows its looser value.
fn loose_settings(policy: &Policy, configuration: &str) -> Vec<bool> {
    let (settings, _) = settings_from(configuration).with_policy(policy, None);
    let mut open = vec![
        !settings.audit.enabled,
        !settings.audit.required,
        !matches!(settings.commands.network, CommandNetwork::None | CommandNetwork::Closed),
        policy.session_required_by().is_none(),
    ];
    open.extend(
        [SandboxLevel::Kernel, SandboxLevel::Full].map(|level| settings.commands.minimum < level),
    );
    for path in ["/srv/a", "/srv/b/c"] {
        open.push(settings.commands.read.iter().any(|read| read == Path::new(path)));
        open.push(settings.commands.write.iter().any(|write| write == Path::new(path)));
    }
    for provider in ["anthropic", "openai", "ollama", "replay"] {
        for (base_url, is_default_address) in [
            (Some("https://a.example.com/v1"), false),
            (Some("https://evil.org"), false),
            (Some("http://127.0.0.1:11434"), true),
            (None, true),
        ] {
            open.push(
                policy
                    .model_refusal(&ModelEndpoint { provider, base_url, is_default_address })
                    .is_none(),
            );
        }
    }
    for digest in ["a", "b", "c"].map(|digit| digit.repeat(64)) {
        for origin in
            ["/opt/plugins/x", "/home/x", "https://plugins.example.com/x", "https://evil.org/x"]
        {
            open.push(policy.plugin_refusal(&digest, &[origin.to_owned()]).is_none());
        }
    }
    open
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn r035_no_layer_loosens_a_setting(
        layers in prop::collection::vec(any_rules(), 0..3),
        added in any_rules(),
        level in prop::sample::select(vec![
            PolicyLevel::System,
            PolicyLevel::User,
            PolicyLevel::Project,
        ]),
        trusted in any::<bool>(),
        loose in any::<bool>(),
    ) {
        let configuration = if loose { LOOSE } else { "" };
        let mut without = Policy::default();
        for rules in &layers {
            without.add_layer(layer(PolicyLevel::User, &to_toml(rules)));
        }
        let mut with = without.clone();
        let added = layer(level, &to_toml(&added));
        if trusted { with.add_trusted_layer(added) } else { with.add_layer(added) }
        let before = loose_settings(&without, configuration);
        let after = loose_settings(&with, configuration);
        for (number, (before, after)) in before.into_iter().zip(after).enumerate() {
            prop_assert!(before || !after, "setting {number} became looser");
        }
    }
}
