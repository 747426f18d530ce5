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
    stdout_line(&match (bad, logs.len()) {
        (0, 0) => "there is no log: nothing was checked".to_owned(),
        (0, 1) => "1 log, as it was written".to_owned(),
        (0, all) => format!("{all} logs, each as it was written"),
        (bad, _) => format!("{bad} of {} logs are NOT as they were written", logs.len()),
    });
    Ok(if bad == 0 && missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

fn about(log: &Inspected) -> String {
    let mark = if log.is_good() { style("✓").green() } else { style("✗").red() };
    let last = log.hashes.last().map_or("nothing", String::as_str);
    let mut text = format!("{mark} {}  {} records, the last {last}", log.name.as_str(), log.records.len());
    let untold = log.records.len() as u64 - log.told.min(log.records.len() as u64);
    if log.is_open {
        text.push_str("\n    it is still being written");
    } else if untold > 0 && log.is_good() {
        let end = log.told.checked_sub(1).and_then(|last| log.hashes.get(usize::try_from(last).ok()?));
        let end =
            end.map_or("its beginning".to_owned(), |hash| format!("the end that was put on the disk, record {} with {hash}", log.told));
        text.push_str(&format!(
            "\n    {untold} records stand after {end}: the run was killed before it put them there, or they were added"
        ));
    }
    if log.torn > 0 && log.is_good() {
        text.push_str(&format!("\n    {} bytes follow that were torn by a crash; nothing was done on their strength", log.torn));
    }
    for problem in problems(log) {
        text.push_str(&format!("\n    {}", shown::line(&problem, 600)));
    }
    text
}
