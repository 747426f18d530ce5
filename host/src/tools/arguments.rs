//! The arguments of a call: parsed once, validated against the tool's schema, with their paths found.

use std::sync::OnceLock;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::input_cost::InputCost;
use super::paths;
use crate::bounded_json;
use crate::policy::{PathProblem, WorkspacePath};
use crate::sandbox::{SchemaCost, Workspace};

/// Checks arguments for one tool.
pub struct Arguments {
    schema: Value,
    checks: OnceLock<Result<Checks, String>>,
}

/// A schema made ready for checking, and what checking takes.
pub(super) struct Checks {
    validator: Validator,
    cost: SchemaCost,
}

/// Arguments that can be passed to the tool.
#[derive(Debug)]
pub struct Checked {
    /// The object.
    pub value: Value,
    /// The paths in it, in the order of the schema.
    pub paths: Vec<WorkspacePath>,
}

/// Why arguments are refused, for the model (R-22, R-23).
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsProblem {
    /// Not JSON.
    #[error("the arguments are not valid JSON: {0}. Nothing was run; send the call again with one JSON object.")]
    Syntax(String),
    /// More than one value.
    #[error("the arguments are more than one JSON value, one after the other. Nothing was run; send one object per call.")]
    Several,
    /// Not an object.
    #[error("the arguments are a JSON {0}, and must be an object. Nothing was run.")]
    NotAnObject(&'static str),
    /// More than is read.
    #[error("the arguments {0}. Nothing was run; send less in one call.")]
    TooLarge(String),
    /// Too many for this schema.
    #[error(
        "the arguments cannot be checked: {values} values against {parts} parts of the tool's input schema take too long. Nothing was run; send less in one call."
    )]
    TooCostly {
        /// Values in the arguments.
        values: u64,
        /// Parts of the schema.
        parts: u64,
    },
    /// Not as the schema says.
    #[error("the arguments do not fit: {}. Nothing was run.", .0.join("; "))]
    Schema(Vec<String>),
    /// The same, where finding out more takes too much.
    #[error("the arguments do not fit the input schema of the tool. They are too large to say where. Nothing was run.")]
    Unexplained,
    /// The tool's schema is none.
    #[error("the tool cannot be called, since its input schema cannot be used: {0}")]
    NoSchema(String),
    /// A path that is none of the workspace.
    #[error("denied (outside-workspace) at {pointer}: {problem}")]
    Path {
        /// Where in the arguments.
        pointer: String,
        /// What is wrong.
        problem: PathProblem,
    },
}

/// Bytes of a compiled pattern: `\w{1,64}` needs less.
const LARGEST_PATTERN: usize = 1 << 20;
/// Bytes of what is remembered while a pattern is matched, for each pattern.
const PATTERN_CACHE: usize = 64 << 10;
/// Letters of a problem, and of the path to it.
const LONGEST_PROBLEM: usize = 300;
/// More than these say nothing new.
const MOST_PROBLEMS: usize = 5;

impl Arguments {
    /// For a schema that refers to nothing outside of itself.
    pub fn new(schema: Value) -> Self {
        Self { schema, checks: OnceLock::new() }
    }

    /// The checks of the schema, prepared when they are first needed; an error if it is no schema.
    pub(super) fn checks(&self) -> Result<&Checks, &str> {
        self.checks.get_or_init(|| Checks::of(&self.schema)).as_ref().map_err(String::as_str)
    }

    /// Reads what a model wrote and finds that it fits the schema. Takes time and memory within a bound, whatever the two are.
    pub(super) fn fit(&self, text: &str) -> Result<Value, ArgumentsProblem> {
        let value = parse(text)?;
        let checks = self.checks().map_err(|problem| ArgumentsProblem::NoSchema(problem.to_owned()))?;
        checks.check(&value)?;
        Ok(value)
    }

    /// The texts in valid arguments that are paths, each with where it is.
    pub(super) fn paths<'v>(&self, value: &'v Value) -> Vec<(String, &'v str)> {
        paths::marked(&self.schema, value)
    }

    /// Checks what a model wrote. Empty text is how providers send a call without arguments; everything else must be one
    /// object, and nothing is guessed.
    pub fn check(&self, text: &str, workspace: &Workspace) -> Result<Checked, ArgumentsProblem> {
        let mut value = self.fit(text)?;
        let mut found = Vec::new();
        for (pointer, text) in self.paths(&value) {
            match workspace.parse(text) {
                Ok(path) => found.push((pointer, path)),
                Err(problem) => return Err(ArgumentsProblem::Path { pointer, problem }),
            }
        }
        // The tool gets the path that is shown and decided on: `a/../b` is `b`, even where `a` is a link to elsewhere.
        for (pointer, path) in &found {
            if let Some(text) = value.pointer_mut(pointer) {
                *text = Value::String(path.for_open().to_owned());
            }
        }
        Ok(Checked { value, paths: found.into_iter().map(|(_, path)| path).collect() })
    }
}

impl Checks {
    fn of(schema: &Value) -> Result<Self, String> {
        // Linear in the length of the text, whatever the pattern; the default engine goes back over it, for half a minute with
        // a thousand patterns and twenty letters. A pattern that looks around or back is refused when the plugin is loaded.
        let patterns = PatternOptions::regex().size_limit(LARGEST_PATTERN).dfa_size_limit(PATTERN_CACHE);
        let options = jsonschema::draft202012::options().offline().with_pattern_options(patterns);
        let cost = SchemaCost::of(schema)?;
        let validator = options.build(schema).map_err(|error| error.to_string().chars().take(LONGEST_PROBLEM).collect::<String>())?;
        Ok(Self { validator, cost })
    }

    /// Whether they are valid is asked first, which takes no memory to speak of; why not, only where that can be told in little.
    fn check(&self, value: &Value) -> Result<(), ArgumentsProblem> {
        let input = InputCost::of(value);
        if !input.can_be_checked(&self.cost) {
            return Err(ArgumentsProblem::TooCostly { values: input.values, parts: self.cost.per_value.parts });
        }
        if self.validator.is_valid(value) {
            return Ok(());
        }
        if !input.can_be_explained(&self.cost) {
            return Err(ArgumentsProblem::Unexplained);
        }
        let shortened = |text: String| text.chars().take(LONGEST_PROBLEM).collect::<String>();
        let problems: Vec<String> = self
            .validator
            .iter_errors(value)
            .take(MOST_PROBLEMS)
            .map(|error| {
                let pointer = shortened(error.instance_path().to_string());
                let message = shortened(error.to_string());
                if pointer.is_empty() { message } else { format!("at {pointer}: {message}") }
            })
            .collect();
        Err(if problems.is_empty() { ArgumentsProblem::Unexplained } else { ArgumentsProblem::Schema(problems) })
    }
}

fn parse(text: &str) -> Result<Value, ArgumentsProblem> {
    bounded_json::check(text).map_err(|problem| ArgumentsProblem::TooLarge(problem.to_string()))?;
    if text.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = match values.next() {
        Some(Ok(value)) => value,
        Some(Err(error)) => return Err(ArgumentsProblem::Syntax(error.to_string())),
        None => return Err(ArgumentsProblem::Syntax("nothing there".into())),
    };
    match values.next() {
        None => {}
        Some(Ok(_)) => return Err(ArgumentsProblem::Several),
        Some(Err(error)) => return Err(ArgumentsProblem::Syntax(format!("after the first value: {error}"))),
    }
    match value {
        Value::Object(_) => Ok(value),
        Value::Null => Err(ArgumentsProblem::NotAnObject("null")),
        Value::Bool(_) => Err(ArgumentsProblem::NotAnObject("boolean")),
        Value::Number(_) => Err(ArgumentsProblem::NotAnObject("number")),
        Value::String(_) => Err(ArgumentsProblem::NotAnObject("string")),
        Value::Array(_) => Err(ArgumentsProblem::NotAnObject("array")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(text: &str) -> Result<Checked, String> {
        let schema = json!({
            "type": "object", "required": ["path"], "additionalProperties": false,
            "properties": {"path": {"type": "string", "format": "workspace-path"}, "limit": {"type": "integer", "minimum": 1}},
        });
        let folder = tempfile::tempdir().expect("a folder");
        let workspace = Workspace::open(folder.path()).expect("it opens");
        Arguments::new(schema).check(text, &workspace).map_err(|problem| problem.to_string())
    }

    #[test]
    fn r022_each_kind_of_bad_argument_says_what_and_where() {
        let table = [
            ("", "\"path\" is a required property"),
            ("{", "not valid JSON"),
            ("[]", "a JSON array"),
            ("\"x\"", "a JSON string"),
            (r#"{"path": 1}"#, "at /path: 1 is not of type \"string\""),
            (r#"{"path": "a", "limit": 0}"#, "at /limit: 0 is less than the minimum"),
            (r#"{"path": "a", "extra": 0}"#, "'extra' was unexpected"),
            (r#"{"path": "../../etc/passwd"}"#, "denied (outside-workspace) at /path: '../../etc/passwd' leads out"),
            (r#"{"path": "/etc/passwd"}"#, "is an absolute path"),
        ];
        for (text, expected) in table {
            let problem = check(text).expect_err(text);
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }

    #[test]
    fn r023_two_objects_run_nothing() {
        assert!(check(r#"{"path":"a"}{"path":"b"}"#).unwrap_err().contains("more than one JSON value"));
        assert!(check(r#"{"path":"a"} trailing"#).unwrap_err().contains("after the first value"));
    }

    #[test]
    fn good_arguments_come_with_their_paths() {
        let checked = check(r#" {"path": "./a//b"} "#).expect("they are good");
        assert_eq!(checked.paths[0].as_str(), "a/b");
    }

    #[test]
    fn r042_the_tool_gets_the_path_that_was_decided_on() {
        for (written, passed_on) in [("link/../b", "b"), ("./a//b/", "a/b"), ("", "."), ("a/..", ".")] {
            let checked = check(&json!({"path": written}).to_string()).expect("it is a path");
            assert_eq!(checked.value, json!({"path": passed_on}), "{written}");
        }
    }
}
