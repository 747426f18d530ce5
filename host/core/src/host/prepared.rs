//! A host before its workspace is opened for tools.

use std::path::PathBuf;
use std::sync::Arc;

use super::builder::NoticeHandler;
use super::{AuditOptions, Host, HostError, RequestSettings};
use crate::agent::events::Observer;
use crate::config::UserDirectories;
use crate::model::ApiKey;
use crate::policy::{ApprovalMode, CapName, Policy};
use crate::sandbox::{
    CommandSandbox, HostCredential, HostEnvironment, ListedFiles, UndoHistory, WasmSandbox,
};
use crate::session::RedactSecrets;
use crate::tools::{
    Approver, DispatcherSettings, InstructionRecord, OutputFiles, ParallelCallSlots,
    PluginProvenance, SessionApprovals, ToolCatalog, UserRuleFile,
};

/// The number of consecutive rejections after which a request returns to the user.
const MAX_REJECTIONS: u32 = 3;

/// The policy and the tools of a host, for commands that inspect them and call none. Clones share
/// everything.
#[derive(Clone)]
pub struct PreparedHost {
    parts: Arc<PreparedParts>,
}

pub(super) struct PreparedParts {
    pub(super) workspace: PathBuf,
    pub(super) environment: HostEnvironment,
    pub(super) mode: ApprovalMode,
    pub(super) plugins: Vec<PathBuf>,
    pub(super) sandbox: Arc<WasmSandbox>,
    pub(super) catalog: Arc<ToolCatalog>,
    pub(super) commands: Arc<CommandSandbox>,
    pub(super) credentials: Arc<[HostCredential]>,
    pub(super) secrets: Vec<ApiKey>,
    /// Shared by requests and their sub-agents, so that the limit holds for all together.
    pub(super) call_slots: ParallelCallSlots,
    pub(super) settings: RequestSettings,
    pub(super) directories: Option<UserDirectories>,
    /// The files and directories of the program itself.
    pub(super) own: Vec<PathBuf>,
    /// The instruction files and the files that run code, as found at the start.
    pub(super) listed_files: ListedFiles,
    pub(super) instruction_record: Option<InstructionRecord>,
    pub(super) audit: Option<AuditOptions>,
    pub(super) approver: Option<Arc<dyn Approver>>,
    pub(super) rule_file: Option<UserRuleFile>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) warn: NoticeHandler,
    pub(super) today: Arc<dyn Fn() -> String + Send + Sync>,
}

impl PreparedHost {
    pub(super) fn new(parts: PreparedParts) -> Self {
        Self { parts: Arc::new(parts) }
    }

    /// Opens the workspace for tools.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory contains files of this program, or files that other
    /// programs run or obey.
    pub fn open(&self) -> Result<Host, HostError> {
        let workspace = self.open_workspace(&self.parts.workspace)?;
        let history = self.parts.directories.as_ref().map(|directories| {
            Arc::new(UndoHistory::for_workspace(&directories.undo(), &workspace))
        });
        Ok(Host::new(self.clone(), workspace, history, self.approver()))
    }

    /// Checks that every plugin that the builder names was loaded or refused by its review.
    ///
    /// # Errors
    ///
    /// Returns an error for a plugin that is broken.
    pub fn check_plugins(&self) -> Result<(), HostError> {
        let is_named = |origin: &PluginProvenance| match origin {
            PluginProvenance::File(path) => self.parts.plugins.contains(path),
            PluginProvenance::BuiltIn(_) | PluginProvenance::Source(_) => false,
        };
        let refused = self.parts.catalog.refused_plugins().iter();
        match refused.into_iter().find(|refused| refused.is_broken && is_named(&refused.origin)) {
            Some(refused) => Err(HostError::Plugin {
                origin: refused.origin.to_string(),
                reason: refused.reason.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Returns the paths of the plugins that the builder names.
    pub fn plugins(&self) -> &[PathBuf] {
        &self.parts.plugins
    }

    /// Returns the tools, with the permissions that the policy leaves them.
    pub fn catalog(&self) -> &Arc<ToolCatalog> {
        &self.parts.catalog
    }

    /// Returns the policy in force.
    pub fn policy(&self) -> &Arc<Policy> {
        self.parts.catalog.policy()
    }

    /// Returns the sandbox of the tools.
    pub fn sandbox(&self) -> &Arc<WasmSandbox> {
        &self.parts.sandbox
    }

    /// Returns the sandbox of commands.
    pub fn commands(&self) -> &Arc<CommandSandbox> {
        &self.parts.commands
    }

    /// Returns the directories of the host, if it has any.
    pub fn directories(&self) -> Option<&UserDirectories> {
        self.parts.directories.as_ref()
    }

    /// Returns the approval mode at the start of a session.
    pub fn mode(&self) -> ApprovalMode {
        self.parts.mode
    }

    /// Returns the limits of requests.
    pub fn settings(&self) -> &RequestSettings {
        &self.parts.settings
    }

    /// Returns the instruction files and the files that run code, as found at the start.
    pub fn listed_files(&self) -> &ListedFiles {
        &self.parts.listed_files
    }

    /// Returns the record of changes to instruction files, if the host has directories.
    pub fn instruction_record(&self) -> Option<&InstructionRecord> {
        self.parts.instruction_record.as_ref()
    }

    /// Returns a function that redacts all secrets of the host from a text.
    pub fn redactor(&self) -> RedactSecrets {
        let parts = Arc::clone(&self.parts);
        Box::new(move |text| {
            parts.secrets.iter().fold(text.to_owned(), |text, secret| secret.redact(&text))
        })
    }

    pub(super) fn environment(&self) -> &HostEnvironment {
        &self.parts.environment
    }

    pub(super) fn audit(&self) -> Option<&AuditOptions> {
        self.parts.audit.as_ref()
    }

    pub(super) fn observer(&self) -> &Arc<dyn Observer> {
        &self.parts.observer
    }

    pub(super) fn approver(&self) -> Option<Arc<dyn Approver>> {
        self.parts.approver.clone()
    }

    pub(super) fn own_paths(&self) -> &[PathBuf] {
        &self.parts.own
    }

    pub(super) fn today(&self) -> String {
        (self.parts.today)()
    }

    pub(super) fn warn(&self, text: &str) {
        (self.parts.warn)(text);
    }

    pub(super) fn notice_handler(&self) -> NoticeHandler {
        Arc::clone(&self.parts.warn)
    }

    /// Creates approvals under the policy, in the mode of the host.
    pub(super) fn new_approvals(&self, approver: Option<Arc<dyn Approver>>) -> SessionApprovals {
        let approvals =
            SessionApprovals::new(self.parts.mode, approver).with_policy(Arc::clone(self.policy()));
        match &self.parts.rule_file {
            Some(file) => approvals.with_rule_file(file.clone()),
            None => approvals,
        }
    }

    pub(super) fn dispatcher_settings(&self, outputs: Option<OutputFiles>) -> DispatcherSettings {
        let parts = &self.parts;
        DispatcherSettings {
            call_slots: parts.call_slots.clone(),
            reorder: parts.settings.reorder,
            output_limit: usize::try_from(CapName::ShownBytes.default_value())
                .unwrap_or(usize::MAX),
            output_files: outputs,
            limits: parts.settings.call_limits.clone(),
            commands: Arc::clone(&parts.commands),
            max_rejections: MAX_REJECTIONS,
            credentials: Arc::clone(&parts.credentials),
            detect_repetition: parts.settings.repetition_notice,
            instruction_record: parts.instruction_record.clone(),
        }
    }
}
