//! The system prompt of a request, and the project's guide for agents.

use super::Host;
use crate::agent::{ReorderPolicy, SystemPrompt};
use crate::policy::ApprovalMode;

/// The project's guide for agents.
const GUIDE_FILE: &str = "AGENTS.md";
/// The largest part of the guide in the system prompt, in bytes.
const MAX_GUIDE_BYTES: usize = 64 << 10;

impl Host {
    /// Builds the system prompt of a request in a mode.
    pub fn system_prompt(&self, mode: ApprovalMode) -> SystemPrompt {
        SystemPrompt {
            workspace: self.workspace().root().display().to_string(),
            os: std::env::consts::OS.to_owned(),
            date: self.prepared().today(),
            reads_wait_for_writes: self.prepared().settings().reorder == ReorderPolicy::Safe,
            plan_mode: mode == ApprovalMode::Plan,
            guide: self.guide(),
        }
    }

    /// Returns the project's current guide for agents, `AGENTS.md`, cut to 64 KiB.
    pub fn guide(&self) -> Option<String> {
        let (text, has_more) =
            self.workspace().read_prefix(GUIDE_FILE, MAX_GUIDE_BYTES).ok().flatten()?;
        Some(if has_more {
            format!("{text}\n({GUIDE_FILE} is longer; only its beginning is shown.)")
        } else {
            text
        })
    }

    /// Returns a notice for the user if the model does not get the whole guide.
    pub fn guide_notice(&self) -> Option<String> {
        match self.workspace().read_prefix(GUIDE_FILE, MAX_GUIDE_BYTES) {
            Ok(Some((_, true))) => Some(format!(
                "{GUIDE_FILE} is larger than {} KiB; the model receives only its beginning.",
                MAX_GUIDE_BYTES >> 10
            )),
            Ok(Some((_, false)) | None) => None,
            Err(denial) => Some(format!(
                "cannot read {GUIDE_FILE}, so the model does not receive it: {}",
                denial.reason
            )),
        }
    }
}
