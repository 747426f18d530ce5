//! `cofferdam audit verify`: whether the logs are as they were written.

use std::process::ExitCode;

use console::style;

use super::problems;
use crate::audit::Inspected;
use crate::cli::error::Done;
use crate::cli::exit;
use crate::cli::print::stdout_line;
use crate::shown;

pub(super) fn run(logs: &[Inspected], contains: &[String]) -> Done {
    for log in logs {
        stdout_line(&about(log));
    }
    let missing: Vec<&String> = contains.iter().filter(|hash| !logs.iter().any(|log| log.hashes.contains(hash))).collect();
    for hash in &missing {
        stdout_line(&format!("{} no log holds a record with the hash {}", style("✗").red(), shown::line(hash, 100)));
    }
    let bad = logs.iter().filter(|log| !log.is_good()).count();
    stdout_line(&match bad {
        0 => format!("{} logs, each as it was written", logs.len()),
        bad => format!("{bad} of {} logs are NOT as they were written", logs.len()),
    });
    Ok(if bad == 0 && missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

fn about(log: &Inspected) -> String {
    let mark = if log.is_good() { style("✓").green() } else { style("✗").red() };
    let last = log.hashes.last().map_or("nothing", String::as_str);
    let mut text = format!("{mark} {}  {} records, the last {last}", log.name.as_str(), log.records.len());
    if log.torn > 0 && log.is_good() {
        text.push_str(&format!("\n    {} bytes follow that were torn by a crash; nothing was done on their strength", log.torn));
    }
    for problem in problems(log) {
        text.push_str(&format!("\n    {}", shown::line(&problem, 600)));
    }
    text
}
