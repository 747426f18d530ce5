//! What [`crate::sandbox_process`] needs of a system without namespaces: types without values.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::os::ForkedProcess;
use crate::protocol::{SandboxPreparation, SupervisorRequest};
use crate::snapshot::LayerScope;
use crate::view::{LayerPaths, ViewUnavailable};
use crate::{ConfineError, ConfineStep, PrerequisiteError, SupervisorLink};

/// A command in namespaces, which this system does not have.
pub(crate) enum NamespaceStart {}

impl NamespaceStart {
    pub(crate) fn start(
        self,
        _: SupervisorLink,
        _: Vec<(OsString, OsString)>,
    ) -> Result<ForkedProcess, ConfineError> {
        match self {}
    }
}

/// A sandbox that is prepared before there is a command, which needs namespaces.
#[derive(Debug)]
pub(crate) enum PreparedSandbox {}

impl PreparedSandbox {
    pub(crate) fn run(
        _: &SandboxPreparation,
        _: impl FnOnce(Result<Self, ConfineError>) -> i32,
    ) -> Result<ForkedProcess, ConfineError> {
        Err(ConfineError::new(ConfineStep::EnterNamespaces, PrerequisiteError::Namespaces))
    }

    pub(crate) fn begin_command(
        self,
        _: &SandboxPreparation,
        _: &SupervisorRequest,
    ) -> Result<Self, ConfineError> {
        match self {}
    }
}

/// A watch on mounts, which only prepared sandboxes need.
#[derive(Debug)]
pub(crate) enum MountWatch {}

impl MountWatch {
    pub(crate) fn begin() -> std::io::Result<Self> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn has_changed(&self) -> bool {
        match *self {}
    }
}

/// An overlay over the workspace, which this system does not have.
pub(crate) enum WorkspaceOverlay {}

/// An overlay that was unmounted.
pub(crate) enum DetachedOverlay {}

impl WorkspaceOverlay {
    pub(crate) fn mount(_: &Path, _: &LayerPaths) -> std::io::Result<Self> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn scope(&self, _: &LayerPaths, _: Vec<PathBuf>) -> std::io::Result<LayerScope> {
        match *self {}
    }

    pub(crate) fn lower(&self) -> std::io::Result<std::os::fd::OwnedFd> {
        match *self {}
    }

    pub(crate) fn shown(&self) -> std::io::Result<Option<std::os::fd::OwnedFd>> {
        match *self {}
    }

    pub(crate) fn unmount_direct(&self, _: &Path) -> std::io::Result<()> {
        match *self {}
    }

    pub(crate) fn unmount(self) -> std::io::Result<Option<DetachedOverlay>> {
        match self {}
    }
}

/// A directory that a private view shows as it is, which this system does not have.
pub(crate) enum DirectMount {}

impl DirectMount {
    pub(crate) fn open(_: &Path, _: &Path) -> std::io::Result<Self> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn attach(&self, _: &Path) -> std::io::Result<()> {
        match *self {}
    }

    pub(crate) fn path(&self) -> &Path {
        match *self {}
    }

    pub(crate) fn created(&self) -> &[PathBuf] {
        match *self {}
    }
}

/// The paused processes of a command, which a system without private views does not have.
pub(crate) enum PausedProcesses {}

impl PausedProcesses {
    pub(crate) fn pause(_: usize, _: &mut dyn FnMut() -> bool) -> std::io::Result<Self> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn have_run(&self) -> bool {
        match *self {}
    }
}

pub(crate) fn run_with_own_mounts(
    _: impl FnOnce(Result<(), ConfineError>) -> i32,
) -> Result<ForkedProcess, ConfineError> {
    Err(ConfineError::new(ConfineStep::EnterNamespaces, PrerequisiteError::Namespaces))
}

pub(crate) fn check_private_view(_: &Path, _: &Path) -> Result<(), ViewUnavailable> {
    Err(ViewUnavailable::Namespaces)
}
