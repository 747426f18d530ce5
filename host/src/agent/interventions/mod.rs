//! Remarks of the host to the model, where a request does not go as it should.
//!
//! Each policy is a file with a switch of its own. It reads what happened so far in the request,
//! and has at most one note for the next request to the model (R-74). Notes that are due together
//! become one, in the order of the policies (R-80). A note is marked as the host's, goes out once,
//! and is no part of the conversation (R-78).
//!
//! One more advice of the host stands elsewhere: that the same call gave the same result again is
//! part of that result (R-11), so the dispatcher says it.

mod empty;
mod limit;
mod react;
mod unproductive;

use super::ports::ToolChoice;
use crate::conversation::ResultStatus;

/// Which policies are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterventionSettings {
    /// The limit on turns is reached.
    pub limit: bool,
    /// A response was empty (R-75).
    pub empty: bool,
    /// Several responses in a row were cut off before they did anything (R-76).
    pub unproductive: bool,
    /// From time to time, to look back (R-77).
    pub react: bool,
}

impl Default for InterventionSettings {
    fn default() -> Self {
        Self { limit: true, empty: true, unproductive: true, react: false }
    }
}

/// What a policy may know of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestProgress {
    /// The number of the turn that comes, from 1.
    pub(super) turn: u32,
    /// Whether the model may call anything in it.
    pub(super) tool_choice: ToolChoice,
    /// How many turns with calls there may be.
    pub(super) turn_limit: u32,
    /// What the turns so far came to, in their order.
    pub(super) turns: Vec<TurnSummary>,
}

/// What a turn came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TurnSummary {
    /// Its calls were run; the last of them.
    CallsRun { tool: String, arguments: String, status: ResultStatus },
    /// It was cut off by the limit on output, and nothing was run.
    Truncated,
    /// Nothing was said, perhaps since thinking took all the room there was.
    Empty { at_limit: bool },
}

/// One policy.
pub(super) trait Intervention: Send {
    /// A note for the turn that comes.
    fn note(&mut self, record: &RequestProgress) -> Option<String>;
}

/// All policies that are on.
pub(super) struct ActiveInterventions(Vec<Box<dyn Intervention>>);

/// Begins every note.
const NOTE_HEADER: &str = "[A note of the host, not a message of the user]";

impl ActiveInterventions {
    /// In the order of their notes.
    pub(super) fn new(on: InterventionSettings) -> Self {
        let InterventionSettings { limit, empty, unproductive, react } = on;
        let all: [(bool, Box<dyn Intervention>); 4] = [
            (limit, Box::new(limit::TurnLimitNote)),
            (empty, Box::new(empty::EmptyResponseNote)),
            (unproductive, Box::new(unproductive::UnproductiveNote)),
            (react, Box::<react::ReflectionNote>::default()),
        ];
        Self(all.into_iter().filter(|(on, _)| *on).map(|(_, policy)| policy).collect())
    }

    /// The one note for the turn that comes.
    pub(super) fn note(&mut self, record: &RequestProgress) -> Option<String> {
        let notes: Vec<String> =
            self.0.iter_mut().filter_map(|policy| policy.note(record)).collect();
        (!notes.is_empty()).then(|| format!("{NOTE_HEADER}\n{}", notes.join("\n\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn record(turns: &[TurnSummary]) -> RequestProgress {
        let coming = u32::try_from(turns.len()).expect("it is small") + 1;
        RequestProgress {
            turn: coming,
            tool_choice: ToolChoice::Auto,
            turn_limit: 40,
            turns: turns.to_vec(),
        }
    }

    pub(super) fn ran(tool: &str) -> TurnSummary {
        TurnSummary::CallsRun {
            tool: tool.into(),
            arguments: "{}".into(),
            status: ResultStatus::Ok,
        }
    }

    #[test]
    fn r074_each_policy_has_its_own_switch() {
        let off =
            InterventionSettings { limit: false, empty: false, unproductive: false, react: false };
        let cut_off = [TurnSummary::Truncated, TurnSummary::Truncated, TurnSummary::Truncated];
        let last = RequestProgress { tool_choice: ToolChoice::None, ..record(&[ran("grep")]) };
        let table = [
            (InterventionSettings { limit: true, ..off }, last),
            (
                InterventionSettings { empty: true, ..off },
                record(&[TurnSummary::Empty { at_limit: false }]),
            ),
            (InterventionSettings { unproductive: true, ..off }, record(&cut_off)),
            (InterventionSettings { react: true, ..off }, record(&[ran("grep")])),
        ];
        for (at, (on, due)) in table.iter().enumerate() {
            assert_eq!(ActiveInterventions::new(off).note(due), None, "{at}");
            for (other, (_, record)) in table.iter().enumerate() {
                let note = ActiveInterventions::new(*on).note(record);
                // What is due for the limit is due for react as well: a second turn after a call.
                let also = (at, other) == (3, 0);
                assert_eq!(
                    note.is_some(),
                    at == other || also,
                    "policy {at}, record {other}: {note:?}"
                );
            }
        }
    }

    #[test]
    fn r080_two_that_are_due_are_one_note_in_fixed_order() {
        let due = RequestProgress {
            tool_choice: ToolChoice::None,
            ..record(&[TurnSummary::Empty { at_limit: false }])
        };
        let note = ActiveInterventions::new(InterventionSettings::default())
            .note(&due)
            .expect("two are due");
        insta::assert_snapshot!(note, @r"
        [A note of the host, not a message of the user]
        The limit of 40 turns with tools is reached, and no further call will be run. Give your final answer now: what you did, what you found, and what is left to do.

        Your last response was empty. Go on with the task, or give your final answer.
        ");
    }
}
