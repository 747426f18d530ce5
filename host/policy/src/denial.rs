//! Denials of effects, with their reasons.

use std::fmt;

use serde::Serialize;

use super::{Action, Capability, ReasonedVerdict, SourceLocation};

/// The reason for a denial, shown to the model and to the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Denial {
    /// The stable short code of this denial.
    pub code: DenialCode,
    /// A sentence with the denied action and the reason.
    pub reason: String,
    /// A sentence that says how to get the action allowed; `None` if nothing allows it.
    pub remedy: Option<String>,
    /// The location of the rule that decided, if a rule did. The reason includes it too.
    pub place: Option<SourceLocation>,
}

/// The kind of a denial, stable across versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DenialCode {
    /// The tool lacks the permission for the action.
    NotGranted,
    /// The path is outside the workspace.
    OutsideWorkspace,
    /// The path is neither a file nor a directory.
    SpecialFile,
    /// The content of this file is hidden from tools.
    Hidden,
    /// Tools may not change this path.
    Protected,
    /// The file has another hard link, which may be outside the workspace.
    HardLink,
    /// The changes of the call exceed a limit.
    TooMuch,
    /// A rule of a policy file does not allow the action.
    Policy,
    /// The mode does not allow the action.
    Mode,
    /// The action needs approval, and there is no user to ask.
    NobodyToAsk,
    /// The user rejected the action.
    RejectedByUser,
    /// This machine cannot provide the required sandbox for a command.
    NoSandbox,
    /// The user cancelled the current prompt.
    Cancelled,
    /// The request is malformed.
    BadRequest,
    /// The call reached the limit for actions of this kind.
    TooMany,
    /// No sub-agent is available for the task.
    NoSubAgent,
    /// The action has to be recorded, and recording failed.
    NotRecorded,
}

impl DenialCode {
    /// Returns the code as a denial shows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotGranted => "not-granted",
            Self::OutsideWorkspace => "outside-workspace",
            Self::SpecialFile => "special-file",
            Self::Hidden => "hidden",
            Self::Protected => "protected",
            Self::HardLink => "hard-link",
            Self::TooMuch => "too-much",
            Self::Policy => "policy",
            Self::Mode => "mode",
            Self::NobodyToAsk => "nobody-to-ask",
            Self::RejectedByUser => "rejected-by-user",
            Self::NoSandbox => "no-sandbox",
            Self::Cancelled => "cancelled",
            Self::BadRequest => "bad-request",
            Self::TooMany => "too-many",
            Self::NoSubAgent => "no-sub-agent",
            Self::NotRecorded => "not-recorded",
        }
    }
}

impl Denial {
    /// Creates a denial with a remedy.
    pub fn new(code: DenialCode, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), remedy: Some(remedy.into()), place: None }
    }

    /// Creates a denial that nothing can lift.
    pub fn without_remedy(code: DenialCode, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), remedy: None, place: None }
    }

    /// Creates the denial for a capability that a policy withholds from a tool.
    pub fn denied_by_policy(tool: &str, capability: &Capability, place: &SourceLocation) -> Self {
        let reason = format!(
            "{tool} may not {capability}: the policy at {place} denies that \
            permission."
        );
        let remedy = format!("To allow it, change the policy in {}.", place.file);
        Self { code: DenialCode::Policy, reason, remedy: Some(remedy), place: Some(place.clone()) }
    }

    /// Creates a denial from a verdict about an action. It includes the rule, the file and the line
    ///
    pub fn from_verdict(
        code: DenialCode,
        what: &str,
        act: &Action<'_>,
        finding: &ReasonedVerdict,
    ) -> Self {
        let reason = format!("{what}: {}.", finding.describe_reason_for(act));
        Self { code, reason, remedy: Some(finding.remedy(act)), place: finding.location().cloned() }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "denied ({}): {}", self.code.name(), self.reason)?;
        match &self.remedy {
            Some(remedy) => write!(f, " {remedy}"),
            None => Ok(()),
        }
    }
}
