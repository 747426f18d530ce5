//! Beginning an audit log.

use std::sync::Arc;

use super::builder::NoticeHandler;
use super::{Host, HostError};
use crate::audit::{AuditRunStart, AuditStore, AuditWriter, Principal};
use crate::policy::{ApprovalMode, ComponentDigest};
use crate::session::SessionId;

/// The audit log of a host.
#[derive(Clone, Debug)]
pub struct AuditOptions {
    /// The directory of the logs, or `None` if there is none.
    pub store: Option<AuditStore>,
    /// Whether effects are denied while the log cannot be written.
    pub required: bool,
}

impl Host {
    /// Begins an audit log. Returns `None` if the host has none, or if the log cannot be written
    /// and is not required.
    pub(super) fn begin_audit(
        &self,
        session: Option<&SessionId>,
        model: Option<String>,
        mode: ApprovalMode,
        notify: &NoticeHandler,
    ) -> Result<Option<Arc<AuditWriter>>, HostError> {
        let prepared = self.prepared();
        let Some(AuditOptions { store, required }) = prepared.audit() else { return Ok(None) };
        let Some(store) = store else {
            if *required {
                return Err(HostError::NoAuditDirectory);
            }
            notify("this run has no audit log: there is no state directory");
            return Ok(None);
        };
        let policy = ComponentDigest::compute(prepared.policy().canonical().as_bytes());
        let start = AuditRunStart {
            principal: Principal::new(prepared.environment()),
            session,
            workspace: self.workspace().root().display().to_string(),
            mode,
            policy: Some(policy.to_string()),
            model,
            least_command_sandbox: prepared.commands().rules().minimum,
            required: *required,
        };
        let show = Arc::clone(notify);
        let show = Box::new(move |text: &str| show(text));
        match AuditWriter::begin(store, &start, prepared.redactor(), show) {
            Ok(audit) => Ok(Some(Arc::new(audit))),
            Err(error) if *required => Err(error.into()),
            Err(error) => {
                notify(&format!("this run has no audit log: {error}"));
                Ok(None)
            }
        }
    }
}
