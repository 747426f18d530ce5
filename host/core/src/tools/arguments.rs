//! The arguments of a call: parsed once, validated against the tool's schema, and searched for
//! paths.

use std::sync::OnceLock;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::input_cost::InputCost;
use super::marked_paths;
use crate::bounded_json;
use crate::conversation::INVALID_UTF8;
use crate::policy::{PathError, WorkspacePath};
use crate::sandbox::{SchemaCost, Workspace};

/// Parses and validates the arguments of one tool.
///
/// The schema must not refer to anything outside of itself. It is compiled at the first use.
pub struct ArgumentChecker {
    schema: Value,
    compiled_schema: OnceLock<Result<CompiledSchema, String>>,
}

/// A compiled schema and the cost of checking values against it.
pub(super) struct CompiledSchema {
    validator: Validator,
    cost: SchemaCost,
}

/// Valid arguments that can be passed to the tool.
#[derive(Debug)]
pub struct CheckedArguments {
    /// The arguments, a JSON object.
    pub value: Value,
    /// The workspace paths in the arguments, in the order of the schema.
    pub paths: Vec<WorkspacePath>,
}

/// Why arguments are refused. The text goes to the model (R-22, R-23).
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentsError {
    /// The text is not valid JSON.
    #[error(
        "the arguments are not valid JSON: {0}. The call did not run; send it again with one JSON \
            object."
    )]
    InvalidJson(String),
    /// The text has more than one JSON value.
    #[error(
        "the arguments contain more than one JSON value. The call did not run; send one object per \
            call."
    )]
    MultipleValues,
    /// The value is not an object.
    #[error("the arguments are a JSON {0} instead of an object. The call did not run.")]
    NotAnObject(&'static str),
    /// The text exceeds a limit of the JSON parser.
    #[error("the arguments {0}. The call did not run; send less in one call.")]
    TooLarge(String),
    /// The check would take too many steps for this schema.
    #[error(
        "the arguments are too large to validate: {values} values against {schema_parts} parts of \
            the tool's input schema. The call did not run; send less in one call."
    )]
    TooCostly {
        /// The number of values in the arguments.
        values: u64,
        /// The number of parts of the schema.
        schema_parts: u64,
    },
    /// The arguments do not match the schema. One entry per problem.
    #[error(
        "the arguments do not match the input schema: {}. The call did not run.",
        .0.join("; ")
    )]
    SchemaMismatch(Vec<String>),
    /// The arguments do not match the schema, and listing the problems would take too much memory.
    #[error(
        "the arguments do not match the input schema, and are too large to list the problems. The \
            call did not run."
    )]
    UnexplainedMismatch,
    /// The schema of the tool cannot be used.
    #[error("the tool cannot be called: its input schema cannot be used: {0}")]
    InvalidSchema(String),
    /// An argument is not a valid path of the workspace.
    #[error("denied (outside-workspace) at {pointer}: {error}")]
    InvalidPath {
        /// The JSON pointer to the argument.
        pointer: String,
        /// The problem with the path.
        error: PathError,
    },
}

/// The largest size of a compiled pattern, in bytes. `\w{1,64}` needs less.
const MAX_PATTERN_BYTES: usize = 1 << 20;
/// The size of the matching cache of each pattern, in bytes.
const PATTERN_CACHE_BYTES: usize = 64 << 10;
/// The longest description of a problem, and the longest pointer to it, in characters.
const MAX_ERROR_CHARS: usize = 300;
/// The number of problems that are reported.
const MAX_ERRORS: usize = 5;

impl ArgumentChecker {
    /// Creates a checker for a schema that refers to nothing outside of itself.
    pub fn new(schema: Value) -> Self {
        Self { schema, compiled_schema: OnceLock::new() }
    }

    /// Returns the compiled schema, or an error if the schema is invalid. Compiles it at the first
    /// call.
    pub(super) fn compiled_schema(&self) -> Result<&CompiledSchema, &str> {
        self.compiled_schema
            .get_or_init(|| CompiledSchema::compile(&self.schema))
            .as_ref()
            .map_err(String::as_str)
    }

    /// Parses the arguments that a model wrote and validates them against the schema. Time and
    /// memory are bounded, whatever the arguments and the schema are.
    pub(super) fn parse_and_validate(&self, text: &str) -> Result<Value, ArgumentsError> {
        let value = parse_object(text)?;
        let compiled = self
            .compiled_schema()
            .map_err(|problem| ArgumentsError::InvalidSchema(problem.to_owned()))?;
        compiled.validate(&value)?;
        Ok(value)
    }

    /// Returns the strings in valid arguments that are paths, each with its JSON pointer.
    pub(super) fn find_paths<'v>(&self, value: &'v Value) -> Vec<(String, &'v str)> {
        marked_paths::find_marked(&self.schema, value)
    }

    /// Parses the arguments that a model wrote, validates them, and resolves their paths.
    ///
    /// Empty text means no arguments, as providers send it. Everything else must be exactly one
    /// JSON object; the checker repairs nothing.
    pub fn check_text(
        &self,
        text: &str,
        workspace: &Workspace,
    ) -> Result<CheckedArguments, ArgumentsError> {
        let mut value = self.parse_and_validate(text)?;
        let mut found = Vec::new();
        for (pointer, text) in self.find_paths(&value) {
            match workspace.parse(text) {
                Ok(path) => found.push((pointer, path)),
                Err(problem) => {
                    return Err(ArgumentsError::InvalidPath { pointer, error: problem });
                }
            }
        }
        // The tool gets the path that the dialog shows and the policy checked: `a/../b` becomes
        // `b`, even if `a` is a symbolic link.
        for (pointer, path) in &found {
            if let Some(text) = value.pointer_mut(pointer) {
                *text = Value::String(path.as_fs_path().to_owned());
            }
        }
        Ok(CheckedArguments { value, paths: found.into_iter().map(|(_, path)| path).collect() })
    }
}

impl CompiledSchema {
    fn compile(schema: &Value) -> Result<Self, String> {
        // This engine matches in time linear in the text, whatever the pattern. The default engine
        // backtracks: a thousand patterns and twenty characters took half a minute. Patterns with
        // look-around or backreferences are refused when the plugin is loaded.
        let patterns = PatternOptions::regex()
            .size_limit(MAX_PATTERN_BYTES)
            .dfa_size_limit(PATTERN_CACHE_BYTES);
        let options = jsonschema::draft202012::options().offline().with_pattern_options(patterns);
        let cost = SchemaCost::compute(schema)?;
        let validator = options
            .build(schema)
            .map_err(|error| error.to_string().chars().take(MAX_ERROR_CHARS).collect::<String>())?;
        Ok(Self { validator, cost })
    }

    /// Validates a value. The first pass only decides whether it is valid and needs almost no
    /// memory. The problems are listed only if that is affordable.
    pub(super) fn validate(&self, value: &Value) -> Result<(), ArgumentsError> {
        let input = InputCost::measure(value);
        if !input.is_checkable(&self.cost) {
            return Err(ArgumentsError::TooCostly {
                values: input.values,
                schema_parts: self.cost.per_value.parts,
            });
        }
        if self.validator.is_valid(value) {
            return Ok(());
        }
        if !input.is_explainable(&self.cost) {
            return Err(ArgumentsError::UnexplainedMismatch);
        }
        let truncate = |text: String| text.chars().take(MAX_ERROR_CHARS).collect::<String>();
        let problems: Vec<String> = self
            .validator
            .iter_errors(value)
            .take(MAX_ERRORS)
            .map(|error| {
                let pointer = truncate(error.instance_path().to_string());
                let message = truncate(error.to_string());
                if pointer.is_empty() { message } else { format!("at {pointer}: {message}") }
            })
            .collect();
        Err(if problems.is_empty() {
            ArgumentsError::UnexplainedMismatch
        } else {
            ArgumentsError::SchemaMismatch(problems)
        })
    }
}

fn parse_object(text: &str) -> Result<Value, ArgumentsError> {
    bounded_json::check(text).map_err(|problem| ArgumentsError::TooLarge(problem.to_string()))?;
    if text.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    if text.contains(INVALID_UTF8) {
        return Err(ArgumentsError::InvalidJson("invalid UTF-8".into()));
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = match values.next() {
        Some(Ok(value)) => value,
        Some(Err(error)) => return Err(ArgumentsError::InvalidJson(error.to_string())),
        None => return Err(ArgumentsError::InvalidJson("no value".into())),
    };
    match values.next() {
        None => {}
        Some(Ok(_)) => return Err(ArgumentsError::MultipleValues),
        Some(Err(error)) => {
            return Err(ArgumentsError::InvalidJson(format!(
                "unexpected text after the first value: \
                {error}"
            )));
        }
    }
    match value {
        Value::Object(_) => Ok(value),
        Value::Null => Err(ArgumentsError::NotAnObject("null")),
        Value::Bool(_) => Err(ArgumentsError::NotAnObject("boolean")),
        Value::Number(_) => Err(ArgumentsError::NotAnObject("number")),
        Value::String(_) => Err(ArgumentsError::NotAnObject("string")),
        Value::Array(_) => Err(ArgumentsError::NotAnObject("array")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sandbox::test_environment::open_workspace;

    fn check(text: &str) -> Result<CheckedArguments, String> {
        let schema = json!({
            "type": "object", "required": ["path"], "additionalProperties": false,
            "properties": {
                "path": {"type": "string", "format": "workspace-path"},
                "limit": {"type": "integer", "minimum": 1},
            },
        });
        let directory = tempfile::tempdir().expect("temporary directory");
        let workspace = open_workspace(directory.path());
        ArgumentChecker::new(schema)
            .check_text(text, &workspace)
            .map_err(|problem| problem.to_string())
    }

    #[test]
    fn r022_errors_name_the_problem_and_the_argument() {
        let table = [
            ("", "\"path\" is a required property"),
            ("{", "not valid JSON"),
            ("{\"path\": \"a\u{1A}\"}", "not valid JSON: invalid UTF-8"),
            ("{\"path\": \"a\"}\u{1A}", "not valid JSON: invalid UTF-8"),
            ("[]", "a JSON array"),
            ("\"x\"", "a JSON string"),
            (r#"{"path": 1}"#, "at /path: 1 is not of type \"string\""),
            (r#"{"path": "a", "limit": 0}"#, "at /limit: 0 is less than the minimum"),
            (r#"{"path": "a", "extra": 0}"#, "'extra' was unexpected"),
            (
                r#"{"path": "../../etc/passwd"}"#,
                "denied (outside-workspace) at /path: `../../etc/passwd` is outside the workspace",
            ),
            (r#"{"path": "/etc/passwd"}"#, "is an absolute path"),
        ];
        for (text, expected) in table {
            let problem = check(text).expect_err(text);
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }

    #[test]
    fn r023_two_objects_are_refused() {
        assert!(
            check(r#"{"path":"a"}{"path":"b"}"#).unwrap_err().contains("more than one JSON value")
        );
        assert!(check(r#"{"path":"a"} trailing"#).unwrap_err().contains("after the first value"));
    }

    #[test]
    fn valid_arguments_are_returned_with_their_paths() {
        let checked = check(r#" {"path": "./a//b"} "#).expect("valid arguments");
        assert_eq!(checked.paths[0].as_str(), "a/b");
    }

    #[test]
    fn r042_the_tool_gets_the_path_that_was_checked() {
        for (written, passed_on) in
            [("link/../b", "b"), ("./a//b/", "a/b"), ("", "."), ("a/..", ".")]
        {
            let checked = check(&json!({"path": written}).to_string()).expect("a path");
            assert_eq!(checked.value, json!({"path": passed_on}), "{written}");
        }
    }
}
