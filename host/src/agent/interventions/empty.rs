//! After an empty response the model is reminded. That a second one in a row ends the request is the loop's business.

use super::{Came, Policy, Record};

pub(super) struct Empty;

impl Policy for Empty {
    fn note(&mut self, record: &Record) -> Option<String> {
        let is_due = record.turns.last() == Some(&Came::Nothing);
        is_due.then(|| "Your last response was empty. Go on with the task, or give your final answer.".to_owned())
    }
}
