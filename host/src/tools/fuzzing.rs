//! The way in for the fuzz targets: a schema and arguments as a call has them, without a plugin and a workspace around them.

use super::arguments::Arguments;
use crate::sandbox::check_schema;

/// What becomes of arguments under a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked {
    /// The schema is not taken, so no tool has it.
    NoSchema(String),
    /// The arguments are refused, in these words.
    Refused(String),
    /// They fit; so many of their texts are paths.
    Fit(usize),
}

/// Checks arguments against the schema of a tool.
pub fn check_arguments(schema: &str, arguments: &str) -> Checked {
    let schema = match check_schema(schema) {
        Ok(schema) => schema,
        Err(problem) => return Checked::NoSchema(problem),
    };
    let checks = Arguments::new(schema);
    match checks.fit(arguments) {
        Ok(value) => Checked::Fit(checks.paths(&value).len()),
        Err(problem) => Checked::Refused(problem.to_string()),
    }
}
