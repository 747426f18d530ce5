//! Policy files on the disk: where they are, how they are read, and which of them the user trusts.
//!
//! What a file says is settled by its text alone, in the policy room. Here it is settled whether the file may be believed:
//! that of the system is root's and nobody else's, that of the user is nobody else's to write, and that of a project counts
//! as a stranger's until its very content was trusted.

mod open;
mod trust;

use std::path::{Path, PathBuf};

use super::{Folders, believed};
use crate::policy::{Layer, Level, Policy, PolicyError, Profile};

pub use super::believed::FileProblem;
pub use open::Owner;
pub use trust::{Trust, TrustError};

/// The policy of whoever administers the machine.
pub(super) const SYSTEM: &str = "/etc/cofferdam/policy.toml";
/// The policy of a project, below its root.
const PROJECT: [&str; 2] = [".cofferdam", "policy.toml"];

/// Where policy files are.
#[derive(Clone, Debug)]
pub struct PolicyPlaces {
    /// That of the system, and who has to own it.
    pub system: (PathBuf, Owner),
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
    pub level: Level,
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
    File(#[from] FileProblem),
    /// A file is not understood.
    #[error(transparent)]
    Broken(#[from] PolicyError),
    /// What was trusted is not known.
    #[error(transparent)]
    Trust(#[from] TrustError),
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

impl PolicyPlaces {
    /// Those of this user, for the project at `workspace`. A workspace that is not there has no policy.
    pub fn of_this_user(folders: &Folders, workspace: &Path) -> Self {
        Self {
            system: (SYSTEM.into(), Owner::ROOT),
            user: folders.policy_file(),
            project: workspace.canonicalize().ok(),
            trust: folders.trust_file(),
        }
    }

    /// Reads all of them. `profile` is what the user chose elsewhere; without that it is what the user's file names, and
    /// without that the default.
    pub fn load(&self, profile: Option<Profile>) -> Result<LoadedPolicy, PolicyFileError> {
        let mut loaded = LoadedPolicy { policy: Policy::default(), sources: Vec::new() };
        let system = open::system(&self.system.0, self.system.1)?;
        let system = loaded.file(Level::System, &self.system.0, system)?;
        if let Some((profile, _)) = system.and_then(|layer| layer.profile) {
            loaded.profile(Level::System, profile)?;
        }
        let user = believed::mine(&self.user, open::POLICY)?;
        let named = loaded.file(Level::User, &self.user, user)?.and_then(|layer| layer.profile).map(|(profile, _)| profile);
        loaded.profile(Level::User, profile.or(named).unwrap_or_default())?;
        if let Some(root) = &self.project {
            loaded.project(root, &self.trust)?;
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
        let text = open::project(root, PROJECT)?;
        Ok(text.map(|text| ProjectPolicy { path: project_path(root), digest: trust::digest(&text), text }))
    }
}

fn project_path(root: &Path) -> PathBuf {
    PROJECT.iter().fold(root.to_owned(), |path, part| path.join(part))
}

impl LoadedPolicy {
    fn file(&mut self, level: Level, path: &Path, text: Option<String>) -> Result<Option<Layer>, PolicyFileError> {
        let name = path.display().to_string();
        let state = if text.is_some() { SourceState::InForce } else { SourceState::Absent };
        let layer = text.map(|text| Layer::parse(level, &name, &text)).transpose()?;
        self.policy_of(layer.clone());
        self.sources.push(PolicySource { level, name, state });
        Ok(layer)
    }

    fn policy_of(&mut self, layer: Option<Layer>) {
        layer.into_iter().for_each(|layer| self.policy.add(layer));
    }

    fn profile(&mut self, level: Level, profile: Profile) -> Result<(), PolicyFileError> {
        self.policy.add(profile.layer(level)?);
        self.sources.push(PolicySource { level, name: format!("profile {profile}"), state: SourceState::InForce });
        Ok(())
    }

    fn project(&mut self, root: &Path, trusted: &Path) -> Result<(), PolicyFileError> {
        let path = project_path(root);
        let name = path.display().to_string();
        let Some(text) = open::project(root, PROJECT)? else {
            self.sources.push(PolicySource { level: Level::Project, name, state: SourceState::Absent });
            return Ok(());
        };
        // What was read is what is trusted or not, and what is parsed: the file is not looked at again.
        let digest = trust::digest(&text);
        let layer = Layer::parse(Level::Project, &name, &text)?;
        let state = if Trust::read(trusted)?.covers(&path, &digest) {
            self.policy.add_trusted(layer);
            SourceState::InForce
        } else {
            self.policy.add(layer);
            SourceState::Untrusted { digest }
        };
        self.sources.push(PolicySource { level: Level::Project, name, state });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
