//! What a policy says about the settings of a host, whoever chose them.

use std::path::{Path, PathBuf};

use super::{AuditOptions, HostError};
use crate::agent::ports::ModelInfo;
use crate::audit::AuditStore;
use crate::config::{UserDirectories, resolve_links};
use crate::model;
use crate::policy::{ApprovalMode, CommandRules, ModelEndpoint, Policy, SourceLocation};

/// Checks that the policy allows a mode.
pub(super) fn check_mode(policy: &Policy, mode: ApprovalMode) -> Result<(), HostError> {
    match policy.mode_denied_by(mode) {
        Some(location) => Err(HostError::ModeDenied { location: location.clone(), mode }),
        None => Ok(()),
    }
}

/// Checks that the policy allows a model and its address.
pub(super) fn check_model(policy: &Policy, info: &ModelInfo) -> Result<(), HostError> {
    let base_url = info.address.as_deref().or_else(|| model::default_base_url(&info.provider));
    let endpoint = ModelEndpoint {
        provider: &info.provider,
        base_url,
        is_default_address: info.address.is_none(),
    };
    match policy.model_refusal(&endpoint) {
        Some(refusal) => Err(HostError::ModelDenied(refusal.to_string())),
        None => Ok(()),
    }
}

/// Tightens the rules for commands to what the policy allows.
pub(super) fn bound_commands(
    mut rules: CommandRules,
    policy: &Policy,
    home: Option<&Path>,
) -> CommandRules {
    let home = home.and_then(Path::to_str).unwrap_or_default();
    let keep = |paths: &mut Vec<PathBuf>, denied: &dyn Fn(&str) -> Option<SourceLocation>| {
        // A path that is not UTF-8 is checked as an empty path, which no list covers.
        paths.retain(|path| denied(resolve_links(path).to_str().unwrap_or_default()).is_none());
    };
    keep(&mut rules.read, &|path| policy.read_denied_by(path, home).cloned());
    keep(&mut rules.write, &|path| policy.write_denied_by(path, home).cloned());
    rules.with_policy(policy)
}

/// Returns the audit log that the policy demands, or the chosen one if it demands less.
pub(super) fn bound_audit(
    chosen: Option<AuditOptions>,
    policy: &Policy,
    directories: Option<&UserDirectories>,
) -> Option<AuditOptions> {
    let is_required = policy.audit_required_by().is_some();
    let demanded = || AuditOptions {
        store: directories.map(|directories| AuditStore::new(directories.audit())),
        required: is_required,
    };
    match chosen {
        Some(chosen) => Some(AuditOptions { required: chosen.required || is_required, ..chosen }),
        None => policy.audit_enabled_by().map(|_| demanded()),
    }
}
