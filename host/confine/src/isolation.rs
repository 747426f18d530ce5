//! What keeps the changes of a command from others until they are checked.

use super::error::{ConfineError, ConfineStep};
use super::journal;
use super::link::SupervisorLink;
use super::protocol::{SupervisedView, SupervisorRequest};
use super::queue::{self, CommandTurn};
use super::snapshot::ProtectedSnapshot;
use crate::git::GitNamedPaths;
use crate::os::WorkspaceOverlay;
use crate::view::LayerPaths;
use cofferdam_policy::{ProtectedPaths, SandboxLevel};

/// The isolation of a command that has not begun yet.
pub(super) enum PlannedIsolation {
    /// The command writes the workspace, in which no other command runs meanwhile.
    Turn(CommandTurn),
    /// The command writes this layer.
    Layer(LayerPaths),
    /// The command changes nothing.
    Unneeded,
}

/// The isolation of a running command.
pub(super) enum WorkspaceIsolation {
    /// The command writes the workspace, in which no other command runs meanwhile.
    Turn(#[expect(dead_code, reason = "it ends when it is dropped")] CommandTurn),
    /// The command writes this layer.
    Layer(WorkspaceOverlay, LayerPaths),
    /// The command changes nothing.
    Unneeded,
}

/// The protected paths before a command, and the list of them with the targets of links.
type CapturedPaths = (ProtectedSnapshot, ProtectedPaths);

impl PlannedIsolation {
    /// Plans the isolation, or returns `None` if the host stops the command first.
    pub(super) fn begin(
        order: &SupervisorRequest,
        host: &mut SupervisorLink,
        notices: &mut Vec<String>,
    ) -> Result<Option<Self>, ConfineError> {
        match &order.view {
            SupervisedView::Layer(layer) => return Ok(Some(Self::Layer(LayerPaths::of(layer)))),
            SupervisedView::ReadOnly if order.level == SandboxLevel::Full => {
                return Ok(Some(Self::Unneeded));
            }
            // Without a mount, a command could still change permissions.
            SupervisedView::ReadOnly | SupervisedView::Direct => {}
        }
        // The turn lasts until everything is restored, so that no other command sees forbidden
        // changes.
        let turn = queue::wait_for_turn(&order.workspace, &order.set_aside, || !host.is_closed());
        let turn = turn.map_err(ConfineError::at(ConfineStep::WaitForTurn))?;
        notices.extend(journal::recover(&order.set_aside, &order.workspace));
        Ok(turn.map(Self::Turn))
    }

    /// Captures the protected paths, and isolates the workspace.
    pub(super) fn capture(
        self,
        order: &SupervisorRequest,
        host: &mut SupervisorLink,
        keeping: bool,
    ) -> Result<(WorkspaceIsolation, CapturedPaths), ConfineError> {
        let failed = ConfineError::at::<super::snapshot::ProtectionError>;
        let (root, rules) = (&order.workspace, &order.protected);
        let git = GitNamedPaths::new(root, &order.user_settings)
            .map_err(ConfineError::at(ConfineStep::FindProtectedPaths))?;
        let goes_on = &mut || !host.is_closed();
        let (isolation, captured) = match self {
            Self::Unneeded => {
                let captured = ProtectedSnapshot::capture_read_only(root, rules, git, goes_on);
                (WorkspaceIsolation::Unneeded, captured)
            }
            Self::Turn(turn) => {
                let captured =
                    ProtectedSnapshot::capture_before(root, rules, git, keeping, goes_on);
                (WorkspaceIsolation::Turn(turn), captured)
            }
            Self::Layer(layer) => {
                // The workspace is searched before the overlay is mounted over it, because each
                // overlay reads the names and the status of every directory anew. An empty layer
                // shows the same.
                let below = ProtectedSnapshot::capture_unchanged(root, rules, git.clone(), goes_on)
                    .map_err(failed(ConfineStep::FindProtectedPaths))?;
                let mounted = WorkspaceOverlay::mount(root, &layer);
                let overlay = mounted.map_err(ConfineError::at(ConfineStep::MountView))?;
                // In the overlay, directories can be opened without a change of the workspace.
                let captured = match below {
                    Some(captured) => Ok(captured),
                    None => ProtectedSnapshot::capture_before(root, rules, git, keeping, goes_on),
                };
                (WorkspaceIsolation::Layer(overlay, layer), captured)
            }
        };
        Ok((isolation, captured.map_err(failed(ConfineStep::FindProtectedPaths))?))
    }
}
