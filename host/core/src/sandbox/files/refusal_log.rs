//! The refusals of a call, for the model. The host reports them itself, so a tool cannot leave them
//! out.

use std::sync::{Arc, Mutex, PoisonError};

use crate::policy::{Denial, DenialCode};

/// The number of refusals that are reported in full.
const MAX_REPORTED: usize = 5;

/// The log of refusals, shared with the threads of walks.
#[derive(Clone, Debug, Default)]
pub(in crate::sandbox) struct FileRefusalLog(Arc<Mutex<NotedRefusal>>);

#[derive(Debug, Default)]
struct NotedRefusal {
    denials: Vec<Denial>,
    /// The number of refusals that are not in the list.
    omitted: usize,
}

impl FileRefusalLog {
    pub(in crate::sandbox) fn add(&self, denial: &Denial) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let NotedRefusal { denials: told, omitted: more } = &mut *noted;
        if told.contains(denial) {
            return;
        }
        if told.len() < MAX_REPORTED {
            return told.push(denial.clone());
        }
        *more += 1;
        // What was kept from a tool counts for more than what it did wrong, however often it did
        // that before.
        if is_protection_denial(denial)
            && let Some(other) = told.iter_mut().rev().find(|other| !is_protection_denial(other))
        {
            *other = denial.clone();
        }
    }

    pub(super) fn denials(&self) -> Vec<Denial> {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let more = (noted.omitted > 0).then(|| {
            Denial::without_remedy(
                DenialCode::TooMany,
                format!("{} more actions of this call were denied.", noted.omitted),
            )
        });
        noted.denials.iter().cloned().chain(more).collect()
    }
}

fn is_protection_denial(denial: &Denial) -> bool {
    matches!(denial.code, DenialCode::Hidden | DenialCode::Protected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denials_of_hidden_files_are_reported_among_many_other_denials() {
        let refusals = FileRefusalLog::default();
        let outside =
            |n: usize| Denial::without_remedy(DenialCode::OutsideWorkspace, format!("'{n}'"));
        for n in 0..8 {
            refusals.add(&outside(n));
            refusals.add(&outside(0));
        }
        refusals.add(&Denial::without_remedy(DenialCode::Hidden, "'.env'"));
        let told: Vec<String> = refusals.denials().iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), MAX_REPORTED + 1);
        assert_eq!(told[MAX_REPORTED - 1], "denied (hidden): '.env'");
        assert_eq!(
            told[MAX_REPORTED],
            "denied (too-many): 4 more actions of this call were \
            denied."
        );
    }
}
