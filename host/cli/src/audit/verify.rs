//! `cofferdam audit verify`: checks the logs against their hash chains.

use std::process::ExitCode;

use console::style;

use super::log_errors;
use crate::error::CommandResult;
use crate::exit;
use crate::print::print_line;
use cofferdam::audit::InspectedLog;
use cofferdam::terminal_escape;

pub(super) fn run(logs: &[InspectedLog], contains: &[String]) -> CommandResult {
    for log in logs {
        print_line(&format_summary(log));
    }
    let missing: Vec<&String> =
        contains.iter().filter(|hash| !logs.iter().any(|log| log.hashes.contains(hash))).collect();
    for hash in &missing {
        print_line(&format!(
            "{} no log contains a record with the hash {}",
            style("✗").red(),
            terminal_escape::escape_line(hash, 100)
        ));
    }
    let bad = logs.iter().filter(|log| !log.is_intact()).count();
    print_line(&match (bad, logs.len()) {
        (0, 0) => "there are no logs: nothing was verified".to_owned(),
        (0, 1) => "1 log is intact".to_owned(),
        (0, all) => format!("{all} logs are intact"),
        (bad, _) => format!("{bad} of {} logs FAILED verification", logs.len()),
    });
    Ok(if bad == 0 && missing.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(exit::FAILURE)
    })
}

fn format_summary(log: &InspectedLog) -> String {
    let mark = if log.is_intact() { style("✓").green() } else { style("✗").red() };
    let last = log.hashes.last().map_or("none", String::as_str);
    let mut text =
        format!("{mark} {}  {} records, last hash {last}", log.name.as_str(), log.records.len());
    let unsynced = log.records.len() as u64 - log.synced_records.min(log.records.len() as u64);
    if log.is_open {
        text.push_str("\n    still being written");
    } else if unsynced > 0 && log.is_intact() {
        let end = log
            .synced_records
            .checked_sub(1)
            .and_then(|last| log.hashes.get(usize::try_from(last).ok()?));
        let end = end.map_or("its beginning".to_owned(), |hash| {
            format!("record {} with hash {hash}", log.synced_records)
        });
        text.push_str(&format!(
            "\n    {unsynced} records follow the last synced position, {end}: the run was killed \
            before it synced them, or they were added later"
        ));
    }
    if log.torn_bytes > 0 && log.is_intact() {
        text.push_str(&format!(
            "\n    {} bytes of an incomplete record follow; no action depended on it",
            log.torn_bytes
        ));
    }
    for problem in log_errors(log) {
        text.push_str(&format!("\n    {}", terminal_escape::escape_line(&problem, 600)));
    }
    text
}
