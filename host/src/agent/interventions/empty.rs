//! After an empty response the model is reminded, and told if it had no room left to say
//! anything. That a second one in a row ends the request is the loop's business.

use super::{Intervention, RequestProgress, TurnSummary};

pub(super) struct EmptyResponseNote;

impl Intervention for EmptyResponseNote {
    fn note(&mut self, record: &RequestProgress) -> Option<String> {
        let Some(TurnSummary::Empty { at_limit }) = record.turns.last() else { return None };
        let what = if *at_limit {
            "used up its limit on output before it said anything; think less"
        } else {
            "was empty"
        };
        Some(format!("Your last response {what}. Go on with the task, or give your final answer."))
    }
}
