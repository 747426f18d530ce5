//! `cofferdam plugin test`: runs the author's cases and the conformance checks.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use console::style;

use crate::args::CommonArgs;
use crate::authoring::PluginProject;
use crate::authoring::conformance::{CheckResult, check_conformance, read_cases};
use crate::context;
use crate::error::{CliError, CommandResult};
use crate::exit;
use crate::print::print_line;
use cofferdam::plugins::PluginSource;
use cofferdam::terminal_escape;

/// Maximum number of lines shown of a tool's output.
const MAX_OUTPUT_LINES: usize = 20;

pub(super) fn run(common: &CommonArgs, subject: &Path, cases: Option<PathBuf>) -> CommandResult {
    let environment = &common.environment;
    let (component, cases) = component_and_cases(subject, cases)?;
    let cases = match cases {
        Some(file) => read_cases(&file).map_err(|error| CliError::new(error.to_string()))?,
        None => Vec::new(),
    };
    let (sandbox, plugin) = super::load_plugin(environment, &component)?;
    // Nobody has accepted the plugin, but the policy decides which ones may run at all.
    let (settings, user_dirs) = context::load_chosen_settings(common, common.common_flags())?;
    let policy = context::load_policy_outside_projects(common, &settings, &user_dirs)?;
    let source = PluginSource::parse(&component.display().to_string())?;
    super::check_policy(&policy, &source, plugin.digest())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (mut passed, mut failed) = (0_usize, 0_usize);
    let mut found = |finding: CheckResult| {
        match finding.error {
            None => passed += 1,
            Some(_) => failed += 1,
        }
        print_line(&format_result(&finding));
    };
    runtime.block_on(check_conformance(&sandbox, &plugin, environment, &cases, &mut found));
    runtime.shutdown_background();
    print_line(&format!("\n{passed} passed, {failed} failed"));
    Ok(ExitCode::from(if failed == 0 { 0 } else { exit::FAILURE }))
}

/// Returns the component and the cases for the subject: a component or a project directory.
fn component_and_cases(
    subject: &Path,
    cases: Option<PathBuf>,
) -> Result<(PathBuf, Option<PathBuf>), CliError> {
    if subject.is_file() {
        return Ok((subject.to_owned(), cases));
    }
    let project = PluginProject::open(subject).map_err(|error| CliError::new(error.to_string()))?;
    let component = project.component_path();
    if !component.exists() {
        return Err(CliError::new(format!(
            "{} is not built yet: run `cofferdam plugin build` first",
            component.display()
        )));
    }
    Ok((component, cases.or_else(|| Some(project.cases_path()).filter(|file| file.exists()))))
}

fn format_result(finding: &CheckResult) -> String {
    let what = terminal_escape::escape_line(&format!("{}: {}", finding.tool, finding.check), 200);
    match &finding.error {
        None => format!("{} {what}", style("ok    ").green()),
        Some(problem) => {
            let problem = terminal_escape::escape_line(problem, 600);
            format!(
                "{} {what}\n         {problem}{}",
                style("FAILED").red().bold(),
                format_output(&finding.output)
            )
        }
    }
}

/// Formats the end of a tool's output, where a panic or a traceback appears.
fn format_output(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let last_lines = &lines[lines.len().saturating_sub(MAX_OUTPUT_LINES)..];
    if last_lines.is_empty() {
        return String::new();
    }
    let cut = if last_lines.len() < lines.len() { " (last lines)" } else { "" };
    let lines: String = last_lines
        .iter()
        .map(|line| format!("\n           | {}", terminal_escape::escape_line(line, 200)))
        .collect();
    format!("\n         output{cut}:{lines}")
}
