//! The `react` tool: a scratchpad of thoughts and observations for the session.

mod pad;

use cofferdam_sdk::{Capability, Output, Tool, ToolError, export_tools, state};
use pad::{Kind, Pad};
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct React;

/// The action on the scratchpad.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// `think` and `observe` add an entry, `get` returns all entries, `clear` removes them.
    action: Action,
    /// The thought or the observation; only for `think` and `observe`.
    #[serde(default)]
    text: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Think,
    Observe,
    Get,
    Clear,
}

const KEY: &str = "pad";

impl Tool for React {
    const NAME: &'static str = "react";
    const TITLE: Option<&'static str> = Some("Scratchpad");
    const DESCRIPTION: &'static str = "A scratchpad for this session. Use it for long or \
        complicated tasks: `think` before a step, to write down what you expect, and `observe` \
        after it, to write down what happened and what to do next. `get` returns all entries, \
        including those that are no longer in the conversation. `clear` deletes them. It does not \
        change files, and is not meant for the user.";
    type Input = Input;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::KeepState]
    }

    fn call(input: Input) -> Result<Output, ToolError> {
        let kind = match input.action {
            Action::Think => Kind::Thought,
            Action::Observe => Kind::Observation,
            Action::Get => return Ok(Output::text(state::load::<Pad>(KEY)?.show())),
            Action::Clear => {
                let pad: Pad = state::load(KEY)?;
                state::delete(KEY)?;
                return Ok(Output::text(format!("Cleared; there were {}.", pad.count())));
            }
        };
        let text = input.text.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| {
            ToolError::invalid_input(
                "/text",
                "the text is missing. Pass the thought or the observation",
            )
        })?;
        let mut pad: Pad = state::load(KEY)?;
        let confirmation = pad.add(kind, text)?;
        state::save(KEY, &pad)?;
        Ok(Output::text(confirmation))
    }
}

export_tools!(React);

#[cfg(test)]
mod tests {
    use cofferdam_sdk::test::Host;

    use super::*;

    #[test]
    fn r126b_thoughts_and_observations_are_kept_in_order() {
        let mut host = Host::new();
        assert_eq!(
            host.call::<React>(r#"{"action":"get"}"#),
            Ok(Output::text("The scratchpad is empty."))
        );
        assert_eq!(
            host.call::<React>(r#"{"action":"think","text":" It leaks. "}"#),
            Ok(Output::text("Noted as entry 1."))
        );
        assert_eq!(
            host.call::<React>(r#"{"action":"observe","text":"It does not:\nthe cache grows."}"#),
            Ok(Output::text("Noted as entry 2."))
        );
        let all = "1. thought: It leaks.\n2. observation: It does not:\n   the cache grows.\n";
        assert_eq!(host.call::<React>(r#"{"action":"get"}"#), Ok(Output::text(all)));
        assert_eq!(
            host.call::<React>(r#"{"action":"clear"}"#),
            Ok(Output::text("Cleared; there were 2 entries."))
        );
        assert_eq!(
            host.call::<React>(r#"{"action":"think","text":"Again."}"#),
            Ok(Output::text("Noted as entry 1."))
        );
    }

    #[test]
    fn r126b_an_entry_has_text() {
        for input in [r#"{"action":"think"}"#, r#"{"action":"observe","text":" "}"#] {
            assert!(
                matches!(
                    Host::new().call::<React>(input),
                    Err(ToolError::InvalidInput(problem)) if problem.pointer == "/text"
                ),
                "{input}"
            );
        }
    }
}
