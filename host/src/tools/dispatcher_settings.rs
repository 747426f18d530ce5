//! Choices of the user for running calls.

use std::sync::Arc;

use super::instruction_record::InstructionRecord;
use super::output::OutputFiles;
use super::parallel::ParallelCallSlots;
use super::schedule::ReorderPolicy;
use crate::sandbox::{CallLimits, CommandSandbox, HostCredential};

/// Choices of the user.
#[derive(Clone, Debug)]
pub struct DispatcherSettings {
    /// How many calls run at the same time, with those of others who have the same slots.
    pub call_slots: ParallelCallSlots,
    /// How far reads are moved ahead of writes.
    pub reorder: ReorderPolicy,
    /// Bytes of a result that the model is shown, where the tool's own caps say nothing.
    pub output_limit: usize,
    /// Where whole outputs are kept when they are cut; `None`: nowhere.
    pub output_files: Option<OutputFiles>,
    /// The caps of each call.
    pub limits: CallLimits,
    /// How commands run.
    pub commands: Arc<CommandSandbox>,
    /// After so many rejections in a row the request ends.
    pub max_rejections: u32,
    /// What the host adds to requests.
    pub credentials: Arc<[HostCredential]>,
    /// Whether the same call with the same result again is remarked on.
    pub detect_repetition: bool,
    /// Where changes of instruction files are noted for the next session; `None`: nowhere.
    pub instruction_record: Option<InstructionRecord>,
}
