//! `cases.json`: calls and what their author expects them to come to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::own_file;

/// The largest file of cases that is read.
const MAX_CASES_SIZE: u64 = 16 << 20;

/// A call and what it comes to.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConformanceCase {
    /// What it shows.
    pub says: String,
    /// The tool.
    pub tool: String,
    /// The files of the workspace, by path.
    #[serde(default)]
    pub files: BTreeMap<String, FileContent>,
    /// What the tool is given.
    pub input: Map<String, Value>,
    /// Its answer, exactly. With neither this nor `fails` it only has to answer.
    #[serde(default)]
    pub answers: Option<String>,
    /// It does not do it, in this way.
    #[serde(default)]
    pub fails: Option<FailureKind>,
    /// What its answer or its error contains.
    #[serde(default)]
    pub with: Vec<String>,
    /// What is in the workspace afterwards, by path.
    #[serde(default)]
    pub leaves: BTreeMap<String, FileContent>,
}

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum FileContent {
    /// Text.
    Text(String),
    /// Bytes.
    Bytes {
        /// As Base64.
        base64: String,
    },
}

/// The ways to fail that a tool can choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// `invalid-input`
    InvalidInput,
    /// `not-found`
    NotFound,
    /// `denied`
    Denied,
    /// `timed-out`
    TimedOut,
    /// `failed`
    Failed,
}

/// The file of the cases cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {message}")]
pub struct ConformanceCaseError {
    path: PathBuf,
    message: String,
}

impl FileContent {
    /// The bytes.
    pub fn bytes(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::Text(text) => Ok(text.clone().into_bytes()),
            Self::Bytes { base64 } => base64::engine::general_purpose::STANDARD
                .decode(base64)
                .map_err(|error| error.to_string()),
        }
    }
}

/// Reads a file of cases.
pub fn read_cases(path: &Path) -> Result<Vec<ConformanceCase>, ConformanceCaseError> {
    let problem =
        |problem: String| ConformanceCaseError { path: path.to_owned(), message: problem };
    let text = own_file::read_regular_text(path, MAX_CASES_SIZE)
        .map_err(|error| problem(error.to_string()))?;
    let cases: Vec<ConformanceCase> =
        serde_json::from_str(&text).map_err(|error| problem(error.to_string()))?;
    for case in &cases {
        let both = case.answers.is_some() && case.fails.is_some();
        if both {
            return Err(problem(format!("\"{}\" says both `answers` and `fails`", case.says)));
        }
        let files = case.files.iter().chain(&case.leaves);
        for (name, content) in files {
            let is_below = Path::new(name)
                .components()
                .all(|part| matches!(part, std::path::Component::Normal(_)));
            if !is_below {
                return Err(problem(format!(
                    "\"{}\": {name} is not a path below the workspace",
                    case.says
                )));
            }
            content
                .bytes()
                .map_err(|error| problem(format!("\"{}\": {name}: {error}", case.says)))?;
        }
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_that_are_no_file_or_have_no_end_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cases.json");
        let problem = || read_cases(&path).unwrap_err().to_string();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(problem().ends_with("it is not a regular file"), "{}", problem());
        std::fs::remove_file(&path).unwrap();
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, rustix::fs::Mode::RWXU, 0).unwrap();
        assert!(problem().ends_with("it is not a regular file"), "{}", problem());
    }

    #[test]
    fn a_file_of_cases_is_checked_before_anything_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cases.json");
        let table = [
            (r#"[{"says":"s","tool":"t","input":{}}]"#, None),
            (r#"[{"says":"s","tool":"t","input":[]}]"#, Some("expected a map")),
            (
                r#"[{"says":"s","tool":"t","input":{},"answer":"x"}]"#,
                Some("unknown field `answer`"),
            ),
            (
                r#"[{"says":"s","tool":"t","input":{},"answers":"x","fails":"failed"}]"#,
                Some("both"),
            ),
            (
                r#"[{"says":"s","tool":"t","input":{},"files":{"../x":""}}]"#,
                Some("not a path below"),
            ),
            (
                r#"[{"says":"s","tool":"t","input":{},"files":{"x":{"base64":"%"}}}]"#,
                Some("Invalid"),
            ),
        ];
        for (text, problem) in table {
            std::fs::write(&path, text).unwrap();
            match (read_cases(&path), problem) {
                (Ok(_), None) => {}
                (Err(error), Some(problem)) => {
                    assert!(error.to_string().contains(problem), "{text}: {error}")
                }
                (got, _) => panic!("{text}: {got:?}"),
            }
        }
    }
}
