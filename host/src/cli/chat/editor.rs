//! The line editor of the prompt: what keys do there, what completes, and where a line ends.

use std::borrow::Cow;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use console::style;
use reedline::{
    ColumnarMenu, Completer, CompletionResult, EditCommand, Emacs, FileBackedHistory, KeyCode,
    KeyModifiers, MenuBuilder as _, Prompt, PromptEditMode, PromptHistorySearch, Reedline,
    ReedlineEvent, ReedlineMenu, Span, Suggestion, ValidationResult, Validator,
    default_emacs_keybindings,
};

use super::commands;
use super::view::PROMPT_MARK;
use crate::cli::wrap;

/// What the editor hands back in place of a line.
pub(super) const INTERRUPT_COMMAND: &str = "interrupt";
pub(super) const CYCLE_MODE_COMMAND: &str = "cycle mode";

/// How many lines are remembered.
pub(super) const MAX_HISTORY_LINES: usize = 1000;
/// How often the editor looks whether the program is told to end.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
const COMPLETION_MENU: &str = "completion";

/// The editor, and what it knows of lines that go on.
pub(super) fn new_editor(
    history: Box<FileBackedHistory>,
    end: Arc<AtomicBool>,
    goes_on: &LineContinuation,
) -> Reedline {
    let mut keys = default_emacs_keybindings();
    let host = |name: &str| ReedlineEvent::ExecuteHostCommand(name.to_owned());
    keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('c'), host(INTERRUPT_COMMAND));
    keys.add_binding(KeyModifiers::SHIFT, KeyCode::BackTab, host(CYCLE_MODE_COMMAND));
    keys.add_binding(KeyModifiers::NONE, KeyCode::BackTab, host(CYCLE_MODE_COMMAND));
    let clear = ReedlineEvent::Multiple(vec![
        ReedlineEvent::Esc,
        ReedlineEvent::Edit(vec![EditCommand::Clear]),
    ]);
    keys.add_binding(KeyModifiers::NONE, KeyCode::Esc, clear);
    let complete = ReedlineEvent::UntilFound(vec![
        ReedlineEvent::Menu(COMPLETION_MENU.to_owned()),
        ReedlineEvent::MenuNext,
    ]);
    keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, complete);
    let menu = ColumnarMenu::default().with_name(COMPLETION_MENU).with_marker("");
    Reedline::create()
        .with_history(history)
        .with_edit_mode(Box::new(Emacs::new(keys)))
        .with_validator(Box::new(goes_on.clone()))
        .with_completer(Box::new(CommandCompleter))
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_transient_prompt(Box::new(SentPrompt))
        .with_ansi_colors(console::colors_enabled_stderr())
        .with_break_signal(end)
        .with_poll_interval(POLL_INTERVAL)
        .use_bracketed_paste(true)
}

/// A backslash at the end of what is typed, and Enter: the line goes on. Which backslashes were
/// meant so is remembered, since pasted text may hold others that have to stay.
#[derive(Clone, Debug, Default)]
pub(super) struct LineContinuation(Arc<Mutex<Vec<String>>>);

impl LineContinuation {
    /// What was meant by a finished text.
    pub(super) fn join_continuations(&self, text: &str) -> String {
        let mut text = text.to_owned();
        let mut begun = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        begun.sort_by_key(|begin| std::cmp::Reverse(begin.len()));
        for begin in begun {
            if text.strip_prefix(&begin).is_some_and(|rest| rest.starts_with('\n')) {
                text.remove(begin.len() - 1);
            }
        }
        text
    }
}

impl Validator for LineContinuation {
    fn validate(&self, text: &str) -> ValidationResult {
        if !text.ends_with('\\') {
            return ValidationResult::Complete;
        }
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !begun.iter().any(|begin| begin == text) {
            begun.push(text.to_owned());
        }
        ValidationResult::Incomplete
    }
}

/// Completes slash commands and their fixed words.
struct CommandCompleter;

impl Completer for CommandCompleter {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let typed = line.get(..pos).unwrap_or(line);
        let start = typed.rfind(' ').map_or(0, |space| space + 1);
        let suggestion = |(value, description): (String, String)| Suggestion {
            value,
            description: Some(description),
            span: Span::new(start, typed.len()),
            append_whitespace: start == 0,
            ..Suggestion::default()
        };
        CompletionResult::fresh(
            commands::completions(typed).into_iter().map(suggestion).collect::<Vec<_>>(),
        )
    }
}

/// The prompt: a line that tells how things are, and the place to type.
pub(super) struct PromptLine {
    pub(super) status: String,
}

impl Prompt for PromptLine {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        let width = wrap::terminal_size().0.saturating_sub(1);
        Cow::Owned(format!("{}\n", style(wrap::truncate(&self.status, width)).dim().for_stderr()))
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed(PROMPT_MARK)
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("(search: {}) ", search.term))
    }
}

/// What stays of the prompt above once a line is sent.
struct SentPrompt;

impl Prompt for SentPrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed(PROMPT_MARK)
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  ")
    }

    fn render_prompt_history_search_indicator(&self, _: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Borrowed(PROMPT_MARK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_backslash_that_continued_a_line_goes_away() {
        let lines = LineContinuation::default();
        assert!(matches!(lines.validate("first\\"), ValidationResult::Incomplete));
        assert!(matches!(lines.validate("first\\\nsecond\\"), ValidationResult::Incomplete));
        assert!(matches!(lines.validate("first\\\nsecond\\\nthird"), ValidationResult::Complete));
        assert_eq!(lines.join_continuations("first\\\nsecond\\\nthird"), "first\nsecond\nthird");
        // Pasted as a whole, it is the user's own.
        assert_eq!(
            lines.join_continuations("cargo test \\\n  --workspace"),
            "cargo test \\\n  --workspace"
        );
    }
}
