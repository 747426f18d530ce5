//! The `todo` tool: the list of what is to do, for the model to keep to and for the user to see.

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
    /// The whole list, which takes the place of the one before; empty to clear it. Without it the
    /// list comes back as it is.
    #[serde(default)]
    #[schemars(length(max = 100))]
    items: Option<Vec<Item>>,
}

const KEY: &str = "items";

impl Tool for Todo {
    const NAME: &'static str = "todo";
    const DESCRIPTION: &'static str = "Keeps a list of the steps of a task, which the user sees. \
        Use it for work of three steps or more, and leave it for less.\n\
        - Give the whole list each time: what is not in it is gone.\n\
        - Set one item to `in_progress` before you begin with it, at most one at a time, and to \
        `completed` as soon as it is done, not all at the end.\n\
        - Without `items` it returns the list as it is.";
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
    use cofferdam_sdk::Content;
    use cofferdam_sdk::test::Host;

    use super::*;

    fn text(answer: Result<Output, ToolError>) -> String {
        match answer.map(|output| output.content) {
            Ok(content) => match content.as_slice() {
                [Content::Text(text)] => text.clone(),
                other => panic!("{other:?}"),
            },
            Err(error) => panic!("{error:?}"),
        }
    }

    #[test]
    fn r125_the_whole_list_is_replaced_and_kept() {
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
        let expected =
            "1 of 2 done:\n[x] Read\n[>] Test\nNo longer in the list, and not completed: Mend.\n";
        assert_eq!(text(host.call::<Todo>(second)), expected);
        assert_eq!(
            text(host.call::<Todo>(r#"{"items":null}"#)),
            "1 of 2 done:\n[x] Read\n[>] Test\n"
        );
        assert_eq!(
            text(host.call::<Todo>(r#"{"items":[]}"#)),
            "The list is empty.\nNo longer in the list, and not completed: Test.\n"
        );
    }

    #[test]
    fn r125_a_list_that_is_refused_changes_nothing() {
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
