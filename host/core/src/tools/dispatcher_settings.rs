//! The settings of the dispatcher.

use std::sync::Arc;

use super::instruction_record::InstructionRecord;
use super::output::OutputFiles;
use super::parallel::ParallelCallSlots;
use crate::agent::ReorderPolicy;
use crate::sandbox::{CallLimits, CommandSandbox, HostCredential};

/// The user's settings for running tool calls.
#[derive(Clone, Debug)]
pub struct DispatcherSettings {
    /// The slots for parallel calls. Clones share them with sub-agents.
    pub call_slots: ParallelCallSlots,
    /// How far reads may move ahead of writes.
    pub reorder: ReorderPolicy,
    /// The bytes of a result that the model sees, unless the tool has a cap of its own.
    pub output_limit: usize,
    /// The directory for complete outputs that were truncated. `None` discards them.
    pub output_files: Option<OutputFiles>,
    /// The default limits of each call.
    pub limits: CallLimits,
    /// The sandbox that runs commands.
    pub commands: Arc<CommandSandbox>,
    /// The number of consecutive rejections that ends the request.
    pub max_rejections: u32,
    /// The credentials that the host adds to HTTP requests.
    pub credentials: Arc<[HostCredential]>,
    /// Whether a notice is added when the same call repeatedly returns the same result.
    pub detect_repetition: bool,
    /// The record of changes of instruction files, for the next session. `None` disables it.
    pub instruction_record: Option<InstructionRecord>,
}
