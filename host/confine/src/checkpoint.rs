//! Checkpoints of a background command: what it has written so far is collected while all of its
//! processes are paused.

use std::path::Path;
use std::time::Duration;

use super::link::SupervisorLink;
use super::protection_rounds::restore_protected_paths;
use super::protocol::{
    CheckpointReport, CheckpointRequest, HostMessage, SupervisorMessage, SupervisorRequest,
};
use super::set_aside::HeldEntry;
use super::snapshot::ProtectedSnapshot;
use crate::os::{self, PausedProcesses, WorkspaceOverlay};
use crate::view::collect::copy_changes;
use crate::view::{CollectedChanges, CommittedPaths, EntryCopier, LayerPaths, OverlayFacts};
use cofferdam_policy::ProtectedPaths;

/// What makes the checkpoints of a command with a layer.
pub(super) struct CheckpointMaker<'a> {
    pub(super) order: &'a SupervisorRequest,
    pub(super) overlay: &'a WorkspaceOverlay,
    pub(super) paths: &'a LayerPaths,
    /// The protected paths before the command.
    pub(super) before: &'a ProtectedSnapshot,
    pub(super) protected: &'a ProtectedPaths,
    pub(super) committed: &'a mut CommittedPaths,
    /// The entries that must not be committed, but cannot be moved away while the view is mounted.
    pub(super) held: Vec<HeldEntry>,
}

impl CheckpointMaker<'_> {
    /// Pauses the command and collects its changes. It has continued when this returns.
    pub(super) fn collect(
        &mut self,
        request: &CheckpointRequest,
        host: &mut SupervisorLink,
    ) -> CheckpointReport {
        let mut notices = Vec::new();
        let changes = self.collect_paused(request, host, &mut notices);
        CheckpointReport { changes: changes.map_err(|error| error.to_string()), notices }
    }

    fn collect_paused(
        &mut self,
        request: &CheckpointRequest,
        host: &mut SupervisorLink,
        notices: &mut Vec<String>,
    ) -> std::io::Result<CollectedChanges> {
        self.check_held()?;
        let depth = os::sandbox_process_depth(self.order.namespaces.as_ref());
        let mut is_cancelled = || host.is_closed();
        let paused = PausedProcesses::pause(depth, &mut is_cancelled)?;
        let scope = self.overlay.scope(self.paths, Vec::new())?;
        let (workspace, set_aside) = (self.order.workspace.as_path(), &*self.order.set_aside);
        let restored = restore_protected_paths(
            (workspace, set_aside),
            self.protected,
            false,
            self.before,
            Some(&scope),
            Duration::ZERO,
        );
        let restored = restored.map_err(std::io::Error::other)?;
        notices.extend(restored.notices);
        self.held.extend(restored.held);
        self.check_held()?;
        let entries = LayerPaths::of(&request.layer).entries;
        let overlay = OverlayFacts { shown: self.overlay.shown()?, created: Vec::new() };
        let copied = copy_changes(
            self.paths,
            (self.overlay.lower()?, overlay),
            &entries,
            self.committed,
            EntryCopier::new(&mut is_cancelled),
        );
        // What a process did meanwhile may have undone a restored path.
        if paused.have_run() {
            return Err(std::io::Error::other(
                "a process of the command has run while all were paused",
            ));
        }
        copied
    }

    fn check_held(&self) -> std::io::Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        Err(std::io::Error::other(
            "the command created a protected path that is too large to be archived; it can only be \
                moved away when the command ends",
        ))
    }

    /// Finds out what the host has committed.
    pub(super) fn settle(&mut self) {
        if let Ok(lower) = self.overlay.lower() {
            self.committed.settle(&lower);
        }
    }

    /// Waits until the host has decided on the last checkpoint, or is gone.
    pub(super) fn wait_until_settled(&mut self, host: &mut SupervisorLink) {
        while self.committed.is_unsettled() {
            match host.receive::<HostMessage>() {
                Ok(Some(HostMessage::Settled)) => {
                    self.settle();
                    // The host may be gone.
                    let _ = host.send(&SupervisorMessage::Settled);
                }
                Ok(Some(HostMessage::Checkpoint(_))) => {}
                // The host commits nothing any more.
                Ok(None) | Err(_) => return self.settle(),
            }
        }
    }
}

/// Returns the report for a command that has no checkpoints.
pub(super) fn refuse_checkpoint(workspace: &Path) -> CheckpointReport {
    let changes = Err(format!("the command does not change {}", workspace.display()));
    CheckpointReport { changes, notices: Vec::new() }
}
