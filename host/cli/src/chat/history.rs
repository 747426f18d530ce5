//! The prompt history: one JSON object per line, in a file that only its user can read. Each entry
//! belongs to a session and is deleted with it; input without a session is not saved.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use reedline::{FileBackedHistory, History as _, HistoryItem};
use serde::{Deserialize, Serialize};

use super::editor::MAX_HISTORY_LINES;
use cofferdam::own_file;
use cofferdam::session::{RedactSecrets, SessionId};

/// The largest file that is read.
const MAX_SIZE: u64 = 64 << 20;

/// Where lines are kept, and what is taken out of them first.
pub(super) struct PromptHistory {
    path: PathBuf,
    redact: RedactSecrets,
}

/// An entry of the history file.
#[derive(Serialize, Deserialize)]
struct HistoryEntry {
    session: String,
    text: String,
}

impl PromptHistory {
    pub(super) fn new(path: PathBuf, redact: RedactSecrets) -> Self {
        Self { path, redact }
    }

    /// Loads the history. Truncates a long file to its newest entries, and removes damaged entries,
    /// since their session is unknown.
    pub(super) fn load(&self) -> Box<FileBackedHistory> {
        let mut all = FileBackedHistory::new(MAX_HISTORY_LINES).unwrap_or_default();
        let text = read_text(&self.path).unwrap_or_default();
        let lines: Vec<(&str, HistoryEntry)> =
            text.lines().filter_map(|line| Some((line, parse_entry(line)?))).collect();
        let is_damaged = lines.len() < text.lines().count();
        let is_long = lines.len() > 2 * MAX_HISTORY_LINES;
        let newest = &lines[lines.len().saturating_sub(MAX_HISTORY_LINES)..];
        for (_, entry) in newest {
            let _ = all.save(HistoryItem::from_command_line(entry.text.as_str()));
        }
        if is_damaged || is_long {
            let _ = replace_file(&self.path, newest.iter().map(|(line, _)| *line));
        }
        Box::new(all)
    }

    /// Adds a line of a session. Like a shell, it ignores lines that begin with a space.
    pub(super) fn add(&self, line: &str, session: &SessionId) -> io::Result<()> {
        if line.trim().is_empty() || line.starts_with(' ') {
            return Ok(());
        }
        let line = serde_json::to_string(&HistoryEntry {
            session: session.to_string(),
            text: (self.redact)(line),
        })?;
        if let Some(parent) = self.path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        open_file(&self.path)?.write_all(format!("{line}\n").as_bytes())
    }
}

/// Removes the entries of a session from the file, together with damaged entries.
pub(crate) fn remove_session(path: &Path, session: &SessionId) -> io::Result<()> {
    let text = match read_text(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        text => text?,
    };
    let remaining: Vec<&str> = text
        .lines()
        .filter(|line| parse_entry(line).is_some_and(|entry| entry.session != session.as_str()))
        .collect();
    if remaining.len() == text.lines().count() { Ok(()) } else { replace_file(path, remaining) }
}

fn parse_entry(line: &str) -> Option<HistoryEntry> {
    serde_json::from_str(line).ok()
}

/// Replaces the file atomically, since another chat may be reading it.
fn replace_file<'a>(path: &Path, lines: impl IntoIterator<Item = &'a str>) -> io::Result<()> {
    let new = path.with_extension("new");
    let _ = fs::remove_file(&new);
    let text: String = lines.into_iter().map(|line| format!("{line}\n")).collect();
    open_file(&new)?.write_all(text.as_bytes())?;
    fs::rename(&new, path)
}

fn open_file(path: &Path) -> io::Result<File> {
    let flags = own_file::safe_flags();
    let mut options = OpenOptions::new();
    let file = options.append(true).create(true).mode(0o600).custom_flags(flags).open(path)?;
    own_file::check(&file)?;
    Ok(file)
}

fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(own_file::read(path, MAX_SIZE)?)
        .map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use reedline::{SearchDirection, SearchQuery};

    use super::*;

    fn history_lines(history: &PromptHistory) -> Vec<String> {
        let query = SearchQuery::everything(SearchDirection::Forward, None);
        history
            .load()
            .search(query)
            .expect("it is in memory")
            .into_iter()
            .map(|item| item.command_line)
            .collect()
    }

    fn session_id(name: &str) -> SessionId {
        serde_json::from_value(name.into()).expect("it is a name")
    }

    #[test]
    fn r114_the_history_is_private_and_without_keys() {
        let directory = tempfile::tempdir().expect("create a temporary directory");
        let path = directory.path().join("state/history.jsonl");
        let history = PromptHistory::new(
            path.clone(),
            Box::new(|text| text.replace("sk-secret", "[key redacted]")),
        );
        assert_eq!(history_lines(&history), [""; 0]);
        for line in ["one\ntwo", " not this", "  ", "use sk-secret"] {
            history.add(line, &session_id("5f0c00000000")).expect("writable");
        }
        assert_eq!(history_lines(&history), ["one\ntwo", "use [key redacted]"]);
        assert_eq!(
            fs::metadata(&path).expect("read the metadata").permissions().mode() & 0o777,
            0o600
        );
        assert!(!fs::read_to_string(path).expect("read the file").contains("sk-secret"));
    }

    #[test]
    fn r114_deleting_a_session_deletes_its_history() {
        let directory = tempfile::tempdir().expect("create a temporary directory");
        let path = directory.path().join("history.jsonl");
        let history = PromptHistory::new(path.clone(), Box::new(str::to_owned));
        let (gone, stays) = (session_id("5f0c00000000"), session_id("5f0d00000000"));
        remove_session(&path, &gone).expect("there is nothing to forget");
        for (line, session) in
            [("my password is hunter2", &gone), ("keep me", &stays), ("/cost", &gone)]
        {
            history.add(line, session).expect("writable");
        }
        remove_session(&path, &gone).expect("writable");
        assert_eq!(history_lines(&history), ["keep me"]);
        assert_eq!(
            fs::metadata(&path).expect("read the metadata").permissions().mode() & 0o777,
            0o600
        );
        assert!(!fs::read_to_string(path).expect("read the file").contains("hunter2"));
    }

    #[test]
    fn a_long_history_is_truncated_and_damaged_entries_are_removed() {
        let directory = tempfile::tempdir().expect("create a temporary directory");
        let path = directory.path().join("history.jsonl");
        let line = |n| format!("{{\"session\":\"5f0c00000000\",\"text\":\"line {n}\"}}\n");
        let lines: String = (0..=2 * MAX_HISTORY_LINES).map(line).collect();
        for (text, count) in [
            (lines + "torn", MAX_HISTORY_LINES),
            (format!("\"whose?\"\n{}", line(2 * MAX_HISTORY_LINES)), 1),
        ] {
            fs::write(&path, text).expect("write the file");
            let history = PromptHistory::new(path.clone(), Box::new(str::to_owned));
            let all = history_lines(&history);
            assert_eq!((all.len(), all.last().map(String::as_str)), (count, Some("line 2000")));
            assert_eq!(fs::read_to_string(&path).expect("read the file").lines().count(), count);
        }
    }
}
