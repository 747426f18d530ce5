//! Beginning an audit log.

use std::sync::Arc;

use super::builder::NoticeHandler;
use super::{Host, HostError};
use crate::audit::{AuditRunStart, AuditStore, AuditWriter, Principal};
use crate::policy::{ApprovalMode, ComponentDigest};
use crate::session::{RedactSecrets, SessionId};

/// The audit log of a host.
#[derive(Clone, Debug)]
pub struct AuditOptions {
    /// The directory of the logs, or `None` if there is none.
    pub store: Option<AuditStore>,
    /// Whether effects are denied while the log cannot be written.
    pub required: bool,
}

impl AuditOptions {
    /// Begins an audit log. Returns `None` after a notice if the log cannot be written and is not
    /// required.
    ///
    /// # Errors
    ///
    /// Returns an error if the log is required and cannot be written.
    pub fn begin(
        &self,
        start: &AuditRunStart<'_>,
        redact: RedactSecrets,
        notify: &NoticeHandler,
    ) -> Result<Option<Arc<AuditWriter>>, HostError> {
        let show = Arc::clone(notify);
        let show = Box::new(move |text: &str| show(text));
        let started = match &self.store {
            Some(store) => AuditWriter::begin(store, start, redact, show).map_err(HostError::from),
            None => Err(HostError::NoAuditDirectory),
        };
        match started {
            Ok(audit) => Ok(Some(Arc::new(audit))),
            Err(error) if self.required => Err(error),
            Err(HostError::Audit(error)) => {
                notify(&format!("this run has no audit log: {error}"));
                Ok(None)
            }
            Err(_) => {
                notify("this run has no audit log: there is no state directory");
                Ok(None)
            }
        }
    }
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
        self.begin_client_audit(None, session, model, mode, notify)
    }

    /// Begins the log of a client of a server.
    pub(super) fn begin_client_audit(
        &self,
        client: Option<String>,
        session: Option<&SessionId>,
        model: Option<String>,
        mode: ApprovalMode,
        notify: &NoticeHandler,
    ) -> Result<Option<Arc<AuditWriter>>, HostError> {
        let prepared = self.prepared();
        let Some(options) = prepared.audit() else { return Ok(None) };
        let policy = ComponentDigest::compute(prepared.policy().canonical().as_bytes());
        let start = AuditRunStart {
            principal: Principal { client, ..Principal::new(prepared.environment()) },
            session,
            workspace: self.workspace().root().display().to_string(),
            mode,
            policy: Some(policy.to_string()),
            model,
            least_command_sandbox: prepared.commands().rules().minimum,
            required: options.required,
        };
        options.begin(&start, prepared.redactor(), notify)
    }
}
