//! The text of a question: what the call would do, and the choices.

use super::choices::{DialogChoice, OfferedChoices};
use crate::changes;
use crate::pages::PagedText;
use crate::paging::PagingChoice;
use cofferdam::policy::{ApprovalQuestion, Effect};
use cofferdam::sandbox::{self, CommandSandbox};
use cofferdam::terminal_escape;

/// The characters of a background command that are shown with its input.
const MAX_SHOWN_LINE_LEN: usize = 200;

/// How long "don't ask again" applies, as a part of the choice.
pub(crate) const REQUEST_DURATION: &str = "in this request";
pub(crate) const CHAT_DURATION: &str = "in this chat";

/// Describes the sandbox of the command in question, and what it lacks; empty for other questions.
pub(crate) fn describe_sandbox(question: &ApprovalQuestion, commands: &CommandSandbox) -> String {
    match question.effect {
        Effect::Command { .. } => commands.describe_access(),
        Effect::Input { .. }
        | Effect::Write { .. }
        | Effect::Fetch { .. }
        | Effect::Connect { .. }
        | Effect::Confirmed
        | Effect::Plan { .. } => String::new(),
    }
}

/// A question formatted for display.
pub(crate) struct DescribedQuestion {
    pub(crate) pages: PagedText,
    /// The file with the full diff; dropping this deletes it.
    _full_diff_file: Option<tempfile::NamedTempFile>,
}

/// Formats a question, escaped and in full. `how_long` is the duration of "don't ask again";
/// `sandbox` describes the sandbox of a command.
pub(crate) fn describe(
    question: &ApprovalQuestion,
    how_long: &str,
    sandbox: &str,
) -> DescribedQuestion {
    let tool = terminal_escape::escape_line(&question.tool, 64);
    let mut pages = PagedText { more_prompt: PagingChoice::HELP, ..PagedText::default() };
    let mut diff_file = None;
    match &question.effect {
        Effect::Command { line, directory, background } => {
            let place = if directory.as_str().is_empty() {
                String::new()
            } else {
                format!(" in {}", escape_full_name(directory.as_str()))
            };
            let lifetime = match background {
                true => " in the background until the session ends",
                false => "",
            };
            pages.headline =
                format!("{tool} wants to run this command{place}{lifetime}, {sandbox}:");
            pages.push_text(line);
        }
        Effect::Input { line, text, .. } => {
            let line = terminal_escape::escape_line(line, MAX_SHOWN_LINE_LEN);
            pages.headline =
                format!("{tool} wants to send this input to the background command `{line}`:");
            pages.push_text(text);
        }
        Effect::Write { changes, .. } => {
            let described = changes::describe(changes);
            pages.headline = format!("{tool} wants to {}:", changes::format_headline(changes));
            (pages.lines, pages.reminders, pages.notices, diff_file) =
                (described.lines, described.risks, described.notices, described.full_diff_file);
        }
        Effect::Fetch { method, url, .. } => {
            pages.headline = format!(
                "{tool} wants to send this HTTP request (approval covers any request body):"
            );
            pages.push_text(&format!("{method} {url}"));
        }
        Effect::Connect { host, line } => {
            let what = host.address().and_then(sandbox::special_address);
            let what = what.map(|what| format!(" ({what})")).unwrap_or_default();
            pages.headline = format!("this command of {tool} wants to connect to {host}{what}:");
            pages.push_text(line);
        }
        Effect::Confirmed => {
            pages.headline = format!("{tool} needs approval for a call with these arguments:");
            pages.push_text(&question.arguments);
        }
        Effect::Plan { text, .. } => {
            pages.headline = format!("{tool} presents this plan:");
            pages.push_text(text);
        }
    }
    let (yes, no) = match &question.effect {
        Effect::Plan { then, .. } => (
            format!("yes, carry it out; plan mode ends, and mode `{then}` applies"),
            "no; you can say what to change",
        ),
        Effect::Connect { .. } => {
            ("yes, for this command".to_owned(), "no; the command goes on without the connection")
        }
        Effect::Command { .. }
        | Effect::Input { .. }
        | Effect::Write { .. }
        | Effect::Fetch { .. }
        | Effect::Confirmed => ("yes, this once".to_owned(), "no; you can say what to do instead"),
    };
    pages.choices.push(format!("  1  {yes}"));
    if let Some(scope) = &question.scope {
        pages.choices.push(format!(
            "  2  yes, and don't ask again {how_long} for {}",
            escape_full_name(&scope.to_string())
        ));
    }
    pages.choices.push(format!("  3  {no}"));
    if let Some(rule) = &question.lasting {
        pages
            .choices
            .push(format!("  4  yes, always; adds {}", escape_full_name(&rule.to_string())));
    }
    pages.choices.push(DialogChoice::help(OfferedChoices::of(question)).to_owned());
    pages.warn_text_direction();
    DescribedQuestion { pages, _full_diff_file: diff_file }
}

fn escape_full_name(name: &str) -> String {
    terminal_escape::escape_name(name, usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::whole_page;
    use crate::wrap::TerminalSize;
    use cofferdam::policy::{
        ApprovalMode, Authorization, Authorizer, ChangeKind, ChangeSet, ContentDigest, FileChange,
        ToolId, WorkspacePath,
    };

    const SANDBOX: &str = "in the sandbox `full`, no network";

    /// Renders a question on a screen that fits everything.
    fn question_text(question: &ApprovalQuestion) -> String {
        let described = describe(question, REQUEST_DURATION, SANDBOX);
        whole_page(&described.pages, TerminalSize { columns: 90, rows: 300 })
    }

    fn command_question(line: &str) -> String {
        let effect = Effect::Command {
            line: line.into(),
            directory: WorkspacePath::parse("", None).unwrap(),
            background: false,
        };
        let Authorization::Ask(question) = Authorizer::new(ApprovalMode::Ask, true).authorize(
            ToolId::new("bash", ""),
            "{}",
            effect,
        ) else {
            panic!("not asked")
        };
        question_text(question.question())
    }

    /// Returns the choices of a question: the lines that begin with a digit.
    fn choice_lines(effect: Effect, mode: ApprovalMode) -> Vec<String> {
        let tool = if matches!(effect, Effect::Plan { .. }) { "present_plan" } else { "a_tool" };
        let Authorization::Ask(question) =
            Authorizer::new(mode, true).authorize(ToolId::new(tool, ""), "{}", effect)
        else {
            panic!("not asked")
        };
        let text = question_text(question.question());
        let is_offer = |line: &&str| {
            line.trim_start().starts_with(|c: char| c.is_ascii_digit())
                && line.starts_with("  ")
                && !line.starts_with("    ")
        };
        text.lines().filter(is_offer).map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn r128_a_digit_means_the_same_in_every_dialog() {
        let path = |text: &str| WorkspacePath::parse(text, None).unwrap();
        let after = ContentDigest { size: 4, digest: "0".into() };
        let change = FileChange {
            path: path("a.rs"),
            kind: ChangeKind::Modify { before: 4, after },
            diff: None,
        };
        let questions = [
            (
                Effect::Command {
                    line: "cargo test".into(),
                    directory: path(""),
                    background: false,
                },
                ApprovalMode::Ask,
            ),
            (
                Effect::Command { line: "a; b".into(), directory: path(""), background: false },
                ApprovalMode::Ask,
            ),
            (
                Effect::Write { changes: ChangeSet::new(vec![change]), confirm: false },
                ApprovalMode::Ask,
            ),
            (
                Effect::Plan { text: "1. Read\n2. Mend\n3. No".into(), then: ApprovalMode::Auto },
                ApprovalMode::Plan,
            ),
        ];
        for (effect, mode) in questions {
            let what = format!("{effect:?}");
            let offers = choice_lines(effect, mode);
            let has_scope = offers.iter().any(|offer| offer.starts_with('2'));
            let offered = OfferedChoices {
                has_scope,
                has_always: offers.iter().any(|offer| offer.starts_with('4')),
                has_guidance: true,
            };
            assert!(offers.len() >= 2, "{what}: {offers:#?}");
            for offer in &offers {
                let (digit, words) = offer.split_once("  ").expect("a digit and a text");
                let expected = match (digit, words.split([',', ';']).next()) {
                    ("1", Some("yes")) => DialogChoice::Yes,
                    ("2", Some("yes")) => DialogChoice::YesForScope,
                    ("3", Some("no")) => DialogChoice::No,
                    ("4", Some("yes")) => DialogChoice::YesAlways,
                    other => panic!("{what}: {other:?}"),
                };
                assert_eq!(
                    DialogChoice::parse(&format!(" {digit} "), offered),
                    Ok(expected),
                    "{what}"
                );
            }
            assert_eq!(
                DialogChoice::parse("2", OfferedChoices::default()),
                Err("Type 1 or 3, and Enter.")
            );
            for none in ["", "0", "5", "11", "y", "n"] {
                assert!(DialogChoice::parse(none, offered).is_err(), "{what}: {none:?}");
            }
        }
    }

    #[test]
    fn r042_the_action_is_shown_completely_and_exactly() {
        let text = command_question("ls \r\n\u{a0}\u{3000}x\u{1bca0}\n\n\n\n\n\nrm \\ \n-rf y");
        for shown in [
            "    ls \\u{d}\n",
            "    \\u{a0}\\u{3000}x\\u{1bca0}\n",
            "  ⋮ 5 empty lines\n",
            "    rm \\\\u{20}\n",
        ] {
            assert!(text.contains(shown), "{shown:?} in {text}");
        }
        let long = format!("cargo-{}", "x".repeat(5000));
        let text = command_question(&long).replace("\n  ↳ ", "").replace("\n     ", "");
        assert!(text.contains(&long) && text.contains(&format!("exactly `{long}`")), "{text}");
        let text = command_question("echo 'א' ; rm -rf 'ב'");
        assert!(text.contains("! This text contains right-to-left letters"), "{text}");
    }

    #[test]
    fn r038_the_dialog_shows_the_command_and_the_scope() {
        let text = command_question("cargo test --release");
        let rows: Vec<&str> = text.lines().map(str::trim_end).collect();
        insta::assert_snapshot!(rows.join("\n"), @r"

        ? bash wants to run this command, in the sandbox `full`, no network:

            cargo test --release

          1  yes, this once
          2  yes, and don't ask again in this request for commands that begin with `cargo test`,
             without options that write files or run programs
          3  no; you can say what to do instead
        Type 1, 2 or 3, and Enter.
        ");
    }

    #[test]
    fn r042_a_write_is_shown_as_a_diff() {
        let after = ContentDigest { size: 4, digest: "0".into() };
        let diff = Some("--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-old\n+new\n".to_owned());
        let path = WorkspacePath::parse("src/a.rs", None).unwrap();
        let effect = Effect::Write {
            changes: ChangeSet::new(vec![FileChange {
                path,
                kind: ChangeKind::Modify { before: 4, after },
                diff,
            }]),
            confirm: false,
        };
        let Authorization::Ask(question) = Authorizer::new(ApprovalMode::Ask, true).authorize(
            ToolId::new("patch", ""),
            r#"{"path":"elsewhere"}"#,
            effect,
        ) else {
            panic!("not asked")
        };
        insta::assert_snapshot!(question_text(question.question()), @r"

        ? patch wants to change src/a.rs (4 → 4 bytes):

            --- a/src/a.rs
            +++ b/src/a.rs
            @@ -1 +1 @@
            -old
            +new

          1  yes, this once
          2  yes, and don't ask again in this request for patch writing src/a.rs
          3  no; you can say what to do instead
        Type 1, 2 or 3, and Enter.
        ");
    }

    #[test]
    fn r126_a_plan_is_shown_in_full_with_the_mode_that_follows() {
        let effect =
            Effect::Plan { text: "1. Read\n2. Mend \u{1b}[2J".into(), then: ApprovalMode::Auto };
        let Authorization::Ask(question) = Authorizer::new(ApprovalMode::Plan, true).authorize(
            ToolId::new("present_plan", ""),
            "{}",
            effect,
        ) else {
            panic!("not asked")
        };
        insta::assert_snapshot!(question_text(question.question()), @r"

        ? present_plan presents this plan:

            1. Read
            2. Mend \u{1b}[2J

          1  yes, carry it out; plan mode ends, and mode `ask` applies
          3  no; you can say what to change
        Type 1 or 3, and Enter.
        ");
    }

    #[test]
    fn r039_an_opaque_command_has_no_scope_and_nothing_of_it_is_hidden() {
        let command = "ls\u{202e} \u{1b}[2K\r; rm -rf x\nsecond line";
        insta::assert_snapshot!(command_question(command), @r"

        ? bash wants to run this command, in the sandbox `full`, no network:

            ls\u{202e} \u{1b}[2K\u{d}; rm -rf x
            second line

          1  yes, this once
          3  no; you can say what to do instead
        Type 1 or 3, and Enter.
        ");
    }
}
