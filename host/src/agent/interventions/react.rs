//! From time to time the model is asked to look back at what it just did. Off by default: models of today do so by
//! themselves; small ones may not.

use std::collections::VecDeque;

use super::{Came, Policy, Record};
use crate::conversation::ResultStatus;

/// The first turn that can have a note, and the distance between them.
const EVERY: u32 = 2;
/// So many in one request.
const MOST: u32 = 5;
/// So many of the newest are kept, in order not to say the same again.
const KEPT: usize = 5;
/// Characters of the arguments that are repeated.
const ARGUMENTS: usize = 200;

#[derive(Default)]
pub(super) struct React {
    given: u32,
    kept: VecDeque<String>,
}

impl Policy for React {
    fn note(&mut self, record: &Record) -> Option<String> {
        let is_due = record.coming.is_multiple_of(EVERY) && self.given < MOST;
        let note = is_due.then(|| record.turns.last().and_then(text)).flatten()?;
        if self.kept.contains(&note) {
            return None;
        }
        self.given += 1;
        self.kept.push_back(note.clone());
        if self.kept.len() > KEPT {
            self.kept.pop_front();
        }
        Some(note)
    }
}

fn text(came: &Came) -> Option<String> {
    let Came::Ran { tool, arguments, status } = came else { return None };
    let arguments: String = arguments.chars().take(ARGUMENTS).collect();
    let advice = match status {
        ResultStatus::Ok => {
            "Does its result bring you nearer to what the user asked for? If not, change the approach before the next call."
        }
        ResultStatus::Error => "It did not succeed. Find out why before you try again, and try something else if you cannot.",
        ResultStatus::Rejected => "The user rejected it. Take their words into account before the next call.",
        ResultStatus::NotRun | ResultStatus::Interrupted => "It did not come to its end. Check what is true now before the next call.",
    };
    Some(format!("Your last call was {tool} {arguments}. {advice}"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ran, record};
    use super::*;

    #[test]
    fn r077_from_the_second_turn_every_second_and_five_at_most() {
        let mut react = React::default();
        let turns: Vec<Came> = (0..30).map(|n| ran(&format!("tool_{n}"))).collect();
        let noted: Vec<usize> = (0..30).filter(|n| react.note(&record(&turns[..*n])).is_some()).map(|n| n + 1).collect();
        assert_eq!(noted, [2, 4, 6, 8, 10]);
    }

    #[test]
    fn r077_the_text_is_about_the_last_call_and_is_not_repeated() {
        let mut react = React::default();
        let failed = Came::Ran { tool: "bash".into(), arguments: "{\"command\":\"make\"}".into(), status: ResultStatus::Error };
        let note = react.note(&record(std::slice::from_ref(&failed))).expect("it is due");
        assert!(note.starts_with("Your last call was bash {\"command\":\"make\"}. It did not succeed."), "{note}");
        assert_eq!(react.note(&record(&[ran("grep"), ran("grep"), failed])), None);
        assert_eq!(react.note(&record(&[Came::CutOff])), None, "there is no call to speak of");
    }
}
