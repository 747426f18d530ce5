//! For people: the model's text as it comes, a line for each call, and a spinner while there is something to wait for.
//!
//! Standard output gets the answer and nothing else when it is not a terminal; what happens goes to standard error.

use std::io::IsTerminal as _;
use std::time::Duration;

use console::style;
use indicatif::{ProgressBar, ProgressStyle};

use super::json::CallSummary;
use crate::agent::Outcome;
use crate::agent::events::{Event, Fitting, Tier, View};
use crate::agent::ports::Delta;
use crate::cli::print::{stderr_line, stdout_line, stdout_piece};
use crate::conversation::{Call, ResultStatus, ToolResult};
use crate::shown;

/// Lines of a write's result that are shown; the model sees all of it.
const PREVIEW_LINES: usize = 8;
/// Lines of a diff that are shown.
const DIFF_LINES: usize = 40;

pub(super) struct Text {
    /// Whether the model's text is shown as it comes.
    live: bool,
    spinner: Option<ProgressBar>,
    running: Vec<(String, String)>,
    /// The live text so far of this turn.
    streamed: String,
    /// Whether the final answer went by as live text.
    answer_shown: bool,
    calls: Vec<CallSummary>,
}

impl Text {
    pub(super) fn new() -> Self {
        let spinner = std::io::stderr().is_terminal().then(|| {
            let spinner = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner:.dim} {wide_msg:.dim}") {
                spinner.set_style(style.tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ "));
            }
            spinner
        });
        Self {
            live: std::io::stdout().is_terminal(),
            spinner,
            running: Vec::new(),
            streamed: String::new(),
            answer_shown: false,
            calls: Vec::new(),
        }
    }

    pub(super) fn is_live(&self) -> bool {
        self.live
    }

    pub(super) fn calls(&self) -> &[CallSummary] {
        &self.calls
    }

    pub(super) fn pause(&mut self) {
        self.finish_text();
        if let Some(spinner) = &self.spinner {
            spinner.disable_steady_tick();
            spinner.finish_and_clear();
        }
    }

    pub(super) fn resume(&mut self) {
        self.spin();
    }

    pub(super) fn observe(&mut self, event: &Event<'_>) {
        self.calls.extend(CallSummary::of(event));
        match event {
            Event::TurnStarted { .. } => self.spin(),
            Event::Delta(Delta::Text(text)) => self.text(text),
            Event::Delta(Delta::Reasoning(_) | Delta::CallBegun(_))
            | Event::RequestStarted { .. }
            | Event::CallsProposed(_)
            | Event::TurnFinished(_) => {}
            Event::Delta(Delta::Retry { attempt, pause, reason }) => {
                let reason = shown::line(reason, 300);
                self.say(&format!(
                    "{} {reason}; attempt {} in {:.1} s",
                    style("!").yellow().for_stderr(),
                    attempt + 1,
                    pause.as_secs_f64()
                ));
            }
            Event::Fitting(Fitting::Pruned(_)) => {}
            Event::Fitting(Fitting::Summarising) => {
                if let Some(spinner) = &self.spinner {
                    spinner.set_message("summarising the conversation");
                }
            }
            Event::Fitting(Fitting::Summarised { summary, tokens: (before, after), .. }) => {
                let facts = format!("{} turns are now a summary: about {before} tokens became {after}", summary.turns);
                self.say(&style(format!("  {facts}")).dim().for_stderr().to_string());
            }
            Event::CallStarted { call, summary, .. } => {
                self.running.push((call.id.to_string(), format!("{} {}", shown::line(&call.name, 64), shown::line(summary, 80))));
                self.spin();
            }
            Event::CallProgress { call, message } => {
                if let Some(spinner) = &self.spinner {
                    spinner.set_message(format!("{}: {}", shown::line(&call.name, 64), shown::line(message, 200)));
                }
            }
            Event::CallFinished { call, tier, summary, result, view, duration } => {
                let what = format!("{} {}", shown::line(&call.name, 64), shown::line(summary, 80));
                self.finished(call, &what, *tier, result, *view, *duration);
            }
            Event::Answered(_) => {
                self.answer_shown = self.live;
                self.finish_text();
            }
            Event::Notice(text) => self.say(&format!("{} {}", style("!").yellow().for_stderr(), shown::line(text, 400))),
            Event::RequestFinished { outcome } => self.end(outcome),
        }
    }

    fn text(&mut self, text: &str) {
        if !self.live || (self.streamed.is_empty() && text.trim().is_empty()) {
            return;
        }
        if self.streamed.is_empty() {
            self.clear();
        }
        self.streamed.push_str(text);
        stdout_piece(&shown::block(text));
    }

    fn finish_text(&mut self) {
        if !self.streamed.is_empty() && !self.streamed.ends_with('\n') {
            stdout_piece("\n");
        }
        self.streamed.clear();
    }

    fn finished(&mut self, call: &Call, what: &str, tier: Option<Tier>, result: &ToolResult, view: Option<&View>, duration: Duration) {
        let id = call.id.to_string();
        self.running.retain(|(running, _)| *running != id);
        let mark = match result.status {
            ResultStatus::Ok => style("✓").green(),
            ResultStatus::Error => style("✗").red(),
            ResultStatus::Rejected | ResultStatus::NotRun | ResultStatus::Interrupted => style("–").yellow(),
        };
        let tier = tier.map_or("not run", Tier::name);
        let facts = style(format!("{tier}, {}", duration_in_words(duration))).dim().for_stderr();
        self.say(&format!("  {} {what}  {facts}", mark.for_stderr()));
        match (result.status, view) {
            (ResultStatus::Ok, Some(View::Diff(diff))) => self.diff(diff),
            (ResultStatus::Ok, Some(View::Text(text))) => self.preview(text, PREVIEW_LINES),
            (ResultStatus::Ok, Some(View::Table { header, rows })) => self.preview(&table(header, rows), DIFF_LINES),
            (ResultStatus::Ok, None) if tier == Tier::Write.name() => self.preview(&result.text(), PREVIEW_LINES),
            (ResultStatus::Ok, None) => {}
            (ResultStatus::Error | ResultStatus::Rejected | ResultStatus::NotRun | ResultStatus::Interrupted, _) => {
                self.preview(&result.text(), 4);
            }
        }
        self.spin();
    }

    fn preview(&mut self, text: &str, most: usize) {
        let text = shown::block(text);
        let lines: Vec<&str> = text.lines().collect();
        for line in lines.iter().take(most) {
            let line: String = line.chars().take(200).collect();
            self.say(&style(format!("      {line}")).dim().for_stderr().to_string());
        }
        if lines.len() > most {
            self.say(&style(format!("      … {} more lines", lines.len() - most)).dim().for_stderr().to_string());
        }
    }

    fn diff(&mut self, diff: &str) {
        let diff = shown::block(diff);
        for line in diff.lines().take(DIFF_LINES) {
            let styled = match line.chars().next() {
                Some('+') => style(line).green(),
                Some('-') => style(line).red(),
                _ => style(line).dim(),
            };
            self.say(&format!("      {}", styled.for_stderr()));
        }
        let more = diff.lines().count().saturating_sub(DIFF_LINES);
        if more > 0 {
            self.say(&format!("      … {more} more lines"));
        }
    }

    fn end(&mut self, outcome: &Outcome) {
        let shown_already = self.answer_shown || !self.streamed.is_empty();
        self.finish_text();
        self.clear();
        if let Some(text) = outcome.text()
            && !shown_already
            && !text.is_empty()
        {
            let text = if self.live { shown::block(text) } else { text.to_owned() };
            stdout_line(text.strip_suffix('\n').unwrap_or(&text));
        }
        let problem = match outcome {
            Outcome::Answered { .. } => return,
            Outcome::Limit { turns, .. } => format!("stopped after {turns} turns with calls; raise --max-tool-iterations to let it go on"),
            Outcome::Empty => "the model gave no answer, twice in a row".to_owned(),
            Outcome::Rejected => "ended, since you rejected a call".to_owned(),
            Outcome::Aborted => "stopped".to_owned(),
            Outcome::TimedOut { seconds } => format!("stopped after its {seconds} seconds"),
            Outcome::ProviderError { message } => format!("the model did not answer: {message}"),
            Outcome::Overflow { message } => format!("the conversation is too large for the model: {message}"),
            Outcome::InternalError { message } => format!("an error of cofferdam itself, please report it: {message}"),
        };
        stderr_line(&format!("cofferdam: {}", shown::block(&problem)));
    }

    fn say(&mut self, line: &str) {
        self.finish_text();
        match &self.spinner {
            Some(spinner) if !spinner.is_finished() => spinner.suspend(|| stderr_line(line)),
            Some(_) | None => stderr_line(line),
        }
    }

    fn spin(&mut self) {
        let message = match self.running.as_slice() {
            [] => "thinking".to_owned(),
            [(_, one)] => one.clone(),
            many => many.iter().map(|(_, what)| what.split(' ').next().unwrap_or_default()).collect::<Vec<_>>().join(", "),
        };
        if let Some(spinner) = &self.spinner {
            spinner.reset();
            spinner.set_message(message);
            spinner.enable_steady_tick(Duration::from_millis(100));
        }
    }

    fn clear(&mut self) {
        if let Some(spinner) = &self.spinner {
            spinner.disable_steady_tick();
            spinner.finish_and_clear();
        }
    }
}

fn table(header: &[String], rows: &[Vec<String>]) -> String {
    let all = std::iter::once(header).chain(rows.iter().map(Vec::as_slice));
    let widths: Vec<usize> = (0..header.len())
        .map(|column| all.clone().filter_map(|row| row.get(column)).map(|cell| console::measure_text_width(cell)).max().unwrap_or_default())
        .collect();
    let row = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| console::pad_str(cell, *width, console::Alignment::Left, None));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    all.map(row).collect::<Vec<_>>().join("\n")
}

fn duration_in_words(duration: Duration) -> String {
    match duration.as_micros() {
        0 => "at once".to_owned(),
        1..1000 => format!("{} µs", duration.as_micros()),
        1000..1_000_000 => format!("{} ms", duration.as_millis()),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_padded_by_what_is_seen() {
        let header = ["name".to_owned(), "n".to_owned()];
        let rows = [vec!["grüße".to_owned(), "1".to_owned()], vec!["日本".to_owned(), "20".to_owned()]];
        assert_eq!(table(&header, &rows), "name   n\ngrüße  1\n日本   20");
    }

    #[test]
    fn durations_read_well() {
        let words = [0, 40, 12_000, 3_400_000].map(|micros| duration_in_words(Duration::from_micros(micros)));
        assert_eq!(words, ["at once", "40 µs", "12 ms", "3.4 s"]);
    }
}
