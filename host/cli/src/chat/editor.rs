//! The line editor of the prompt: key bindings, completion and line continuation.

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
use crate::wrap;

/// Host commands that the editor returns in place of a line.
pub(super) const INTERRUPT_COMMAND: &str = "interrupt";
pub(super) const CYCLE_MODE_COMMAND: &str = "cycle mode";

/// Maximum number of lines in the prompt history.
pub(super) const MAX_HISTORY_LINES: usize = 1000;
/// Interval at which the editor checks the break signal.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
const COMPLETION_MENU: &str = "completion";

/// Creates the editor. It stops reading when `end` becomes true.
pub(super) fn new_editor(
    history: Box<FileBackedHistory>,
    end: Arc<AtomicBool>,
    continuation: &LineContinuation,
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
        .with_validator(Box::new(continuation.clone()))
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

/// Line continuation: a backslash followed by Enter begins a new line.
///
/// It remembers each text that was continued this way, because pasted text may contain other
/// backslashes that must stay.
#[derive(Clone, Debug, Default)]
pub(super) struct LineContinuation(Arc<Mutex<Vec<String>>>);

impl LineContinuation {
    /// Removes the continuation backslashes from a finished text.
    pub(super) fn join_continuations(&self, text: &str) -> String {
        let mut text = text.to_owned();
        let mut continued =
            std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        continued.sort_by_key(|start| std::cmp::Reverse(start.len()));
        for start in continued {
            if text.strip_prefix(&start).is_some_and(|rest| rest.starts_with('\n')) {
                text.remove(start.len() - 1);
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
        let mut continued = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !continued.iter().any(|start| start == text) {
            continued.push(text.to_owned());
        }
        ValidationResult::Incomplete
    }
}

/// Completes slash commands and their fixed arguments.
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

/// The prompt: a status line above the input.
pub(super) struct PromptLine {
    pub(super) status: String,
}

impl Prompt for PromptLine {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        let width = wrap::terminal_size().columns.saturating_sub(1);
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

/// The prompt after a line is sent, without the status line.
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
    fn only_continuation_backslashes_are_removed() {
        let lines = LineContinuation::default();
        assert!(matches!(lines.validate("first\\"), ValidationResult::Incomplete));
        assert!(matches!(lines.validate("first\\\nsecond\\"), ValidationResult::Incomplete));
        assert!(matches!(lines.validate("first\\\nsecond\\\nthird"), ValidationResult::Complete));
        assert_eq!(lines.join_continuations("first\\\nsecond\\\nthird"), "first\nsecond\nthird");
        // A pasted backslash stays.
        assert_eq!(
            lines.join_continuations("cargo test \\\n  --workspace"),
            "cargo test \\\n  --workspace"
        );
    }
}
