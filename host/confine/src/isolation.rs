//! What keeps the changes of a command from others until they are checked.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use super::error::{ConfineError, ConfineStep};
use super::journal::{self, JournalPlace};
use super::link::SupervisorLink;
use super::protocol::{SupervisedView, SupervisorRequest};
use super::queue::{self, CommandTurn};
use crate::os::WorkspaceOverlay;
use crate::view::{DirectMounts, DirectView, LayerPaths};
use cofferdam_policy::SandboxLevel;

/// What keeps the changes of a command from others until they are checked.
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

impl WorkspaceIsolation {
    /// Isolates the workspace, or returns `None` if the host stops the command first.
    pub(super) fn begin(
        order: &SupervisorRequest,
        host: &mut SupervisorLink,
        notices: &mut Vec<String>,
    ) -> Result<Option<Self>, ConfineError> {
        match &order.view {
            SupervisedView::Layer(layer) if order.direct.is_empty() => {
                let paths = LayerPaths::of(layer);
                let overlay = mount(order, &paths)?;
                return Ok(Some(Self::Layer(IsolatingLayer { overlay, paths, direct: None })));
            }
            SupervisedView::ReadOnly if order.level == SandboxLevel::Full => {
                return Ok(Some(Self::Unneeded));
            }
            // Without a mount, a command could still change permissions.
            SupervisedView::ReadOnly | SupervisedView::Direct | SupervisedView::Layer(_) => {}
        }
        // The turn lasts until everything is restored, so that no other command sees forbidden
        // changes.
        let turn = queue::wait_for_turn(&order.workspace, &order.set_aside, || !host.is_closed());
        let turn = turn.map_err(ConfineError::at(ConfineStep::WaitForTurn))?;
        let Some(turn) = turn else { return Ok(None) };
        notices.extend(journal::recover(&order.set_aside, &order.workspace));
        let place = JournalPlace::of(order);
        let place = place.map_err(ConfineError::at(ConfineStep::RecordProtectedPaths))?;
        let turn = WorkspaceTurn { _turn: turn, place };
        let SupervisedView::Layer(layer) = &order.view else { return Ok(Some(Self::Turn(turn))) };
        let paths = LayerPaths::of(layer);
        let mounts = DirectMounts::open(&order.workspace, &order.direct, notices);
        let overlay = match mount(order, &paths) {
            Ok(overlay) => overlay,
            Err(error) => {
                mounts.discard(&order.workspace);
                return Err(error);
            }
        };
        let since = read_clock(&paths).map_err(ConfineError::at(ConfineStep::MountView))?;
        let view = mounts.attach(&order.workspace, since, notices);
        let direct = Some(DirectIsolation { turn, view });
        Ok(Some(Self::Layer(IsolatingLayer { overlay, paths, direct })))
    }

    /// Returns the place of the record for the case that this process is killed; `None` if the
    /// command then leaves nothing in the workspace.
    pub(super) fn journal_place(&self) -> Option<&JournalPlace> {
        match self {
            Self::Turn(turn) => Some(&turn.place),
            Self::Layer(layer) => layer.direct.as_ref().map(|direct| &direct.turn.place),
            Self::Unneeded => None,
        }
    }

    /// Makes directories with protected paths a part of the layer again. Returns whether there are
    /// any.
    ///
    /// # Errors
    /// A directory cannot be unmounted.
    pub(super) fn close_protected<'a>(
        &mut self,
        protected: impl Iterator<Item = &'a PathBuf> + Clone,
        notices: &mut Vec<String>,
    ) -> Result<bool, ConfineError> {
        let Self::Layer(IsolatingLayer { overlay, direct: Some(direct), .. }) = self else {
            return Ok(false);
        };
        let closed = direct.view.unmount_protected(overlay, protected, notices);
        closed.map_err(ConfineError::at(ConfineStep::MountView))
    }
}

/// Returns the time by the clock of the file system, in seconds and nanoseconds since 1970.
fn read_clock(paths: &LayerPaths) -> std::io::Result<(i64, i64)> {
    let path = paths.entries.join("clock");
    let metadata = File::create_new(&path)?.metadata()?;
    std::fs::remove_file(path)?;
    Ok((metadata.ctime(), metadata.ctime_nsec()))
}

fn mount(order: &SupervisorRequest, paths: &LayerPaths) -> Result<WorkspaceOverlay, ConfineError> {
    let mounted = WorkspaceOverlay::mount(&order.workspace, paths);
    mounted.map_err(ConfineError::at(ConfineStep::MountView))
}
