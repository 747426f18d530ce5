//! The note that asks the model to reflect on its last call.
//!
//! It is off by default: current large models reflect without it, but small ones may not.

use std::collections::VecDeque;

use super::{Intervention, RequestProgress, TurnSummary};
use crate::conversation::ResultStatus;

/// The first turn that can have a note, and the distance between notes, in turns.
const INTERVAL: u32 = 2;
/// The maximum number of notes in one request.
const MAX_NOTES: u32 = 5;
/// The number of recent notes that are stored to avoid a repetition.
const MAX_RECENT_NOTES: usize = 5;
/// The number of characters of the arguments that the note repeats.
const MAX_ARGUMENT_CHARS: usize = 200;

#[derive(Default)]
pub(super) struct ReflectionNote {
    notes_sent: u32,
    recent_notes: VecDeque<String>,
}

impl Intervention for ReflectionNote {
    fn note(&mut self, record: &RequestProgress) -> Option<String> {
        let is_due = record.turn.is_multiple_of(INTERVAL) && self.notes_sent < MAX_NOTES;
        let note = is_due.then(|| record.turns.last().and_then(note_text)).flatten()?;
        if self.recent_notes.contains(&note) {
            return None;
        }
        self.notes_sent += 1;
        self.recent_notes.push_back(note.clone());
        if self.recent_notes.len() > MAX_RECENT_NOTES {
            self.recent_notes.pop_front();
        }
        Some(note)
    }
}

fn note_text(turn: &TurnSummary) -> Option<String> {
    let TurnSummary::CallsRun { tool, arguments, status } = turn else { return None };
    let arguments: String = arguments.chars().take(MAX_ARGUMENT_CHARS).collect();
    let advice = match status {
        ResultStatus::Ok => {
            "Does its result bring you closer to the user's goal? If not, change your approach \
                before the next call."
        }
        ResultStatus::Error => {
            "It failed. Find out why before you try again; otherwise try something else."
        }
        ResultStatus::Rejected => {
            "The user rejected it. Consider their guidance before the next call."
        }
        ResultStatus::NotRun | ResultStatus::Interrupted => {
            "It did not finish. Check the current state before the next call."
        }
    };
    Some(format!("Your last call was {tool} {arguments}. {advice}"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{calls_run, record};
    use super::*;

    #[test]
    fn r077_every_second_turn_gets_a_note_up_to_five() {
        let mut react = ReflectionNote::default();
        let turns: Vec<TurnSummary> = (0..30).map(|n| calls_run(&format!("tool_{n}"))).collect();
        let noted: Vec<usize> = (0..30)
            .filter(|n| react.note(&record(&turns[..*n])).is_some())
            .map(|n| n + 1)
            .collect();
        assert_eq!(noted, [2, 4, 6, 8, 10]);
    }

    #[test]
    fn r077_a_note_is_about_the_last_call_and_is_not_repeated() {
        let mut react = ReflectionNote::default();
        let failed = TurnSummary::CallsRun {
            tool: "bash".into(),
            arguments: "{\"command\":\"make\"}".into(),
            status: ResultStatus::Error,
        };
        let note = react.note(&record(std::slice::from_ref(&failed))).expect("a note is due");
        assert!(
            note.starts_with("Your last call was bash {\"command\":\"make\"}. It failed."),
            "{note}"
        );
        assert_eq!(react.note(&record(&[calls_run("grep"), calls_run("grep"), failed])), None);
        assert_eq!(react.note(&record(&[TurnSummary::Truncated])), None, "no call was run");
    }
}
