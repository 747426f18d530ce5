//! The instruction files of a project at the start of its newest session, and who changed them
//! since. The next session reports the changes.
//!
//! Each project has one record, in a directory that only the user can access.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::agent::events::{AgentEvent, Observer};
use crate::own_file;
use crate::policy::{BuiltInList, ChangeKind, ChangeSet, FileChange, Policy};
use crate::private_dir;
use crate::sandbox::{ComponentDigest, ListedChange, ListedFiles, RanCommand};

/// The largest record that is read, in bytes.
const MAX_RECORD_BYTES: u64 = 4 << 20;
const FORMAT_VERSION: u32 = 1;

/// Notifies the user of instruction files that the commands of a call changed, and records all
/// changes of the call for the next session.
pub(super) fn record_changes(
    record: Option<&InstructionRecord>,
    tool: &str,
    (by_call, commands): (Option<&ChangeSet>, &[RanCommand]),
    policy: &Policy,
    observer: &dyn Observer,
) {
    for change in commands
        .iter()
        .flat_map(|ran| &ran.changed_files)
        .filter(|change| change.list == BuiltInList::Instructions)
    {
        let notice = format!(
            "A command {}. Review the file: the model follows it in this and every later session.",
            change.describe()
        );
        observer.observe(&AgentEvent::Notice(&notice));
    }
    let Some(record) = record else { return };
    let by_tool = by_call.map(|changes| record.record_call_changes(tool, changes, policy));
    let by_commands =
        commands.iter().map(|ran| record.record_command_changes(tool, &ran.changed_files));
    if let Some(error) = by_tool.into_iter().chain(by_commands).find_map(Result::err) {
        observer.observe(&AgentEvent::Notice(&error.to_string()));
    }
}

/// The record of the instruction files of one project.
#[derive(Clone, Debug)]
pub struct InstructionRecord {
    path: PathBuf,
}

/// An instruction file that changed since the last session began.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstructionChange {
    /// The path of the file, relative to the workspace.
    pub path: String,
    /// Whether the file existed at the start of the last session.
    pub existed: bool,
    /// Whether the file exists now.
    pub exists: bool,
    /// The origin of the current state, and its time. `None` if no tool call and no command of a
    /// session made it.
    pub changed_by: Option<(InstructionChangeOrigin, String)>,
}

/// The origin of a change of an instruction file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstructionChangeOrigin {
    /// A call of the tool with this name.
    Tool(String),
    /// A command that the tool with this name ran.
    Command(String),
}

/// An error that means that the record cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the record of instruction files `{}`: {message}", path.display())]
pub struct InstructionRecordError {
    path: PathBuf,
    message: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredRecord {
    version: u32,
    /// The version of each file when the newest session began.
    files: BTreeMap<String, String>,
    /// The changes that sessions made since then.
    changes: BTreeMap<String, StoredChange>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct StoredChange {
    by: InstructionChangeOrigin,
    /// The version after the change; `None` if the file was removed.
    version: Option<String>,
    at: String,
}

impl InstructionRecord {
    /// Creates the record of the project at `workspace`. The directory need not exist yet.
    pub fn new(directory: &Path, workspace: &Path) -> Self {
        let key = ComponentDigest::compute(workspace.as_os_str().as_bytes());
        Self { path: directory.join(format!("{}.json", key.short())) }
    }

    /// Returns the changes since the newest session began, and stores the current files for the
    /// next comparison. The first session of a project has no changes.
    ///
    /// # Errors
    ///
    /// Returns an error if the record cannot be read or written, or if it was broken. A broken
    /// record is replaced.
    pub fn begin_session(
        &self,
        found: &ListedFiles,
    ) -> Result<Vec<InstructionChange>, InstructionRecordError> {
        let (changes, was_broken) = self.update(|known, was_broken| {
            let now: BTreeMap<String, String> = instruction_files(found)
                .map(|(path, version)| (path.to_owned(), version.to_owned()))
                .collect();
            let mut stored = known.take().unwrap_or_default();
            let is_first = stored.version == 0;
            let mut changes = Vec::new();
            let gone = stored
                .files
                .keys()
                .filter(|path| !now.contains_key(*path) && !found.is_truncated());
            for path in now.keys().chain(gone) {
                let (before, after) = (stored.files.get(path), now.get(path));
                if before != after {
                    let by = stored.changes.get(path).filter(|change| change.matches(after));
                    let by = by.map(|change| (change.by.clone(), change.at.clone()));
                    changes.push(InstructionChange {
                        path: path.clone(),
                        existed: before.is_some(),
                        exists: after.is_some(),
                        changed_by: by,
                    });
                }
            }
            // A truncated scan may have missed files, so their older state is kept.
            let mut files = if found.is_truncated() {
                std::mem::take(&mut stored.files)
            } else {
                BTreeMap::new()
            };
            files.extend(now);
            *known =
                Some(StoredRecord { version: FORMAT_VERSION, files, changes: BTreeMap::new() });
            (if is_first { Vec::new() } else { changes }, was_broken)
        })?;
        if was_broken {
            return Err(self.error(
                &"the record was damaged and has been replaced; changes since the last session are \
                    not reported",
            ));
        }
        Ok(changes)
    }

    /// Records the instruction files that a tool changed. Writes nothing if there are none.
    ///
    /// # Errors
    ///
    /// Returns an error if the record cannot be read or written.
    pub fn record_call_changes(
        &self,
        tool: &str,
        changes: &ChangeSet,
        policy: &Policy,
    ) -> Result<(), InstructionRecordError> {
        let mut noted = Vec::new();
        for change in changes {
            noted.extend(resulting_contents(change).into_iter().filter_map(|(path, version)| {
                let listed = policy
                    .approval_paths()
                    .find_built_in(path)
                    .filter(|listed| listed.list == BuiltInList::Instructions)?;
                Some((listed.path, version))
            }));
        }
        self.record(noted, &InstructionChangeOrigin::Tool(tool.to_owned()))
    }

    /// Records the instruction files that a command changed.
    ///
    /// # Errors
    ///
    /// Returns an error if the record cannot be read or written.
    pub fn record_command_changes(
        &self,
        tool: &str,
        changes: &[ListedChange],
    ) -> Result<(), InstructionRecordError> {
        let instructions = changes.iter().filter(|change| change.list == BuiltInList::Instructions);
        self.record(
            instructions.map(|change| (change.path.clone(), change.version.clone())).collect(),
            &InstructionChangeOrigin::Command(tool.to_owned()),
        )
    }

    fn record(
        &self,
        changes: Vec<(String, Option<String>)>,
        by: &InstructionChangeOrigin,
    ) -> Result<(), InstructionRecordError> {
        if changes.is_empty() {
            return Ok(());
        }
        let at = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string();
        self.update(|known, _| {
            // Without an earlier session there is nothing to compare with.
            if let Some(stored) = known {
                let change = |version| StoredChange { by: by.clone(), version, at: at.clone() };
                stored
                    .changes
                    .extend(changes.into_iter().map(|(path, version)| (path, change(version))));
            }
        })
    }

    /// Changes the record under a lock, so that other processes wait.
    fn update<T>(
        &self,
        change: impl FnOnce(&mut Option<StoredRecord>, bool) -> T,
    ) -> Result<T, InstructionRecordError> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        private_dir::create(directory).map_err(|problem| self.error(&problem))?;
        let io = |error: io::Error| self.error(&error);
        let lock = own_file::open_lock(&self.path.with_extension("lock")).map_err(io)?;
        lock.lock().map_err(io)?;
        let (mut known, was_broken) = self.read().map_err(io)?;
        let outcome = change(&mut known, was_broken);
        if let Some(stored) = known {
            let text = serde_json::to_vec(&stored).map_err(|error| self.error(&error))?;
            let mut file = tempfile::NamedTempFile::new_in(directory).map_err(io)?;
            file.write_all(&text).map_err(io)?;
            file.persist(&self.path).map_err(|error| io(error.error))?;
        }
        Ok(outcome)
    }

    /// Reads the record. The second value is whether a record exists that cannot be parsed.
    fn read(&self) -> io::Result<(Option<StoredRecord>, bool)> {
        let text = match own_file::read(&self.path, MAX_RECORD_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((None, false)),
            // What others can have written is as good as what is not understood.
            Err(_) => return Ok((None, true)),
        };
        let stored = serde_json::from_slice(&text)
            .ok()
            .filter(|stored: &StoredRecord| stored.version == FORMAT_VERSION);
        let is_broken = stored.is_none();
        Ok((stored, is_broken))
    }

    fn error(&self, problem: &dyn std::fmt::Display) -> InstructionRecordError {
        InstructionRecordError { path: self.path.clone(), message: problem.to_string() }
    }
}

impl StoredChange {
    /// Returns whether the file is in the state that this change left. The version of a link
    /// includes the version of its target.
    fn matches(&self, now: Option<&String>) -> bool {
        match (&self.version, now) {
            (None, None) => true,
            (Some(version), Some(now)) => {
                now == version
                    || now.ends_with(&format!(", {version}"))
                    || now.starts_with(&format!("{version}, "))
            }
            (None, Some(_)) | (Some(_), None) => false,
        }
    }
}

impl InstructionChange {
    /// Describes the change for the user.
    pub fn describe(&self) -> String {
        let what = match (self.existed, self.exists) {
            (true, true) => "was changed",
            (false, _) => "was created",
            (true, false) => "was deleted",
        };
        let by = match &self.changed_by {
            Some((InstructionChangeOrigin::Tool(tool), at)) => {
                format!("by the tool {tool}, on {at}")
            }
            Some((InstructionChangeOrigin::Command(tool), at)) => {
                format!("by a command of the tool {tool}, on {at}")
            }
            None => "but not by a tool or a command of a session".to_owned(),
        };
        format!("{} {what} since the last session of this project, {by}.", self.path)
    }
}

fn instruction_files(found: &ListedFiles) -> impl Iterator<Item = (&str, &str)> {
    found
        .iter()
        .filter(|(_, file)| file.list == BuiltInList::Instructions)
        .map(|(path, file)| (path, file.version.as_str()))
}

/// Returns the version that a change leaves at each of its paths; `None` for a removed file.
fn resulting_contents(change: &FileChange) -> Vec<(&crate::policy::WorkspacePath, Option<String>)> {
    let content = |digest: &str| Some(format!("sha256:{digest}"));
    match &change.kind {
        ChangeKind::Create { after } | ChangeKind::Modify { after, .. } => {
            vec![(&change.path, content(&after.digest))]
        }
        ChangeKind::Move { from, after } => {
            vec![(&change.path, content(&after.digest)), (from, None)]
        }
        ChangeKind::Link { to } => vec![(&change.path, Some(format!("link to {to}")))],
        ChangeKind::Delete { .. } | ChangeKind::Unlink => vec![(&change.path, None)],
        // The content stays.
        ChangeKind::CreateDirectory | ChangeKind::RemoveDirectory | ChangeKind::SetMode { .. } => {
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::*;
    use crate::policy::{ContentDigest, WorkspacePath};
    use crate::sandbox::Workspace;
    use crate::sandbox::test_environment::open_workspace;

    struct TestProject {
        directory: tempfile::TempDir,
        workspace: Arc<Workspace>,
        record: InstructionRecord,
    }

    impl TestProject {
        fn new() -> Self {
            let directory = tempfile::tempdir().expect("temporary directory");
            fs::create_dir(directory.path().join("work")).expect("temporary directory");
            let workspace = Arc::new(open_workspace(&directory.path().join("work")));
            let record = InstructionRecord::new(&directory.path().join("state"), workspace.root());
            Self { directory, workspace, record }
        }

        fn write(&self, path: &str, text: &str) {
            fs::write(self.directory.path().join("work").join(path), text).expect("written");
        }

        fn begin_session(&self) -> Vec<String> {
            let changes =
                self.record.begin_session(&self.workspace.scan_listed_files()).expect("recorded");
            changes
                .iter()
                .map(|change| {
                    change.describe().split(", on ").next().unwrap_or_default().to_owned()
                })
                .collect()
        }
    }

    #[test]
    fn a_session_reports_what_changed_since_the_last_one_and_who_changed_it() {
        let project = TestProject::new();
        project.write("AGENTS.md", "one");
        assert_eq!(
            project.begin_session(),
            [""; 0],
            "the first session has nothing to compare with"
        );
        assert_eq!(project.begin_session(), [""; 0]);
        // A change from outside of the session.
        project.write("AGENTS.md", "two");
        project.write("CLAUDE.md", "new");
        assert_eq!(
            project.begin_session(),
            [
                "AGENTS.md was changed since the last session of this project, but not by a tool \
                    or a command of a session.",
                "CLAUDE.md was created since the last session of this project, but not by a tool \
                    or a command of a session.",
            ]
        );
        assert_eq!(project.begin_session(), [""; 0], "it is reported once");
        // A change by a tool.
        project.write("AGENTS.md", "three");
        let after =
            ContentDigest { size: 5, digest: ComponentDigest::compute(b"three").to_string() };
        let path = WorkspacePath::parse("AGENTS.md", None).expect("a path");
        let changes = ChangeSet::new(vec![FileChange {
            path,
            kind: ChangeKind::Modify { before: 3, after },
            diff: None,
        }]);
        project
            .record
            .record_call_changes("write_file", &changes, &Policy::default())
            .expect("recorded");
        assert_eq!(
            project.begin_session(),
            ["AGENTS.md was changed since the last session of this project, by the tool \
                write_file"]
        );
        // A change by a command.
        let before = project.workspace.scan_listed_files();
        fs::remove_file(project.directory.path().join("work/CLAUDE.md")).expect("removed");
        let changed = project.workspace.scan_listed_files().changes_since(&before);
        project.record.record_command_changes("bash", &changed).expect("recorded");
        assert_eq!(
            project.begin_session(),
            ["CLAUDE.md was deleted since the last session of this project, by a command of \
                    the tool bash"]
        );
    }

    #[test]
    fn a_later_change_is_not_attributed_to_the_tool() {
        let project = TestProject::new();
        project.write("AGENTS.md", "one");
        project.begin_session();
        let before = project.workspace.scan_listed_files();
        project.write("AGENTS.md", "two");
        let changed = project.workspace.scan_listed_files().changes_since(&before);
        project.record.record_command_changes("bash", &changed).expect("recorded");
        project.write("AGENTS.md", "three");
        assert_eq!(
            project.begin_session(),
            ["AGENTS.md was changed since the last session of this project, but not by a tool \
                    or a command of a session."]
        );
    }

    #[test]
    fn a_broken_record_is_reported_and_replaced() {
        let project = TestProject::new();
        project.write("AGENTS.md", "one");
        project.begin_session();
        fs::write(&project.record.path, "{\"version\": 1, \"files\": 7}").expect("written");
        project.write("AGENTS.md", "two");
        let error = project
            .record
            .begin_session(&project.workspace.scan_listed_files())
            .expect_err("damaged record")
            .to_string();
        assert!(error.contains("has been replaced"), "{error}");
        project.write("AGENTS.md", "three");
        assert_eq!(project.begin_session().len(), 1);
    }
}
