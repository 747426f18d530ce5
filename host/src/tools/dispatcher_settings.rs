//! Choices of the user for running calls.

use std::sync::Arc;

use super::answer::Outputs;
use super::instruction_record::InstructionRecord;
use super::parallel::Slots;
use super::schedule::Reorder;
use crate::sandbox::{Commands, Credential, Limits};

/// Choices of the user.
#[derive(Clone, Debug)]
pub struct DispatcherSettings {
    /// How many calls run at the same time, with those of others who have the same slots.
    pub parallel: Slots,
    /// How far reads are moved ahead of writes.
    pub reorder: Reorder,
    /// Bytes of a result that the model is shown, where the tool's own caps say nothing.
    pub output_cap: usize,
    /// Where whole outputs are kept when they are cut; `None`: nowhere.
    pub outputs: Option<Outputs>,
    /// The caps of each call.
    pub limits: Limits,
    /// How commands run.
    pub commands: Arc<Commands>,
    /// After so many rejections in a row the request ends.
    pub rejections: u32,
    /// What the host adds to requests.
    pub credentials: Arc<[Credential]>,
    /// Whether the same call with the same result again is remarked on.
    pub repetition: bool,
    /// Where changes of instruction files are noted for the next session; `None`: nowhere.
    pub instructions: Option<InstructionRecord>,
}
