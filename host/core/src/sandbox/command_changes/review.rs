//! The review of everything that a command changed, for the setting `review_changes`.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::approval::describe_mode;
use super::judge::{ChangedTree, InnerEntry, RestrictedPath};
use super::{CommandChangeContext, SettleError};
use crate::policy::{
    ApprovalMode, ChangeKind, ChangeSet, ContentDigest, Effect, FileChange, WorkspacePath,
};
use crate::sandbox::gate::GateRuling;
use crate::sandbox::stage::{ShownChange, describe_shown};
use crate::sandbox::workspace::Workspace;
use cofferdam_confine::view::{CommandChanges, LayerAction, LayerChange, LayerEntryKind};

/// The permission bits, with the set-ID bits and the sticky bit.
const MODE_BITS: u32 = 0o7777;
/// The bits that a new text file does not have: to execute it, set-ID and sticky.
const SPECIAL_BITS: u32 = 0o7111;
/// The number of paths below new and removed directories that are shown one by one. Larger
/// directories are shown as a whole.
const MAX_SHOWN_BELOW: usize = 2000;

impl CommandChangeContext {
    /// Returns whether the user reviews the changes of commands. The mode can change at any time.
    pub(in crate::sandbox) fn is_reviewing(&self) -> bool {
        self.review_changes && (self.mode)() != ApprovalMode::Auto
    }

    /// Shows all changes except the discarded ones to the user.
    ///
    /// # Errors
    /// The user rejected the changes, or nobody can be asked.
    pub(super) async fn review(
        &self,
        changes: CommandChanges,
        discarded: &[RestrictedPath],
    ) -> Result<CommandChanges, SettleError> {
        let workspace = std::sync::Arc::clone(&self.workspace);
        let hidden: Vec<(usize, Option<PathBuf>)> =
            discarded.iter().map(|path| (path.change, path.below.clone())).collect();
        let (changes, shown) = tokio::task::spawn_blocking(move || {
            let shown = ReviewedChanges::collect(&workspace, &changes, &hidden)
                .and_then(|reviewed| reviewed.describe(&workspace));
            (changes, shown)
        })
        .await?;
        let shown = shown?;
        if shown.is_empty() {
            return Ok(changes);
        }
        // Approved for each command, whatever the user approved for the session.
        match (self.gate)(Effect::Write { changes: shown, confirm: true }).await {
            GateRuling::Permitted(_permit) => Ok(changes),
            GateRuling::Denied(denial) => Err(SettleError::from_denial(denial)),
        }
    }
}

/// The changes to show.
struct ReviewedChanges {
    shown: Vec<ShownChange>,
    /// Changes that are described without a comparison of contents.
    described: Vec<FileChange>,
    /// The number of paths below directories that can still be shown.
    left: usize,
}

impl ReviewedChanges {
    fn collect(
        workspace: &Workspace,
        changes: &CommandChanges,
        hidden: &[(usize, Option<PathBuf>)],
    ) -> io::Result<Self> {
        let mut reviewed = Self { shown: Vec::new(), described: Vec::new(), left: MAX_SHOWN_BELOW };
        for (number, change) in changes.changes.iter().enumerate() {
            let below: Vec<&Option<PathBuf>> =
                hidden.iter().filter(|(of, _)| *of == number).map(|(_, below)| below).collect();
            if below.iter().any(|below| below.is_none()) {
                continue;
            }
            let below: Vec<&Path> = below.into_iter().flatten().map(PathBuf::as_path).collect();
            reviewed.add_change(workspace, changes, change, &below)?;
        }
        Ok(reviewed)
    }

    fn add_change(
        &mut self,
        workspace: &Workspace,
        changes: &CommandChanges,
        change: &LayerChange,
        hidden: &[&Path],
    ) -> io::Result<()> {
        match &change.action {
            LayerAction::SetMode { before, after, .. } => {
                self.described.extend(describe_mode(&change.path, Some(*before), *after));
                return Ok(());
            }
            LayerAction::Replace { is_same: true, .. } => return Ok(()),
            LayerAction::Create(_) | LayerAction::Replace { .. } | LayerAction::Remove { .. } => {}
        }
        if change.action.removes_directory() {
            self.add_removed_directory(workspace, &change.path);
        }
        let Some(entry) = change.action.entry() else {
            self.shown.push(ShownChange { path: change.path.clone(), entry: None });
            return Ok(());
        };
        let top = changes.layer.entry(entry.number);
        self.add_entry(change.path.clone(), top.clone(), entry.kind);
        self.add_new_mode(workspace, &change.path, &top);
        if entry.kind != LayerEntryKind::Directory {
            return Ok(());
        }
        if entry.entries > self.left as u64 {
            let (count, bytes) = (entry.entries, entry.size);
            let text = format!("{count} entries with {bytes} bytes, which are not shown\n");
            self.add_text(&change.path, ChangeKind::CreateDirectory, text);
            return Ok(());
        }
        let mut left = self.left;
        let tree = ChangedTree { change: 0, path: &change.path, top: &top };
        tree.visit(&mut left, |InnerEntry { below, path, kind }| {
            let is_shown = !hidden.contains(&below.as_path());
            if is_shown {
                self.add_new_mode(workspace, &path, &top.join(&below));
                self.add_entry(path, top.join(below), kind);
            }
            Ok(is_shown)
        })?;
        self.left = left;
        Ok(())
    }

    /// Adds a new entry.
    fn add_entry(&mut self, path: String, data: PathBuf, kind: LayerEntryKind) {
        let problem = match kind {
            LayerEntryKind::Special => Some("a FIFO, a socket or a device\n".to_owned()),
            LayerEntryKind::File => {
                let opened = File::open(&data).err();
                opened.map(|error| format!("a file that cannot be read: {error}\n"))
            }
            _ => None,
        };
        match problem {
            Some(text) => {
                let after = ContentDigest { size: 0, digest: String::new() };
                self.add_text(&path, ChangeKind::Create { after }, text);
            }
            None => self.shown.push(ShownChange { path, entry: Some((data, kind)) }),
        }
    }

    /// Adds the permissions of a file if they are other ones than before, or if they let others
    /// execute a new file.
    fn add_new_mode(&mut self, workspace: &Workspace, path: &str, data: &Path) {
        let file_mode = |path: &Path| {
            let found = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
            Some(found.mode() & MODE_BITS)
        };
        let Some(after) = file_mode(data) else { return };
        let before = file_mode(&workspace.root().join(path));
        let is_shown = match before {
            Some(before) => before != after,
            None => after & SPECIAL_BITS != 0,
        };
        if is_shown {
            self.described.extend(describe_mode(path, before, after));
        }
    }

    /// Adds the entries of an old directory that the command removed.
    fn add_removed_directory(&mut self, workspace: &Workspace, path: &str) {
        let top = workspace.root().join(path);
        let tree = ChangedTree { change: 0, path, top: &top };
        let (mut left, mut found) = (self.left, Vec::new());
        let visited = tree.visit(&mut left, |InnerEntry { path, .. }| {
            found.push(path);
            Ok(true)
        });
        if let Err(error) = visited {
            // All of it is removed, whatever it is.
            let text = format!("entries that are not shown: {error}\n");
            self.add_text(path, ChangeKind::RemoveDirectory, text);
            return;
        }
        self.left = left;
        self.shown.extend(found.into_iter().map(|path| ShownChange { path, entry: None }));
    }

    fn add_text(&mut self, path: &str, kind: ChangeKind, text: String) {
        if let Ok(path) = WorkspacePath::parse(path, None) {
            self.described.push(FileChange { path, kind, diff: Some(text) });
        }
    }

    fn describe(self, workspace: &Workspace) -> io::Result<ChangeSet> {
        Ok(describe_shown(workspace.dir(), self.shown)?.with_changes(self.described))
    }
}
