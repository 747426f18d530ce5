//! Policy files on the disk: their location, reading and trust.
//!
//! The `policy` module interprets the text of a file. This module decides whether the file can be
//! trusted. The system policy must belong to root, and only root may be able to write it. The user
//! policy must not be writable by other users. A project policy is untrusted until the user has
//! trusted its exact content.

mod host_rule;
mod open;
mod trust;

use std::path::{Path, PathBuf};

use super::{UserDirectories, trusted_file};
use crate::policy::{Policy, PolicyError, PolicyLayer, PolicyLevel, PolicyProfile};

pub use super::trusted_file::TrustedFileError;
pub(super) use host_rule::replace_file;
pub use host_rule::{HostRuleError, allow_host_always};
pub use open::PolicyFileOwner;
pub use trust::{PolicyTrustError, PolicyTrustStore};

/// The path of the policy of the system administrator.
pub(super) const SYSTEM_POLICY: &str = "/etc/cofferdam/policy.toml";
/// The path of a project policy, relative to the root of the project.
const PROJECT_POLICY: [&str; 2] = [".cofferdam", "policy.toml"];

/// The paths of all policy files.
///
/// ```
/// use cofferdam::Host;
/// use cofferdam::config::{PolicyPaths, UserDirectories};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let workspace = tempfile::tempdir()?;
/// # let home = tempfile::tempdir()?;
/// let base = ["config", "cache", "state"].map(|name| home.path().join(name));
/// let directories = UserDirectories::from_base_dirs(base)?;
/// std::fs::create_dir_all(home.path().join("config/cofferdam"))?;
/// std::fs::write(directories.policy_file(), "modes = [\"plan\", \"ask\"]\n")?;
///
/// let paths = PolicyPaths::for_current_user(&directories, workspace.path());
/// let policy = paths.load(None)?.policy;
/// let host = Host::builder(workspace.path())
///     .without_built_in_tools()
///     .policy(policy)
///     .mode("auto".parse()?)
///     .build();
/// assert!(host.is_err_and(|error| error.to_string().contains("policy.toml")));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PolicyPaths {
    /// The system policy and its required owner.
    pub system: (PathBuf, PolicyFileOwner),
    /// The policy of the user.
    pub user: PathBuf,
    /// The root directory of the project, if there is one.
    pub project: Option<PathBuf>,
    /// The file that records the trusted project policies.
    pub trust: PathBuf,
}

/// The policy of a run with the sources of its layers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadedPolicy {
    /// The combined policy of all layers.
    pub policy: Policy,
    /// The files and profiles, including missing files.
    pub sources: Vec<PolicySource>,
}

/// A policy file or profile, which is one source of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicySource {
    /// The level of the policy layer.
    pub level: PolicyLevel,
    /// The path of the file, or the name of the profile.
    pub name: String,
    /// The state of the source.
    pub state: SourceState,
}

/// The state of a policy source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceState {
    /// The file does not exist.
    Absent,
    /// The source is in force.
    InForce,
    /// The file can only restrict permissions, because the user did not trust it.
    Untrusted {
        /// The SHA-256 digest of its content.
        digest: String,
    },
}

/// The reason why the policy cannot be used, so that nothing runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyFileError {
    /// A file cannot be read or cannot be trusted.
    #[error(transparent)]
    File(#[from] TrustedFileError),
    /// A policy file is invalid.
    #[error(transparent)]
    Invalid(#[from] PolicyError),
    /// The record of trusted policies cannot be used.
    #[error(transparent)]
    Trust(#[from] PolicyTrustError),
}

/// A project policy file that was read once.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProjectPolicy {
    /// The absolute path of the file.
    pub path: PathBuf,
    /// The content of the file.
    pub text: String,
    /// The SHA-256 digest of the content.
    pub digest: String,
}

impl PolicyPaths {
    /// Returns the paths of the current user, for the project at `workspace`.
    ///
    /// A workspace that does not exist has no project policy.
    pub fn for_current_user(directories: &UserDirectories, workspace: &Path) -> Self {
        Self {
            system: (SYSTEM_POLICY.into(), PolicyFileOwner::ROOT),
            user: directories.policy_file(),
            project: workspace.canonicalize().ok(),
            trust: directories.trust_file(),
        }
    }

    /// Reads all policy files and combines them.
    ///
    /// `profile` is the profile that the user chose elsewhere. Without it, the user policy file
    /// names the profile, and otherwise the default applies.
    ///
    /// # Errors
    /// A file is invalid, cannot be read or cannot be trusted.
    pub fn load(&self, profile: Option<PolicyProfile>) -> Result<LoadedPolicy, PolicyFileError> {
        let mut loaded = LoadedPolicy { policy: Policy::default(), sources: Vec::new() };
        let system = open::read_system(&self.system.0, self.system.1)?;
        let system = loaded.add_file(PolicyLevel::System, &self.system.0, system)?;
        if let Some((profile, _)) = system.and_then(|layer| layer.profile) {
            loaded.add_profile(PolicyLevel::System, profile)?;
        }
        let user = trusted_file::read_own_file(&self.user, open::POLICY)?;
        let profile_in_file = loaded
            .add_file(PolicyLevel::User, &self.user, user)?
            .and_then(|layer| layer.profile)
            .map(|(profile, _)| profile);
        loaded.add_profile(PolicyLevel::User, profile.or(profile_in_file).unwrap_or_default())?;
        if let Some(root) = &self.project {
            loaded.add_project(root, &self.trust)?;
        }
        Ok(loaded)
    }

    /// Returns the path of the project policy file, which may not exist.
    pub fn project_path(&self) -> Option<PathBuf> {
        self.project.as_deref().map(project_path)
    }

    /// Reads the project policy file, if there is one.
    ///
    /// # Errors
    /// The file cannot be read, or is a link or below one.
    pub fn project_file(&self) -> Result<Option<ProjectPolicy>, PolicyFileError> {
        let Some(root) = &self.project else { return Ok(None) };
        let text = open::read_project(root, PROJECT_POLICY)?;
        Ok(text.map(|text| ProjectPolicy {
            path: project_path(root),
            digest: trust::digest(&text),
            text,
        }))
    }
}

fn project_path(root: &Path) -> PathBuf {
    PROJECT_POLICY.iter().fold(root.to_owned(), |path, part| path.join(part))
}

impl LoadedPolicy {
    fn add_file(
        &mut self,
        level: PolicyLevel,
        path: &Path,
        text: Option<String>,
    ) -> Result<Option<PolicyLayer>, PolicyFileError> {
        let name = path.display().to_string();
        let state = if text.is_some() { SourceState::InForce } else { SourceState::Absent };
        let layer = text.map(|text| PolicyLayer::parse(level, &name, &text)).transpose()?;
        self.add_layer(layer.clone());
        self.sources.push(PolicySource { level, name, state });
        Ok(layer)
    }

    fn add_layer(&mut self, layer: Option<PolicyLayer>) {
        if let Some(layer) = layer {
            self.policy.add_layer(layer);
        }
    }

    fn add_profile(
        &mut self,
        level: PolicyLevel,
        profile: PolicyProfile,
    ) -> Result<(), PolicyFileError> {
        self.policy.add_layer(profile.to_layer(level)?);
        self.sources.push(PolicySource {
            level,
            name: format!("profile {profile}"),
            state: SourceState::InForce,
        });
        Ok(())
    }

    fn add_project(&mut self, root: &Path, trusted: &Path) -> Result<(), PolicyFileError> {
        let path = project_path(root);
        let name = path.display().to_string();
        let Some(text) = open::read_project(root, PROJECT_POLICY)? else {
            self.sources.push(PolicySource {
                level: PolicyLevel::Project,
                name,
                state: SourceState::Absent,
            });
            return Ok(());
        };
        // The trust check and the parser use the same text. The file is not read again.
        let digest = trust::digest(&text);
        let layer = PolicyLayer::parse(PolicyLevel::Project, &name, &text)?;
        let state = if PolicyTrustStore::read(trusted)?.contains(&path, &digest) {
            self.policy.add_trusted_layer(layer);
            SourceState::InForce
        } else {
            self.policy.add_layer(layer);
            SourceState::Untrusted { digest }
        };
        self.sources.push(PolicySource { level: PolicyLevel::Project, name, state });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
