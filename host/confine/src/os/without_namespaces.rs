//! What [`crate::sandbox_process`] needs of a system without namespaces: types without values.

use std::ffi::OsString;
use std::process::ExitStatus;

use rustix::process::Pid;

use crate::{ConfineError, SupervisorLink};

/// A command in namespaces, which this system does not have.
pub(crate) enum NamespaceStart {}

/// A child process that runs a function of this program, which this system does not need.
pub(crate) enum ForkedProcess {}

impl NamespaceStart {
    pub(crate) fn start(
        self,
        _: SupervisorLink,
        _: Vec<(OsString, OsString)>,
    ) -> Result<ForkedProcess, ConfineError> {
        match self {}
    }
}

impl ForkedProcess {
    pub(crate) fn pid(&self) -> Pid {
        match *self {}
    }

    pub(crate) fn try_wait(&mut self) -> std::io::Result<Option<ExitStatus>> {
        match *self {}
    }

    pub(crate) fn wait(&mut self) -> std::io::Result<ExitStatus> {
        match *self {}
    }
}
