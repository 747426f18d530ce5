//! The private view of the workspace: an overlay that keeps all changes of a command apart from the
//! workspace until the host accepts them.
//!
//! 1. The host creates a [`CommandLayer`] on the file system of the workspace.
//! 2. The supervisor mounts an overlay over the workspace, visible only in its own mount namespace:
//!    the workspace below, read-only, and the layer above.
//! 3. When all processes of the command have ended, the supervisor restores the protected paths in
//!    the overlay, unmounts it, and [collects](collect::collect_changes) the changes from the
//!    layer.
//!    Directories of the setting `direct` are not a part of it ([`direct`]).
//! 4. The host judges each change, [splits](split) those of directories in which only some entries
//!    may change, and commits the accepted ones by renames. Dropping the layer discards the rest.
//!
//! At a checkpoint of a background command, the same happens while its processes are paused. The
//! overlay stays mounted, so that the new entries are [copied](copy) to another layer, and the
//! supervisor remembers what it [committed](committed).

mod change;
mod clean;
pub(crate) mod collect;
mod committed;
mod copy;
mod direct;
mod layer;
mod removed;
mod split;
mod support;

pub use change::{LayerAction, LayerChange, LayerEntry, LayerEntryKind, SeenEntry};
pub use layer::{CommandChanges, CommandLayer};
pub use split::UnchangedEntry;
pub use support::{ViewUnavailable, check_workspace};

pub(crate) use change::CollectedChanges;
pub(crate) use clean::is_opaque;
pub(crate) use committed::CommittedPaths;
pub(crate) use copy::EntryCopier;
pub(crate) use direct::{DirectMounts, DirectView};
pub(crate) use layer::{LayerPaths, PlannedView};
pub(crate) use removed::OverlayFacts;
