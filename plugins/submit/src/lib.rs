//! The `submit` tool: the model marks the task as done. It does nothing else.

use cofferdam_sdk::{Capability, Output, Tool, ToolError, export_tools};
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct Submit;

/// The summary of the work.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// A summary of the work in a few sentences.
    #[serde(default)]
    summary: Option<String>,
}

impl Tool for Submit {
    const NAME: &'static str = "submit";
    const TITLE: Option<&'static str> = Some("Submit");
    const DESCRIPTION: &'static str = "Marks the task as done. Call it once, when all requested \
        work is finished and checked. Then write the final answer for the user. It does not change \
        files.";
    type Input = Input;

    fn capabilities() -> Vec<Capability> {
        Vec::new()
    }

    fn call(input: Input) -> Result<Output, ToolError> {
        let summary = input.summary.unwrap_or_default();
        Ok(Output::text(match summary.trim() {
            "" => "Submitted.".to_owned(),
            summary => format!("Submitted: {summary}"),
        }))
    }
}

export_tools!(Submit);

#[cfg(test)]
mod tests {
    use cofferdam_sdk::call;

    use super::*;

    #[test]
    fn r028_submit_confirms_with_the_trimmed_summary() {
        assert_eq!(
            call::<Submit>(r#"{"summary":" Fixed it.\n"}"#),
            Ok(Output::text("Submitted: Fixed it."))
        );
    }

    #[test]
    fn r028_submit_confirms_without_a_summary() {
        for input in ["{}", r#"{"summary":null}"#, r#"{"summary":"  "}"#] {
            assert_eq!(call::<Submit>(input), Ok(Output::text("Submitted.")));
        }
    }

    #[test]
    fn r028_submit_requests_no_capability() {
        assert_eq!(Submit::capabilities(), []);
    }
}
