//! A refusal that explains itself.

use std::fmt;

use serde::Serialize;

use super::{Action, Capability, ReasonedVerdict, SourceLocation};

/// Why something was refused, for the model and for the user alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Denial {
    /// Stable and short.
    pub code: DenialCode,
    /// What was refused, and why.
    pub reason: String,
    /// What would allow it, if anything does.
    pub remedy: Option<String>,
    /// The place of the rule that decided, if one did. The reason names it too.
    pub place: Option<SourceLocation>,
}

/// The kinds of refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DenialCode {
    /// The tool was not granted what it tried to use.
    NotGranted,
    /// A path is not below the workspace.
    OutsideWorkspace,
    /// It is neither a file nor a directory.
    SpecialFile,
    /// The content of this file is kept from tools.
    Hidden,
    /// Tools may not change this path.
    Protected,
    /// The file has another name, which may be outside of the workspace.
    HardLink,
    /// A call may not change so much.
    TooMuch,
    /// A rule of a policy file does not allow it.
    Policy,
    /// The mode does not allow it.
    Mode,
    /// It needs an approval, and nobody can be asked.
    NobodyToAsk,
    /// The user said no.
    RejectedByUser,
    /// This machine cannot close off a command as far as it has to be.
    NoSandbox,
    /// The request was cancelled.
    Cancelled,
    /// A request is not what it should be.
    BadRequest,
    /// The call has done it as often as one call may.
    TooMany,
    /// There is no sub-agent to hand a task to.
    NoSubAgent,
    /// It has to be on record, and cannot be put there.
    NotRecorded,
}

impl DenialCode {
    /// As it stands in a denial.
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
    /// A refusal that something would lift.
    pub fn new(code: DenialCode, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), remedy: Some(remedy.into()), place: None }
    }

    /// A refusal that nothing lifts.
    pub fn without_remedy(code: DenialCode, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), remedy: None, place: None }
    }

    /// A refusal for a tool that is not given what it asks for.
    pub fn denied_by_policy(tool: &str, capability: &Capability, place: &SourceLocation) -> Self {
        let reason = format!("{tool} may not {capability}: {place} withholds that.");
        let remedy = format!("What {} says of it would have to change.", place.file);
        Self { code: DenialCode::Policy, reason, remedy: Some(remedy), place: Some(place.clone()) }
    }

    /// A refusal that follows from what was found about something, which names rule, file and line
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
