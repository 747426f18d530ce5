//! What keeps an act from being decided on at all: the tool cannot do it, or the path is nobody's.

use crate::policy::{Author, Capability, CapabilityKind, Deed, Kind, Place, Protected, ProtectedPaths, RequestPattern};
use crate::sandbox;
use crate::tools::Tool;

/// Why, what would change it, and the place that says so.
pub(super) type Lacking = (String, String, Option<Place>);

/// What an act takes, and why the tool does not have it.
pub(super) fn not_held(tool: &Tool, act: &Deed<'_>) -> Option<Lacking> {
    let enough: &[CapabilityKind] = match act.kind() {
        Kind::Commands => &[CapabilityKind::RunCommands],
        Kind::Read => &[CapabilityKind::ReadFiles, CapabilityKind::WriteFiles],
        Kind::Write => &[CapabilityKind::WriteFiles],
        Kind::Fetch => &[CapabilityKind::Fetch],
        Kind::Use => return None,
    };
    let held = |kind: &CapabilityKind| {
        let is = |capability: &Capability| capability.kind() == *kind;
        tool.declared.asks.iter().any(is) && !tool.withheld.iter().any(|(capability, _)| is(capability)) && !tool.not_lent.iter().any(is)
    };
    if enough.iter().any(held) {
        return not_reached(tool, act);
    }
    if let Some((capability, place)) = tool.withheld.iter().find(|(capability, _)| enough.contains(&capability.kind())) {
        let why = format!("the tool asks to {capability}, and {place} withholds that.");
        return Some((why, format!("What {} says of it would have to change.", place.file), Some(place.clone())));
    }
    let asks: Vec<&str> = tool.declared.asks.iter().map(|asked| asked.kind().name()).collect();
    let asks = if asks.is_empty() { "nothing".to_owned() } else { asks.join(", ") };
    let why = format!("the tool holds no `{}`: it asks for {asks}, and is given never more than that.", enough[0].name());
    Some((why, "Nothing: that is for its author to change.".into(), None))
}

/// Why a tool that may send requests does not reach this host by this method.
fn not_reached(tool: &Tool, act: &Deed<'_>) -> Option<Lacking> {
    let Deed::Fetch { host, method } = act else { return None };
    let mut granted = tool.grants.fetch.iter().filter_map(|pattern| RequestPattern::parse(pattern).ok());
    let by_author = "Nothing: that is for its author to change.".to_owned();
    if !granted.clone().any(|pattern| pattern.covers(host, method)) {
        let why = format!("the tool asks to send requests to {}, which does not cover {method} to {host}.", tool.grants.fetch.join(", "));
        return Some((why, by_author, None));
    }
    let what = sandbox::special_address(host.address()?)?;
    let by_itself = granted.any(|pattern| pattern.names(host, method));
    (!by_itself).then(|| (format!("{host} is {what}, and the tool does not ask for it by itself."), by_author, None))
}

/// Why a path is kept from everybody, if it is.
pub(super) fn protected(paths: &ProtectedPaths, act: &Deed<'_>) -> Option<Lacking> {
    let (path, reads) = match act {
        Deed::Read(path) => (*path, true),
        Deed::Write(Some(path)) => (*path, false),
        Deed::Command(_) | Deed::Write(None) | Deed::Fetch { .. } | Deed::Use => return None,
    };
    let (protected, author) = paths.find(path.as_str().split('/'))?;
    let (what, key) = match (protected, reads) {
        (Protected::Hidden, _) => ("hidden from everyone", "shown"),
        (Protected::ReadOnly, false) => ("kept from changes", "writable"),
        (Protected::Pinned, false) => ("a folder that stays where it is and what it is", "writable"),
        (Protected::ReadOnly | Protected::Pinned, true) => return None,
    };
    let (change, place) = match author {
        Author::File(_, pattern) => (format!("What {} says of it would have to change.", pattern.place.file), Some(pattern.place.clone())),
        Author::BuiltIn if protected == Protected::Pinned => {
            ("Nothing: what is protected in it would else be moved away with it.".to_owned(), None)
        }
        Author::BuiltIn => (format!("A pattern under `{key}` in [protected] of the user's policy."), None),
        Author::Program => ("Nothing: what this program keeps there is nobody else's.".to_owned(), None),
    };
    Some((format!("it is {what} by {author}."), change, place))
}
