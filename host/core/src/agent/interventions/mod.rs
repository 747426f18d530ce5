//! Interventions: notes of the host to the model when a request does not go as it should.
//!
//! Each intervention has a file and a switch. It reads the progress of the request so far and gives
//! at most one note for the next model request. Notes that are due together become one, in
//! the order of the interventions. A note is marked as the host's, is sent once, and is not
//! part of the conversation.
//!
//! The remark that a repeated call gave the same result again is part of that result, so the
//! dispatcher adds it instead.

mod empty;
mod limit;
mod react;
mod unproductive;

use super::ports::ToolChoice;
use crate::conversation::ResultStatus;

/// The switches of all interventions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterventionSettings {
    /// The note that the turn limit is reached.
    pub limit: bool,
    /// The note after an empty response.
    pub empty: bool,
    /// The note after several truncated responses in a row.
    pub unproductive: bool,
    /// An occasional note that asks the model to reflect.
    pub react: bool,
}

impl Default for InterventionSettings {
    fn default() -> Self {
        Self { limit: true, empty: true, unproductive: true, react: false }
    }
}

/// The progress of a request, as far as interventions need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestProgress {
    /// The number of the next turn, from 1.
    pub(super) turn: u32,
    /// Whether the model may call tools in the next turn.
    pub(super) tool_choice: ToolChoice,
    /// The limit on turns with tool calls.
    pub(super) turn_limit: u32,
    /// The results of the turns so far, in order.
    pub(super) turns: Vec<TurnSummary>,
}

/// The result of one turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TurnSummary {
    /// The calls of the turn were run; these are the details of the last one.
    CallsRun { tool: String, arguments: String, status: ResultStatus },
    /// The response was cut off, and none of its calls was run.
    Truncated,
    /// The response was empty, perhaps because reasoning used up the output limit (`at_limit`).
    Empty { at_limit: bool },
}

/// A single intervention, which can add a note to the next model request.
pub(super) trait Intervention: Send {
    /// Returns the note for the next turn, if one is due.
    fn note(&mut self, record: &RequestProgress) -> Option<String>;
}

/// The interventions that are switched on.
pub(super) struct ActiveInterventions(Vec<Box<dyn Intervention>>);

/// The first line of every note.
const NOTE_HEADER: &str = "[A note from the host, not a message from the user]";

impl ActiveInterventions {
    /// Creates the interventions that are switched on, in the order of their notes.
    pub(super) fn new(settings: InterventionSettings) -> Self {
        let InterventionSettings { limit, empty, unproductive, react } = settings;
        let all: [(bool, Box<dyn Intervention>); 4] = [
            (limit, Box::new(limit::TurnLimitNote)),
            (empty, Box::new(empty::EmptyResponseNote)),
            (unproductive, Box::new(unproductive::UnproductiveNote)),
            (react, Box::<react::ReflectionNote>::default()),
        ];
        Self(all.into_iter().filter(|(on, _)| *on).map(|(_, policy)| policy).collect())
    }

    /// Returns the combined note for the next turn, if any is due.
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
        let turn = u32::try_from(turns.len()).expect("small") + 1;
        RequestProgress {
            turn,
            tool_choice: ToolChoice::Auto,
            turn_limit: 40,
            turns: turns.to_vec(),
        }
    }

    pub(super) fn calls_run(tool: &str) -> TurnSummary {
        TurnSummary::CallsRun {
            tool: tool.into(),
            arguments: "{}".into(),
            status: ResultStatus::Ok,
        }
    }

    #[test]
    fn r074_each_intervention_has_its_own_switch() {
        let off =
            InterventionSettings { limit: false, empty: false, unproductive: false, react: false };
        let cut_off = [TurnSummary::Truncated, TurnSummary::Truncated, TurnSummary::Truncated];
        let at_limit =
            RequestProgress { tool_choice: ToolChoice::None, ..record(&[calls_run("grep")]) };
        let table = [
            (InterventionSettings { limit: true, ..off }, at_limit),
            (
                InterventionSettings { empty: true, ..off },
                record(&[TurnSummary::Empty { at_limit: false }]),
            ),
            (InterventionSettings { unproductive: true, ..off }, record(&cut_off)),
            (InterventionSettings { react: true, ..off }, record(&[calls_run("grep")])),
        ];
        for (at, (on, due)) in table.iter().enumerate() {
            assert_eq!(ActiveInterventions::new(off).note(due), None, "{at}");
            for (other, (_, record)) in table.iter().enumerate() {
                let note = ActiveInterventions::new(*on).note(record);
                // After one call, the note for the limit and the one to reflect are both due.
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
    fn r080_two_due_notes_become_one_in_fixed_order() {
        let due = RequestProgress {
            tool_choice: ToolChoice::None,
            ..record(&[TurnSummary::Empty { at_limit: false }])
        };
        let note = ActiveInterventions::new(InterventionSettings::default())
            .note(&due)
            .expect("two notes are due");
        assert_eq!(
            note,
            concat!(
                "[A note from the host, not a message from the user]\n",
                "The limit of 40 turns with tools is reached; no further calls will run. ",
                "Give your final answer now: what you did, what you found, and what is left to ",
                "do.\n\n",
                "Your last response was empty. Continue with the task, or give your final answer."
            )
        );
    }
}
