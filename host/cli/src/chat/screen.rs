//! The bottom of the terminal: finished lines scroll up, and a few live rows below them are
//! redrawn.
//!
//! Finished lines are written once and never touched again, so the terminal's own scrolling,
//! searching and copying work on them. The live rows are erased and redrawn after each change, at
//! most about 30 times per second.

use std::time::{Duration, Instant};

use crate::print::eprint_text;

/// Minimum time between two redraws.
const FRAME_INTERVAL: Duration = Duration::from_millis(33);
/// Begin and end of a synchronized update; terminals without support ignore them.
const SYNCHRONIZED_UPDATE: [&str; 2] = ["\u{1b}[?2026h", "\u{1b}[?2026l"];

/// The rows at the bottom that are redrawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LiveRows {
    /// The rows from the top, each at most as wide as the terminal.
    pub(super) rows: Vec<String>,
    /// The row and column of the cursor within `rows`.
    pub(super) cursor: (usize, usize),
}

/// The output of a chat: lines to write, and the live rows below them.
#[derive(Debug, Default)]
pub(super) struct ChatScreen {
    /// Finished lines that are not written yet.
    unwritten: String,
    /// The live rows as last drawn.
    status_rows: Option<StatusRows>,
    drawn_at: Option<Instant>,
}

#[derive(Debug)]
struct StatusRows {
    rows: LiveRows,
    /// The widths of the rows above and at the cursor.
    widths: Vec<usize>,
}

impl ChatScreen {
    /// Adds a finished line.
    pub(super) fn push_line(&mut self, line: &str) {
        self.unwritten.push_str(line);
        self.unwritten.push('\n');
    }

    /// Returns whether the frame interval has passed.
    pub(super) fn is_redraw_due(&self, now: Instant) -> bool {
        self.drawn_at.is_none_or(|at| now.duration_since(at) >= FRAME_INTERVAL)
    }

    /// Writes finished lines and redraws the live rows. Does nothing if nothing changed.
    pub(super) fn draw(&mut self, rows: LiveRows, columns: usize, now: Instant) {
        if self.unwritten.is_empty()
            && self.status_rows.as_ref().is_some_and(|below| below.rows == rows)
        {
            return;
        }
        let mut out = SYNCHRONIZED_UPDATE[0].to_owned();
        out.push_str(&self.erase_sequence(columns));
        out.push_str(&std::mem::take(&mut self.unwritten));
        out.push_str(&rows.rows.join("\n"));
        let (row, column) = rows.cursor;
        let up = rows.rows.len().saturating_sub(row + 1);
        if up > 0 {
            out.push_str(&format!("\u{1b}[{up}A"));
        }
        out.push_str(&format!(
            "\r{}",
            if column > 0 { format!("\u{1b}[{column}C") } else { String::new() }
        ));
        out.push_str(SYNCHRONIZED_UPDATE[1]);
        eprint_text(&out);
        let widths =
            rows.rows.iter().take(row + 1).map(|row| console::measure_text_width(row)).collect();
        self.status_rows = Some(StatusRows { rows, widths });
        self.drawn_at = Some(now);
    }

    /// Erases the live rows and writes finished lines. The cursor is then at the beginning of an
    /// empty row.
    pub(super) fn clear(&mut self, columns: usize) {
        let out = self.erase_sequence(columns) + &std::mem::take(&mut self.unwritten);
        self.status_rows = None;
        self.drawn_at = None;
        eprint_text(&out);
    }

    /// Writes finished lines without live rows below them.
    pub(super) fn flush(&mut self) {
        if !self.unwritten.is_empty() {
            eprint_text(&std::mem::take(&mut self.unwritten));
        }
    }

    /// Returns the sequence that moves to the first live row and erases everything from there on.
    /// Accounts for rows that a narrower terminal has wrapped.
    fn erase_sequence(&self, columns: usize) -> String {
        let Some(below) = &self.status_rows else { return String::new() };
        let columns = columns.max(1);
        let (row, column) = below.rows.cursor;
        let above: usize =
            below.widths.iter().take(row).map(|width| width.div_ceil(columns).max(1)).sum();
        let up = above + column / columns;
        let up = if up > 0 { format!("\u{1b}[{up}A") } else { String::new() };
        format!("{up}\r\u{1b}[J")
    }
}
