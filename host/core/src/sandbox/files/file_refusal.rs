//! Why a file operation of a guest is refused: the error code for the guest and the reason for the
//! model.

use std::io;

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use crate::policy::{Denial, DenialCode};
use crate::sandbox::stage::StageRefusal;

/// The refusal of a file operation.
#[derive(Debug)]
pub(in crate::sandbox) enum FileRefusal {
    /// An ordinary error code.
    Code(ErrorCode),
    /// An error of the operating system.
    Io(io::Error),
    /// A denial with a reason. WASI has no place for the reason: the guest gets the code, and the
    /// model gets the reason.
    Denied(ErrorCode, Denial),
}

impl FileRefusal {
    /// Returns the error code for the guest.
    pub(super) fn code(&self) -> ErrorCode {
        match self {
            Self::Code(code) | Self::Denied(code, _) => *code,
            Self::Io(error) => error.into(),
        }
    }

    /// Refuses a link that leads out of the workspace, or a path through one.
    pub(in crate::sandbox) fn link_outside_workspace(path: &str) -> Self {
        let reason = format!(
            "`{path}` is, or passes through, a symbolic link to a path outside the workspace; \
                tools can access only the workspace."
        );
        Self::Denied(
            ErrorCode::NotPermitted,
            Denial::without_remedy(DenialCode::OutsideWorkspace, reason),
        )
    }

    /// Refuses a path whose text leads out of the workspace.
    pub(in crate::sandbox) fn outside_workspace(path: &str) -> Self {
        let reason =
            format!("`{path}` is outside the workspace; tools can access only the workspace.");
        Self::Denied(
            ErrorCode::NotPermitted,
            Denial::without_remedy(DenialCode::OutsideWorkspace, reason),
        )
    }
}

impl From<Denial> for FileRefusal {
    fn from(denial: Denial) -> Self {
        Self::Denied(ErrorCode::Access, denial)
    }
}

impl From<ErrorCode> for FileRefusal {
    fn from(code: ErrorCode) -> Self {
        Self::Code(code)
    }
}

impl From<StageRefusal> for FileRefusal {
    fn from(refused: StageRefusal) -> Self {
        match refused {
            StageRefusal::TooLarge => Self::Code(ErrorCode::FileTooLarge),
            StageRefusal::WrongKind => Self::Code(ErrorCode::Invalid),
            StageRefusal::Quota(denial) => Self::Denied(ErrorCode::Quota, denial),
            StageRefusal::Io(error) => Self::Io(error),
        }
    }
}

impl From<io::Error> for FileRefusal {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
