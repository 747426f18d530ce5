//! Entry point of the fuzz targets: checks arguments against a schema as a call does, without a
//! plugin or a workspace.

use super::arguments::ArgumentChecker;
use crate::sandbox::check_schema;

/// The result of checking arguments against a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FuzzedCheck {
    /// The schema is refused, so no tool can have it.
    InvalidSchema(String),
    /// The arguments are refused, with this message.
    Invalid(String),
    /// The arguments are valid. The number is that of the paths in them.
    Valid(usize),
}

/// Checks arguments against the input schema of a tool.
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
