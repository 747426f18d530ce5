//! A minimal line editor for input during a request and for answers in a dialog. The prompt itself
//! uses a full editor.

use unicode_width::UnicodeWidthStr as _;

/// A text with a cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EditLine {
    text: String,
    /// Byte offset, always on a character boundary.
    cursor: usize,
}

/// An edit of the text or a cursor movement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LineEdit {
    Insert(String),
    Backspace,
    Delete,
    DeleteWord,
    DeleteToStart,
    Left,
    Right,
    Start,
    End,
}

impl EditLine {
    /// Creates a line with the cursor at its end.
    pub(super) fn from_text(text: String) -> Self {
        Self { cursor: text.len(), text }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the text and clears the line.
    pub(super) fn take(&mut self) -> String {
        self.cursor = 0;
        std::mem::take(&mut self.text)
    }

    /// Replaces a backslash at the very end by a line break, wherever the cursor is. Returns
    /// whether there was one.
    pub(super) fn continue_line(&mut self) -> bool {
        let Some(before) = self.text.strip_suffix('\\') else { return false };
        *self = Self::from_text(format!("{before}\n"));
        true
    }

    pub(super) fn apply(&mut self, edit: LineEdit) {
        match edit {
            LineEdit::Insert(text) => {
                self.text.insert_str(self.cursor, &text);
                self.cursor += text.len();
            }
            LineEdit::Backspace => self.delete_from(self.previous_boundary()),
            LineEdit::Delete => {
                let end = self.next_boundary();
                self.text.replace_range(self.cursor..end, "");
            }
            LineEdit::DeleteWord => {
                let kept = self.text[..self.cursor].trim_end();
                let space = kept.char_indices().rfind(|(_, c)| c.is_whitespace());
                self.delete_from(space.map_or(0, |(at, c)| at + c.len_utf8()));
            }
            LineEdit::DeleteToStart => self.delete_from(self.line_start()),
            LineEdit::Left => self.cursor = self.previous_boundary(),
            LineEdit::Right => self.cursor = self.next_boundary(),
            LineEdit::Start => self.cursor = self.line_start(),
            LineEdit::End => {
                self.cursor +=
                    self.text[self.cursor..].find('\n').unwrap_or(self.text.len() - self.cursor)
            }
        }
    }

    /// Returns the lines of the text, and the cursor's row and display column.
    pub(super) fn lines_and_cursor(&self) -> (Vec<&str>, usize, usize) {
        let before = &self.text[..self.cursor];
        let row = before.matches('\n').count();
        let column = before[self.line_start()..].width();
        (self.text.split('\n').collect(), row, column)
    }

    fn delete_from(&mut self, start: usize) {
        self.text.replace_range(start..self.cursor, "");
        self.cursor = start;
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    /// Returns the start of the character before the cursor, with its combining characters.
    fn previous_boundary(&self) -> usize {
        let mut at = self.cursor;
        for (start, c) in self.text[..self.cursor].char_indices().rev() {
            at = start;
            if !is_combining(c) {
                break;
            }
        }
        at
    }

    fn next_boundary(&self) -> usize {
        let mut rest = self.text[self.cursor..].char_indices().skip(1);
        rest.find(|(_, c)| !is_combining(*c)).map_or(self.text.len(), |(at, _)| self.cursor + at)
    }
}

fn is_combining(c: char) -> bool {
    c != '\n' && unicode_width::UnicodeWidthChar::width(c) == Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies the edits and returns the text with the cursor as `|`.
    fn text_after_edits(text: &str, edits: &[LineEdit]) -> String {
        let mut line = EditLine::from_text(text.to_owned());
        for edit in edits {
            line.apply(edit.clone());
        }
        let mut shown = line.text.clone();
        shown.insert(line.cursor, '|');
        shown
    }

    #[test]
    fn edits_change_the_text_and_the_cursor() {
        use LineEdit::{
            Backspace, Delete, DeleteToStart, DeleteWord, End, Insert, Left, Right, Start,
        };
        assert_eq!(text_after_edits("grün", &[Backspace, Left, Insert("ee".into())]), "gree|ü");
        assert_eq!(text_after_edits("日本", &[Left, Delete, Insert("語".into())]), "日語|");
        assert_eq!(text_after_edits("e\u{301}x", &[Left, Backspace]), "|x");
        assert_eq!(text_after_edits("one two ", &[DeleteWord]), "one |");
        assert_eq!(
            text_after_edits("one\u{a0}two\u{3000}three", &[DeleteWord]),
            "one\u{a0}two\u{3000}|"
        );
        assert_eq!(text_after_edits("one\u{a0}two\u{3000}", &[DeleteWord]), "one\u{a0}|");
        assert_eq!(
            text_after_edits("one", &[DeleteWord, DeleteWord, Backspace, Delete, Left, Right]),
            "|"
        );
        assert_eq!(
            text_after_edits("a\nbc", &[Start, Insert("x".into()), End, DeleteToStart]),
            "a\n|"
        );
    }

    #[test]
    fn r129_a_final_backslash_begins_a_line_wherever_the_cursor_is() {
        for edits in
            [&[][..], &[LineEdit::Left], &[LineEdit::Start, LineEdit::Left, LineEdit::Start]]
        {
            let mut line = EditLine::from_text("first\nsecond\\".into());
            edits.iter().for_each(|edit| line.apply(edit.clone()));
            assert!(line.continue_line());
            assert_eq!(line, EditLine::from_text("first\nsecond\n".into()), "{edits:?}");
            assert!(!line.continue_line());
        }
    }

    #[test]
    fn the_cursor_is_counted_in_columns() {
        let mut line = EditLine::from_text("ab\n日本x".into());
        assert_eq!(line.lines_and_cursor(), (vec!["ab", "日本x"], 1, 5));
        line.apply(LineEdit::Left);
        line.apply(LineEdit::Left);
        assert_eq!(line.lines_and_cursor().2, 2);
    }
}
