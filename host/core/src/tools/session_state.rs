//! The state that outlives a call: the key-value storage of tools, and the file versions that the
//! model knows.
//!
//! A call must not overwrite or remove a file that changed on disk since the model last read it
//! because the model would decide on outdated content. These rules define the known
//! version:
//!
//! - A call that succeeded, read files, and wrote none makes the read versions known.
//! - A tool that writes reads a file only in order to change it, so the model learns nothing from
//!   that read.
//! - A walk through many files makes no version known.
//! - A committed change makes the new version known, because the model wrote it.
//! - A file that was never read in the session is not checked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::approval::lock;
use crate::agent::events::{StateValue, ToolStateDelta};
use crate::sandbox::{
    AppliedChange, CallReport, ComponentDigest, FileVersion, JobTable, Staged, StateChange,
    ToolState, ToolStateStore, TouchedPaths,
};

/// The number of remembered files. The one that was read longest ago is dropped first.
const MAX_FILES: usize = 4096;

/// The state of a session that calls share.
#[derive(Debug, Default)]
pub struct SessionState {
    tool_states: ToolStateStore,
    jobs: Option<Arc<JobTable>>,
    known_versions: Mutex<KnownVersions>,
}

/// The file versions that the model knows.
#[derive(Debug, Default)]
struct KnownVersions {
    by_path: BTreeMap<String, (u64, FileVersion)>,
    next_read: u64,
}

/// New versions by path; `None` for a removed file.
type VersionChange = Vec<(String, Option<FileVersion>)>;

impl SessionState {
    /// Restores the state of a resumed session from the changes that its calls recorded.
    pub fn from_deltas(remembered: &[ToolStateDelta]) -> Self {
        let memory = Self::default();
        for ToolStateDelta { component, tool, notes, files } in remembered {
            if let Some(component) = ComponentDigest::parse(component) {
                let changes: Vec<StateChange> = notes
                    .iter()
                    .map(|(key, value)| (key.clone(), value.clone().map(|value| value.0)))
                    .collect();
                memory.tool_state(&component, tool).restore(&changes);
            }
            let files = files
                .iter()
                .map(|(path, version)| (path.clone(), version.clone().map(FileVersion::from)))
                .collect();
            lock(&memory.known_versions).update(files);
        }
        memory
    }

    /// Lets calls start background commands, which end with this state.
    #[must_use]
    pub fn with_jobs(self) -> Self {
        Self { jobs: Some(Arc::default()), ..self }
    }

    /// Returns the background commands of the session.
    pub fn jobs(&self) -> Option<&Arc<JobTable>> {
        self.jobs.as_ref()
    }

    /// Returns the key-value storage of a tool.
    pub(super) fn tool_state(&self, component: &ComponentDigest, tool: &str) -> ToolState {
        self.tool_states.for_tool(component, tool)
    }

    /// Returns the first file that would be changed and whose version the model does not know.
    pub(super) fn find_outdated(&self, staged: &Staged) -> Option<String> {
        let known = lock(&self.known_versions);
        staged
            .replaced_files()
            .find(|(path, version)| !known.is_current(path, version))
            .map(|(path, _)| path.to_owned())
    }

    /// Records the state that a call leaves, whether it succeeded or not. Returns the change, or
    /// `None` if there is none.
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

    /// Records the state that a successful call leaves, with the changes that were committed.
    /// Returns the change, or `None` if there is none.
    fn record_success(
        &self,
        (component, tool): (&ComponentDigest, &str),
        touched: &TouchedPaths,
        made: Option<&[AppliedChange]>,
    ) -> Option<ToolStateDelta> {
        let changes: VersionChange = match made {
            Some(made) => {
                made.iter().map(|made| (made.path.clone(), made.version.clone())).collect()
            }
            None if touched.written.is_empty() => {
                touched.read.iter().map(|(path, read)| (path.clone(), Some(read.clone()))).collect()
            }
            None => Vec::new(),
        };
        self.take_delta((component, tool), changes)
    }

    /// Records the state that a failed call leaves. Its storage is kept; the versions that it read
    /// are not, because the model did not see them.
    fn record_failure(&self, by: (&ComponentDigest, &str)) -> Option<ToolStateDelta> {
        self.take_delta(by, VersionChange::new())
    }

    fn take_delta(
        &self,
        (component, tool): (&ComponentDigest, &str),
        mut changes: VersionChange,
    ) -> Option<ToolStateDelta> {
        let notes = self
            .tool_state(component, tool)
            .take_changes()
            .into_iter()
            .map(|(key, value)| (key, value.map(StateValue)))
            .collect();
        let mut known = lock(&self.known_versions);
        changes.retain(|(path, version)| {
            known.by_path.get(path).map(|(_, known)| known) != version.as_ref()
        });
        known.update(changes.clone());
        let files: Vec<_> = changes
            .into_iter()
            .map(|(path, version)| (path, version.map(|version| version.as_str().to_owned())))
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
    fn is_current(&self, path: &str, version: &FileVersion) -> bool {
        self.by_path.get(path).is_none_or(|(_, known)| known == version)
    }

    fn update(&mut self, changes: VersionChange) {
        for (path, version) in changes {
            match version {
                Some(version) => {
                    self.by_path.insert(path, (self.next_read, version));
                    self.next_read += 1;
                }
                None => {
                    self.by_path.remove(&path);
                }
            }
        }
        while self.by_path.len() > MAX_FILES {
            let oldest = self
                .by_path
                .iter()
                .min_by_key(|(_, (read, _))| *read)
                .map(|(path, _)| path.clone());
            oldest.and_then(|path| self.by_path.remove(&path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_version(text: &str) -> FileVersion {
        FileVersion::from(text.to_owned())
    }

    fn touched_by_read(path: &str, text: &str) -> TouchedPaths {
        TouchedPaths {
            read: BTreeMap::from([(path.to_owned(), file_version(text))]),
            ..TouchedPaths::default()
        }
    }

    #[test]
    fn r119_read_and_written_versions_are_known() {
        let (memory, digest) = (SessionState::default(), ComponentDigest::compute(b"x"));
        let by = (&digest, "t");
        let is_current = |memory: &SessionState, path: &str, text: &str| {
            lock(&memory.known_versions).is_current(path, &file_version(text))
        };
        assert!(is_current(&memory, "a", "1"), "a file that was never read counts as current");
        let first = memory.record_success(by, &touched_by_read("a", "1"), None).expect("new state");
        assert!(
            memory.record_success(by, &touched_by_read("a", "1"), None).is_none(),
            "an unchanged version is not new state"
        );
        assert_eq!([is_current(&memory, "a", "1"), is_current(&memory, "a", "2")], [true, false]);
        let wrote = TouchedPaths { written: ["b".to_owned()].into(), ..touched_by_read("a", "2") };
        assert!(
            memory.record_success(by, &wrote, None).is_none(),
            "the reads of a call that writes are not recorded"
        );
        assert!(memory.record_failure(by).is_none());
        assert!(!is_current(&memory, "a", "2"));
        let made = |path: &str, text: Option<&str>| AppliedChange {
            path: path.to_owned(),
            version: text.map(file_version),
        };
        let second = memory
            .record_success(by, &wrote, Some(&[made("a", Some("3")), made("c", None)]))
            .expect("new state");
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
    fn the_file_read_longest_ago_is_dropped_first() {
        let mut known = KnownVersions::default();
        known.update((0..=MAX_FILES).map(|n| (n.to_string(), Some(file_version("1")))).collect());
        assert_eq!(known.by_path.len(), MAX_FILES);
        assert!(
            known.is_current("0", &file_version("2")) && !known.is_current("1", &file_version("2"))
        );
    }
}
