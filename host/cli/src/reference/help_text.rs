//! The parts of the text that a help page shows below the options.

use clap::Command;

/// A paragraph of the text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HelpParagraph {
    /// The lines below `Examples:`, without their indentation.
    Examples(Vec<String>),
    /// A paragraph of prose on one line.
    Prose(String),
}

/// Returns the paragraphs below the options of a command.
pub(super) fn help_paragraphs(command: &Command) -> Vec<HelpParagraph> {
    command.get_after_help().map(|text| parse(&text.to_string())).unwrap_or_default()
}

fn parse(text: &str) -> Vec<HelpParagraph> {
    let parse_paragraph = |paragraph: &str| match paragraph.split_once('\n') {
        Some(("Examples:" | "Example:", lines)) => {
            HelpParagraph::Examples(lines.lines().map(|line| line.trim().to_owned()).collect())
        }
        Some(_) | None => HelpParagraph::Prose(paragraph.replace('\n', " ")),
    };
    text.split("\n\n").map(parse_paragraph).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_and_prose_are_separated() {
        let expected = [
            HelpParagraph::Examples(vec!["a b".into(), "c   d".into()]),
            HelpParagraph::Prose("One two.".into()),
        ];
        assert_eq!(parse("Examples:\n  a b\n  c   d\n\nOne two."), expected);
    }
}
