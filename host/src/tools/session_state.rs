//! What outlives a call for as long as its session: what tools keep for themselves, and which
//! version of files the model knows.
//!
//! A file that changed on disk since the model last read it is not overwritten, nor removed
//! the model would decide on what is no longer there. What counts as reading is a call
//! that ended well, has read files and has written none; a tool that writes looks at a file in
//! order to change it, and its look tells the model nothing; nor does a walk through many. After a
//! change that was made the model knows the new version, since it is its own. A file that was never
//! read in the session is no concern of this: there is nothing to have changed since.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::approval::lock;
use crate::agent::events::ToolStateDelta;
use crate::sandbox::{
    AppliedChange, CallReport, ComponentDigest, FileVersion, Staged, ToolState, ToolStateStore,
    TouchedPaths,
};

/// Files that are remembered; the one that was read longest ago makes room.
const MAX_FILES: usize = 4096;

/// The memory of a session.
#[derive(Debug, Default)]
pub struct SessionState {
    tool_states: ToolStateStore,
    known_versions: Mutex<KnownVersions>,
}

/// Which version of files the model knows.
#[derive(Debug, Default)]
struct KnownVersions {
    by_path: BTreeMap<String, (u64, FileVersion)>,
    next_read: u64,
}

/// A version, or that there is no file any more, by place.
type VersionChange = Vec<(String, Option<FileVersion>)>;

impl SessionState {
    /// That of a session that goes on.
    pub fn from_deltas(remembered: &[ToolStateDelta]) -> Self {
        let memory = Self::default();
        for ToolStateDelta { component, tool, notes, files } in remembered {
            if let Some(component) = ComponentDigest::parse(component) {
                memory.tool_state(&component, tool).restore(notes);
            }
            let files = files
                .iter()
                .map(|(place, version)| (place.clone(), version.clone().map(FileVersion::from)))
                .collect();
            lock(&memory.known_versions).update(files);
        }
        memory
    }

    /// What a tool keeps.
    pub(super) fn tool_state(&self, component: &ComponentDigest, tool: &str) -> ToolState {
        self.tool_states.for_tool(component, tool)
    }

    /// The first file that would be changed and is not as the model knows it.
    pub(super) fn find_outdated(&self, staged: &Staged) -> Option<String> {
        let known = lock(&self.known_versions);
        staged
            .replaced_files()
            .find(|(place, version)| !known.is_current(place, version))
            .map(|(place, _)| place.to_owned())
    }

    /// Takes in what a call has left, however it ended.
    pub(super) fn record_call(
        &self,
        by: (&ComponentDigest, &str),
        report: &CallReport,
        made: Option<&[AppliedChange]>,
    ) -> Option<ToolStateDelta> {
        match &report.result {
            Ok(_) => self.record_success(by, &report.touched, made),
            Err(_) => self.record_failure(by),
        }
    }

    /// Takes in what a call has left that ended well and made these changes, and tells what it was;
    /// `None` if it was nothing.
    fn record_success(
        &self,
        (component, tool): (&ComponentDigest, &str),
        touched: &TouchedPaths,
        made: Option<&[AppliedChange]>,
    ) -> Option<ToolStateDelta> {
        let news: VersionChange = match made {
            Some(made) => {
                made.iter().map(|made| (made.path.clone(), made.version.clone())).collect()
            }
            None if touched.written.is_empty() => touched
                .read
                .iter()
                .map(|(place, read)| (place.clone(), Some(read.clone())))
                .collect(),
            None => Vec::new(),
        };
        self.take_delta((component, tool), news)
    }

    /// The same of one that ended otherwise: what it has kept is kept, and what it has read nobody
    /// has seen.
    fn record_failure(&self, by: (&ComponentDigest, &str)) -> Option<ToolStateDelta> {
        self.take_delta(by, VersionChange::new())
    }

    fn take_delta(
        &self,
        (component, tool): (&ComponentDigest, &str),
        mut news: VersionChange,
    ) -> Option<ToolStateDelta> {
        let notes = self.tool_state(component, tool).take_changes();
        let mut known = lock(&self.known_versions);
        news.retain(|(place, version)| {
            known.by_path.get(place).map(|(_, known)| known) != version.as_ref()
        });
        known.update(news.clone());
        let files: Vec<_> = news
            .into_iter()
            .map(|(place, version)| (place, version.map(|version| version.as_str().to_owned())))
            .collect();
        let remembered = ToolStateDelta {
            component: component.as_str().to_owned(),
            tool: tool.to_owned(),
            notes,
            files,
        };
        (!remembered.notes.is_empty() || !remembered.files.is_empty()).then_some(remembered)
    }
}

impl KnownVersions {
    fn is_current(&self, place: &str, version: &FileVersion) -> bool {
        self.by_path.get(place).is_none_or(|(_, known)| known == version)
    }

    fn update(&mut self, news: VersionChange) {
        for (place, version) in news {
            match version {
                Some(version) => {
                    self.by_path.insert(place, (self.next_read, version));
                    self.next_read += 1;
                }
                None => drop(self.by_path.remove(&place)),
            }
        }
        while self.by_path.len() > MAX_FILES {
            let oldest = self
                .by_path
                .iter()
                .min_by_key(|(_, (read, _))| *read)
                .map(|(place, _)| place.clone());
            oldest.and_then(|place| self.by_path.remove(&place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_version(text: &str) -> FileVersion {
        FileVersion::from(text.to_owned())
    }

    fn touched_by_read(place: &str, text: &str) -> TouchedPaths {
        TouchedPaths {
            read: BTreeMap::from([(place.to_owned(), file_version(text))]),
            ..TouchedPaths::default()
        }
    }

    #[test]
    fn r119_what_was_read_or_made_is_what_is_known() {
        let (memory, digest) = (SessionState::default(), ComponentDigest::compute(b"x"));
        let by = (&digest, "t");
        let is_current = |memory: &SessionState, place: &str, text: &str| {
            lock(&memory.known_versions).is_current(place, &file_version(text))
        };
        assert!(is_current(&memory, "a", "1"), "what nobody has read has not changed since");
        let first =
            memory.record_success(by, &touched_by_read("a", "1"), None).expect("there is news");
        assert!(
            memory.record_success(by, &touched_by_read("a", "1"), None).is_none(),
            "the same again is none"
        );
        assert_eq!([is_current(&memory, "a", "1"), is_current(&memory, "a", "2")], [true, false]);
        let wrote = TouchedPaths { written: ["b".to_owned()].into(), ..touched_by_read("a", "2") };
        assert!(
            memory.record_success(by, &wrote, None).is_none(),
            "a tool that writes looks for itself"
        );
        assert!(memory.record_failure(by).is_none());
        assert!(!is_current(&memory, "a", "2"));
        let made = |place: &str, text: Option<&str>| AppliedChange {
            path: place.to_owned(),
            version: text.map(file_version),
        };
        let second = memory
            .record_success(by, &wrote, Some(&[made("a", Some("3")), made("c", None)]))
            .expect("there is news");
        assert_eq!([is_current(&memory, "a", "3"), is_current(&memory, "a", "1")], [true, false]);

        let again = SessionState::from_deltas(&[first, second]);
        assert_eq!(
            [
                is_current(&again, "a", "3"),
                is_current(&again, "a", "1"),
                is_current(&again, "c", "1")
            ],
            [true, false, true]
        );
    }

    #[test]
    fn what_was_read_longest_ago_makes_room() {
        let mut known = KnownVersions::default();
        known.update((0..=MAX_FILES).map(|n| (n.to_string(), Some(file_version("1")))).collect());
        assert_eq!(known.by_path.len(), MAX_FILES);
        assert!(
            known.is_current("0", &file_version("2")) && !known.is_current("1", &file_version("2"))
        );
    }
}
