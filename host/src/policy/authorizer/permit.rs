//! What may be done is a value. A [`Permit`] is made by a judge and by nobody else, is not copied,
//! and is used up by acting:
//!
//! ```compile_fail,E0451
//! use cofferdam::policy::{Effect, Permit};
//! let permit = Permit { effect: Effect::Confirmed };
//! ```
//! ```compile_fail,E0382
//! use cofferdam::policy::Permit;
//! fn act(permit: Permit) {}
//! fn twice(permit: Permit) {
//!     act(permit);
//!     act(permit);
//! }
//! ```
//! ```compile_fail,E0308
//! use cofferdam::policy::Permit;
//! fn copy(permit: &Permit) -> Permit {
//!     permit.clone()
//! }
//! ```
//!
//! What waits for the user's answer cannot be made up, changed or answered twice either:
//!
//! ```compile_fail,E0451
//! use cofferdam::policy::{PendingApproval, Question};
//! fn made_up(pending: PendingApproval, question: Question) -> PendingApproval {
//!     PendingApproval { question, ..pending }
//! }
//! ```
//! ```compile_fail,E0616
//! use cofferdam::policy::{Effect, PendingApproval};
//! fn changed(pending: &mut PendingApproval) {
//!     pending.question.effect = Effect::Confirmed;
//! }
//! ```
//! ```compile_fail,E0382
//! use cofferdam::policy::{Judge, PendingApproval};
//! fn twice(judge: &Judge, pending: PendingApproval) {
//!     let _ = judge.approve(pending);
//!     let _ = judge.approve(pending);
//! }
//! ```

use std::sync::Arc;

use crate::policy::{ApprovalQuestion, Effect, Scope};

/// The right to do one thing once. Only a judge makes one; what acts takes it by value and does
/// what is in it.
#[derive(Debug)]
#[must_use = "a permit that is not used is an act that was approved and did not happen"]
pub struct Permit {
    pub(super) effect: Effect,
}

/// A question that waits for the user's answer. Only the judge that asked it makes a permit of it,
/// and only once.
#[derive(Debug)]
pub struct PendingApproval {
    pub(super) question: ApprovalQuestion,
    /// Of the component of the tool.
    pub(super) tool_digest: String,
    pub(super) authorizer: AuthorizerId,
}

/// The user's yes to all that falls under the scope of a question. Only a judge makes one.
#[derive(Debug)]
#[must_use = "an approval that is not remembered is asked for again"]
pub struct ScopeApproval {
    pub(super) scope: Scope,
}

/// Tells one judge from another, for as long as either of them or one of its questions is there.
#[derive(Clone, Debug)]
pub(super) struct AuthorizerId(Arc<u8>);

impl Permit {
    /// What is permitted.
    pub fn effect(&self) -> &Effect {
        &self.effect
    }

    /// Uses the permit up: what is returned is done now, and not again.
    pub fn into_effect(self) -> Effect {
        self.effect
    }
}

impl PendingApproval {
    /// What the user is asked.
    pub fn question(&self) -> &ApprovalQuestion {
        &self.question
    }
}

impl ScopeApproval {
    /// What the user approved.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }
}

impl AuthorizerId {
    /// One that no other is equal to.
    pub(super) fn new() -> Self {
        Self(Arc::new(0))
    }
}

impl PartialEq for AuthorizerId {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
