//! The note after several unproductive responses in a row.
//!
//! Text ends a request, so a turn without a call is an answer and not unproductive. What counts are
//! responses that were cut off in the middle of their calls, usually by the output limit. None of
//! their calls is run, and a model that repeats the same response is cut off again.

use super::{Intervention, RequestProgress, TurnSummary};

/// The note is due after this many truncated responses in a row, and after each multiple.
const THRESHOLD: usize = 3;

pub(super) struct UnproductiveNote;

impl Intervention for UnproductiveNote {
    fn note(&mut self, record: &RequestProgress) -> Option<String> {
        let in_a_row = record
            .turns
            .iter()
            .rev()
            .take_while(|turn| matches!(turn, TurnSummary::Truncated))
            .count();
        (in_a_row > 0 && in_a_row % THRESHOLD == 0).then(|| {
            format!(
                "Your last {in_a_row} responses were truncated, and none of their calls ran. Take \
                    smaller steps: one call at a time, large files in several parts."
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{calls_run, record};
    use super::*;

    #[test]
    fn r076_three_truncated_responses_in_a_row_get_a_note() {
        let cut_off = || TurnSummary::Truncated;
        let table = [
            (vec![cut_off(), cut_off()], false),
            (vec![cut_off(), cut_off(), cut_off()], true),
            (vec![cut_off(), cut_off(), cut_off(), cut_off()], false),
            ((0..6).map(|_| TurnSummary::Truncated).collect(), true),
            (vec![cut_off(), cut_off(), calls_run("grep"), cut_off()], false),
        ];
        for (turns, is_due) in table {
            assert_eq!(UnproductiveNote.note(&record(&turns)).is_some(), is_due, "{turns:?}");
        }
    }
}
