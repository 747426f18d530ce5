//! The lines that were typed at the prompt, for the arrow keys: one JSON text a line, in a file of its user alone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use reedline::{FileBackedHistory, History as _, HistoryItem};

use super::editor::REMEMBERED;
use crate::session::Redact;

/// Where lines are kept, and what is taken out of them first.
pub(super) struct History {
    path: PathBuf,
    redact: Redact,
}

impl History {
    pub(super) fn new(path: PathBuf, redact: Redact) -> Self {
        Self { path, redact }
    }

    /// What was typed before, as far as it can be read. A file that grew long is cut to its newest lines.
    pub(super) fn load(&self) -> Box<FileBackedHistory> {
        let mut all = FileBackedHistory::new(REMEMBERED).unwrap_or_default();
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let newest = &lines[lines.len().saturating_sub(REMEMBERED)..];
        for line in newest.iter().filter_map(|line| serde_json::from_str::<String>(line).ok()) {
            drop(all.save(HistoryItem::from_command_line(line)));
        }
        if lines.len() > 2 * REMEMBERED {
            drop(self.replace(newest));
        }
        Box::new(all)
    }

    /// Remembers a line. One that begins with a space is not remembered, as in a shell.
    pub(super) fn add(&self, line: &str) -> io::Result<()> {
        if line.trim().is_empty() || line.starts_with(' ') {
            return Ok(());
        }
        let line = format!("{}\n", serde_json::Value::String((self.redact)(line)));
        if let Some(folder) = self.path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        open(&self.path)?.write_all(line.as_bytes())
    }

    fn replace(&self, lines: &[&str]) -> io::Result<()> {
        let new = self.path.with_extension("new");
        drop(fs::remove_file(&new));
        open(&new)?.write_all((lines.join("\n") + "\n").as_bytes())?;
        fs::rename(&new, &self.path)
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use reedline::{SearchDirection, SearchQuery};

    use super::*;

    fn remembered(history: &History) -> Vec<String> {
        let query = SearchQuery::everything(SearchDirection::Forward, None);
        history.load().search(query).expect("it is in memory").into_iter().map(|item| item.command_line).collect()
    }

    #[test]
    fn r114_lines_are_kept_for_their_user_alone_and_without_keys() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state/history.jsonl");
        let history = History::new(path.clone(), Box::new(|text| text.replace("sk-secret", "[key redacted]")));
        assert_eq!(remembered(&history), [""; 0]);
        for line in ["one\ntwo", " not this", "  ", "use sk-secret"] {
            history.add(line).expect("writable");
        }
        assert_eq!(remembered(&history), ["one\ntwo", "use [key redacted]"]);
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert!(!fs::read_to_string(path).expect("readable").contains("sk-secret"));
    }

    #[test]
    fn a_long_history_is_cut_and_damage_in_it_is_passed_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history.jsonl");
        let lines: String = (0..=2 * REMEMBERED).map(|n| format!("\"line {n}\"\n")).collect();
        fs::write(&path, lines + "torn").expect("writable");
        let history = History::new(path.clone(), Box::new(str::to_owned));
        let all = remembered(&history);
        assert_eq!((all.len(), all.last().map(String::as_str)), (REMEMBERED - 1, Some("line 2000")));
        assert_eq!(fs::read_to_string(path).expect("readable").lines().count(), REMEMBERED);
    }
}
