//! What the instruction files of a project held when its newest session began, and who changed them since, so that the
//! next session can report it.
//!
//! One file for each project, in a directory that is the user's alone.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::agent::events::{Event, Observer};
use crate::policy::{Act, BuiltInList, Change, Changes, Policy};
use crate::private;
use crate::sandbox::{Digest, ListedChange, ListedFiles, RanCommand};

/// The largest record that is read.
const LARGEST: u64 = 4 << 20;
const VERSION: u32 = 1;

/// Tells the user which instruction files the commands of a call changed, and has the next session know who changed which.
pub(super) fn note(
    record: Option<&InstructionRecord>,
    tool: &str,
    (by_call, commands): (Option<&Changes>, &[RanCommand]),
    policy: &Policy,
    observer: &dyn Observer,
) {
    for change in commands.iter().flat_map(|ran| &ran.changed).filter(|change| change.list == BuiltInList::Instructions) {
        let notice = format!("A command {}. Review it: it steers this and every later session.", change.describe());
        observer.observe(&Event::Notice(&notice));
    }
    let Some(record) = record else { return };
    let by_tool = by_call.map(|changes| record.note_changes(tool, changes, policy));
    let by_commands = commands.iter().map(|ran| record.note_command(tool, &ran.changed));
    if let Some(error) = by_tool.into_iter().chain(by_commands).find_map(Result::err) {
        observer.observe(&Event::Notice(&error.to_string()));
    }
}

/// The record of a project.
#[derive(Clone, Debug)]
pub struct InstructionRecord {
    path: PathBuf,
}

/// An instruction file that is not what it was when the last session began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionChange {
    /// Its path, from the workspace on.
    pub path: String,
    /// Whether it was there.
    pub was_there: bool,
    /// Whether it is there.
    pub is_there: bool,
    /// Who made it what it is now, and when; `None` if no tool call and no command of a session did.
    pub by: Option<(ChangedBy, String)>,
}

/// Who changed an instruction file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangedBy {
    /// A call of the tool of this name.
    Tool(String),
    /// A command that the tool of this name ran.
    Command(String),
}

/// The record cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the record of instruction files, {}: {problem}", path.display())]
pub struct InstructionRecordError {
    path: PathBuf,
    problem: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    version: u32,
    /// What each file held when the newest session began.
    files: BTreeMap<String, String>,
    /// What sessions changed since.
    changes: BTreeMap<String, StoredChange>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct StoredChange {
    by: ChangedBy,
    /// What the file held then; absent: it was removed.
    version: Option<String>,
    at: String,
}

impl InstructionRecord {
    /// The record of the project at `workspace`, in a directory that need not be there yet.
    pub fn new(directory: &Path, workspace: &Path) -> Self {
        let key = Digest::of(workspace.as_os_str().as_bytes());
        Self { path: directory.join(format!("{}.json", key.short())) }
    }

    /// Tells what changed since the newest session began, and takes what is there now for what the next one compares with.
    /// The first session of a project has nothing to compare with.
    pub fn begin_session(&self, found: &ListedFiles) -> Result<Vec<InstructionChange>, InstructionRecordError> {
        let (changes, was_broken) = self.update(|known, was_broken| {
            let now: BTreeMap<String, String> = instructions(found).map(|(path, version)| (path.to_owned(), version.to_owned())).collect();
            let mut stored = known.take().unwrap_or_default();
            let is_first = stored.version == 0;
            let mut changes = Vec::new();
            let gone = stored.files.keys().filter(|path| !now.contains_key(*path) && !found.is_cut());
            for path in now.keys().chain(gone) {
                let (before, after) = (stored.files.get(path), now.get(path));
                if before != after {
                    let by = stored.changes.get(path).filter(|change| change.explains(after));
                    let by = by.map(|change| (change.by.clone(), change.at.clone()));
                    changes.push(InstructionChange { path: path.clone(), was_there: before.is_some(), is_there: after.is_some(), by });
                }
            }
            // Of what a look may have missed, the older state is kept.
            let mut files = if found.is_cut() { std::mem::take(&mut stored.files) } else { BTreeMap::new() };
            files.extend(now);
            *known = Some(Stored { version: VERSION, files, changes: BTreeMap::new() });
            (if is_first { Vec::new() } else { changes }, was_broken)
        })?;
        if was_broken {
            return Err(self.problem(&"it could not be understood and begins anew, so changes since the last session are not reported"));
        }
        Ok(changes)
    }

    /// Remembers what a tool changed. Nothing is written if that is no instruction file.
    pub fn note_changes(&self, tool: &str, changes: &Changes, policy: &Policy) -> Result<(), InstructionRecordError> {
        let mut noted = Vec::new();
        for change in changes {
            noted.extend(left_behind(change).into_iter().filter_map(|(path, version)| {
                let listed = policy.asked().find_listed(path).filter(|listed| listed.list == BuiltInList::Instructions)?;
                Some((listed.path, version))
            }));
        }
        self.note(noted, &ChangedBy::Tool(tool.to_owned()))
    }

    /// Remembers what a command changed.
    pub fn note_command(&self, tool: &str, changes: &[ListedChange]) -> Result<(), InstructionRecordError> {
        let ours = changes.iter().filter(|change| change.list == BuiltInList::Instructions);
        self.note(ours.map(|change| (change.path.clone(), change.version.clone())).collect(), &ChangedBy::Command(tool.to_owned()))
    }

    fn note(&self, changes: Vec<(String, Option<String>)>, by: &ChangedBy) -> Result<(), InstructionRecordError> {
        if changes.is_empty() {
            return Ok(());
        }
        let at = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string();
        self.update(|known, _| {
            // Without a session that began there is nothing to compare with.
            if let Some(stored) = known {
                let change = |version| StoredChange { by: by.clone(), version, at: at.clone() };
                stored.changes.extend(changes.into_iter().map(|(path, version)| (path, change(version))));
            }
        })
    }

    /// Changes the record; other processes that do the same wait.
    fn update<T>(&self, change: impl FnOnce(&mut Option<Stored>, bool) -> T) -> Result<T, InstructionRecordError> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        private::folder(directory).map_err(|problem| self.problem(&problem))?;
        let io = |error: io::Error| self.problem(&error);
        let lock = File::options().write(true).create(true).truncate(false).mode(0o600).open(self.path.with_extension("lock"));
        let lock = lock.map_err(io)?;
        lock.lock().map_err(io)?;
        let (mut known, was_broken) = self.read().map_err(io)?;
        let outcome = change(&mut known, was_broken);
        if let Some(stored) = known {
            let text = serde_json::to_vec(&stored).map_err(|error| self.problem(&error))?;
            let mut file = tempfile::NamedTempFile::new_in(directory).map_err(io)?;
            file.write_all(&text).map_err(io)?;
            file.persist(&self.path).map_err(|error| io(error.error))?;
        }
        Ok(outcome)
    }

    /// What is recorded, and whether there is a record that cannot be understood.
    fn read(&self) -> io::Result<(Option<Stored>, bool)> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((None, false)),
            Err(error) => return Err(error),
        };
        let mut text = Vec::new();
        file.take(LARGEST).read_to_end(&mut text)?;
        let stored = serde_json::from_slice(&text).ok().filter(|stored: &Stored| stored.version == VERSION);
        let is_broken = stored.is_none();
        Ok((stored, is_broken))
    }

    fn problem(&self, problem: &dyn std::fmt::Display) -> InstructionRecordError {
        InstructionRecordError { path: self.path.clone(), problem: problem.to_string() }
    }
}

impl StoredChange {
    /// Whether the file is what this change made of it. What a link leads to is part of what the link is.
    fn explains(&self, now: Option<&String>) -> bool {
        match (&self.version, now) {
            (None, None) => true,
            (Some(version), Some(now)) => {
                now == version || now.ends_with(&format!(", {version}")) || now.starts_with(&format!("{version}, "))
            }
            (None, Some(_)) | (Some(_), None) => false,
        }
    }
}

impl InstructionChange {
    /// The change in words, for the user.
    pub fn describe(&self) -> String {
        let what = match (self.was_there, self.is_there) {
            (true, true) => "changed",
            (false, _) => "is new",
            (true, false) => "is gone",
        };
        let by = match &self.by {
            Some((ChangedBy::Tool(tool), at)) => format!("a call of the tool {tool} did it, on {at}"),
            Some((ChangedBy::Command(tool), at)) => format!("a command that the tool {tool} ran did it, on {at}"),
            None => "no tool call and no command of a session did it".to_owned(),
        };
        format!("{} {what} since the last session of this project: {by}.", self.path)
    }
}

fn instructions(found: &ListedFiles) -> impl Iterator<Item = (&str, &str)> {
    found.iter().filter(|(_, file)| file.list == BuiltInList::Instructions).map(|(path, file)| (path, file.version.as_str()))
}

/// What a change leaves at each path that it is about; `None` if nothing.
fn left_behind(change: &Change) -> Vec<(&crate::policy::WorkspacePath, Option<String>)> {
    let content = |digest: &str| Some(format!("sha256:{digest}"));
    match &change.act {
        Act::Create { after } | Act::Modify { after, .. } => vec![(&change.path, content(&after.digest))],
        Act::Move { from, after } => vec![(&change.path, content(&after.digest)), (from, None)],
        Act::Link { to } => vec![(&change.path, Some(format!("link to {to}")))],
        Act::Delete { .. } | Act::Unlink => vec![(&change.path, None)],
        Act::CreateDirectory | Act::RemoveDirectory => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::*;
    use crate::policy::{Content, WorkspacePath};
    use crate::sandbox::Workspace;

    struct Project {
        folder: tempfile::TempDir,
        workspace: Arc<Workspace>,
        record: InstructionRecord,
    }

    impl Project {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a directory");
            fs::create_dir(folder.path().join("work")).expect("a directory");
            let workspace = Arc::new(Workspace::open(&folder.path().join("work")).expect("it opens"));
            let record = InstructionRecord::new(&folder.path().join("state"), workspace.root());
            Self { folder, workspace, record }
        }

        fn write(&self, path: &str, text: &str) {
            fs::write(self.folder.path().join("work").join(path), text).expect("it is written");
        }

        fn begin(&self) -> Vec<String> {
            let changes = self.record.begin_session(&self.workspace.listed_files()).expect("it is recorded");
            changes.iter().map(|change| change.describe().split(", on ").next().unwrap_or_default().to_owned()).collect()
        }
    }

    #[test]
    fn a_session_reports_what_changed_since_the_last_one_and_who_changed_it() {
        let project = Project::new();
        project.write("AGENTS.md", "one");
        assert_eq!(project.begin(), [""; 0], "the first session has nothing to compare with");
        assert_eq!(project.begin(), [""; 0]);
        // From outside.
        project.write("AGENTS.md", "two");
        project.write("CLAUDE.md", "new");
        assert_eq!(
            project.begin(),
            [
                "AGENTS.md changed since the last session of this project: no tool call and no command of a session did it.",
                "CLAUDE.md is new since the last session of this project: no tool call and no command of a session did it.",
            ]
        );
        assert_eq!(project.begin(), [""; 0], "it is reported once");
        // By a tool.
        project.write("AGENTS.md", "three");
        let after = Content { size: 5, digest: Digest::of(b"three").to_string() };
        let path = WorkspacePath::parse("AGENTS.md", None).expect("a path");
        let changes = Changes::new(vec![Change { path, act: Act::Modify { before: 3, after }, diff: None }]);
        project.record.note_changes("write_file", &changes, &Policy::default()).expect("it is noted");
        assert_eq!(project.begin(), ["AGENTS.md changed since the last session of this project: a call of the tool write_file did it"]);
        // By a command.
        let before = project.workspace.listed_files();
        fs::remove_file(project.folder.path().join("work/CLAUDE.md")).expect("it is removed");
        let changed = project.workspace.listed_files().changes_since(&before);
        project.record.note_command("bash", &changed).expect("it is noted");
        assert_eq!(project.begin(), ["CLAUDE.md is gone since the last session of this project: a command that the tool bash ran did it"]);
    }

    #[test]
    fn a_change_after_that_of_a_tool_is_not_taken_for_the_tools() {
        let project = Project::new();
        project.write("AGENTS.md", "one");
        project.begin();
        let before = project.workspace.listed_files();
        project.write("AGENTS.md", "two");
        let changed = project.workspace.listed_files().changes_since(&before);
        project.record.note_command("bash", &changed).expect("it is noted");
        project.write("AGENTS.md", "three");
        assert_eq!(
            project.begin(),
            ["AGENTS.md changed since the last session of this project: no tool call and no command of a session did it."]
        );
    }

    #[test]
    fn a_broken_record_is_told_and_begins_anew() {
        let project = Project::new();
        project.write("AGENTS.md", "one");
        project.begin();
        fs::write(&project.record.path, "{\"version\": 1, \"files\": 7}").expect("it is written");
        project.write("AGENTS.md", "two");
        let error = project.record.begin_session(&project.workspace.listed_files()).expect_err("it is broken").to_string();
        assert!(error.contains("begins anew"), "{error}");
        project.write("AGENTS.md", "three");
        assert_eq!(project.begin().len(), 1);
    }
}
