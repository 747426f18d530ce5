//! The `research_codebase` tool: a sub-agent answers a question about the code, so that the files
//! that it reads do not fill the conversation.

use std::fmt::Write as _;

use cofferdam_sdk::agents::{self, AgentError, AgentFailure, Answer};
use cofferdam_sdk::{Capability, Output, Tool, ToolError, WorkspacePath, export_tools};
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct ResearchCodebase;

/// The question.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The question, with all information that is needed to understand it. The sub-agent does not
    /// see this conversation.
    question: String,
    /// Files or directories to begin with.
    #[serde(default)]
    #[schemars(length(max = 20))]
    paths: Vec<WorkspacePath>,
}

impl Tool for ResearchCodebase {
    const NAME: &'static str = "research_codebase";
    const TITLE: Option<&'static str> = Some("Research the code");
    const DESCRIPTION: &'static str = "Gives a question about the workspace to a sub-agent, such \
        as \"Where are sessions written, and what happens if the disk is full?\". The sub-agent \
        has only read-only tools. You get its answer, not the files that it read. Use it for \
        questions that need many files, and ask independent questions in one response, because \
        they run in parallel. To read a file or to search for a known word, use read_file and \
        grep, which are faster.";
    type Input = Input;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::Delegate]
    }

    fn call(input: Input) -> Result<Output, ToolError> {
        if input.question.trim().is_empty() {
            return Err(ToolError::invalid_input("/question", "the question is empty"));
        }
        match agents::delegate(&task(&input)) {
            Ok(answer) => Ok(output(&answer)),
            Err(AgentError::Invalid(message)) => {
                Err(ToolError::invalid_input("/question", message))
            }
            Err(AgentError::Failed(failure)) => Err(explain_failure(failure)),
            Err(denied @ AgentError::Denied(_)) => Err(denied.into()),
        }
    }
}

export_tools!(ResearchCodebase);

fn task(input: &Input) -> String {
    let mut task = format!(
        "Answer this question about the code in the workspace:\n\n{}\n",
        input.question.trim()
    );
    if !input.paths.is_empty() {
        task.push_str("\nBegin with:\n");
        for path in &input.paths {
            // Writing to a string cannot fail.
            let _ = writeln!(task, "- {path}");
        }
    }
    task
}

fn output(answer: &Answer) -> Output {
    let text = answer.text.trim();
    if answer.complete {
        return Output::text(text);
    }
    Output::text(format!(
        "{text}\n\n[The sub-agent reached its limit of {} turns; the answer may be incomplete. Ask \
            a narrower question.]",
        answer.turns
    ))
    .truncated()
}

/// Returns the error for a failure, with advice.
fn explain_failure(failure: AgentFailure) -> ToolError {
    let AgentFailure { code, message } = failure;
    let advice = match code.as_str() {
        "empty" | "overflow" => "Ask a narrower question, or search with grep and read_file.",
        _ => "Try again, or search with grep and read_file.",
    };
    let text = format!(
        "the sub-agent gave no answer ({code}): {}. {advice}",
        message.trim_end_matches('.')
    );
    if code == "timed-out" { ToolError::timed_out(text) } else { ToolError::failed(text) }
}

#[cfg(test)]
mod tests {
    use cofferdam_sdk::Denial;
    use cofferdam_sdk::test::Host;

    use super::*;

    const INPUT: &str = r#"{"question":" Where? ","paths":["src/a.rs"]}"#;

    fn with(answer: Result<Answer, AgentError>) -> Result<Output, ToolError> {
        Host::new()
            .on_task(move |task| {
                assert_eq!(
                    task,
                    "Answer this question about the code in the \
                    workspace:\n\nWhere?\n\nBegin with:\n- src/a.rs\n"
                );
                answer.clone()
            })
            .call::<ResearchCodebase>(INPUT)
    }

    #[test]
    fn r124_the_result_is_the_answer() {
        let answer = Answer { text: "In src/a.rs:1.\n".into(), complete: true, turns: 2 };
        assert_eq!(with(Ok(answer)), Ok(Output::text("In src/a.rs:1.")));
    }

    #[test]
    fn r124_an_incomplete_answer_is_marked() {
        let Ok(output) = with(Ok(Answer { text: "So far.".into(), complete: false, turns: 20 }))
        else {
            panic!("it answers")
        };
        assert!(
            output.truncated && format!("{output:?}").contains("limit of 20 turns"),
            "{output:?}"
        );
    }

    #[test]
    fn r124_a_failure_has_its_code_and_advice() {
        let failed = |code: &str| {
            with(Err(AgentError::Failed(AgentFailure {
                code: code.into(),
                message: "no more.".into(),
            })))
        };
        let text = "the sub-agent gave no answer (overflow): no more. Ask a narrower question, or \
            search with grep and read_file.";
        assert_eq!(failed("overflow"), Err(ToolError::failed(text)));
        assert!(matches!(failed("timed-out"), Err(ToolError::TimedOut(_))));
        let denial =
            Denial { code: "no-sub-agent".into(), reason: "there is none.".into(), remedy: None };
        assert_eq!(with(Err(AgentError::Denied(denial.clone()))), Err(ToolError::Denied(denial)));
    }

    #[test]
    fn r124_an_empty_question_is_refused() {
        assert!(matches!(
            Host::new().call::<ResearchCodebase>(r#"{"question":" "}"#),
            Err(ToolError::InvalidInput(_))
        ));
    }
}
