//! Opening a workspace for tools.

use std::path::Path;
use std::sync::Arc;

use super::{HostError, PreparedHost};
use crate::policy::{ProtectedPaths, WorkspacePath};
use crate::sandbox::Workspace;

impl PreparedHost {
    /// Opens a directory as a workspace, with the protected paths of the policy and of this
    /// program. The workspace of every dispatcher comes from here.
    pub(super) fn open_workspace(&self, path: &Path) -> Result<Arc<Workspace>, HostError> {
        let workspace = Workspace::open(path, self.environment())?;
        let root = workspace.root().to_owned();
        if let Some(own) = self.own_paths().iter().find(|own| root.starts_with(own)) {
            return Err(HostError::OwnDirectory { workspace: root, own: own.clone() });
        }
        if let Some(protected) = workspace.protected_directory() {
            return Err(HostError::ProtectedDirectory { workspace: root, protected });
        }
        self.commands().recover_unfinished(&root).iter().for_each(|notice| self.warn(notice));
        let (repositories, files) = self.listed_files().settings_roots();
        workspace.set_settings_roots(repositories, files);
        Ok(Arc::new(workspace.with_protected_paths(self.protected_paths(&root))))
    }

    /// Returns the protected paths of a workspace with this root.
    pub fn protected_paths(&self, root: &Path) -> ProtectedPaths {
        let inside = self.own_paths().iter().filter_map(|own| {
            WorkspacePath::parse(own.strip_prefix(root).ok()?.to_str()?, None).ok()
        });
        let paths =
            inside.fold(self.policy().protected_paths(), |paths, own| paths.with_own_path(&own));
        let listed = self.listed_files();
        let paths = listed
            .protected_targets()
            .fold(paths, |paths, (path, protection)| paths.with_path(path, protection));
        listed.on_the_way().fold(paths, |paths, path| paths.and_on_the_way(path))
    }
}
