//! The arguments of a call: parsed once, validated against the tool's schema, with their paths
//! found.

use std::sync::OnceLock;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::input_cost::InputCost;
use super::marked_paths;
use crate::bounded_json;
use crate::conversation::INVALID_UTF8;
use crate::policy::{PathError, WorkspacePath};
use crate::sandbox::{SchemaCost, Workspace};

/// Checks arguments for one tool.
pub struct ArgumentChecker {
    schema: Value,
    compiled_schema: OnceLock<Result<CompiledSchema, String>>,
}

/// A schema made ready for checking, and what checking takes.
pub(super) struct CompiledSchema {
    validator: Validator,
    cost: SchemaCost,
}

/// Arguments that can be passed to the tool.
#[derive(Debug)]
pub struct CheckedArguments {
    /// The object.
    pub value: Value,
    /// The paths in it, in the order of the schema.
    pub paths: Vec<WorkspacePath>,
}

/// Why arguments are refused, for the model (R-22, R-23).
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsError {
    /// Not JSON.
    #[error(
        "the arguments are not valid JSON: {0}. Nothing was run; send the call again with one \
            JSON object."
    )]
    InvalidJson(String),
    /// More than one value.
    #[error(
        "the arguments are more than one JSON value, one after the other. Nothing was run; send \
            one object per call."
    )]
    MultipleValues,
    /// Not an object.
    #[error("the arguments are a JSON {0}, and must be an object. Nothing was run.")]
    NotAnObject(&'static str),
    /// More than is read.
    #[error("the arguments {0}. Nothing was run; send less in one call.")]
    TooLarge(String),
    /// Too many for this schema.
    #[error(
        "the arguments cannot be checked: {values} values against {schema_parts} parts of the \
            tool's input schema take too long. Nothing was run; send less in one call."
    )]
    TooCostly {
        /// Values in the arguments.
        values: u64,
        /// Parts of the schema.
        schema_parts: u64,
    },
    /// Not as the schema says.
    #[error("the arguments do not fit: {}. Nothing was run.", .0.join("; "))]
    SchemaMismatch(Vec<String>),
    /// The same, where finding out more takes too much.
    #[error(
        "the arguments do not fit the input schema of the tool. They are too large to say where. \
            Nothing was run."
    )]
    UnexplainedMismatch,
    /// The tool's schema is none.
    #[error("the tool cannot be called, since its input schema cannot be used: {0}")]
    InvalidSchema(String),
    /// A path that is none of the workspace.
    #[error("denied (outside-workspace) at {pointer}: {error}")]
    InvalidPath {
        /// Where in the arguments.
        pointer: String,
        /// What is wrong.
        error: PathError,
    },
}

/// Bytes of a compiled pattern: `\w{1,64}` needs less.
const MAX_PATTERN_BYTES: usize = 1 << 20;
/// Bytes of what is remembered while a pattern is matched, for each pattern.
const PATTERN_CACHE_BYTES: usize = 64 << 10;
/// Letters of a problem, and of the path to it.
const MAX_ERROR_CHARS: usize = 300;
/// More than these say nothing new.
const MAX_ERRORS: usize = 5;

impl ArgumentChecker {
    /// For a schema that refers to nothing outside of itself.
    pub fn new(schema: Value) -> Self {
        Self { schema, compiled_schema: OnceLock::new() }
    }

    /// The checks of the schema, prepared when they are first needed; an error if it is no schema.
    pub(super) fn compiled_schema(&self) -> Result<&CompiledSchema, &str> {
        self.compiled_schema
            .get_or_init(|| CompiledSchema::compile(&self.schema))
            .as_ref()
            .map_err(String::as_str)
    }

    /// Reads what a model wrote and finds that it fits the schema. Takes time and memory within a
    /// bound, whatever the two are.
    pub(super) fn parse_and_validate(&self, text: &str) -> Result<Value, ArgumentsError> {
        let value = parse_object(text)?;
        let checks = self
            .compiled_schema()
            .map_err(|problem| ArgumentsError::InvalidSchema(problem.to_owned()))?;
        checks.validate(&value)?;
        Ok(value)
    }

    /// The texts in valid arguments that are paths, each with where it is.
    pub(super) fn find_paths<'v>(&self, value: &'v Value) -> Vec<(String, &'v str)> {
        marked_paths::find_marked(&self.schema, value)
    }

    /// Checks what a model wrote. Empty text is how providers send a call without arguments;
    /// everything else must be one object, and nothing is guessed.
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
        // The tool gets the path that is shown and decided on: `a/../b` is `b`, even where `a` is a
        // link to elsewhere.
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
        // Linear in the length of the text, whatever the pattern; the default engine goes back over
        // it, for half a minute with a thousand patterns and twenty letters. A pattern that looks
        // around or back is refused when the plugin is loaded.
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

    /// Whether they are valid is asked first, which takes no memory to speak of; why not, only
    /// where that can be told in little.
    fn validate(&self, value: &Value) -> Result<(), ArgumentsError> {
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
        let shortened = |text: String| text.chars().take(MAX_ERROR_CHARS).collect::<String>();
        let problems: Vec<String> = self
            .validator
            .iter_errors(value)
            .take(MAX_ERRORS)
            .map(|error| {
                let pointer = shortened(error.instance_path().to_string());
                let message = shortened(error.to_string());
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
        return Err(ArgumentsError::InvalidJson("they hold bytes that are not UTF-8".into()));
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = match values.next() {
        Some(Ok(value)) => value,
        Some(Err(error)) => return Err(ArgumentsError::InvalidJson(error.to_string())),
        None => return Err(ArgumentsError::InvalidJson("nothing there".into())),
    };
    match values.next() {
        None => {}
        Some(Ok(_)) => return Err(ArgumentsError::MultipleValues),
        Some(Err(error)) => {
            return Err(ArgumentsError::InvalidJson(format!("after the first value: {error}")));
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

    fn check(text: &str) -> Result<CheckedArguments, String> {
        let schema = json!({
            "type": "object", "required": ["path"], "additionalProperties": false,
            "properties": {"path": {"type": "string", "format": "workspace-path"}, "limit": {"type": "integer", "minimum": 1}},
        });
        let folder = tempfile::tempdir().expect("a folder");
        let workspace = Workspace::open(folder.path()).expect("it opens");
        ArgumentChecker::new(schema)
            .check_text(text, &workspace)
            .map_err(|problem| problem.to_string())
    }

    #[test]
    fn r022_each_kind_of_bad_argument_says_what_and_where() {
        let table = [
            ("", "\"path\" is a required property"),
            ("{", "not valid JSON"),
            ("{\"path\": \"a\u{1A}\"}", "not valid JSON: they hold bytes that are not UTF-8"),
            ("{\"path\": \"a\"}\u{1A}", "not valid JSON: they hold bytes that are not UTF-8"),
            ("[]", "a JSON array"),
            ("\"x\"", "a JSON string"),
            (r#"{"path": 1}"#, "at /path: 1 is not of type \"string\""),
            (r#"{"path": "a", "limit": 0}"#, "at /limit: 0 is less than the minimum"),
            (r#"{"path": "a", "extra": 0}"#, "'extra' was unexpected"),
            (
                r#"{"path": "../../etc/passwd"}"#,
                "denied (outside-workspace) at /path: '../../etc/passwd' leads out",
            ),
            (r#"{"path": "/etc/passwd"}"#, "is an absolute path"),
        ];
        for (text, expected) in table {
            let problem = check(text).expect_err(text);
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }

    #[test]
    fn r023_two_objects_run_nothing() {
        assert!(
            check(r#"{"path":"a"}{"path":"b"}"#).unwrap_err().contains("more than one JSON value")
        );
        assert!(check(r#"{"path":"a"} trailing"#).unwrap_err().contains("after the first value"));
    }

    #[test]
    fn good_arguments_come_with_their_paths() {
        let checked = check(r#" {"path": "./a//b"} "#).expect("they are good");
        assert_eq!(checked.paths[0].as_str(), "a/b");
    }

    #[test]
    fn r042_the_tool_gets_the_path_that_was_decided_on() {
        for (written, passed_on) in
            [("link/../b", "b"), ("./a//b/", "a/b"), ("", "."), ("a/..", ".")]
        {
            let checked = check(&json!({"path": written}).to_string()).expect("it is a path");
            assert_eq!(checked.value, json!({"path": passed_on}), "{written}");
        }
    }
}
