//! The note that says why the model can no longer call tools: the turn limit is reached.

use super::super::ports::ToolChoice;
use super::{Intervention, RequestProgress};

pub(super) struct TurnLimitNote;

impl Intervention for TurnLimitNote {
    fn note(&mut self, record: &RequestProgress) -> Option<String> {
        match record.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::None => Some(format!(
                "The limit of {} turns with tools is reached; no further calls will run. Give your \
                    final answer now: what you did, what you found, and what is left to do.",
                record.turn_limit
            )),
        }
    }
}
