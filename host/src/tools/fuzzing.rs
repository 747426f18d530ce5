//! The way in for the fuzz targets: a schema and arguments as a call has them, without a plugin and
//! a workspace around them.

use super::arguments::ArgumentChecker;
use crate::sandbox::check_schema;

/// What becomes of arguments under a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FuzzedCheck {
    /// The schema is not taken, so no tool has it.
    InvalidSchema(String),
    /// The arguments are refused, in these words.
    Invalid(String),
    /// They fit; so many of their texts are paths.
    Valid(usize),
}

/// Checks arguments against the schema of a tool.
pub fn check_arguments(schema: &str, arguments: &str) -> FuzzedCheck {
    let schema = match check_schema(schema) {
        Ok(schema) => schema,
        Err(problem) => return FuzzedCheck::InvalidSchema(problem),
    };
    let checks = ArgumentChecker::new(schema);
    match checks.parse_and_validate(arguments) {
        Ok(value) => FuzzedCheck::Valid(checks.find_paths(&value).len()),
        Err(problem) => FuzzedCheck::Invalid(problem.to_string()),
    }
}
