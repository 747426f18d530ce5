//! Checks the structured result of a call against the tool's output schema.

use serde_json::Value;

use super::arguments::{ArgumentChecker, ArgumentsError};
use crate::bounded_json;
use crate::sandbox::{CallFailure, CallReport, DeclaredTool};

/// Checks the structured results of one tool. The schema is compiled at the first use.
pub struct StructuredResultChecker {
    /// `None` for a tool without an output schema.
    schema: Option<ArgumentChecker>,
}

impl StructuredResultChecker {
    /// Creates a checker for the results of a tool.
    pub fn new(tool: &DeclaredTool) -> Self {
        Self { schema: tool.output_schema.clone().map(ArgumentChecker::new) }
    }

    /// Returns the problem with the output schema, if it cannot be used.
    pub(super) fn schema_error(&self) -> Option<&str> {
        self.schema.as_ref()?.compiled_schema().err()
    }

    /// Checks the structured result of a call that succeeded, and returns it. If it is missing or
    /// does not match, the call fails, and its changes are not committed.
    pub fn check(&self, report: &mut CallReport) -> Option<Value> {
        let output = report.result.as_ref().ok()?;
        match self.check_text(output.structured.as_deref()) {
            Ok(structured) => structured,
            Err(problem) => {
                report.result = Err(CallFailure::InvalidResult(problem));
                report.staged = None;
                None
            }
        }
    }

    /// Time and memory are bounded, whatever the text and the schema are.
    fn check_text(&self, text: Option<&str>) -> Result<Option<Value>, String> {
        let (schema, text) = match (&self.schema, text) {
            (None, None) => return Ok(None),
            (Some(schema), Some(text)) => (schema, text),
            (Some(_), None) => {
                return Err(
                    "the tool has an output schema and returned no structured result".into()
                );
            }
            (None, Some(_)) => {
                return Err("the tool returned a structured result and has no output schema".into());
            }
        };
        bounded_json::check(text).map_err(|problem| {
            format!("the structured result of the tool cannot be checked: it would {problem}")
        })?;
        let value = serde_json::from_str(text)
            .map_err(|error| format!("the structured result of the tool is not JSON: {error}"))?;
        let compiled = schema.compiled_schema().map_err(|problem| {
            format!("the output schema of the tool cannot be used: {problem}")
        })?;
        compiled.validate(&value).map_err(|error| describe_mismatch(&error))?;
        Ok(Some(value))
    }
}

fn describe_mismatch(error: &ArgumentsError) -> String {
    match error {
        ArgumentsError::SchemaMismatch(problems) => format!(
            "the structured result of the tool does not match its output schema: {}",
            problems.join("; ")
        ),
        ArgumentsError::TooCostly { values, schema_parts } => format!(
            "the structured result of the tool cannot be checked: {values} values against \
                {schema_parts} parts of its output schema take too long"
        ),
        _ => "the structured result of the tool does not match its output schema, and is too \
            large to say where"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checker(schema: Option<Value>) -> StructuredResultChecker {
        StructuredResultChecker { schema: schema.map(ArgumentChecker::new) }
    }

    #[test]
    fn a_structured_result_exists_exactly_with_a_schema_and_matches_it() {
        let schema = json!({
            "type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}},
        });
        let (with, without) = (checker(Some(schema)), checker(None));
        assert_eq!(with.check_text(Some(r#"{"n": 1}"#)), Ok(Some(json!({"n": 1}))));
        assert_eq!(without.check_text(None), Ok(None));
        let table = [
            (&with, None, "has an output schema and returned no"),
            (&without, Some("{}"), "has no output schema"),
            (&with, Some("{"), "is not JSON"),
            (&with, Some(r#"{"n": 1} 2"#), "is not JSON"),
            (&with, Some(r#"{"n": "1"}"#), "at /n: \"1\" is not of type \"integer\""),
            (&with, Some("[]"), "does not match its output schema"),
        ];
        for (checker, text, expected) in table {
            let problem = checker.check_text(text).expect_err(expected);
            assert!(problem.contains(expected), "{problem}");
        }
        let huge = format!("[{}1]", "1,".repeat(bounded_json::MAX_VALUES));
        assert!(with.check_text(Some(&huge)).is_err_and(|problem| problem.contains("JSON values")));
    }

    #[test]
    fn r098_a_costly_structured_result_is_not_checked() {
        let parts: Vec<Value> = (0..1000).map(|n| json!({"required": [n.to_string()]})).collect();
        let any = json!({"type": "object", "additionalProperties": {"anyOf": parts}});
        let values: Vec<String> = (0..40_000).map(|n| format!("\"k{n}\":0")).collect();
        let problem = checker(Some(any))
            .check_text(Some(&format!("{{{}}}", values.join(","))))
            .expect_err("it would take long");
        assert!(problem.contains("cannot be checked"), "{problem}");
    }

    #[test]
    fn a_call_without_its_structured_result_fails() {
        let mut report = CallReport {
            result: Ok(crate::sandbox::CallOutput::default()),
            ..CallReport::not_started(CallFailure::Cancelled)
        };
        assert_eq!(checker(Some(json!({"type": "object"}))).check(&mut report), None);
        assert!(matches!(report.result, Err(CallFailure::InvalidResult(_))));
    }
}
