//! Why an operation of a guest on files is refused: what the guest is told, and what the host says to the model besides.

use std::io;

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use crate::policy::{Code, Denial};
use crate::sandbox::stage::Refused;

/// A refusal.
#[derive(Debug)]
pub(in crate::sandbox) enum Problem {
    /// An ordinary one.
    Code(ErrorCode),
    /// The system's.
    Io(io::Error),
    /// One that explains itself. WASI has no room for the reason: the guest gets the code, and the model the reason.
    Denied(ErrorCode, Denial),
}

impl Problem {
    /// What the guest is told.
    pub(super) fn code(&self) -> ErrorCode {
        match self {
            Self::Code(code) | Self::Denied(code, _) => *code,
            Self::Io(error) => error.into(),
        }
    }

    /// A link that leads out, or a path through one.
    pub(in crate::sandbox) fn link_leads_out(path: &str) -> Self {
        let reason =
            format!("'{path}' is, or passes through, a symbolic link that leads out of the workspace; tools see nothing outside of it.");
        Self::Denied(ErrorCode::NotPermitted, Denial::fixed(Code::OutsideWorkspace, reason))
    }

    /// A path that leads out by its own words.
    pub(in crate::sandbox) fn leads_out(path: &str) -> Self {
        let reason = format!("'{path}' leads out of the workspace; tools see nothing outside of it.");
        Self::Denied(ErrorCode::NotPermitted, Denial::fixed(Code::OutsideWorkspace, reason))
    }
}

impl From<Denial> for Problem {
    fn from(denial: Denial) -> Self {
        Self::Denied(ErrorCode::Access, denial)
    }
}

impl From<ErrorCode> for Problem {
    fn from(code: ErrorCode) -> Self {
        Self::Code(code)
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::TooLarge => Self::Code(ErrorCode::FileTooLarge),
            Refused::OtherKind => Self::Code(ErrorCode::Invalid),
            Refused::Quota(denial) => Self::Denied(ErrorCode::Quota, denial),
            Refused::Io(error) => Self::Io(error),
        }
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
