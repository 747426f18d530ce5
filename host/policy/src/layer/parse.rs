//! The parser of policy files. Errors include the location in the file.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml::Spanned;

use super::raw::{
    RawCapability, RawCommandRules, RawLayerCaps, RawPatternEntry, RawPatternList, RawPolicyLayer,
    RawProtected, RawRules, RawToolRules, split_network,
};
use super::{
    GrantRule, Located, PluginOrigin, PolicyLayer, PolicyLevel, PolicyRule, ProtectionRules,
    RulePattern, SettingRules, SourceLocated, ToolId, ToolSelector,
};
use crate::pattern::{
    BaseUrl, CommandPattern, HostAddress, HostPattern, PathPattern, PatternError, PatternMatch,
};
use crate::{
    Action, ActionKind, Caps, DirectDirectory, PolicyError, ProtectedPaths, RuleOrigin,
    RuleReference, SourceLocation, Verdict, WorkspacePath,
};

/// The names of model providers, which precede the name of a model.
const PROVIDERS: [&str; 4] = ["anthropic", "ollama", "openai", "replay"];

/// The tool for the tests of rules without a tool.
const EXAMPLE_TOOL: &str = "some_tool";

/// The text of the file, to compute locations in it.
pub(super) struct LayerParser<'a> {
    pub(super) source: RuleOrigin,
    file: &'a str,
    text: &'a str,
}

pub(super) type ParseResult<T> = Result<T, PolicyError>;

impl PolicyLayer {
    /// Parses the text of a policy file, and runs the tests of its rules.
    ///
    /// # Errors
    ///
    /// Returns an error with its location if the text is invalid or a test of a rule fails.
    pub fn parse(level: PolicyLevel, file: &str, text: &str) -> ParseResult<Self> {
        Self::read(RuleOrigin::File(level), file, text)
    }

    /// Parses a built-in profile that this level chose.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`PolicyLayer::parse`].
    pub(crate) fn from_profile(level: PolicyLevel, file: &str, text: &str) -> ParseResult<Self> {
        Self::read(RuleOrigin::Profile(level), file, text)
    }

    fn read(source: RuleOrigin, file: &str, text: &str) -> ParseResult<Self> {
        let reader = LayerParser { source, file, text };
        let raw: RawPolicyLayer = toml::from_str(text)
            .map_err(|error| reader.error(&error.span().unwrap_or_default(), error.message()))?;
        reader.parse_layer(raw)
    }
}

impl LayerParser<'_> {
    fn location(&self, span: &Range<usize>) -> SourceLocation {
        SourceLocation::at_offset(self.file, self.text, span.start)
    }

    pub(super) fn error(&self, span: &Range<usize>, problem: impl ToString) -> PolicyError {
        PolicyError { location: self.location(span), problem: problem.to_string() }
    }

    fn parse_layer(&self, raw: RawPolicyLayer) -> ParseResult<PolicyLayer> {
        let mut rules = Vec::new();
        let mut lists = BTreeMap::new();
        let RawCommandRules {
            minimum,
            network,
            read: reads,
            write: writes,
            direct,
            allow,
            ask,
            deny,
        } = raw.commands;
        let (network, hosts) = split_network(network);
        let settings = SettingRules {
            audit_enabled: self.located(raw.audit.enabled),
            audit_required: self.located(raw.audit.required),
            network: self.located(network),
            unlisted_hosts: self.located(hosts.unlisted),
            read: self.parse_list(reads, parse_path)?,
            write: self.parse_list(writes, parse_path)?,
            direct: self.parse_list(direct, |text| {
                DirectDirectory::parse(text).map_err(|problem| problem.to_string())
            })?,
            providers: self.parse_list(raw.models.providers, parse_provider)?,
            base_urls: self.parse_list(raw.models.base_urls, |text| {
                BaseUrl::parse_pattern(text).map_err(|problem| problem.to_string())
            })?,
            digests: self.parse_list(raw.plugins.digests, parse_digest)?,
            sources: self.parse_list(raw.plugins.sources, PluginOrigin::parse)?,
            session_required: self.located(raw.sessions.required),
            session_keep: self.parse_session_keep(raw.sessions.keep)?,
        };
        let commands = RawRules { allow, ask, deny };
        let read = RawRules { deny: raw.read.deny, ..RawRules::default() };
        let local = self.parse_local_hosts(raw.fetch.local)?;
        let fetch = RawRules { allow: raw.fetch.allow, ask: raw.fetch.ask, deny: raw.fetch.deny };
        for (kind, section) in [
            (ActionKind::Commands, commands),
            (ActionKind::Read, read),
            (ActionKind::Write, raw.write),
            (ActionKind::Fetch, fetch),
            (ActionKind::Connect, hosts.lists),
        ] {
            if let Some(list) = &section.allow {
                lists.insert(kind, self.location(&list.span()));
            }
            for (verdict, list) in [
                (Verdict::Allow, section.allow),
                (Verdict::Ask, section.ask),
                (Verdict::Deny, section.deny),
            ] {
                rules.extend(self.parse_rules(kind, verdict, list)?);
            }
        }
        let mut named: Vec<(ToolSelector, SourceLocation)> = rules
            .iter()
            .filter_map(|rule: &PolicyRule| {
                Some((rule.tool.clone()?, rule.source_rule.place.clone()))
            })
            .collect();
        let mut lending = Vec::new();
        let mut maxima: Vec<_> = self.max_caps(None, &raw.limits)?.into_iter().collect();
        for (key, tool) in raw.tools {
            let subject = self.parse_tool(&key.span(), key.get_ref())?;
            named.push((subject.clone(), self.location(&key.span())));
            maxima.extend(self.max_caps(Some(subject.clone()), &tool.limits)?);
            rules.extend(self.tool_rule(&subject, &tool));
            lending.push(self.grant_rule(subject, tool));
        }
        if let (PolicyLevel::Project, Some(profile)) = (self.source.level(), &raw.profile) {
            return Err(
                self.error(&profile.span(), "the policy file of a project cannot choose a profile")
            );
        }
        let profile =
            raw.profile.map(|profile| (*profile.get_ref(), self.location(&profile.span())));
        let modes = raw
            .modes
            .map(|modes| (modes.get_ref().iter().copied().collect(), self.location(&modes.span())));
        let minimum = minimum.map(|minimum| (*minimum.get_ref(), self.location(&minimum.span())));
        let protected = self.parse_protection(raw.protected)?;
        self.check_sizes(&rules, &protected)?;
        Ok(PolicyLayer {
            source: self.source,
            file: self.file.to_owned(),
            profile,
            modes,
            rules,
            allow_lists: lists,
            minimum_sandbox: minimum,
            settings,
            local_hosts: local,
            protected,
            grants: lending,
            named_tools: named,
            max_caps: maxima,
        })
    }

    fn located<T: Copy>(&self, value: Option<Spanned<T>>) -> Option<Located<T>> {
        value.map(|value| (*value.get_ref(), self.location(&value.span())))
    }

    /// Parses each entry of a list.
    fn parse_list<T, L: FromIterator<T>>(
        &self,
        list: Option<Spanned<Vec<Spanned<String>>>>,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> ParseResult<Option<Located<L>>> {
        let Some(list) = list else { return Ok(None) };
        let place = self.location(&list.span());
        let entries = list
            .into_inner()
            .into_iter()
            .map(|text| read(text.get_ref()).map_err(|problem| self.error(&text.span(), problem)));
        Ok(Some((entries.collect::<ParseResult<L>>()?, place)))
    }

    fn parse_session_keep(
        &self,
        keep: Option<Spanned<bool>>,
    ) -> ParseResult<Option<Located<bool>>> {
        match (self.source.level(), &keep) {
            // An untrusted project could otherwise remove its traces.
            (PolicyLevel::Project, Some(keep)) => {
                Err(self.error(&keep.span(), "the policy file of a project cannot set `keep`"))
            }
            (PolicyLevel::System | PolicyLevel::User | PolicyLevel::Project, _) => {
                Ok(self.located(keep))
            }
        }
    }

    fn parse_rules(
        &self,
        kind: ActionKind,
        verdict: Verdict,
        list: Option<RawPatternList>,
    ) -> ParseResult<Vec<PolicyRule>> {
        list.map_or_else(Vec::new, Spanned::into_inner)
            .into_iter()
            .map(|entry| self.parse_rule(kind, verdict, entry))
            .collect()
    }

    fn parse_rule(
        &self,
        kind: ActionKind,
        verdict: Verdict,
        entry: Spanned<RawPatternEntry>,
    ) -> ParseResult<PolicyRule> {
        let span = entry.span();
        let RawPatternEntry { pattern: text, tool, methods, writes, matches, not_matches } =
            entry.into_inner();
        self.check_size(&span, &text)?;
        if methods.is_some() && kind != ActionKind::Fetch {
            return Err(
                self.error(&span, format!("`methods` is not allowed in [{}]", kind.section()))
            );
        }
        if writes.is_some() && (kind, verdict) != (ActionKind::Commands, Verdict::Allow) {
            return Err(self.error(&span, "`writes` is only allowed in `allow` under [commands]"));
        }
        if kind == ActionKind::Read && tool.is_some() {
            return Err(self
                .error(&span, "`tool` is not allowed in [read]: these rules apply to all tools"));
        }
        let bad = |problem: PatternError| self.error(&span, problem);
        let pattern = match kind {
            ActionKind::Commands => {
                RulePattern::Command(CommandPattern::parse(&text).map_err(bad)?)
            }
            ActionKind::Read => RulePattern::Read(PathPattern::parse(&text).map_err(bad)?),
            ActionKind::Write => RulePattern::Write(PathPattern::parse(&text).map_err(bad)?),
            ActionKind::Fetch => RulePattern::Fetch {
                host: HostPattern::parse(&text).map_err(bad)?,
                methods: methods.map(|methods| self.parse_methods(&span, &methods)).transpose()?,
            },
            ActionKind::Connect => RulePattern::Connect(HostPattern::parse(&text).map_err(bad)?),
            ActionKind::Use => RulePattern::Tool,
        };
        let tool = tool.map(|tool| self.parse_tool(&span, &tool)).transpose()?;
        // The text of a rule includes its methods.
        let text = match &pattern {
            RulePattern::Fetch { methods: Some(methods), .. } => {
                format!("{} {text}", methods.iter().cloned().collect::<Vec<_>>().join(","))
            }
            _ => text,
        };
        let rule = PolicyRule {
            tool,
            pattern,
            writes,
            source_rule: RuleReference {
                verdict,
                kind,
                text,
                place: self.location(&span),
                source: self.source,
            },
        };
        for (examples, expected) in [(matches, true), (not_matches, false)] {
            for example in examples {
                let covers =
                    covers(&rule, &example).map_err(|problem| self.error(&span, problem))?;
                if covers != expected {
                    let (should, does) =
                        if expected { ("should", "does not") } else { ("should not", "does") };
                    let pattern = &rule.source_rule.text;
                    return Err(self.error(
                        &span,
                        format!(
                            "a test of the rule failed: `{pattern}` {should} cover `{example}`, \
                                but {does}"
                        ),
                    ));
                }
            }
        }
        Ok(rule)
    }

    fn parse_methods(
        &self,
        span: &Range<usize>,
        methods: &[String],
    ) -> ParseResult<BTreeSet<String>> {
        if methods.is_empty() {
            return Err(self.error(
                span,
                "`methods` is empty, so the rule covers no request; omit it to cover all methods",
            ));
        }
        let method = |word: &String| match !word.is_empty()
            && word.bytes().all(|byte| byte.is_ascii_alphabetic())
        {
            true => Ok(word.to_ascii_uppercase()),
            false => Err(self.error(span, format!("{word:?} is not a method such as \"GET\""))),
        };
        methods.iter().map(method).collect()
    }

    fn parse_protection(&self, raw: RawProtected) -> ParseResult<ProtectionRules> {
        let read = |list: Vec<Spanned<String>>| {
            let read = |text: Spanned<String>| {
                self.check_size(&text.span(), text.get_ref())?;
                ProtectedPaths::check_pattern(text.get_ref())
                    .map_err(|problem| self.error(&text.span(), problem))?;
                Ok(SourceLocated { place: self.location(&text.span()), text: text.into_inner() })
            };
            list.into_iter().map(read).collect::<ParseResult<Vec<SourceLocated>>>()
        };
        if let Some(unknown) =
            raw.writable.iter().find(|text| !ProtectedPaths::restricts_changes(text.get_ref()))
        {
            return Err(self.error(
                &unknown.span(),
                "this pattern is not in the built-in lists; `cofferdam policy show --lists` shows \
                    these lists",
            ));
        }
        Ok(ProtectionRules {
            hidden: read(raw.hidden)?,
            read_only: read(raw.read_only)?,
            shown: read(raw.shown)?,
            writable: read(raw.writable)?,
        })
    }

    fn parse_local_hosts(&self, list: Vec<Spanned<String>>) -> ParseResult<Vec<SourceLocated>> {
        let read = |text: Spanned<String>| {
            // Parses the text like the host of a request, so that it is a single host and not a
            // pattern.
            HostAddress::parse(text.get_ref())
                .map_err(|problem| self.error(&text.span(), problem))?;
            Ok(SourceLocated { place: self.location(&text.span()), text: text.into_inner() })
        };
        list.into_iter().map(read).collect()
    }

    fn tool_rule(&self, subject: &ToolSelector, tool: &RawToolRules) -> Option<PolicyRule> {
        let verdict = tool.verdict.as_ref()?;
        let place = self.location(&verdict.span());
        let written = RuleReference {
            verdict: *verdict.get_ref(),
            kind: ActionKind::Use,
            text: subject.to_string(),
            place,
            source: self.source,
        };
        Some(PolicyRule {
            tool: Some(subject.clone()),
            pattern: RulePattern::Tool,
            writes: None,
            source_rule: written,
        })
    }

    fn grant_rule(&self, tool: ToolSelector, raw: RawToolRules) -> GrantRule {
        let placed = |list: Spanned<Vec<RawCapability>>| {
            let kinds: BTreeSet<_> = list.get_ref().iter().filter_map(|name| name.0).collect();
            (kinds, self.location(&list.span()))
        };
        GrantRule { tool, allowed: raw.grants.map(placed), denied: raw.deny.map(placed) }
    }

    fn parse_tool(&self, span: &Range<usize>, text: &str) -> ParseResult<ToolSelector> {
        ToolSelector::parse(text).map_err(|problem| self.error(span, problem))
    }

    /// Returns the limits of one section, with the location of the first one; `None` if it has
    /// none.
    fn max_caps(
        &self,
        tool: Option<ToolSelector>,
        raw: &RawLayerCaps,
    ) -> ParseResult<Option<(Option<ToolSelector>, Caps, SourceLocation)>> {
        let caps = self.parse_caps(raw)?;
        let first = raw.values().map(|value| value.span()).min_by_key(|span| span.start);
        Ok(first.filter(|_| !caps.is_empty()).map(|span| (tool, caps, self.location(&span))))
    }

    fn parse_caps(&self, raw: &RawLayerCaps) -> ParseResult<Caps> {
        let mut caps = Caps::default();
        for (cap, value) in raw {
            caps.set(*cap, *value.get_ref())
                .map_err(|problem| self.error(&value.span(), problem))?;
        }
        Ok(caps)
    }
}

fn parse_path(text: &str) -> Result<String, String> {
    let is_plain = super::settings::is_normalized_absolute(text.strip_prefix('~').unwrap_or(text));
    let problem = || {
        format!(
            "{text:?} is not an absolute path without `.` and `..`, such as /srv/data or ~/datasets"
        )
    };
    if is_plain { Ok(text.to_owned()) } else { Err(problem()) }
}

fn parse_provider(text: &str) -> Result<String, String> {
    let is_known = PROVIDERS.contains(&text);
    if is_known {
        Ok(text.to_owned())
    } else {
        Err(format!("unknown provider {text:?}: use {}", PROVIDERS.join(", ")))
    }
}

fn parse_digest(text: &str) -> Result<String, String> {
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    let is_digest =
        digits.len() == 64 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let problem = || {
        "a digest is `sha256:` and 64 lower-case hexadecimal digits, as `cofferdam plugin \
            inspect` prints it"
            .to_owned()
    };
    if is_digest { Ok(digits.to_owned()) } else { Err(problem()) }
}

/// Returns whether a rule covers an example of its own kind.
fn covers(rule: &PolicyRule, example: &str) -> Result<bool, String> {
    let of_server;
    let name = match &rule.tool {
        Some(ToolSelector::Name(name)) => name,
        Some(ToolSelector::Server(server)) => {
            of_server = format!("{server}/{EXAMPLE_TOOL}");
            &of_server
        }
        Some(ToolSelector::Every | ToolSelector::Digest(_)) | None => EXAMPLE_TOOL,
    };
    let digest = match &rule.tool {
        Some(ToolSelector::Digest(digest)) => digest.as_str(),
        Some(ToolSelector::Every | ToolSelector::Name(_) | ToolSelector::Server(_)) | None => "",
    };
    let path = |text: &str| {
        WorkspacePath::parse(text, None)
            .map_err(|problem| format!("in a test of the rule: {problem}"))
    };
    let on =
        |act: Action<'_>| Ok(rule.matches(ToolId::new(name, digest), &act) == PatternMatch::Yes);
    match rule.source_rule.kind {
        ActionKind::Commands => on(Action::Command(example)),
        ActionKind::Read => on(Action::Read(&path(example)?)),
        ActionKind::Write => on(Action::Write(Some(&path(example)?))),
        ActionKind::Fetch => {
            let (method, host) = example.split_once(' ').unwrap_or(("GET", example));
            let host = HostAddress::parse(host)
                .map_err(|problem| format!("in a test of the rule: {problem}"))?;
            on(Action::Fetch { host: &host, method })
        }
        ActionKind::Connect => {
            let host = HostAddress::parse(example)
                .map_err(|problem| format!("in a test of the rule: {problem}"))?;
            on(Action::Connect(&host))
        }
        ActionKind::Use => on(Action::Use),
    }
}
