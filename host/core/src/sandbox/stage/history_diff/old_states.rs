//! The states of paths before the oldest change of each, from the records of the history.

use std::collections::BTreeMap;

use cap_std::fs::Dir;

use crate::sandbox::stage::history_record::HistoryRecord;
use crate::sandbox::stage::record::{ChangeRecordFile, RecordedState};

/// An entry as it was before a change.
pub(super) enum OldEntry {
    Absent,
    /// A directory whose entries have states of their own.
    Directory,
    Link(String),
    Special,
    /// An entry that the history has kept.
    Kept(KeptEntry),
}

/// An entry that the history has kept, with everything below it.
pub(super) struct KeptEntry {
    pub(super) directory: Dir,
    pub(super) path: String,
    /// Whether it has the permissions that it had in the workspace.
    pub(super) has_mode: bool,
}

/// The states before the oldest change of each path.
#[derive(Default)]
pub(super) struct OldStates {
    pub(super) entries: BTreeMap<String, OldEntry>,
    /// The old permissions of files and directories that stayed.
    pub(super) modes: BTreeMap<String, u32>,
    pub(super) is_complete: bool,
}

impl OldStates {
    /// Collects the old states from records, the oldest first.
    pub(super) fn collect(records: &[HistoryRecord]) -> Self {
        let mut states = Self { is_complete: true, ..Self::default() };
        for record in records {
            // Within one record, paths are independent of each other.
            let added = match record {
                HistoryRecord::Copies(record) => states.copied_entries(record),
                HistoryRecord::Moves(record) => {
                    let mut added = Vec::new();
                    let slots = record.open_slots();
                    for (number, planned) in record.manifest.moves.iter().enumerate() {
                        if let Some((before, _)) = planned.modes() {
                            if !states.covers(&planned.path) {
                                states.modes.entry(planned.path.clone()).or_insert(before);
                            }
                            continue;
                        }
                        if states.covers(&planned.path) {
                            continue;
                        }
                        let entry = if planned.has_old() {
                            let kept = slots.as_ref().ok().and_then(|slots| slots.try_clone().ok());
                            kept.map(|directory| {
                                let path = number.to_string();
                                OldEntry::Kept(KeptEntry { directory, path, has_mode: true })
                            })
                        } else {
                            Some(OldEntry::Absent)
                        };
                        added.push((planned.path.clone(), entry));
                    }
                    added
                }
            };
            for (path, entry) in added {
                match entry {
                    Some(entry) => {
                        states.entries.insert(path, entry);
                    }
                    None => states.is_complete = false,
                }
            }
        }
        states
    }

    fn copied_entries(&self, record: &ChangeRecordFile) -> Vec<(String, Option<OldEntry>)> {
        let opened = Dir::open_ambient_dir(record.directory(), cap_std::ambient_authority()).ok();
        let places = record.manifest.places.iter();
        let uncovered = places.filter(|place| !self.covers(&place.place));
        let entries = uncovered.map(|place| {
            let entry = match &place.before {
                RecordedState::Nothing => Some(OldEntry::Absent),
                RecordedState::Directory { .. } => Some(OldEntry::Directory),
                RecordedState::Link { to } => Some(OldEntry::Link(to.clone())),
                RecordedState::Special => Some(OldEntry::Special),
                RecordedState::File { kept, .. } => kept.as_ref().and_then(|kept| {
                    let directory = opened.as_ref()?.try_clone().ok()?;
                    let path = kept.name.clone();
                    Some(OldEntry::Kept(KeptEntry { directory, path, has_mode: false }))
                }),
            };
            (place.place.clone(), entry)
        });
        entries.collect()
    }

    /// Returns whether an older change has kept the state of a path already.
    fn covers(&self, path: &str) -> bool {
        if self.entries.contains_key(path) {
            return true;
        }
        path.match_indices('/').any(|(end, _)| {
            let above = self.entries.get(&path[..end]);
            above.is_some_and(|entry| !matches!(entry, OldEntry::Directory))
        })
    }
}
