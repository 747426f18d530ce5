//! The choices of a question, and the lines that a user types to choose.

use crate::paging::{ANSWER_PROMPT, AnswerRules, PagingChoice};
use cofferdam::policy::{ApprovalQuestion, Effect};

/// The choice of a typed answer. All dialogs share this table, so a digit means the same everywhere
/// . Other input repeats the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DialogChoice {
    Yes,
    YesForScope,
    No,
    YesAlways,
}

/// The choices of a question besides yes and no.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OfferedChoices {
    pub(crate) has_scope: bool,
    pub(crate) has_always: bool,
    /// Whether a rejection may come with instructions for the model.
    pub(crate) has_guidance: bool,
}

impl OfferedChoices {
    pub(crate) fn of(question: &ApprovalQuestion) -> Self {
        Self {
            has_scope: question.scope.is_some(),
            has_always: question.lasting.is_some(),
            // After a rejected connection, the command goes on.
            has_guidance: !matches!(question.effect, Effect::Connect { .. }),
        }
    }
}

/// Returns the answers that an approval dialog accepts. `parse` is [`DialogChoice::parse`] with the
/// offered choices.
pub(crate) fn approval_rules(
    parse: &dyn Fn(&str) -> Result<DialogChoice, &'static str>,
) -> AnswerRules<'_, DialogChoice> {
    AnswerRules {
        parse_step: PagingChoice::parse,
        parse,
        no: DialogChoice::No,
        prompt: ANSWER_PROMPT,
    }
}

impl DialogChoice {
    /// Parses the answer that the user typed.
    ///
    /// # Errors
    ///
    /// The hint to show, if the answer is not one of the offered choices.
    pub(crate) fn parse(line: &str, offered: OfferedChoices) -> Result<Self, &'static str> {
        match line.trim() {
            "1" => Ok(Self::Yes),
            "2" if offered.has_scope => Ok(Self::YesForScope),
            "3" => Ok(Self::No),
            "4" if offered.has_always => Ok(Self::YesAlways),
            _ => Err(Self::help(offered)),
        }
    }

    /// Returns the hint that lists the valid choices.
    pub(super) fn help(offered: OfferedChoices) -> &'static str {
        match (offered.has_scope, offered.has_always) {
            (true, true) => "Type 1, 2, 3 or 4, and Enter.",
            (true, false) => "Type 1, 2 or 3, and Enter.",
            (false, true) => "Type 1, 3 or 4, and Enter.",
            (false, false) => "Type 1 or 3, and Enter.",
        }
    }
}

impl PagingChoice {
    /// The hint below such a page.
    pub(crate) const HELP: &str = "Enter shows more; 3 rejects";

    /// Parses a typed line. No input approves, because the rest of the question is still unseen
    ///
    ///
    /// # Errors
    ///
    /// A hint for the user, if the line is neither choice.
    pub(crate) fn parse(line: &str) -> Result<Self, &'static str> {
        match line.trim() {
            "" => Ok(Self::More),
            "3" => Ok(Self::No),
            _ => Err("There are more pages. Press Enter to see them, or type 3 to reject."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r042_on_a_page_before_the_last_no_line_approves() {
        let answers = [
            ("1", None),
            ("2", None),
            ("y", None),
            ("", Some(PagingChoice::More)),
            ("3", Some(PagingChoice::No)),
            (" \t", Some(PagingChoice::More)),
        ];
        for (typed, expected) in answers {
            assert_eq!(PagingChoice::parse(typed).ok(), expected, "{typed:?}");
        }
    }
}
