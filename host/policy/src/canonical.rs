//! The canonical form of a policy: policies with the same meaning have the same text.
//!
//! The audit log identifies the policy in force by the SHA-256 of this text. Version 1:
//!
//! - The first line is `cofferdam policy 1`. Each other line is a JSON array of strings, numbers,
//!   booleans and lists of strings, and states one fact. Lines end with a line feed.
//! - Lines are sorted by their bytes and unique. The order of files and rules has no meaning, and
//!   neither has repetition.
//! - The first entry `WHO` is the authority of the line: `system`, `user` or `project`. A project
//!   that the user trusts counts as `user`.
//! - Locations, comments, file names and the tests of rules are left out. So is the name of a
//!   profile; the content of the profile is included.
//! - Lists whose order has no meaning (modes, methods, capabilities) are sorted and unique.
//!
//! The lines and their meanings:
//!
//! - `[WHO,"rule",SECTION,VERDICT,TOOL,PATTERN]`: a rule. `TOOL` is `""` for every tool, otherwise
//!   its name in lower case or its digest.
//! - `[WHO,"allow-list",SECTION]`: the section has an `allow` list.
//! - `[WHO,"modes",[MODE…]]`: the modes that may be chosen.
//! - `[WHO,"minimum",LEVEL]`: the minimum sandbox of commands.
//! - `[WHO,"local",HOST]`: a host of this machine or its network.
//! - `[WHO,"protected",LIST,PATTERN]`: a pattern under `[protected]`.
//! - `[WHO,"grants",TOOL,[CAPABILITY…]]`: the only capabilities that a tool may have.
//! - `[WHO,"withholds",TOOL,[CAPABILITY…]]`: capabilities that a tool never has.
//! - `[WHO,"limit",TOOL,CAP,NUMBER]`: the maximum value of a limit.
//! - `[WHO,"setting",KEY,VALUE]`: a restriction of a setting of the program: a switch, or the list
//!   of allowed values.
//!
//! Additions to policies add lines of a new kind. A change to these lines needs a new version.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    CapName, DirectDirectory, GrantRule, Policy, PolicyLayer, PolicyRule, ProtectionRules,
    RulePattern, SettingRules, ToolSelector, TrustLevel,
};

/// The first line of the text, with the version.
const HEADER: &str = "cofferdam policy 1";

impl Policy {
    /// Returns the canonical form of this policy. See the module documentation for its syntax.
    pub fn canonical(&self) -> String {
        let mut lines = BTreeSet::new();
        for (voice, layer) in self.layers() {
            let who = match voice {
                TrustLevel::System => "system",
                TrustLevel::User => "user",
                TrustLevel::Stranger => "project",
            };
            emit_layer(layer, &mut |line| {
                let Value::Array(words) = line else { return };
                let line = Value::Array([vec![json!(who)], words].concat());
                lines.insert(line.to_string());
            });
        }
        lines.iter().fold(format!("{HEADER}\n"), |text, line| text + line + "\n")
    }
}

/// Emits one line for each fact in a layer.
fn emit_layer(layer: &PolicyLayer, to: &mut dyn FnMut(Value)) {
    // Destructures every field, so that a new field causes a compile error here.
    let PolicyLayer {
        source: _,
        file: _,
        profile: _,
        modes,
        rules,
        allow_lists: lists,
        minimum_sandbox: minimum,
        local_hosts: local,
        protected,
        grants: lending,
        named_tools: _,
        max_caps: maxima,
        settings,
    } = layer;
    if let Some((modes, _)) = modes {
        to(json!(["modes", sorted(modes.iter().map(|mode| mode.name()))]));
    }
    for PolicyRule { tool, pattern, writes, source_rule: written } in rules {
        let text = match pattern {
            // The tool already determines the actions that the rule covers.
            RulePattern::Tool => "",
            RulePattern::Command(_)
            | RulePattern::Read(_)
            | RulePattern::Write(_)
            | RulePattern::Fetch { .. }
            | RulePattern::Connect(_) => &written.text,
        };
        to(json!([
            "rule",
            written.kind.section(),
            written.verdict.name(),
            tool_text(tool.as_ref()),
            text
        ]));
        if let Some(writes) = writes {
            to(json!(["writes", tool_text(tool.as_ref()), text, writes]));
        }
    }
    lists.keys().for_each(|kind| to(json!(["allow-list", kind.section()])));
    if let Some((level, _)) = minimum {
        to(json!(["minimum", level.name()]));
    }
    local.iter().for_each(|host| to(json!(["local", host.text])));
    let ProtectionRules { hidden, read_only, shown, writable } = protected;
    for (list, patterns) in
        [("hidden", hidden), ("read_only", read_only), ("shown", shown), ("writable", writable)]
    {
        patterns.iter().for_each(|pattern| to(json!(["protected", list, pattern.text])));
    }
    for GrantRule { tool, allowed: at_most, denied: never } in lending {
        for (word, kinds) in [("grants", at_most), ("withholds", never)] {
            if let Some((kinds, _)) = kinds {
                to(json!([
                    word,
                    tool_text(Some(tool)),
                    sorted(kinds.iter().map(|kind| kind.name()))
                ]));
            }
        }
    }
    emit_settings(settings, to);
    for (tool, caps, _) in maxima {
        for cap in CapName::ALL {
            if let Some(value) = caps.get(cap) {
                to(json!(["limit", tool_text(tool.as_ref()), cap.name(), value]));
            }
        }
    }
}

fn emit_settings(settings: &SettingRules, to: &mut dyn FnMut(Value)) {
    let SettingRules {
        audit_enabled,
        audit_required,
        network,
        unlisted_hosts,
        read,
        write,
        direct,
        providers,
        base_urls,
        digests,
        sources,
        session_required,
        session_keep,
    } = settings;
    let switches = [
        ("audit.enabled", audit_enabled),
        ("audit.required", audit_required),
        ("commands.network", network),
        ("sessions.required", session_required),
        ("sessions.keep", session_keep),
    ];
    for (name, switch) in switches {
        if let Some((value, _)) = switch {
            to(json!(["setting", name, value]));
        }
    }
    if let Some((verdict, _)) = unlisted_hosts {
        to(json!(["setting", "commands.network.unlisted", verdict.name()]));
    }
    let mut list = |name: &str, texts: Option<BTreeSet<String>>| {
        if let Some(texts) = texts {
            to(json!(["setting", name, texts]));
        }
    };
    list("commands.read", read.as_ref().map(|(paths, _)| paths.iter().cloned().collect()));
    list("commands.write", write.as_ref().map(|(paths, _)| paths.iter().cloned().collect()));
    let texts =
        |directories: &[DirectDirectory]| directories.iter().map(ToString::to_string).collect();
    list("commands.direct", direct.as_ref().map(|(directories, _)| texts(directories)));
    list("models.providers", providers.as_ref().map(|(names, _)| names.clone()));
    list(
        "models.base_urls",
        base_urls.as_ref().map(|(urls, _)| urls.iter().map(ToString::to_string).collect()),
    );
    list("plugins.digests", digests.as_ref().map(|(digests, _)| digests.clone()));
    list(
        "plugins.sources",
        sources.as_ref().map(|(sources, _)| sources.iter().map(ToString::to_string).collect()),
    );
}

/// Returns the text for the tool of a line. Tool names are unique without regard to case.
fn tool_text(tool: Option<&ToolSelector>) -> String {
    match tool {
        None | Some(ToolSelector::Every) => String::new(),
        Some(
            tool @ (ToolSelector::Name(_) | ToolSelector::Server(_) | ToolSelector::Digest(_)),
        ) => tool.to_string().to_ascii_lowercase(),
    }
}

fn sorted<'a>(words: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::super::PolicyLevel;
    use super::*;

    /// A policy that uses every key.
    const SYSTEM: &str = r#"
modes = ["plan", "ask"]
[commands]
minimum = "full"
network = false
read = ["/data", "/cache"]
write = []
allow = ["git status *", { pattern = "cargo test *", match = ["cargo test --lib"] }]
deny = [{ pattern = "git push *", tool = "Bash" }]
[read]
deny = ["customers/**"]
[write]
ask = ["src/**"]
[fetch]
allow = [{ pattern = "docs.rs", methods = ["post", "GET"] }]
local = ["127.0.0.1:3000"]
[protected]
hidden = ["*.sqlite"]
read_only = ["dist"]
shown = ["tests/*.pem"]
writable = [".vscode"]
[tools."*"]
deny = ["fetch", "delegate"]
[tools."sha256:0000000000000000000000000000000000000000000000000000000000000000"]
use = "ask"
grants = ["write-files", "read-files"]
limits = { seconds = 5 }
[limits]
memory_mib = 128
[audit]
enabled = true
required = true
[models]
providers = ["openai", "anthropic"]
base_urls = ["https://models.example.com/v1"]
[plugins]
digests = ["sha256:1111111111111111111111111111111111111111111111111111111111111111"]
sources = ["/opt/plugins"]
[sessions]
required = false
keep = false
"#;

    const CANONICAL: &str = concat!(
        r#"cofferdam policy 1
["system","allow-list","commands"]
["system","allow-list","fetch"]
["system","grants","sha256:"#,
        "0000000000000000000000000000000000000000000000000000000000000000",
        r#"",["read-files","write-files"]]
["system","limit","","memory_mib",128]
["system","limit","sha256:"#,
        "0000000000000000000000000000000000000000000000000000000000000000",
        r#"","seconds",5]
["system","local","127.0.0.1:3000"]
["system","minimum","full"]
["system","modes",["ask","plan"]]
["system","protected","hidden","*.sqlite"]
["system","protected","read_only","dist"]
["system","protected","shown","tests/*.pem"]
["system","protected","writable",".vscode"]
["system","rule","commands","allow","","cargo test *"]
["system","rule","commands","allow","","git status *"]
["system","rule","commands","deny","bash","git push *"]
["system","rule","fetch","allow","","GET,POST docs.rs"]
["system","rule","read","deny","","customers/**"]
["system","rule","tools","ask","sha256:"#,
        "0000000000000000000000000000000000000000000000000000000000000000",
        r#"",""]
["system","rule","write","ask","","src/**"]
["system","setting","audit.enabled",true]
["system","setting","audit.required",true]
["system","setting","commands.network",false]
["system","setting","commands.read",["/cache","/data"]]
["system","setting","commands.write",[]]
["system","setting","models.base_urls",["https://models.example.com/v1"]]
["system","setting","models.providers",["anthropic","openai"]]
["system","setting","plugins.digests",[""#,
        "1111111111111111111111111111111111111111111111111111111111111111",
        r#""]]
["system","setting","plugins.sources",["/opt/plugins"]]
["system","setting","sessions.keep",false]
["system","setting","sessions.required",false]
["system","withholds","",["delegate","fetch"]]
"#
    );

    fn canonical(layers: &[(PolicyLevel, &str)]) -> String {
        let mut policy = Policy::default();
        for (at, (level, text)) in layers.iter().enumerate() {
            policy.add_layer(
                PolicyLayer::parse(*level, &format!("{at}.toml"), text)
                    .unwrap_or_else(|error| panic!("{error}")),
            );
        }
        policy.canonical()
    }

    #[test]
    fn the_canonical_form_of_version_1_does_not_change() {
        assert_eq!(canonical(&[(PolicyLevel::System, SYSTEM)]), CANONICAL);
        assert_eq!(Policy::default().canonical(), "cofferdam policy 1\n");
        // The digests that the audit log records.
        let digest = |text: &str| crate::ComponentDigest::compute(text.as_bytes()).to_string();
        assert_eq!(
            digest(&canonical(&[(PolicyLevel::System, SYSTEM)])),
            "913b58594c5c9977952d5b7dffa82c0eb7dbc2aad310b347a134990519cf064a"
        );
        assert_eq!(
            digest(&Policy::default().canonical()),
            "e3f8e5038af7e7514a5896b4afbd599fe00bfd995a4c3c3a73678df5fe8f1b9c"
        );
    }

    #[test]
    fn the_canonical_form_omits_what_has_no_effect() {
        let one = "# A comment.\n[commands]\ndeny = [\"a *\", \"b *\"]\n[tools.x]\nuse = \"ask\"";
        let other = "[tools.X]\nuse = \"ask\"\n\n\n[commands]\ndeny = [\"b *\", { pattern = \"a \
            *\", match = [\"a\"] }, \"b *\"]";
        assert_eq!(
            canonical(&[(PolicyLevel::User, one)]),
            canonical(&[(PolicyLevel::User, other)])
        );
        let (system, user) = ((PolicyLevel::System, "modes = [\"ask\"]"), (PolicyLevel::User, one));
        assert_eq!(canonical(&[system, user]), canonical(&[user, system]));
        // One file or two files of the same level mean the same.
        let parts = [
            (PolicyLevel::User, "[commands]\ndeny = [\"a *\"]"),
            (PolicyLevel::User, "[commands]\ndeny = [\"b *\"]\n[tools.\"x\"]\nuse = \"ask\""),
        ];
        assert_eq!(canonical(&parts), canonical(&[user]));
    }

    #[test]
    fn the_canonical_form_contains_what_has_an_effect() {
        let base = "[commands]\ndeny = [\"a *\"]";
        let texts = [
            base,
            "[commands]\nask = [\"a *\"]",
            "[commands]\ndeny = [\"a\"]",
            "[commands]\ndeny = [\"a *\"]\nallow = []",
            "[commands]\ndeny = [{ pattern = \"a *\", tool = \"x\" }]",
            "[write]\ndeny = [\"a *\"]",
            "",
        ];
        let mut seen: BTreeSet<String> =
            texts.iter().map(|text| canonical(&[(PolicyLevel::User, text)])).collect();
        seen.extend(
            [PolicyLevel::System, PolicyLevel::Project].map(|level| canonical(&[(level, base)])),
        );
        assert_eq!(seen.len(), texts.len() + 2);
        let mut trusted = Policy::default();
        trusted
            .add_trusted_layer(PolicyLayer::parse(PolicyLevel::Project, "p.toml", base).unwrap());
        assert_eq!(
            trusted.canonical(),
            canonical(&[(PolicyLevel::User, base)]),
            "the user speaks for it"
        );
    }
}
