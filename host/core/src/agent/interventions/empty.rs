//! The note after an empty response.
//!
//! It also says if the output limit was used up. The loop, not this note, ends the request after a
//! second empty response in a row.

use super::{Intervention, RequestProgress, TurnSummary};

pub(super) struct EmptyResponseNote;

impl Intervention for EmptyResponseNote {
    fn note(&mut self, record: &RequestProgress) -> Option<String> {
        let Some(TurnSummary::Empty { at_limit }) = record.turns.last() else { return None };
        let problem = if *at_limit {
            "reached the output limit before it contained any text; think less"
        } else {
            "was empty"
        };
        Some(format!(
            "Your last response {problem}. Continue with the task, or give your final answer."
        ))
    }
}
