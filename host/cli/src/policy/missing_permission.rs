//! Reasons that deny an action before any rule: a missing permission of the tool, or a protected
//! path.

use cofferdam::policy::{
    Action, ActionKind, Capability, CapabilityKind, PathProtection, PatternAuthor, ProtectedPaths,
    RequestPattern, SourceLocation,
};
use cofferdam::sandbox;
use cofferdam::tools::CatalogTool;

/// The reason, what would change it, and the place of the rule.
pub(super) type MissingPermission = (String, String, Option<SourceLocation>);

/// Returns why the tool lacks the permission for an action, if it does.
pub(super) fn missing_capability(
    tool: &CatalogTool,
    act: &Action<'_>,
) -> Option<MissingPermission> {
    let sufficient: &[CapabilityKind] = match act.kind() {
        ActionKind::Commands => &[CapabilityKind::RunCommands],
        ActionKind::Read => &[CapabilityKind::ReadFiles, CapabilityKind::WriteFiles],
        ActionKind::Write => &[CapabilityKind::WriteFiles],
        ActionKind::Fetch => &[CapabilityKind::Fetch],
        ActionKind::Use => return None,
    };
    let has_capability = |kind: &CapabilityKind| {
        let is = |capability: &Capability| capability.kind() == *kind;
        tool.declaration.asks.iter().any(is)
            && !tool.denied_by_policy.iter().any(|(capability, _)| is(capability))
    };
    if sufficient.iter().any(has_capability) {
        return unreachable_host(tool, act);
    }
    if let Some((capability, place)) =
        tool.denied_by_policy.iter().find(|(capability, _)| sufficient.contains(&capability.kind()))
    {
        let why = format!("the tool asks to {capability}, and {place} withholds that.");
        return Some((
            why,
            format!("What {} says of it would have to change.", place.file),
            Some(place.clone()),
        ));
    }
    let asks: Vec<&str> = tool.declaration.asks.iter().map(|asked| asked.kind().name()).collect();
    let asks = if asks.is_empty() { "nothing".to_owned() } else { asks.join(", ") };
    let why = format!(
        "the tool holds no `{}`: it asks for {asks}, and is given never more than that.",
        sufficient[0].name()
    );
    Some((why, "Nothing: that is for its author to change.".into(), None))
}

/// Returns why a tool that may send requests cannot send this one, if so.
fn unreachable_host(tool: &CatalogTool, act: &Action<'_>) -> Option<MissingPermission> {
    let Action::Fetch { host, method } = act else { return None };
    let mut granted =
        tool.grants.fetch.iter().filter_map(|pattern| RequestPattern::parse(pattern).ok());
    let by_author = "Nothing: that is for its author to change.".to_owned();
    if !granted.clone().any(|pattern| pattern.covers(host, method)) {
        let why = format!(
            "the tool asks to send requests to {}, which does not cover {method} to {host}.",
            tool.grants.fetch.join(", ")
        );
        return Some((why, by_author, None));
    }
    let what = sandbox::special_address(host.address()?)?;
    let names_every_host = tool.grants.fetch.iter().any(|pattern| {
        pattern == "*" || pattern.strip_suffix('*').is_some_and(|methods| methods.ends_with(' '))
    });
    let change = if names_every_host {
        format!("The user can name it in their policy file: `local = [\"{host}\"]` under [fetch].")
    } else {
        by_author
    };
    let by_itself = granted.any(|pattern| pattern.names_address(host, method));
    (!by_itself).then(|| {
        (format!("{host} is {what}, and the tool does not ask for it by itself."), change, None)
    })
}

/// Returns why a path is protected from every tool, if it is.
pub(super) fn path_protection(
    paths: &ProtectedPaths,
    act: &Action<'_>,
) -> Option<MissingPermission> {
    let (path, reads) = match act {
        Action::Read(path) => (*path, true),
        Action::Write(Some(path)) => (*path, false),
        Action::Command(_) | Action::Write(None) | Action::Fetch { .. } | Action::Use => {
            return None;
        }
    };
    let (protected, author) = paths.find(path.as_str().split('/'))?;
    let (what, key) = match (protected, reads) {
        (PathProtection::Hidden, _) => ("hidden from everyone", "shown"),
        (PathProtection::ReadOnly, false) => ("kept from changes", "writable"),
        (PathProtection::Pinned, false) => {
            ("a folder that stays where it is and what it is", "writable")
        }
        (PathProtection::ReadOnly | PathProtection::Pinned, true) => return None,
    };
    let (change, place) = match author {
        PatternAuthor::File(_, pattern) => (
            format!("What {} says of it would have to change.", pattern.place.file),
            Some(pattern.place.clone()),
        ),
        PatternAuthor::BuiltIn if protected == PathProtection::Pinned => {
            ("Nothing: what is protected in it would else be moved away with it.".to_owned(), None)
        }
        PatternAuthor::BuiltIn => {
            (format!("A pattern under `{key}` in [protected] of the user's policy."), None)
        }
        PatternAuthor::Program => {
            ("Nothing: what this program keeps there is nobody else's.".to_owned(), None)
        }
    };
    Some((format!("it is {what} by {author}."), change, place))
}
