//! `cases.json`: tool calls with the results that their author expects.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use serde::Deserialize;
use serde_json::{Map, Value};

use cofferdam::own_file;

/// The largest file of cases that is read.
const MAX_CASES_SIZE: u64 = 16 << 20;

/// A call and what it comes to.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConformanceCase {
    /// What the case demonstrates, for the report.
    pub says: String,
    /// The name of the tool.
    pub tool: String,
    /// The files of the workspace before the call, by path.
    #[serde(default)]
    pub files: BTreeMap<String, FileContent>,
    /// The input of the call.
    pub input: Map<String, Value>,
    /// The exact expected answer. Without `answers` and `fails`, any answer passes.
    #[serde(default)]
    pub answers: Option<String>,
    /// The expected kind of failure.
    #[serde(default)]
    pub fails: Option<FailureKind>,
    /// Parts that the answer or the error message must contain.
    #[serde(default)]
    pub with: Vec<String>,
    /// The expected content of files after the call, by path.
    #[serde(default)]
    pub leaves: BTreeMap<String, FileContent>,
}

/// The content of a file in a test workspace.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(crate) enum FileContent {
    /// Content given as UTF-8 text.
    Text(String),
    /// Content given as arbitrary bytes.
    Bytes {
        /// The bytes in Base64.
        base64: String,
    },
}

/// The kinds of failure that a tool can report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FailureKind {
    /// The failure `invalid-input` of the contract.
    InvalidInput,
    /// The failure `not-found` of the contract.
    NotFound,
    /// The failure `denied` of the contract.
    Denied,
    /// The failure `timed-out` of the contract.
    TimedOut,
    /// The failure `failed` of the contract.
    Failed,
}

/// An error in a file of cases.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {message}")]
pub(crate) struct ConformanceCaseError {
    path: PathBuf,
    message: String,
}

impl FileContent {
    /// Returns the content as bytes.
    ///
    /// # Errors
    ///
    /// If the Base64 text is not valid.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::Text(text) => Ok(text.clone().into_bytes()),
            Self::Bytes { base64 } => base64::engine::general_purpose::STANDARD
                .decode(base64)
                .map_err(|error| error.to_string()),
        }
    }
}

/// Reads and validates a file of cases.
///
/// # Errors
///
/// If the file cannot be read, is not valid, has a case with both `answers` and `fails`, or names a
/// file outside the workspace.
pub(crate) fn read_cases(path: &Path) -> Result<Vec<ConformanceCase>, ConformanceCaseError> {
    let problem =
        |problem: String| ConformanceCaseError { path: path.to_owned(), message: problem };
    let text = own_file::read_regular_text(path, MAX_CASES_SIZE)
        .map_err(|error| problem(error.to_string()))?;
    let cases: Vec<ConformanceCase> =
        serde_json::from_str(&text).map_err(|error| problem(error.to_string()))?;
    for case in &cases {
        let both = case.answers.is_some() && case.fails.is_some();
        if both {
            return Err(problem(format!("\"{}\" has both `answers` and `fails`", case.says)));
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
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cases.json");
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
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cases.json");
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
