//! `cofferdam audit export`: the records for other programs, one JSON object a line.

use std::process::ExitCode;

use serde_json::Value;

use super::args::AuditFormat;
use super::warn_of_problems;
use crate::audit::{Inspected, ocsf};
use crate::cli::error::Done;
use crate::cli::exit;
use crate::cli::print::stdout_line;
use crate::shown;

pub(super) fn run(logs: &[Inspected], format: AuditFormat) -> Done {
    for log in logs {
        let whose = log.whose();
        for (index, (record, hash)) in log.records.iter().zip(&log.hashes).enumerate() {
            let event = match format {
                AuditFormat::Json => Some(Value::Object(log.whole(index))),
                AuditFormat::Ocsf => ocsf(&log.name, &whose, hash, record),
            };
            if let Some(event) = event
                && !stdout_line(&shown::json(&event.to_string()))
            {
                return Ok(ExitCode::from(exit::FAILED));
            }
        }
    }
    // What stands after a bad record is not given out as if it were a record.
    Ok(if warn_of_problems(logs) { ExitCode::from(exit::FAILED) } else { ExitCode::SUCCESS })
}
