//! `cases.json`: tool calls with the results that their author expects.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use serde::Deserialize;
use serde_json::{Map, Value};

use cofferdam::own_file;

/// The largest file of cases that is read.
const MAX_CASES_SIZE: u64 = 16 << 20;

/// A tool call with its expected result.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConformanceCase {
    /// The name of the case in the report.
    #[serde(alias = "says")]
    pub name: String,
    /// The name of the tool.
    pub tool: String,
    /// The files of the workspace before the call, by path.
    #[serde(default)]
    pub files: BTreeMap<String, FileContent>,
    /// The state of the tool before the call, by key.
    #[serde(default)]
    pub state: BTreeMap<String, FileContent>,
    /// The input of the call.
    pub input: Map<String, Value>,
    /// The exact expected text. Without `output` and `error`, any result passes.
    #[serde(default, alias = "answers")]
    pub output: Option<String>,
    /// The expected structured result.
    #[serde(default)]
    pub structured: Option<Value>,
    /// The expected view for the user.
    #[serde(default)]
    pub view: Option<ExpectedView>,
    /// The expected kind of error.
    #[serde(default, alias = "fails")]
    pub error: Option<ErrorKind>,
    /// Texts that the result or the error message must contain.
    #[serde(default, alias = "with")]
    pub contains: Vec<String>,
    /// The expected content of files after the call, by path.
    #[serde(default, alias = "leaves")]
    pub files_after: BTreeMap<String, FileContent>,
    /// The expected state after the call, by key; `null` for a key that does not exist.
    #[serde(default)]
    pub state_after: BTreeMap<String, Option<FileContent>>,
}

/// The expected view for the user.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ExpectedView {
    /// A text.
    Text(String),
    /// A unified diff.
    Diff(String),
    /// The rows of a table. The first row is the header.
    Table(Vec<Vec<String>>),
}

/// The content of a file or of a state value.
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

/// The kinds of error that a tool can return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ErrorKind {
    /// The error `invalid-input` of the contract.
    InvalidInput,
    /// The error `not-found` of the contract.
    NotFound,
    /// The error `denied` of the contract.
    Denied,
    /// The error `timed-out` of the contract.
    TimedOut,
    /// The error `failed` of the contract.
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
/// If the file cannot be read, is not valid, has a case that expects both a result and an error, or
/// contains a path outside the workspace.
pub(crate) fn read_cases(path: &Path) -> Result<Vec<ConformanceCase>, ConformanceCaseError> {
    let problem =
        |problem: String| ConformanceCaseError { path: path.to_owned(), message: problem };
    let text = own_file::read_regular_text(path, MAX_CASES_SIZE)
        .map_err(|error| problem(error.to_string()))?;
    let cases: Vec<ConformanceCase> =
        serde_json::from_str(&text).map_err(|error| problem(error.to_string()))?;
    for case in &cases {
        check_case(case).map_err(|message| problem(format!("\"{}\": {message}", case.name)))?;
    }
    Ok(cases)
}

fn check_case(case: &ConformanceCase) -> Result<(), String> {
    let expects_result = case.output.is_some() || case.structured.is_some() || case.view.is_some();
    if expects_result && case.error.is_some() {
        return Err("it expects both a result and an error".into());
    }
    for name in case.files.keys().chain(case.files_after.keys()) {
        let is_below = Path::new(name)
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_)));
        if !is_below {
            return Err(format!("{name} is not a path below the workspace"));
        }
    }
    let contents = case.files.iter().chain(&case.files_after).chain(&case.state);
    let after = case.state_after.iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
    for (name, content) in contents.chain(after) {
        content.bytes().map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
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
            (r#"[{"name":"s","tool":"t","input":{}}]"#, None),
            // The keys of earlier versions.
            (r#"[{"says":"s","tool":"t","input":{},"answers":"x","with":["x"]}]"#, None),
            (r#"[{"says":"s","tool":"t","input":{},"fails":"failed","leaves":{}}]"#, None),
            (r#"[{"name":"s","tool":"t","input":{},"view":{"table":[["a"],["1"]]}}]"#, None),
            (r#"[{"name":"s","tool":"t","input":{},"state_after":{"a":null}}]"#, None),
            (r#"[{"name":"s","tool":"t","input":[]}]"#, Some("expected a map")),
            (
                r#"[{"name":"s","tool":"t","input":{},"answer":"x"}]"#,
                Some("unknown field `answer`"),
            ),
            (r#"[{"name":"s","tool":"t","input":{},"output":"x","error":"failed"}]"#, Some("both")),
            (
                r#"[{"name":"s","tool":"t","input":{},"structured":{},"error":"failed"}]"#,
                Some("both"),
            ),
            (
                r#"[{"name":"s","tool":"t","input":{},"files":{"../x":""}}]"#,
                Some("not a path below"),
            ),
            (
                r#"[{"name":"s","tool":"t","input":{},"files":{"x":{"base64":"%"}}}]"#,
                Some("Invalid"),
            ),
            (
                r#"[{"name":"s","tool":"t","input":{},"state":{"x":{"base64":"%"}}}]"#,
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
