//! The directories that commands write directly although they have a private view.

use super::CommandChangeContext;
use crate::policy::{
    ChangeKind, CommandChangeVerdict, ContentDigest, DirectDirectory, FileChange, WorkspacePath,
};

impl CommandChangeContext {
    /// Returns those of these directories in which every new file is accepted, and a notice about
    /// each other one. Nobody decides about single changes in them.
    pub(in crate::sandbox) fn accepted_directories(
        &self,
        directories: &[DirectDirectory],
    ) -> (Vec<DirectDirectory>, Vec<String>) {
        let mut notices = Vec::new();
        let mut accepted = directories.to_vec();
        accepted.retain(|directory| match self.find_objection(directory) {
            None => true,
            Some(reason) => {
                notices.push(format!(
                    "the directory {directory} (`direct` under [commands]) was not written \
                        directly: {reason}"
                ));
                false
            }
        });
        (accepted, notices)
    }

    /// Returns why a command must not write a directory directly.
    fn find_objection(&self, directory: &DirectDirectory) -> Option<String> {
        let after = ContentDigest { size: 0, digest: String::new() };
        // Stands for any file in it.
        let inner = WorkspacePath::parse(&format!("{directory}/x"), None).ok()?;
        let changes = [
            (directory.path().clone(), ChangeKind::CreateDirectory),
            (inner, ChangeKind::Create { after }),
        ];
        changes.into_iter().find_map(|(path, kind)| {
            match (self.judge)(&FileChange { path, kind, diff: None }) {
                CommandChangeVerdict::Accept => None,
                CommandChangeVerdict::Ask => Some("changes in it need approval".to_owned()),
                CommandChangeVerdict::Discard(denial) => Some(denial.to_string()),
            }
        })
    }
}
