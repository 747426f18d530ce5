//! The `todo` tool: a to-do list for the model and the user.

mod list;

use cofferdam_sdk::{Capability, Output, Tool, ToolError, export_tools, state};
use list::Item;
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct Todo;

/// The list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The whole new list; empty to clear it. Without it, the tool returns the list unchanged.
    #[serde(default)]
    #[schemars(length(max = 100))]
    items: Option<Vec<Item>>,
}

const KEY: &str = "items";

impl Tool for Todo {
    const NAME: &'static str = "todo";
    const TITLE: Option<&'static str> = Some("To-do list");
    const DESCRIPTION: &'static str = "Keeps the to-do list of a task, which the user sees. Use it \
        only for tasks with three or more steps.\n- Pass the whole list each time: missing items \
        are deleted.\n- Set one item to `in_progress` before you begin with it, at most one at a \
        time. Set it to `completed` as soon as it is done, not at the end.\n- Without `items`, it \
        returns the list unchanged.";
    type Input = Input;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::KeepState]
    }

    fn call(input: Input) -> Result<Output, ToolError> {
        let before: Vec<Item> = state::load(KEY)?;
        let Some(items) = input.items else { return Ok(list::show(&before, &[])) };
        list::check(&items)?;
        state::save(KEY, &items)?;
        Ok(list::show(&items, &list::dropped(&before, &items)))
    }
}

export_tools!(Todo);

#[cfg(test)]
mod tests {
    use cofferdam_sdk::test::Host;

    use super::*;

    fn text(answer: Result<Output, ToolError>) -> String {
        match answer {
            Ok(output) => output.to_text(),
            Err(error) => panic!("{error:?}"),
        }
    }

    #[test]
    fn r125_the_whole_list_is_replaced_and_stored() {
        let mut host = Host::new();
        assert_eq!(text(host.call::<Todo>("{}")), "The list is empty.");
        let first = concat!(
            r#"{"items":[{"text":"Read","status":"in_progress"},"#,
            r#"{"text":"Mend","status":"pending"}]}"#,
        );
        assert_eq!(text(host.call::<Todo>(first)), "0 of 2 done:\n[>] Read\n[ ] Mend\n");
        let second = concat!(
            r#"{"items":[{"text":"Read","status":"completed"},"#,
            r#"{"text":"Test","status":"in_progress"}]}"#,
        );
        let expected = "1 of 2 done:\n[x] Read\n[>] Test\nDeleted before completion: Mend.\n";
        assert_eq!(text(host.call::<Todo>(second)), expected);
        assert_eq!(
            text(host.call::<Todo>(r#"{"items":null}"#)),
            "1 of 2 done:\n[x] Read\n[>] Test\n"
        );
        assert_eq!(
            text(host.call::<Todo>(r#"{"items":[]}"#)),
            "The list is empty.\nDeleted before completion: Test.\n"
        );
    }

    #[test]
    fn r125_an_invalid_list_changes_nothing() {
        let mut host = Host::new();
        text(host.call::<Todo>(r#"{"items":[{"text":"Read","status":"pending"}]}"#));
        let two = concat!(
            r#"{"items":[{"text":"a","status":"in_progress"},"#,
            r#"{"text":"b","status":"in_progress"}]}"#,
        );
        assert!(matches!(
            host.call::<Todo>(two),
            Err(ToolError::InvalidInput(problem)) if problem.pointer == "/items/1/status"
        ));
        assert_eq!(text(host.call::<Todo>("{}")), "0 of 1 done:\n[ ] Read\n");
    }
}
