//! Permits: values that represent the right to act. Only an [`Authorizer`](crate::Authorizer)
//! creates a [`Permit`]. A permit cannot be copied, and acting consumes it:
//!
//! ```
//! use cofferdam_policy::{ApprovalQuestion, Authorizer, Denial, Effect, PendingApproval, Permit};
//!
//! fn approve(authorizer: &Authorizer, pending: PendingApproval) -> Result<Effect, Denial> {
//!     let _question: &ApprovalQuestion = pending.question();
//!     let permit: Permit = authorizer.approve(pending)?;
//!     Ok(permit.into_effect())
//! }
//! ```
//! ```compile_fail,E0451
//! use cofferdam_policy::{Effect, Permit};
//! let permit = Permit { effect: Effect::Confirmed, workspace_access: Default::default() };
//! ```
//! ```compile_fail,E0382
//! use cofferdam_policy::Permit;
//! fn act(permit: Permit) {}
//! fn twice(permit: Permit) {
//!     act(permit);
//!     act(permit);
//! }
//! ```
//! ```compile_fail,E0308
//! use cofferdam_policy::Permit;
//! fn copy(permit: &Permit) -> Permit {
//!     permit.clone()
//! }
//! ```
//!
//! Likewise, a pending approval cannot be forged, changed or answered twice:
//!
//! ```compile_fail,E0451
//! use cofferdam_policy::{ApprovalQuestion, PendingApproval};
//! fn made_up(pending: PendingApproval, question: ApprovalQuestion) -> PendingApproval {
//!     PendingApproval { question, ..pending }
//! }
//! ```
//! ```compile_fail,E0616
//! use cofferdam_policy::{Effect, PendingApproval};
//! fn changed(pending: &mut PendingApproval) {
//!     pending.question.effect = Effect::Confirmed;
//! }
//! ```
//! ```compile_fail,E0382
//! use cofferdam_policy::{Authorizer, PendingApproval};
//! fn twice(authorizer: &Authorizer, pending: PendingApproval) {
//!     let _ = authorizer.approve(pending);
//!     let _ = authorizer.approve(pending);
//! }
//! ```

use std::sync::Arc;

use crate::{ApprovalQuestion, Effect, Scope, WorkspaceAccess};

/// The right to cause one effect once. Only an [`Authorizer`](crate::Authorizer) creates a permit.
/// The code that acts takes the permit by value and causes exactly its effect.
#[derive(Debug)]
#[must_use = "an unused permit means that an approved effect did not happen"]
pub struct Permit {
    pub(super) effect: Effect,
    pub(super) workspace_access: WorkspaceAccess,
}

/// A question that waits for the user's answer. Only the authorizer that asked it can turn it into
/// a permit, and only once.
#[derive(Debug)]
pub struct PendingApproval {
    pub(super) question: ApprovalQuestion,
    /// The digest of the tool's component.
    pub(super) tool_digest: String,
    pub(super) authorizer: AuthorizerId,
}

/// The user's approval of every effect in the scope of a question. Only an authorizer creates one.
#[derive(Debug)]
#[must_use = "the user is asked again unless the approval is remembered"]
pub struct ScopeApproval {
    pub(super) scope: Scope,
}

/// The identity of an authorizer. It stays unique while the authorizer or one of its questions
/// exists.
#[derive(Clone, Debug)]
pub(super) struct AuthorizerId(Arc<u8>);

impl Permit {
    /// Returns the effect that is permitted.
    pub fn effect(&self) -> &Effect {
        &self.effect
    }

    /// Returns the access of a permitted command to the workspace.
    pub fn workspace_access(&self) -> &WorkspaceAccess {
        &self.workspace_access
    }

    /// Consumes the permit and returns its effect, to be caused once.
    pub fn into_effect(self) -> Effect {
        self.effect
    }
}

impl PendingApproval {
    /// Returns the question for the user.
    pub fn question(&self) -> &ApprovalQuestion {
        &self.question
    }
}

impl ScopeApproval {
    /// Returns the scope that the user approved.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }
}

impl AuthorizerId {
    /// Creates an identity that is unequal to every other one.
    pub(super) fn new() -> Self {
        Self(Arc::new(0))
    }
}

impl PartialEq for AuthorizerId {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
