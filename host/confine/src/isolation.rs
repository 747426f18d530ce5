//! What keeps the changes of a command from others until they are checked.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use super::error::{ConfineError, ConfineStep};
use super::journal::{self, JournalPlace};
use super::link::SupervisorLink;
use super::protocol::{SupervisedView, SupervisorRequest};
use super::queue::{self, CommandTurn};
use super::snapshot::{ProtectedSnapshot, ProtectionError};
use crate::git::GitNamedPaths;
use crate::os::WorkspaceOverlay;
use crate::view::{DirectMounts, DirectView, LayerPaths};
use cofferdam_policy::{ProtectedPaths, SandboxLevel};

/// The isolation of a command that has not begun yet.
pub(super) enum PlannedIsolation {
    /// The command writes the workspace, in which no other command runs meanwhile.
    Turn(WorkspaceTurn),
    /// The command writes this layer, and some directories directly if it has a turn.
    Layer(LayerPaths, Option<WorkspaceTurn>),
    /// The command changes nothing.
    Unneeded,
}

/// The isolation of a running command.
pub(super) enum WorkspaceIsolation {
    /// The command writes the workspace, in which no other command runs meanwhile.
    Turn(WorkspaceTurn),
    /// The command writes a layer.
    Layer(IsolatingLayer),
    /// The command changes nothing.
    Unneeded,
}

/// A layer that receives the changes of a command.
pub(super) struct IsolatingLayer {
    pub(super) overlay: WorkspaceOverlay,
    pub(super) paths: LayerPaths,
    /// The directories that the command writes itself; `None` if there are none.
    pub(super) direct: Option<DirectIsolation>,
    /// When the overlay was mounted, by the clock of the file system.
    pub(super) since: (i64, i64),
}

/// The time in which no other command writes the workspace.
pub(super) struct WorkspaceTurn {
    _turn: CommandTurn,
    /// The place of the record for the case that this process is killed.
    place: JournalPlace,
}

/// Directories that a command with a layer writes itself, in which no other command runs meanwhile.
pub(super) struct DirectIsolation {
    turn: WorkspaceTurn,
    pub(super) view: DirectView,
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
        let layer = match &order.view {
            SupervisedView::Layer(layer) if order.direct.is_empty() => {
                return Ok(Some(Self::Layer(LayerPaths::of(layer), None)));
            }
            SupervisedView::ReadOnly if order.level == SandboxLevel::Full => {
                return Ok(Some(Self::Unneeded));
            }
            SupervisedView::Layer(layer) => Some(LayerPaths::of(layer)),
            // Without a mount, a command could still change permissions.
            SupervisedView::ReadOnly | SupervisedView::Direct => None,
        };
        // The turn lasts until everything is restored, so that no other command sees forbidden
        // changes.
        let turn = queue::wait_for_turn(&order.workspace, &order.set_aside, || !host.is_closed());
        let turn = turn.map_err(ConfineError::at(ConfineStep::WaitForTurn))?;
        let Some(turn) = turn else { return Ok(None) };
        notices.extend(journal::recover(&order.set_aside, &order.workspace));
        let place = JournalPlace::of(order);
        let place = place.map_err(ConfineError::at(ConfineStep::RecordProtectedPaths))?;
        let turn = WorkspaceTurn { _turn: turn, place };
        Ok(Some(match layer {
            Some(layer) => Self::Layer(layer, Some(turn)),
            None => Self::Turn(turn),
        }))
    }

    /// Captures the protected paths, and isolates the workspace.
    pub(super) fn capture(
        self,
        order: &SupervisorRequest,
        host: &mut SupervisorLink,
        keeping: bool,
        notices: &mut Vec<String>,
    ) -> Result<(WorkspaceIsolation, CapturedPaths), ConfineError> {
        let failed = ConfineError::at::<ProtectionError>;
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
            Self::Layer(paths, turn) => {
                // The workspace is searched before the overlay is mounted over it, because each
                // overlay reads the names and the status of every directory anew. An empty layer
                // shows the same.
                let below = ProtectedSnapshot::capture_unchanged(root, rules, git.clone(), goes_on)
                    .map_err(failed(ConfineStep::FindProtectedPaths))?;
                let mut layer = mount_layer(order, paths, turn, notices)?;
                // In the overlay, directories can be opened without a change of the workspace.
                let captured = match below {
                    Some(captured) => Ok(captured),
                    None => ProtectedSnapshot::capture_before(root, rules, git, keeping, goes_on),
                };
                if let Ok((before, _)) = &captured {
                    layer.close_protected(before.entries.keys(), notices)?;
                }
                (WorkspaceIsolation::Layer(layer), captured)
            }
        };
        Ok((isolation, captured.map_err(failed(ConfineStep::FindProtectedPaths))?))
    }
}

/// Mounts the overlay, and in it the directories that the command writes itself.
fn mount_layer(
    order: &SupervisorRequest,
    paths: LayerPaths,
    turn: Option<WorkspaceTurn>,
    notices: &mut Vec<String>,
) -> Result<IsolatingLayer, ConfineError> {
    let mounts =
        turn.map(|turn| (turn, DirectMounts::open(&order.workspace, &order.direct, notices)));
    let overlay = match WorkspaceOverlay::mount(&order.workspace, &paths) {
        Ok(overlay) => overlay,
        Err(error) => {
            if let Some((_, mounts)) = mounts {
                mounts.discard(&order.workspace);
            }
            return Err(ConfineError::new(ConfineStep::MountView, error));
        }
    };
    let since = read_clock(&paths).map_err(ConfineError::at(ConfineStep::MountView))?;
    let Some((turn, mounts)) = mounts else {
        return Ok(IsolatingLayer { overlay, paths, direct: None, since });
    };
    let view = mounts.attach(&order.workspace, since, notices);
    Ok(IsolatingLayer { overlay, paths, direct: Some(DirectIsolation { turn, view }), since })
}

impl WorkspaceIsolation {
    /// Returns the place of the record for the case that this process is killed; `None` if the
    /// command then leaves nothing in the workspace.
    pub(super) fn journal_place(&self) -> Option<&JournalPlace> {
        match self {
            Self::Turn(turn) => Some(&turn.place),
            Self::Layer(layer) => layer.direct.as_ref().map(|direct| &direct.turn.place),
            Self::Unneeded => None,
        }
    }
}

impl IsolatingLayer {
    /// Makes directories with protected paths a part of the layer again. The captured paths stay
    /// valid, because the layer is still empty.
    ///
    /// # Errors
    /// A directory cannot be unmounted.
    fn close_protected<'a>(
        &mut self,
        protected: impl Iterator<Item = &'a PathBuf> + Clone,
        notices: &mut Vec<String>,
    ) -> Result<(), ConfineError> {
        let Some(direct) = &mut self.direct else { return Ok(()) };
        let closed = direct.view.unmount_protected(&self.overlay, protected, notices);
        closed.map(drop).map_err(ConfineError::at(ConfineStep::MountView))
    }
}

/// Returns the time by the clock of the file system, in seconds and nanoseconds since 1970.
fn read_clock(paths: &LayerPaths) -> std::io::Result<(i64, i64)> {
    let path = paths.entries.join("clock");
    let metadata = File::create_new(&path)?.metadata()?;
    std::fs::remove_file(path)?;
    Ok((metadata.ctime(), metadata.ctime_nsec()))
}
