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
        ActionKind::Commands | ActionKind::Connect => &[CapabilityKind::RunCommands],
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
        let why = format!(
            "the tool requests permission to {capability}, but the policy at {place} denies it."
        );
        return Some((
            why,
            format!("To allow it, change the policy in {}.", place.file),
            Some(place.clone()),
        ));
    }
    let asks: Vec<&str> = tool.declaration.asks.iter().map(|asked| asked.kind().name()).collect();
    let asks = if asks.is_empty() { "nothing".to_owned() } else { asks.join(", ") };
    let why = format!(
        "the tool lacks the permission `{}`: it requests only {asks}.",
        sufficient[0].name()
    );
    Some((
        why,
        "Only the author of the tool can change the permissions that it requests.".into(),
        None,
    ))
}

/// Returns why a tool that may send requests cannot send this one, if so.
fn unreachable_host(tool: &CatalogTool, act: &Action<'_>) -> Option<MissingPermission> {
    let Action::Fetch { host, method } = act else { return None };
    let mut granted =
        tool.grants.fetch.iter().filter_map(|pattern| RequestPattern::parse(pattern).ok());
    let by_author =
        "Only the author of the tool can change the permissions that it requests.".to_owned();
    if !granted.clone().any(|pattern| pattern.covers(host, method)) {
        let why = format!(
            "the tool has permission to send requests to {}, which does not cover {method} to \
                {host}.",
            tool.grants.fetch.join(", ")
        );
        return Some((why, by_author, None));
    }
    let what = sandbox::special_address(host.address()?)?;
    let names_every_host = tool.grants.fetch.iter().any(|pattern| {
        pattern == "*" || pattern.strip_suffix('*').is_some_and(|methods| methods.ends_with(' '))
    });
    let change = if names_every_host {
        format!("The user can add it to their policy file: `local = [\"{host}\"]` under [fetch].")
    } else {
        by_author
    };
    let by_itself = granted.any(|pattern| pattern.names_address(host, method));
    (!by_itself).then(|| {
        (format!("{host} is {what}, which needs a permission for exactly this host."), change, None)
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
        Action::Command(_)
        | Action::Input(_)
        | Action::Write(None)
        | Action::Fetch { .. }
        | Action::Connect(_)
        | Action::Use => return None,
    };
    let (protected, author) = paths.find(path.as_str().split('/'))?;
    let (what, key) = match (protected, reads) {
        (PathProtection::Hidden, _) => ("hidden", "shown"),
        (PathProtection::ReadOnly, false) => ("protected from changes", "writable"),
        (PathProtection::Pinned, false) => {
            ("a directory that cannot be moved or removed", "writable")
        }
        (PathProtection::ReadOnly | PathProtection::Pinned, true) => return None,
    };
    let (change, place) = match author {
        PatternAuthor::File(_, pattern) => (
            format!("To allow it, change the policy in {}.", pattern.place.file),
            Some(pattern.place.clone()),
        ),
        PatternAuthor::BuiltIn if protected == PathProtection::Pinned => (
            "This cannot be allowed: moving the directory would move the protected paths in it."
                .to_owned(),
            None,
        ),
        PatternAuthor::BuiltIn => (
            format!(
                "The user can add a pattern to `{key}` under [protected] in their policy file."
            ),
            None,
        ),
        PatternAuthor::Program => {
            ("This cannot be allowed: cofferdam stores its own files there.".to_owned(), None)
        }
    };
    Some((format!("it is {what} by {author}."), change, place))
}
