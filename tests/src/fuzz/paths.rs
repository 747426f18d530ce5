//! Paths, and what keeps them in.

use std::path::{Component, Path};

use cofferdam::policy::{
    PathPattern, PathProtection, PatternMatch, Policy, PolicyLayer, PolicyLevel, ProtectedPaths,
    Verdict, WorkspacePath,
};

use super::fields;

/// The fields: a path, another, and a pattern.
///
/// - A path that is taken stays below the workspace and has one form only.
/// - Whatever lies below something hidden is hidden, in any case of its letters, and no further
///   pattern shows anything.
/// - What a rule allows for its pattern, the same pattern denies.
pub fn paths(data: &[u8]) {
    let Some([text, other, pattern]) = fields(data) else { return };
    let Ok(path) = WorkspacePath::parse(text, Some(Path::new("/w"))) else { return };
    assert!(
        Path::new(path.as_str()).components().all(|part| matches!(part, Component::Normal(_))),
        "{path} leads out"
    );
    assert_eq!(WorkspacePath::parse(path.as_str(), None).as_ref(), Ok(&path));
    assert!(path.is_within(&path) && path.overlaps(&path));
    if let Ok(other) = WorkspacePath::parse(other, None) {
        assert_eq!(path.overlaps(&other), other.overlaps(&path));
        let common = path.common_ancestor(&other);
        assert!(common.iter().all(|common| path.is_within(common) && other.is_within(common)));
    }

    let built_in = ProtectedPaths::default();
    let shouted = WorkspacePath::parse(&path.as_str().to_ascii_uppercase(), None);
    assert!(
        shouted.is_ok_and(|shouted| built_in.protection(&shouted) == built_in.protection(&path)),
        "{path} is another when it is shouted"
    );
    let file = format!("[protected]\nhidden = [{}]", serde_json::json!(pattern));
    if let Ok(layer) = PolicyLayer::parse(PolicyLevel::Project, "policy.toml", &file) {
        let mut policy = Policy::default();
        policy.add_layer(layer);
        let more = policy.protected_paths();
        assert!(more.protection(&path) >= built_in.protection(&path), "{pattern} shows {path}");
        if let Ok(below) = WorkspacePath::parse(&format!("{}/below", path.as_str()), None)
            && more.protection(&path) == Some(PathProtection::Hidden)
        {
            // An exception for a file is none for what would be below it.
            assert_eq!(
                more.protection(&below),
                Some(PathProtection::Hidden),
                "{below} is not hidden"
            );
        }
    }
    if let Ok(pattern) = PathPattern::parse(pattern)
        && pattern.matches(&path, Verdict::Allow) == PatternMatch::Yes
    {
        assert_eq!(pattern.matches(&path, Verdict::Deny), PatternMatch::Yes);
    }
}
