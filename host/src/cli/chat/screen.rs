//! The lower end of the terminal: what is said scrolls up, and a few rows below it are drawn anew
//! as things change.
//!
//! Settled rows are written once and never touched again, so that the terminal's own scrolling,
//! searching and copying work on them. The rows below are taken away and drawn again whenever
//! something is added, at most some thirty times a second.

use std::time::{Duration, Instant};

use crate::cli::print::eprint_text;

/// Between two drawings.
const FRAME_INTERVAL: Duration = Duration::from_millis(33);
/// Begin and end of a picture that a terminal shows at once, if it knows them.
const SYNCHRONIZED_UPDATE: [&str; 2] = ["\u{1b}[?2026h", "\u{1b}[?2026l"];

/// The rows that are drawn anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LiveRows {
    /// From the top; each at most as wide as the terminal.
    pub(super) rows: Vec<String>,
    /// The row and column of the cursor among them.
    pub(super) cursor: (usize, usize),
}

/// What is on the screen.
#[derive(Debug, Default)]
pub(super) struct ChatScreen {
    /// Settled, and not yet written.
    unwritten: String,
    /// Drawn below it.
    status_rows: Option<StatusRows>,
    drawn_at: Option<Instant>,
}

#[derive(Debug)]
struct StatusRows {
    rows: LiveRows,
    /// The widths of the rows down to the cursor's.
    widths: Vec<usize>,
}

impl ChatScreen {
    /// Adds a line that stays.
    pub(super) fn push_line(&mut self, line: &str) {
        self.unwritten.push_str(line);
        self.unwritten.push('\n');
    }

    /// Whether it is time for another picture.
    pub(super) fn is_redraw_due(&self, now: Instant) -> bool {
        self.drawn_at.is_none_or(|at| now.duration_since(at) >= FRAME_INTERVAL)
    }

    /// Draws what is new. Nothing is written if nothing changed.
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

    /// Takes the rows below away and writes what is settled: the cursor stands at the beginning of
    /// an empty row then.
    pub(super) fn clear(&mut self, columns: usize) {
        let out = self.erase_sequence(columns) + &std::mem::take(&mut self.unwritten);
        self.status_rows = None;
        self.drawn_at = None;
        eprint_text(&out);
    }

    /// Writes what is settled, where nothing is drawn below it.
    pub(super) fn flush(&mut self) {
        if !self.unwritten.is_empty() {
            eprint_text(&std::mem::take(&mut self.unwritten));
        }
    }

    /// From wherever the cursor was left to the first of the rows below, and everything from there
    /// on away. A terminal that became narrower has broken rows in two.
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
