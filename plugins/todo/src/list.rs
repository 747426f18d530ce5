//! The items of the list: their checks and their text.

use cofferdam_sdk::{Output, ToolError, View};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest item, in characters.
const MAX_ITEM_LEN: usize = 500;

/// An item of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Item {
    /// The step, in one line.
    pub(crate) text: String,
    /// The status of the item.
    pub(crate) status: Status,
}

/// The status of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Pending,
    InProgress,
    Completed,
}

/// Checks a list, or returns what is wrong with it.
pub(crate) fn check(items: &[Item]) -> Result<(), ToolError> {
    for (place, item) in items.iter().enumerate() {
        let text = format!("/items/{place}/text");
        if item.text.trim().is_empty() {
            return Err(ToolError::invalid_input(text, "the item is empty. Describe the step"));
        }
        if item.text.chars().count() > MAX_ITEM_LEN {
            return Err(ToolError::invalid_input(
                text,
                format!("the item has more than {MAX_ITEM_LEN} characters. Use one line"),
            ));
        }
    }
    let mut in_progress =
        items.iter().enumerate().filter(|(_, item)| item.status == Status::InProgress);
    if let (Some((first, _)), Some((second, _))) = (in_progress.next(), in_progress.next()) {
        return Err(ToolError::invalid_input(
            format!("/items/{second}/status"),
            format!(
                "only one item can be `in_progress`, and item {first} already is. The list was not \
                    changed"
            ),
        ));
    }
    Ok(())
}

/// Returns the items that were not completed and are no longer in the list.
pub(crate) fn dropped<'b>(before: &'b [Item], after: &[Item]) -> Vec<&'b str> {
    let is_gone = |item: &&Item| {
        item.status != Status::Completed
            && !after.iter().any(|other| other.text.trim() == item.text.trim())
    };
    before.iter().filter(is_gone).map(|item| item.text.trim()).collect()
}

/// Returns the list, as text for the model and as a table for the user.
pub(crate) fn show(items: &[Item], dropped: &[&str]) -> Output {
    let done = items.iter().filter(|item| item.status == Status::Completed).count();
    let mut text = if items.is_empty() {
        "The list is empty.".to_owned()
    } else {
        format!("{done} of {} done:\n", items.len())
    };
    for item in items {
        let mark = match item.status {
            Status::Pending => "[ ]",
            Status::InProgress => "[>]",
            Status::Completed => "[x]",
        };
        text.push_str(&format!("{mark} {}\n", one_line(&item.text)));
    }
    if !dropped.is_empty() {
        let lines: Vec<String> = dropped.iter().map(|text| one_line(text)).collect();
        let line_break = if text.ends_with('\n') { "" } else { "\n" };
        text.push_str(&format!("{line_break}Deleted before completion: {}.\n", lines.join("; ")));
    }
    let rows = items
        .iter()
        .map(|item| vec![symbol(item.status).to_owned(), one_line(&item.text)])
        .collect();
    Output::text(text)
        .with_view(View::table(["", &format!("{done} of {} done", items.len())], rows))
}

fn symbol(status: Status) -> &'static str {
    match status {
        Status::Pending => "·",
        Status::InProgress => "▸",
        Status::Completed => "✓",
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(text: &str, status: Status) -> Item {
        Item { text: text.to_owned(), status }
    }

    #[test]
    fn r125_at_most_one_is_in_progress_and_each_says_something() {
        let long = "x".repeat(MAX_ITEM_LEN + 1);
        let table = [
            (
                vec![
                    item("a", Status::InProgress),
                    item("b", Status::Pending),
                    item("c", Status::InProgress),
                ],
                "/items/2/status",
            ),
            (vec![item("a", Status::Pending), item(" \n", Status::Pending)], "/items/1/text"),
            (vec![item(&long, Status::Pending)], "/items/0/text"),
        ];
        for (items, pointer) in table {
            assert!(
                matches!(
                    check(&items),
                    Err(ToolError::InvalidInput(problem)) if problem.pointer == pointer
                ),
                "{pointer}"
            );
        }
        assert_eq!(check(&[item("a", Status::InProgress), item("b", Status::Completed)]), Ok(()));
        assert_eq!(check(&[]), Ok(()));
    }

    #[test]
    fn r125_the_user_sees_a_table() {
        let output = show(&[item("a\nb", Status::Completed), item("c", Status::InProgress)], &[]);
        let rows = [["✓", "a b"], ["▸", "c"]].map(|row| row.map(str::to_owned).to_vec()).to_vec();
        assert_eq!(output.view, Some(View::table(["", "1 of 2 done"], rows).into()));
    }
}
