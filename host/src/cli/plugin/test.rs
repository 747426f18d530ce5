//! `cofferdam plugin test`: the author's cases, and what every component has to stand.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use console::style;

use crate::authoring::Project;
use crate::authoring::conformance::{Finding, conformance, read_cases};
use crate::cli::error::{CliError, Done};
use crate::cli::exit;
use crate::cli::print::stdout_line;
use crate::shown;

/// Of what a tool printed.
const PRINTED_LINES: usize = 20;

pub(super) fn run(subject: &Path, cases: Option<PathBuf>) -> Done {
    let (component, cases) = subjects(subject, cases)?;
    let cases = match cases {
        Some(file) => read_cases(&file).map_err(|error| CliError::new(error.to_string()))?,
        None => Vec::new(),
    };
    let (sandbox, plugin) = super::load(&component)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (mut passed, mut failed) = (0_usize, 0_usize);
    let mut found = |finding: Finding| {
        match finding.problem {
            None => passed += 1,
            Some(_) => failed += 1,
        }
        stdout_line(&line(&finding));
    };
    runtime.block_on(conformance(&sandbox, &plugin, &cases, &mut found));
    runtime.shutdown_background();
    stdout_line(&format!("\n{passed} passed, {failed} failed"));
    Ok(ExitCode::from(if failed == 0 { 0 } else { exit::FAILED }))
}

/// The component and the cases that are meant.
fn subjects(subject: &Path, cases: Option<PathBuf>) -> Result<(PathBuf, Option<PathBuf>), CliError> {
    if subject.is_file() {
        return Ok((subject.to_owned(), cases));
    }
    let project = Project::open(subject).map_err(|error| CliError::new(error.to_string()))?;
    let component = project.component();
    if !component.exists() {
        return Err(CliError::new(format!("{} is not built yet: run `cofferdam plugin build` first", component.display())));
    }
    Ok((component, cases.or_else(|| Some(project.cases()).filter(|file| file.exists()))))
}

fn line(finding: &Finding) -> String {
    let what = shown::line(&format!("{}: {}", finding.tool, finding.check), 200);
    match &finding.problem {
        None => format!("{} {what}", style("ok    ").green()),
        Some(problem) => {
            let problem = shown::line(problem, 600);
            format!("{} {what}\n         {problem}{}", style("FAILED").red().bold(), printed(&finding.printed))
        }
    }
}

/// The end of what a tool printed: there a panic or a traceback says what went wrong.
fn printed(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let last = &lines[lines.len().saturating_sub(PRINTED_LINES)..];
    if last.is_empty() {
        return String::new();
    }
    let cut = if last.len() < lines.len() { ", at the end" } else { "" };
    let lines: String = last.iter().map(|line| format!("\n           | {}", shown::line(line, 200))).collect();
    format!("\n         it printed{cut}:{lines}")
}
