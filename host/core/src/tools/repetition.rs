//! Detects that a model repeats the same call (R-11). It only adds a notice; it never ends a
//! request.

use serde_json::Value;

use crate::bounded_json;
use crate::conversation::ToolResult;

/// The number of identical calls with identical results in a row that triggers the notice.
const REPETITION_THRESHOLD: u32 = 3;

/// The last call, and how often it was repeated.
#[derive(Debug, Default)]
pub(super) struct RepetitionTracker {
    last: Option<(String, Value, ToolResult)>,
    count: u32,
}

impl RepetitionTracker {
    /// Records a call. Returns the notice to add to its result, if one is due.
    pub(super) fn record_call(
        &mut self,
        tool: &str,
        arguments: &str,
        result: &ToolResult,
    ) -> Option<String> {
        // Compared as JSON values, so that whitespace and key order do not matter.
        let arguments =
            bounded_json::parse(arguments).unwrap_or_else(|| Value::String(arguments.to_owned()));
        let same =
            self.last.as_ref().is_some_and(|(t, a, r)| t == tool && *a == arguments && r == result);
        self.count = if same { self.count.saturating_add(1) } else { 1 };
        if !same {
            self.last = Some((tool.to_owned(), arguments, result.clone()));
        }
        (self.count >= REPETITION_THRESHOLD).then(|| {
            format!(
                "[Notice from the host: this call returned the same result {} times in a row. \
                    Repeating it will not help; try something else, or tell the user what blocks \
                    you.]",
                self.count
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r011_the_third_identical_call_and_result_gets_a_notice() {
        let mut repetition = RepetitionTracker::default();
        let same = ToolResult::ok("a");
        assert_eq!(repetition.record_call("grep", r#"{"a":1,"b":2}"#, &same), None);
        assert_eq!(repetition.record_call("grep", r#"{ "b": 2, "a": 1 }"#, &same), None);
        assert!(
            repetition
                .record_call("grep", r#"{"a":1,"b":2}"#, &same)
                .is_some_and(|remark| remark.contains("3 times"))
        );
    }

    #[test]
    fn r011_another_result_resets_the_count() {
        let mut repetition = RepetitionTracker::default();
        for text in ["a", "a", "b", "a", "a"] {
            assert_eq!(repetition.record_call("grep", "{}", &ToolResult::ok(text)), None, "{text}");
        }
        assert!(repetition.record_call("grep", "{}", &ToolResult::ok("a")).is_some());
    }
}
