//! `cofferdam audit export`: the records for other programs, one JSON object a line.

use std::process::ExitCode;

use serde_json::Value;

use super::args::AuditFormat;
use super::warn_errors;
use crate::audit::{InspectedLog, to_ocsf};
use crate::cli::error::CommandResult;
use crate::cli::exit;
use crate::cli::print::print_line;
use crate::terminal_escape;

pub(super) fn run(logs: &[InspectedLog], format: AuditFormat) -> CommandResult {
    for log in logs {
        let whose = log.principal();
        for (index, (record, hash)) in log.records.iter().zip(&log.hashes).enumerate() {
            let event = match format {
                AuditFormat::Json => Some(Value::Object(log.record_with_hash(index))),
                AuditFormat::Ocsf => to_ocsf(&log.name, &whose, hash, record),
            };
            if let Some(event) = event
                && !print_line(&terminal_escape::escape_json(&event.to_string()))
            {
                return Ok(ExitCode::from(exit::FAILURE));
            }
        }
    }
    // What stands after a bad record is not given out as if it were a record.
    Ok(if warn_errors(logs) { ExitCode::from(exit::FAILURE) } else { ExitCode::SUCCESS })
}
