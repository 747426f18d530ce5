//! From the text of a policy file to what it means, or to the place of what is wrong with it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml::Spanned;

use super::raw::{RawCaps, RawCommandRules, RawEntry, RawLayer, RawList, RawProtected, RawRules, RawTool};
use super::{Layer, Lending, Level, Located, Pattern, Placed, PluginOrigin, Protecting, Rule, SettingRules, Subject, ToolId};
use crate::policy::pattern::{BaseUrl, CommandPattern, HostAddress, HostPattern, Match, PathPattern, PatternProblem};
use crate::policy::{Caps, Deed, Kind, Place, PolicyError, ProtectedPaths, RuleRef, Source, Verdict, WorkspacePath};

/// The providers of models, as they are written in front of a model's name.
const PROVIDERS: [&str; 4] = ["anthropic", "ollama", "openai", "replay"];

/// What rules are tried on when they bring no tool of their own.
const SOME_TOOL: &str = "some_tool";

/// The text that is read, for places in it.
pub(super) struct Reader<'a> {
    pub(super) source: Source,
    file: &'a str,
    text: &'a str,
}

pub(super) type Parsed<T> = Result<T, PolicyError>;

impl Layer {
    /// Reads the text of a policy file. The rules' own tests are run, and one that fails is an error like any other.
    pub fn parse(level: Level, file: &str, text: &str) -> Parsed<Self> {
        Self::read(Source::File(level), file, text)
    }

    /// A profile, which somebody at this level has chosen.
    pub(in crate::policy) fn of_profile(level: Level, file: &str, text: &str) -> Parsed<Self> {
        Self::read(Source::Profile(level), file, text)
    }

    fn read(source: Source, file: &str, text: &str) -> Parsed<Self> {
        let reader = Reader { source, file, text };
        let raw: RawLayer = toml::from_str(text).map_err(|error| reader.error(&error.span().unwrap_or_default(), error.message()))?;
        reader.layer(raw)
    }
}

impl Reader<'_> {
    fn place(&self, span: &Range<usize>) -> Place {
        Place::at(self.file, self.text, span.start)
    }

    pub(super) fn error(&self, span: &Range<usize>, problem: impl ToString) -> PolicyError {
        PolicyError { place: self.place(span), problem: problem.to_string() }
    }

    fn layer(&self, raw: RawLayer) -> Parsed<Layer> {
        let mut rules = Vec::new();
        let mut lists = BTreeMap::new();
        let RawCommandRules { minimum, network, read: readable, write: writable, allow, ask, deny } = raw.commands;
        let settings = SettingRules {
            audit_enabled: self.located(raw.audit.enabled),
            audit_required: self.located(raw.audit.required),
            network: self.located(network),
            read: self.each(readable, plain_path)?,
            write: self.each(writable, plain_path)?,
            providers: self.each(raw.models.providers, provider)?,
            base_urls: self.each(raw.models.base_urls, |text| BaseUrl::parse_pattern(text).map_err(|problem| problem.to_string()))?,
            digests: self.each(raw.plugins.digests, digest)?,
            sources: self.each(raw.plugins.sources, PluginOrigin::parse)?,
            session_required: self.located(raw.sessions.required),
            session_keep: self.session_keep(raw.sessions.keep)?,
        };
        let commands = RawRules { allow, ask, deny };
        let read = RawRules { deny: raw.read.deny, ..RawRules::default() };
        let local = self.local(raw.fetch.local)?;
        let fetch = RawRules { allow: raw.fetch.allow, ask: raw.fetch.ask, deny: raw.fetch.deny };
        for (kind, section) in [(Kind::Commands, commands), (Kind::Read, read), (Kind::Write, raw.write), (Kind::Fetch, fetch)] {
            if let Some(list) = &section.allow {
                lists.insert(kind, self.place(&list.span()));
            }
            for (verdict, list) in [(Verdict::Allow, section.allow), (Verdict::Ask, section.ask), (Verdict::Deny, section.deny)] {
                rules.extend(self.list(kind, verdict, list)?);
            }
        }
        let mut named: Vec<(Subject, Place)> =
            rules.iter().filter_map(|rule: &Rule| Some((rule.tool.clone()?, rule.written.place.clone()))).collect();
        let mut lending = Vec::new();
        let mut maxima = vec![(None, self.caps(&raw.limits)?)];
        for (key, tool) in raw.tools {
            let subject = self.subject(&key.span(), key.get_ref())?;
            named.push((subject.clone(), self.place(&key.span())));
            maxima.push((Some(subject.clone()), self.caps(&tool.limits)?));
            rules.extend(self.tool_rule(&subject, &tool));
            lending.push(self.lending(subject, tool));
        }
        maxima.retain(|(_, caps)| !caps.is_empty());
        if let (Level::Project, Some(profile)) = (self.source.level(), &raw.profile) {
            return Err(self.error(&profile.span(), "a profile is the choice of the user, not of a project"));
        }
        let profile = raw.profile.map(|profile| (*profile.get_ref(), self.place(&profile.span())));
        let modes = raw.modes.map(|modes| (modes.get_ref().iter().copied().collect(), self.place(&modes.span())));
        let minimum = minimum.map(|minimum| (*minimum.get_ref(), self.place(&minimum.span())));
        let protected = self.protecting(raw.protected)?;
        self.check_sizes(&rules, &protected)?;
        Ok(Layer {
            source: self.source,
            file: self.file.to_owned(),
            profile,
            modes,
            rules,
            lists,
            minimum,
            settings,
            local,
            protected,
            lending,
            named,
            maxima,
        })
    }

    fn located<T: Copy>(&self, value: Option<Spanned<T>>) -> Option<Located<T>> {
        value.map(|value| (*value.get_ref(), self.place(&value.span())))
    }

    /// A list of which each entry is understood.
    fn each<T, L: FromIterator<T>>(
        &self,
        list: Option<Spanned<Vec<Spanned<String>>>>,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Parsed<Option<Located<L>>> {
        let Some(list) = list else { return Ok(None) };
        let place = self.place(&list.span());
        let entries = list.into_inner().into_iter().map(|text| read(text.get_ref()).map_err(|problem| self.error(&text.span(), problem)));
        Ok(Some((entries.collect::<Parsed<L>>()?, place)))
    }

    fn session_keep(&self, keep: Option<Spanned<bool>>) -> Parsed<Option<Located<bool>>> {
        match (self.source.level(), &keep) {
            // A stranger would have its traces removed.
            (Level::Project, Some(keep)) => Err(self.error(&keep.span(), "whether sessions are kept is not the choice of a project")),
            (Level::System | Level::User | Level::Project, _) => Ok(self.located(keep)),
        }
    }

    fn list(&self, kind: Kind, verdict: Verdict, list: Option<RawList>) -> Parsed<Vec<Rule>> {
        list.map_or_else(Vec::new, Spanned::into_inner).into_iter().map(|entry| self.rule(kind, verdict, entry)).collect()
    }

    fn rule(&self, kind: Kind, verdict: Verdict, entry: Spanned<RawEntry>) -> Parsed<Rule> {
        let span = entry.span();
        let RawEntry { pattern: text, tool, methods, matches, not_matches } = entry.into_inner();
        self.check_size(&span, &text)?;
        if methods.is_some() && kind != Kind::Fetch {
            return Err(self.error(&span, format!("`methods` has no meaning in [{}]", kind.section())));
        }
        if kind == Kind::Read && tool.is_some() {
            return Err(self.error(&span, "what one tool may not read, none may: leave out `tool`"));
        }
        let bad = |problem: PatternProblem| self.error(&span, problem);
        let pattern = match kind {
            Kind::Commands => Pattern::Command(CommandPattern::parse(&text).map_err(bad)?),
            Kind::Read => Pattern::Read(PathPattern::parse(&text).map_err(bad)?),
            Kind::Write => Pattern::Write(PathPattern::parse(&text).map_err(bad)?),
            Kind::Fetch => Pattern::Fetch {
                host: HostPattern::parse(&text).map_err(bad)?,
                methods: methods.map(|methods| self.methods(&span, &methods)).transpose()?,
            },
            Kind::Use => Pattern::Tool,
        };
        let tool = tool.map(|tool| self.subject(&span, &tool)).transpose()?;
        // The methods belong to what a rule says.
        let text = match &pattern {
            Pattern::Fetch { methods: Some(methods), .. } => format!("{} {text}", methods.iter().cloned().collect::<Vec<_>>().join(",")),
            _ => text,
        };
        let rule = Rule { tool, pattern, written: RuleRef { verdict, kind, text, place: self.place(&span), source: self.source } };
        for (examples, expected) in [(matches, true), (not_matches, false)] {
            for example in examples {
                let covers = covers(&rule, &example).map_err(|problem| self.error(&span, problem))?;
                if covers != expected {
                    let (should, does) = if expected { ("should", "does not") } else { ("should not", "does") };
                    let pattern = &rule.written.text;
                    return Err(self.error(&span, format!("a test of the rule fails: `{pattern}` {should} cover `{example}`, and {does}")));
                }
            }
        }
        Ok(rule)
    }

    fn methods(&self, span: &Range<usize>, methods: &[String]) -> Parsed<BTreeSet<String>> {
        if methods.is_empty() {
            return Err(self.error(span, "an empty list of `methods` covers no request; leave it out to mean every method"));
        }
        let method = |word: &String| match !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            true => Ok(word.to_ascii_uppercase()),
            false => Err(self.error(span, format!("{word:?} is not a method, such as \"GET\""))),
        };
        methods.iter().map(method).collect()
    }

    fn protecting(&self, raw: RawProtected) -> Parsed<Protecting> {
        let read = |list: Vec<Spanned<String>>| {
            let read = |text: Spanned<String>| {
                self.check_size(&text.span(), text.get_ref())?;
                ProtectedPaths::check(text.get_ref()).map_err(|problem| self.error(&text.span(), problem))?;
                Ok(Placed { place: self.place(&text.span()), text: text.into_inner() })
            };
            list.into_iter().map(read).collect::<Parsed<Vec<Placed>>>()
        };
        if let Some(unknown) = raw.writable.iter().find(|text| !ProtectedPaths::lists_change(text.get_ref())) {
            return Err(
                self.error(&unknown.span(), "this is not a pattern of the built-in lists; `cofferdam policy show --lists` shows them")
            );
        }
        Ok(Protecting {
            hidden: read(raw.hidden)?,
            read_only: read(raw.read_only)?,
            shown: read(raw.shown)?,
            writable: read(raw.writable)?,
        })
    }

    fn local(&self, list: Vec<Spanned<String>>) -> Parsed<Vec<Placed>> {
        let read = |text: Spanned<String>| {
            // Read as it would be found in a request, so that it is one place and not a pattern for many.
            HostAddress::parse(text.get_ref()).map_err(|problem| self.error(&text.span(), problem))?;
            Ok(Placed { place: self.place(&text.span()), text: text.into_inner() })
        };
        list.into_iter().map(read).collect()
    }

    fn tool_rule(&self, subject: &Subject, tool: &RawTool) -> Option<Rule> {
        let verdict = tool.verdict.as_ref()?;
        let place = self.place(&verdict.span());
        let written = RuleRef { verdict: *verdict.get_ref(), kind: Kind::Use, text: subject.to_string(), place, source: self.source };
        Some(Rule { tool: Some(subject.clone()), pattern: Pattern::Tool, written })
    }

    fn lending(&self, tool: Subject, raw: RawTool) -> Lending {
        let placed = |list: Spanned<Vec<_>>| (list.get_ref().iter().copied().collect::<BTreeSet<_>>(), self.place(&list.span()));
        Lending { tool, at_most: raw.grants.map(placed), never: raw.deny.map(placed) }
    }

    fn subject(&self, span: &Range<usize>, text: &str) -> Parsed<Subject> {
        if text == "*" {
            return Ok(Subject::Every);
        }
        if let Some(digest) = text.strip_prefix("sha256:") {
            let well_formed = digest.len() == 64 && digest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            let problem = "a digest is `sha256:` and 64 digits in lower case, as `cofferdam tools show` tells it";
            return if well_formed { Ok(Subject::Digest(digest.to_owned())) } else { Err(self.error(span, problem)) };
        }
        let well_formed = (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        let problem =
            || self.error(span, format!("{text:?} is not a tool: use its name, `sha256:…` of its component, or `*` for every tool"));
        if well_formed { Ok(Subject::Name(text.to_owned())) } else { Err(problem()) }
    }

    fn caps(&self, raw: &RawCaps) -> Parsed<Caps> {
        let mut caps = Caps::default();
        for (cap, value) in raw {
            caps.set(*cap, *value.get_ref()).map_err(|problem| self.error(&value.span(), problem))?;
        }
        Ok(caps)
    }
}

fn plain_path(text: &str) -> Result<String, String> {
    let is_plain = super::settings::is_plain_absolute(text.strip_prefix('~').unwrap_or(text));
    let problem = || format!("{text:?} is not an absolute path without `.` and `..`, such as /srv/data or ~/datasets");
    if is_plain { Ok(text.to_owned()) } else { Err(problem()) }
}

fn provider(text: &str) -> Result<String, String> {
    let is_known = PROVIDERS.contains(&text);
    if is_known { Ok(text.to_owned()) } else { Err(format!("{text:?} is not a provider: use {}", PROVIDERS.join(", "))) }
}

fn digest(text: &str) -> Result<String, String> {
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    let is_digest = digits.len() == 64 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let problem = || "a digest is `sha256:` and 64 digits in lower case, as `cofferdam plugin inspect` shows it".to_owned();
    if is_digest { Ok(digits.to_owned()) } else { Err(problem()) }
}

/// Whether a rule covers an example of its own kind.
fn covers(rule: &Rule, example: &str) -> Result<bool, String> {
    let name = match &rule.tool {
        Some(Subject::Name(name)) => name,
        Some(Subject::Every | Subject::Digest(_)) | None => SOME_TOOL,
    };
    let digest = match &rule.tool {
        Some(Subject::Digest(digest)) => digest.as_str(),
        Some(Subject::Every | Subject::Name(_)) | None => "",
    };
    let path = |text: &str| WorkspacePath::parse(text, None).map_err(|problem| format!("in a test of the rule: {problem}"));
    let on = |act: Deed<'_>| Ok(rule.matches(ToolId::new(name, digest), &act) == Match::Yes);
    match rule.written.kind {
        Kind::Commands => on(Deed::Command(example)),
        Kind::Read => on(Deed::Read(&path(example)?)),
        Kind::Write => on(Deed::Write(Some(&path(example)?))),
        Kind::Fetch => {
            let (method, host) = example.split_once(' ').unwrap_or(("GET", example));
            let host = HostAddress::parse(host).map_err(|problem| format!("in a test of the rule: {problem}"))?;
            on(Deed::Fetch { host: &host, method })
        }
        Kind::Use => on(Deed::Use),
    }
}
