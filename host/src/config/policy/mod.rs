//! Policy files on the disk: where they are, how they are read, and which of them the user trusts.
//!
//! What a file says is settled by its text alone, in the policy room. Here it is settled whether
//! the file may be believed: that of the system is root's and nobody else's, that of the user is
//! nobody else's to write, and that of a project counts as a stranger's until its very content was
//! trusted.

mod open;
mod trust;

use std::path::{Path, PathBuf};

use super::{UserDirectories, trusted_file};
use crate::policy::{Policy, PolicyError, PolicyLayer, PolicyLevel, PolicyProfile};

pub use super::trusted_file::TrustedFileError;
pub use open::PolicyFileOwner;
pub use trust::{PolicyTrustError, PolicyTrustStore};

/// The policy of whoever administers the machine.
pub(super) const SYSTEM_POLICY: &str = "/etc/cofferdam/policy.toml";
/// The policy of a project, below its root.
const PROJECT_POLICY: [&str; 2] = [".cofferdam", "policy.toml"];

/// Where policy files are.
#[derive(Clone, Debug)]
pub struct PolicyPaths {
    /// That of the system, and who has to own it.
    pub system: (PathBuf, PolicyFileOwner),
    /// That of the user.
    pub user: PathBuf,
    /// The root of the project, if there is one.
    pub project: Option<PathBuf>,
    /// Where trust is written down.
    pub trust: PathBuf,
}

/// All layers of a run, and where they come from.
#[derive(Clone, Debug)]
pub struct LoadedPolicy {
    /// What they say together.
    pub policy: Policy,
    /// The files, there or not.
    pub sources: Vec<PolicySource>,
}

/// A policy file or profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySource {
    /// Whose.
    pub level: PolicyLevel,
    /// Its name.
    pub name: String,
    /// What is there.
    pub state: SourceState,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceState {
    /// It is not there, and says nothing.
    Absent,
    /// It counts.
    InForce,
    /// It can only tighten, since the user did not trust it.
    Untrusted {
        /// The SHA-256 of its content.
        digest: String,
    },
}

/// The policy cannot be used, and so nothing runs.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFileError {
    /// A file cannot be read, or must not be believed.
    #[error(transparent)]
    File(#[from] TrustedFileError),
    /// A file is not understood.
    #[error(transparent)]
    Invalid(#[from] PolicyError),
    /// What was trusted is not known.
    #[error(transparent)]
    Trust(#[from] PolicyTrustError),
}

/// A project's policy file, read once.
#[derive(Clone, Debug)]
pub struct ProjectPolicy {
    /// Its absolute path.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
    /// The SHA-256 of that.
    pub digest: String,
}

impl PolicyPaths {
    /// Those of this user, for the project at `workspace`. A workspace that is not there has no
    /// policy.
    pub fn for_current_user(folders: &UserDirectories, workspace: &Path) -> Self {
        Self {
            system: (SYSTEM_POLICY.into(), PolicyFileOwner::ROOT),
            user: folders.policy_file(),
            project: workspace.canonicalize().ok(),
            trust: folders.trust_file(),
        }
    }

    /// Reads all of them. `profile` is what the user chose elsewhere; without that it is what the
    /// user's file names, and without that the default.
    pub fn load(&self, profile: Option<PolicyProfile>) -> Result<LoadedPolicy, PolicyFileError> {
        let mut loaded = LoadedPolicy { policy: Policy::default(), sources: Vec::new() };
        let system = open::read_system(&self.system.0, self.system.1)?;
        let system = loaded.add_file(PolicyLevel::System, &self.system.0, system)?;
        if let Some((profile, _)) = system.and_then(|layer| layer.profile) {
            loaded.add_profile(PolicyLevel::System, profile)?;
        }
        let user = trusted_file::read_own_file(&self.user, open::POLICY)?;
        let named = loaded
            .add_file(PolicyLevel::User, &self.user, user)?
            .and_then(|layer| layer.profile)
            .map(|(profile, _)| profile);
        loaded.add_profile(PolicyLevel::User, profile.or(named).unwrap_or_default())?;
        if let Some(root) = &self.project {
            loaded.add_project(root, &self.trust)?;
        }
        Ok(loaded)
    }

    /// Where the policy file of the project is, or would be.
    pub fn project_path(&self) -> Option<PathBuf> {
        self.project.as_deref().map(project_path)
    }

    /// The policy file of the project, if there is one.
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
        layer.into_iter().for_each(|layer| self.policy.add_layer(layer));
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
        // What was read is what is trusted or not, and what is parsed: the file is not looked at
        // again.
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
