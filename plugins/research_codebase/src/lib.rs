//! The `research_codebase` tool: has a sub-agent answer a question about the code, so that what it
//! reads on the way does not fill the conversation.

use std::fmt::Write as _;

use cofferdam_sdk::agents::{self, AgentError, Answer, Failure};
use cofferdam_sdk::{Capability, Output, Tool, ToolError, WorkspacePath, export_tools};
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct ResearchCodebase;

/// What to find out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The question, with all that is needed to understand it: the sub-agent has not seen this
    /// conversation.
    question: String,
    /// Files or directories to begin with.
    #[serde(default)]
    #[schemars(length(max = 20))]
    paths: Vec<WorkspacePath>,
}

impl Tool for ResearchCodebase {
    const NAME: &'static str = "research_codebase";
    const DESCRIPTION: &'static str = "Has a sub-agent look through the workspace and answer a \
        question about it, such as \"Where are sessions written, and what \
        happens if the disk is full?\". The sub-agent can only read. You get its answer and not \
        what it read, so use it for questions that take \
        many files, and ask independent questions in one response: they are worked on in \
        parallel. To read a file or search for a word that you \
        know, use read_file and grep, which are quicker.";
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
            Err(AgentError::Failed(failure)) => Err(explained(failure)),
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
        "{text}\n\n[The sub-agent ran into its limit of {} turns; the answer may not be complete. \
            Ask for less at a time.]",
        answer.turns
    ))
    .truncated()
}

/// A failure with what can be done about it.
fn explained(failure: Failure) -> ToolError {
    let Failure { kind, message } = failure;
    let advice = match kind.as_str() {
        "limit" | "overflow" => "Ask for less at a time, or look yourself with grep and read_file.",
        _ => "Try once more, or look yourself with grep and read_file.",
    };
    let text = format!(
        "the sub-agent gave no answer ({kind}): {}. {advice}",
        message.trim_end_matches('.')
    );
    if kind == "timed-out" { ToolError::timed_out(text) } else { ToolError::failed(text) }
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
    fn r124_the_answer_comes_back_alone() {
        let answer = Answer { text: "In src/a.rs:1.\n".into(), complete: true, turns: 2 };
        assert_eq!(with(Ok(answer)), Ok(Output::text("In src/a.rs:1.")));
    }

    #[test]
    fn r124_an_answer_that_was_cut_short_says_so() {
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
    fn r124_a_failure_is_told_with_its_kind() {
        let failed = |kind: &str| {
            with(Err(AgentError::Failed(Failure { kind: kind.into(), message: "no more.".into() })))
        };
        let text = "the sub-agent gave no answer (overflow): no more. Ask for less at a time, or \
            look yourself with grep and read_file.";
        assert_eq!(failed("overflow"), Err(ToolError::failed(text)));
        assert!(matches!(failed("timed-out"), Err(ToolError::TimedOut(_))));
        let denial =
            Denial { code: "no-sub-agent".into(), reason: "there is none.".into(), remedy: None };
        assert_eq!(with(Err(AgentError::Denied(denial.clone()))), Err(ToolError::Denied(denial)));
    }

    #[test]
    fn r124_a_question_has_words() {
        assert!(matches!(
            Host::new().call::<ResearchCodebase>(r#"{"question":" "}"#),
            Err(ToolError::InvalidInput(_))
        ));
    }
}
