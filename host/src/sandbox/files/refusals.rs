//! What a call was refused, for the model: a tool cannot leave out what it would rather not tell.

use std::sync::{Arc, Mutex, PoisonError};

use crate::policy::{Code, Denial};

/// So many are told in full: a model reads no more.
const MOST_TOLD: usize = 5;

/// Shared with the threads of walks.
#[derive(Clone, Debug, Default)]
pub(in crate::sandbox) struct Refusals(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    told: Vec<Denial>,
    /// How many times something else was refused.
    more: usize,
}

impl Refusals {
    pub(in crate::sandbox) fn add(&self, denial: &Denial) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Noted { told, more } = &mut *noted;
        if told.contains(denial) {
            return;
        }
        if told.len() < MOST_TOLD {
            return told.push(denial.clone());
        }
        *more += 1;
        // What was kept from a tool counts for more than what it did wrong, however often it did that before.
        if matters(denial)
            && let Some(other) = told.iter_mut().rev().find(|other| !matters(other))
        {
            *other = denial.clone();
        }
    }

    pub(super) fn told(&self) -> Vec<Denial> {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let more = (noted.more > 0).then(|| Denial::fixed(Code::TooMany, format!("this call was refused {} times more.", noted.more)));
        noted.told.iter().cloned().chain(more).collect()
    }
}

fn matters(denial: &Denial) -> bool {
    matches!(denial.code, Code::Hidden | Code::Protected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_from_a_tool_is_told_however_much_it_is_refused_besides() {
        let refusals = Refusals::default();
        let outside = |n: usize| Denial::fixed(Code::OutsideWorkspace, format!("'{n}'"));
        for n in 0..8 {
            refusals.add(&outside(n));
            refusals.add(&outside(0));
        }
        refusals.add(&Denial::fixed(Code::Hidden, "'.env'"));
        let told: Vec<String> = refusals.told().iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), MOST_TOLD + 1);
        assert_eq!(told[MOST_TOLD - 1], "denied (hidden): '.env'");
        assert_eq!(told[MOST_TOLD], "denied (too-many): this call was refused 4 times more.");
    }
}
