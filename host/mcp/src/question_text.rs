//! The words of a question to the user, complete and escaped.
//!
//! A client shows the text as it likes, so nothing in it depends on colors or on a page size. What
//! is too long to be read is not asked about.

use cofferdam::policy::{ApprovalQuestion, ChangeRisk, ChangeSet, Effect, FileChange};
use cofferdam::sandbox::{CommandSandbox, special_address};
use cofferdam::terminal_escape::{
    escape_exact, escape_line, escape_name, shorten_blanks, shorten_diff_blanks,
};

/// The largest text that is asked about, in bytes. A longer one is not read before it is approved.
const MAX_TEXT_LEN: usize = 32 << 10;
/// The characters of a background command that are shown with its input.
const MAX_SHOWN_LINE_LEN: usize = 200;

/// A question in words, with the choices that it offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WordedQuestion {
    /// The effect in full.
    pub(crate) text: String,
    /// The scope of an approval for the session; `None` if that is not offered.
    pub(crate) scope: Option<String>,
    /// Whether a rejection may come with instructions for the model.
    pub(crate) has_guidance: bool,
}

/// Words a question.
///
/// # Errors
///
/// Returns the reason, as a clause, if the effect cannot be shown in full: it is too long, or a new
/// content has no diff.
pub(crate) fn word_question(
    question: &ApprovalQuestion,
    commands: &CommandSandbox,
) -> Result<WordedQuestion, String> {
    let tool = escape_line(&question.tool, 64);
    let (headline, body) = match &question.effect {
        Effect::Command { line, directory, background } => {
            let place = match directory.as_str() {
                "" => String::new(),
                directory => format!(" in {}", escape_full(directory)),
            };
            let lifetime =
                if *background { " in the background until the session ends" } else { "" };
            let access = commands.describe_access();
            let headline = format!("{tool} wants to run this command{place}{lifetime}, {access}:");
            (headline, escape_exact(line))
        }
        Effect::Input { line, text, .. } => {
            let line = escape_line(line, MAX_SHOWN_LINE_LEN);
            let headline =
                format!("{tool} wants to send this input to the background command `{line}`:");
            (headline, escape_exact(text))
        }
        Effect::Write { changes, .. } => {
            check_contents(changes)?;
            let what = match changes.iter().collect::<Vec<_>>().as_slice() {
                [only] => escape_full(&only.to_string()),
                several => format!("change {} paths", several.len()),
            };
            (format!("{tool} wants to {what}:"), describe_changes(changes))
        }
        Effect::Fetch { method, url, .. } => {
            let headline = format!(
                "{tool} wants to send this HTTP request (approval covers any request body):"
            );
            (headline, escape_exact(&format!("{method} {url}")))
        }
        Effect::Connect { host, line } => {
            let what = host.address().and_then(special_address);
            let what = what.map(|what| format!(" ({what})")).unwrap_or_default();
            let headline = format!("this command of {tool} wants to connect to {host}{what}:");
            (headline, escape_exact(line))
        }
        Effect::Confirmed => {
            let headline = format!("{tool} needs approval for a call with these arguments:");
            (headline, escape_exact(&question.arguments))
        }
        Effect::Plan { text, .. } => (format!("{tool} presents this plan:"), escape_exact(text)),
    };
    if headline.len() + body.len() > MAX_TEXT_LEN {
        return Err(format!(
            "the question would have {} bytes, more than a user can read before the answer",
            headline.len() + body.len()
        ));
    }
    let indent = |line: &str| if line.is_empty() { String::new() } else { format!("    {line}") };
    // A client may show only the first rows.
    let body = shorten_blanks(&body);
    let shown: Vec<String> = body.lines().map(indent).collect();
    Ok(WordedQuestion {
        text: format!("{headline}\n\n{}\n", shown.join("\n")),
        scope: question.scope.as_ref().map(|scope| escape_full(&scope.to_string())),
        // After a rejected connection, the command goes on.
        has_guidance: !matches!(question.effect, Effect::Connect { .. }),
    })
}

fn escape_full(name: &str) -> String {
    escape_name(name, usize::MAX)
}

/// Checks that the diffs show all new contents. A user would approve the others unseen.
fn check_contents(changes: &ChangeSet) -> Result<(), String> {
    let hidden: Vec<String> =
        changes.undiffed().map(|(path, _)| escape_full(path.as_str())).collect();
    let Some(first) = hidden.first() else { return Ok(()) };
    let more = match hidden.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let why = ChangeRisk::HasNoDiff.describe();
    Err(format!(
        "the new content of {first}{more} has no diff ({why}), so the question could not show it"
    ))
}

/// Describes changes: the risks first, then each change, then the diff.
fn describe_changes(changes: &ChangeSet) -> String {
    let mut lines = find_risks(changes);
    // A single change is named by the headline.
    if changes.len() > 1 {
        lines.extend(changes.iter().map(|change| escape_full(&change.to_string())));
    }
    if !lines.is_empty() {
        lines.push(String::new());
    }
    let diffs = changes.iter().filter_map(|change| change.diff.as_deref()).map(escape_exact);
    lines.extend(diffs.map(|diff| shorten_diff_blanks(&diff)));
    lines.join("\n").trim_end().to_owned()
}

/// Returns the risks that a reader may overlook among many lines.
fn find_risks(changes: &ChangeSet) -> Vec<String> {
    let describe = |(risk, of): (ChangeRisk, Vec<&FileChange>)| {
        let paths: Vec<String> =
            of.iter().map(|change| escape_full(change.path.as_str())).collect();
        format!("! {}: {}", risk.describe(), paths.join(", "))
    };
    changes.risks().map(describe).collect()
}
