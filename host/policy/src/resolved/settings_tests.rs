//! Tests of the rules about settings, from policy files to refusals.

use super::tests::layer;
use super::*;

/// Returns a policy of a system file and a user file.
fn policy(system: &str, user: &str) -> Policy {
    let mut policy = Policy::default();
    // The user's file comes first, and the system still has the higher authority.
    policy.add_layer(layer(PolicyLevel::User, user));
    policy.add_layer(layer(PolicyLevel::System, system));
    policy
}

fn place(location: Option<&SourceLocation>) -> Option<String> {
    location.map(ToString::to_string)
}

#[test]
fn a_switch_is_set_by_the_strict_value_of_any_layer() {
    type Setter = fn(&Policy) -> Option<&SourceLocation>;
    // section, key, strict value, query
    let table: [(&str, &str, bool, Setter); 6] = [
        ("audit", "enabled", true, Policy::audit_enabled_by),
        ("audit", "required", true, Policy::audit_required_by),
        ("audit", "required", true, Policy::audit_enabled_by),
        ("commands", "network", false, Policy::network_denied_by),
        ("sessions", "required", true, Policy::session_required_by),
        ("sessions", "keep", false, Policy::session_denied_by),
    ];
    for (section, key, strict, query) in table {
        let strict_text = format!("[{section}]\n{key} = {strict}");
        let loose_text = format!("[{section}]\n{key} = {}", !strict);
        let found = |system: &str, user: &str| place(query(&policy(system, user)));
        let at = |file: &str| Some(format!("{file}.toml:2:{}", key.len() + 4));
        assert_eq!(found("", ""), None, "{key}: no rule");
        assert_eq!(found(&loose_text, &loose_text), None, "{key}: the loose value");
        assert_eq!(found(&loose_text, &strict_text), at("user"), "{key}: only the user");
        assert_eq!(found(&strict_text, &loose_text), at("system"), "{key}: only the system");
        assert_eq!(found(&strict_text, &strict_text), at("system"), "{key}: both");
    }
    let enabled = policy("[audit]\nenabled = true", "");
    assert_eq!(enabled.audit_required_by(), None, "an enabled log is not a required one");
}

#[test]
fn a_path_of_commands_has_to_be_within_every_list() {
    type Query = for<'a> fn(&'a Policy, &str, &str) -> Option<&'a SourceLocation>;
    let queries: [(&str, &str, Query); 2] =
        [("read", "write", Policy::read_denied_by), ("write", "read", Policy::write_denied_by)];
    for (key, other_key, query) in queries {
        let rules = policy(
            &format!("[commands]\n{key} = [\"/srv\", \"~/data\"]"),
            &format!("[commands]\n{key} = [\"/srv/a\", \"/home/u/data\"]\n{other_key} = []"),
        );
        let table = [
            ("/srv/a", None),
            ("/srv/a/x", None),
            ("/home/u/data/x", None),
            ("/srv", Some("user")),
            ("/srv/b", Some("user")),
            ("/srv2/a", Some("system")),
            ("/home/v/data", Some("system")),
            ("/home/u/database", Some("system")),
            ("/", Some("system")),
        ];
        for (path, denied_by) in table {
            for home in ["/home/u", "/home/u/"] {
                let found = query(&rules, path, home).map(|place| place.file.clone());
                let expected = denied_by.map(|level| format!("{level}.toml"));
                assert_eq!(found, expected, "{key} {path}");
            }
        }
        assert_eq!(query(&policy("", ""), "/etc", "/home/u"), None, "{key}: no list");
        let none = policy(&format!("[commands]\n{key} = []"), "");
        assert!(query(&none, "/srv", "/home/u").is_some(), "{key}: an empty list");
    }
}

#[test]
fn a_directory_that_commands_write_directly_has_to_be_within_every_list() {
    let directory = |text: &str| crate::DirectDirectory::parse(text).expect(text);
    let rules = policy(
        "[commands]\ndirect = [\"target\", \"web/node_modules/\"]",
        "[commands]\ndirect = [\"target/debug\", \"web\"]",
    );
    for (text, denied_by) in [
        ("target/debug", None),
        ("target/debug/x", None),
        ("web/node_modules", None),
        ("target", Some("user.toml")),
        ("web", Some("system.toml")),
        ("other", Some("system.toml")),
    ] {
        let found = rules.direct_denied_by(&directory(text)).map(|place| &*place.file);
        assert_eq!(found, denied_by, "{text}");
    }
    let none = policy("[commands]\ndirect = []", "");
    assert!(none.direct_denied_by(&directory("target")).is_some(), "an empty list");
    assert!(policy("", "").direct_denied_by(&directory("target")).is_none(), "no list");
    let rules = crate::CommandRules {
        direct: vec![directory("target"), directory("target/debug")],
        ..crate::CommandRules::default()
    };
    let bounded = rules.with_policy(&policy("[commands]\ndirect = [\"target/debug\"]", ""));
    assert_eq!(bounded.direct, [directory("target/debug")]);
}

#[test]
fn a_model_needs_an_allowed_provider_and_an_allowed_url() {
    let model = |provider, base_url, is_default_address| ModelEndpoint {
        provider,
        base_url,
        is_default_address,
    };
    let (own, gateway) = ("https://api.openai.com/v1", "https://gw.example.com/v1");
    let providers = "[models]\nproviders = [\"openai\"]";
    let urls = "[models]\nbase_urls = [\"https://gw.example.com\"]";
    let both = "[models]\nproviders = [\"openai\"]\nbase_urls = [\"https://gw.example.com\"]";
    let table = [
        ("", model("openai", Some(gateway), false), None),
        (providers, model("openai", Some(own), true), None),
        (providers, model("openai", None, false), None),
        (providers, model("openai", Some(gateway), false), Some("only at its default URL")),
        (providers, model("ollama", Some(own), true), Some("model provider `ollama`")),
        (providers, model("replay", None, true), Some("model provider `replay`")),
        (urls, model("ollama", Some(gateway), false), None),
        (urls, model("ollama", Some(own), true), Some("the model URL `https://api.openai.com")),
        (urls, model("replay", None, true), None),
        (both, model("openai", Some(gateway), false), None),
        (both, model("openai", Some(own), true), Some("the model URL")),
        (both, model("ollama", Some(gateway), false), Some("model provider `ollama`")),
    ];
    for (text, model, expected) in table {
        for policy in [policy(text, ""), policy("", text)] {
            let refusal = policy.model_refusal(&model).map(|refusal| refusal.to_string());
            match (refusal, expected) {
                (None, None) => {}
                (Some(refusal), Some(part)) => assert!(refusal.contains(part), "{refusal}"),
                (refusal, expected) => panic!("{text}\n{model:?}: {refusal:?}, {expected:?}"),
            }
        }
    }
}

#[test]
fn a_refusal_names_the_rule_the_allowed_values_and_a_remedy() {
    let endpoint = ModelEndpoint { provider: "ollama", base_url: None, is_default_address: true };
    let refusal = |text: &str| policy(text, "").model_refusal(&endpoint).expect(text).to_string();
    insta::assert_snapshot!(refusal("[models]\nproviders = [\"openai\"]"), @"
    system.toml:2:13: the policy does not allow the model provider `ollama` (allowed: openai)
    hint: choose a model of an allowed provider with `--model`, or ask the author of the policy
    ");
    assert!(refusal("[models]\nproviders = []").contains("(allowed: none)"));
}

#[test]
fn a_plugin_needs_an_allowed_digest_and_one_allowed_origin() {
    let (ours, other) = ("a".repeat(64), "b".repeat(64));
    let digests = format!("[plugins]\ndigests = [\"sha256:{ours}\"]");
    let sources =
        "[plugins]\nsources = [\"/opt/plugins\", \"https://plugins.example.com\"]".to_owned();
    let none = String::new();
    let table: [(&String, &String, &[&str], Option<&str>); 9] = [
        (&none, &other, &["/tmp/a.wasm"], None),
        (&digests, &ours, &["/tmp/a.wasm"], None),
        (&digests, &other, &["/opt/plugins/a.wasm"], Some("a plugin with the digest sha256:bbb")),
        (&sources, &other, &["/opt/plugins/a.wasm"], None),
        (&sources, &other, &["https://plugins.example.com/a.wasm"], None),
        (&sources, &other, &["/tmp/a.wasm", "https://plugins.example.com/a.wasm"], None),
        (&sources, &other, &["/opt/plugins2/a.wasm"], Some("plugins from /opt/plugins2/a.wasm")),
        (&sources, &other, &["/a", "/b"], Some("plugins from /a, /b (allowed: /opt/plugins, htt")),
        (&sources, &other, &[], Some("the policy does not allow plugins from")),
    ];
    for (text, digest, origins, expected) in table {
        let origins: Vec<String> = origins.iter().map(|origin| (*origin).to_owned()).collect();
        let refusal = policy("", text).plugin_refusal(digest, &origins).map(|it| it.to_string());
        match (refusal, expected) {
            (None, None) => {}
            (Some(refusal), Some(part)) => assert!(refusal.contains(part), "{refusal}"),
            (refusal, expected) => panic!("{text} {origins:?}: {refusal:?}, {expected:?}"),
        }
    }
    // Each layer has to allow the plugin.
    let origin = ["/opt/plugins/a.wasm".to_owned()];
    let refused_by = |system: &str, user: &str| {
        policy(system, user).plugin_refusal(&ours, &origin).map(|refusal| refusal.location.file)
    };
    assert_eq!(refused_by(&digests, &sources), None);
    assert_eq!(refused_by(&digests, "[plugins]\nsources = []").as_deref(), Some("user.toml"));
}
