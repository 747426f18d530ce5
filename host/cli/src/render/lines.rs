//! Lines about tool calls for a terminal, escaped, with colours if available.

use std::time::Duration;

use console::style;

use super::count_noun;
use cofferdam::agent::RequestOutcome;
use cofferdam::agent::events::ToolView;
use cofferdam::conversation::{ResultStatus, ToolCall, ToolResult};
use cofferdam::policy::Tier;
use cofferdam::terminal_escape;

/// Maximum number of lines shown of a write's result. The model sees all of it.
const MAX_PREVIEW_LINES: usize = 8;
/// Maximum number of lines shown of a diff.
const MAX_DIFF_LINES: usize = 40;
/// Maximum number of characters shown of one line.
const MAX_LINE_CHARS: usize = 200;
/// Maximum number of lines shown of an error.
const MAX_REASON_LINES: usize = 4;

/// A finished call with its result.
pub(crate) struct FinishedCall<'a> {
    pub(crate) call: &'a ToolCall,
    pub(crate) tier: Option<Tier>,
    pub(crate) summary: &'a str,
    pub(crate) result: &'a ToolResult,
    pub(crate) view: Option<&'a ToolView>,
    pub(crate) duration: Duration,
}

impl FinishedCall<'_> {
    /// Returns the line of the call, and its view below it.
    pub(crate) fn lines(&self) -> Vec<String> {
        let status = self.result.status;
        let mark = match status {
            ResultStatus::Ok => style("✓").green(),
            ResultStatus::Error => style("✗").red(),
            ResultStatus::Rejected | ResultStatus::NotRun | ResultStatus::Interrupted => {
                style("–").yellow()
            }
        };
        let facts = match (status, self.tier) {
            (ResultStatus::Rejected, _) => "rejected".to_owned(),
            (_, None) => format!("not run, {}", format_duration(self.duration)),
            (_, Some(tier)) => format!("{}, {}", tier.name(), format_duration(self.duration)),
        };
        let facts = style(facts).dim().for_stderr();
        let mut lines = vec![format!(
            "  {} {}  {facts}",
            mark.for_stderr(),
            describe_call(self.call, self.summary)
        )];
        lines.extend(match (status, self.view) {
            (ResultStatus::Ok, Some(ToolView::Diff(text))) => diff_lines(text),
            (ResultStatus::Ok, Some(ToolView::Text(text))) => {
                preview_lines(text, MAX_PREVIEW_LINES)
            }
            (ResultStatus::Ok, Some(ToolView::Table { header, rows })) => {
                preview_lines(&format_table(header, rows), MAX_DIFF_LINES)
            }
            // A view that this program cannot show: the user sees what the model sees.
            (ResultStatus::Ok, Some(_)) => preview_lines(&self.result.text(), MAX_PREVIEW_LINES),
            (ResultStatus::Ok, None) if self.tier == Some(Tier::Write) => {
                preview_lines(&self.result.text(), MAX_PREVIEW_LINES)
            }
            (ResultStatus::Ok, None) => Vec::new(),
            // The user has just typed this text.
            (ResultStatus::Rejected, _) => Vec::new(),
            (ResultStatus::Error | ResultStatus::NotRun | ResultStatus::Interrupted, _) => {
                preview_lines(&self.result.text(), MAX_REASON_LINES)
            }
        });
        lines
    }
}

/// Describes a call by tool and summary.
pub(crate) fn describe_call(call: &ToolCall, summary: &str) -> String {
    format!(
        "{} {}",
        terminal_escape::escape_line(&call.name, 64),
        terminal_escape::escape_line(summary, 80)
    )
}

/// Formats the progress of a call.
pub(crate) fn progress_line(tool: &str, message: &str) -> String {
    format!(
        "{}: {}",
        terminal_escape::escape_line(tool, 64),
        terminal_escape::escape_line(message, 200)
    )
}

/// Describes what the run waits for: the running calls, each with its ID, or the model.
/// `is_answering` says that its text is streaming.
pub(crate) fn describe_wait(running: &[(String, String)], is_answering: bool) -> String {
    match running {
        [] if is_answering => "answering".to_owned(),
        [] => "thinking".to_owned(),
        [(_, one)] => one.clone(),
        many => many
            .iter()
            .map(|(_, what)| what.split(' ').next().unwrap_or_default())
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// Formats the notice that a request to the model is retried.
pub(crate) fn retry_line(attempt: u32, pause: Duration, reason: &str) -> String {
    let words = format!(
        "{}; attempt {} in {:.1} s",
        terminal_escape::escape_line(reason, 300),
        attempt + 1,
        pause.as_secs_f64()
    );
    format!("{} {words}", style("!").yellow().for_stderr())
}

/// Formats the notice that a summary replaced the oldest turns.
pub(crate) fn compaction_line(turns: usize, before: u64, after: u64) -> String {
    let facts = format!(
        "  replaced {} by a summary: about {before} tokens before, {after} after",
        count_noun(turns, "turn")
    );
    style(facts).dim().for_stderr().to_string()
}

/// Describes why a request ended without an answer or before its work was done.
pub(crate) fn outcome_error(outcome: &RequestOutcome) -> Option<String> {
    Some(match outcome {
        RequestOutcome::Answered { .. } => return None,
        RequestOutcome::Limit { turns, .. } => {
            format!(
                "stopped at the limit of {} with tool calls",
                count_noun(usize::try_from(*turns).unwrap_or(usize::MAX), "turn")
            )
        }
        RequestOutcome::Empty => "the model gave two empty answers in a row".to_owned(),
        RequestOutcome::Rejected => "stopped because you rejected a tool call".to_owned(),
        RequestOutcome::Aborted => "stopped".to_owned(),
        RequestOutcome::TimedOut { seconds } => {
            format!(
                "stopped at the time limit of {seconds} s (set with `--timeout`, or \
                    `timeout_seconds` in the configuration)"
            )
        }
        RequestOutcome::ProviderError { message } => format!("the model did not answer: {message}"),
        RequestOutcome::Overflow { message } => message.clone(),
        RequestOutcome::InternalError { message } => {
            format!("internal error, please report it: {message}")
        }
    })
}

/// Formats a notice for the user.
pub(crate) fn notice_line(text: &str) -> String {
    format!("{} {}", style("!").yellow().for_stderr(), terminal_escape::escape_line(text, 400))
}

fn preview_lines(text: &str, max_lines: usize) -> Vec<String> {
    let text = terminal_escape::escape_text(text);
    let all = text.lines().count();
    let dim = |line: String| style(line).dim().for_stderr().to_string();
    let shown =
        text.lines().take(max_lines).map(|line| dim(format!("      {}", truncate_line(line))));
    let more = (all > max_lines).then(|| dim(omitted_lines(all - max_lines)));
    shown.chain(more).collect()
}

/// Truncates a line to its maximum length.
fn truncate_line(line: &str) -> String {
    let cut: String = line.chars().take(MAX_LINE_CHARS).collect();
    if cut.len() < line.len() { format!("{cut}…") } else { cut }
}

fn diff_lines(text: &str) -> Vec<String> {
    let text = terminal_escape::escape_text(text);
    let styled = |line: &str| match line.chars().next() {
        Some('+') => style(line.to_owned()).green(),
        Some('-') => style(line.to_owned()).red(),
        _ => style(line.to_owned()).dim(),
    };
    let shown = text
        .lines()
        .take(MAX_DIFF_LINES)
        .map(|line| format!("      {}", styled(&truncate_line(line)).for_stderr()));
    let rest = text.lines().count().saturating_sub(MAX_DIFF_LINES);
    shown.chain((rest > 0).then(|| omitted_lines(rest))).collect()
}

fn omitted_lines(lines: usize) -> String {
    format!("      … {lines} more line{}", if lines == 1 { "" } else { "s" })
}

fn format_table(header: &[String], rows: &[Vec<String>]) -> String {
    let all = std::iter::once(header).chain(rows.iter().map(Vec::as_slice));
    let widths: Vec<usize> = (0..header.len())
        .map(|column| {
            all.clone()
                .filter_map(|row| row.get(column))
                .map(|cell| console::measure_text_width(cell))
                .max()
                .unwrap_or_default()
        })
        .collect();
    let row = |cells: &[String]| {
        let padded = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| console::pad_str(cell, *width, console::Alignment::Left, None));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    all.map(row).collect::<Vec<_>>().join("\n")
}

fn format_duration(duration: Duration) -> String {
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
    fn a_table_is_padded_by_display_width() {
        let header = ["name".to_owned(), "n".to_owned()];
        let rows =
            [vec!["grüße".to_owned(), "1".to_owned()], vec!["日本".to_owned(), "20".to_owned()]];
        assert_eq!(format_table(&header, &rows), "name   n\ngrüße  1\n日本   20");
    }

    #[test]
    fn a_rejected_call_is_one_line_and_a_failed_call_shows_its_error() {
        let call = ToolCall {
            id: cofferdam::conversation::CallId::new("c"),
            name: "bash".into(),
            arguments: "{}".into(),
        };
        let lines = |status, text: &str| {
            let result = ToolResult::new(status, text);
            let finished = FinishedCall {
                call: &call,
                tier: Some(Tier::Write),
                summary: "ls",
                result: &result,
                view: None,
                duration: Duration::ZERO,
            };
            finished
                .lines()
                .iter()
                .map(|line| console::strip_ansi_codes(line).into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            lines(ResultStatus::Rejected, "The user's words:\nno"),
            ["  – bash ls  rejected"]
        );
        let failed = lines(ResultStatus::Error, "1\n2\n3\n4\n5");
        assert_eq!(
            failed,
            [
                "  ✗ bash ls  write, at once",
                "      1",
                "      2",
                "      3",
                "      4",
                "      … 1 more line"
            ]
        );
    }

    #[test]
    fn a_streaming_model_is_answering_not_thinking() {
        let running = |what: &str| ("c1".to_owned(), what.to_owned());
        assert_eq!(
            [describe_wait(&[], false), describe_wait(&[], true)],
            ["thinking", "answering"]
        );
        assert_eq!(describe_wait(&[running("bash ls")], true), "bash ls");
        assert_eq!(describe_wait(&[running("bash ls"), running("grep x")], false), "bash, grep");
    }

    #[test]
    fn durations_have_readable_units() {
        let words =
            [0, 40, 12_000, 3_400_000].map(|micros| format_duration(Duration::from_micros(micros)));
        assert_eq!(words, ["at once", "40 µs", "12 ms", "3.4 s"]);
    }
}
