//! Responses that come to nothing, one after the other.
//!
//! Here text ends a request, so a turn without a call is an answer. What is left are responses that
//! were cut off in the middle of their calls, mostly by the limit on output: nothing of them is
//! run, and a model that tries the same again is cut off again.

use super::{Intervention, RequestProgress, TurnSummary};

/// So many in a row, and each time as many again.
const THRESHOLD: usize = 3;

pub(super) struct UnproductiveNote;

impl Intervention for UnproductiveNote {
    fn note(&mut self, record: &RequestProgress) -> Option<String> {
        let in_a_row = record
            .turns
            .iter()
            .rev()
            .take_while(|came| matches!(came, TurnSummary::Truncated))
            .count();
        (in_a_row > 0 && in_a_row % THRESHOLD == 0).then(|| {
            format!(
                "Your last {in_a_row} responses were cut off before their end, and none of their \
                    calls was run. Take smaller steps: \
                 one call at a time, large files in several parts."
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ran, record};
    use super::*;

    #[test]
    fn r076_three_that_come_to_nothing_are_remarked_on() {
        let cut_off = || TurnSummary::Truncated;
        let table = [
            (vec![cut_off(), cut_off()], false),
            (vec![cut_off(), cut_off(), cut_off()], true),
            (vec![cut_off(), cut_off(), cut_off(), cut_off()], false),
            ((0..6).map(|_| TurnSummary::Truncated).collect(), true),
            (vec![cut_off(), cut_off(), ran("grep"), cut_off()], false),
        ];
        for (turns, is_due) in table {
            assert_eq!(UnproductiveNote.note(&record(&turns)).is_some(), is_due, "{turns:?}");
        }
    }
}
