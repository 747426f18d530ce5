//! `cofferdam audit export`: prints all records for other programs, one JSON object per line.

use std::process::ExitCode;

use serde_json::Value;

use super::args::AuditFormat;
use super::warn_errors;
use crate::error::CommandResult;
use crate::exit;
use crate::json_text::json_line;
use crate::print::print_line;
use cofferdam::audit::{InspectedLog, to_ocsf};

pub(super) fn run(logs: &[InspectedLog], format: AuditFormat) -> CommandResult {
    for log in logs {
        let principal = log.principal();
        for (index, (record, hash)) in log.records.iter().zip(&log.hashes).enumerate() {
            let events = match format {
                AuditFormat::Json => vec![Value::Object(log.record_with_hash(index))],
                AuditFormat::Ocsf => to_ocsf(&log.name, &principal, hash, record),
            };
            for event in events {
                if !print_line(&json_line(&event)) {
                    return Ok(ExitCode::from(exit::FAILURE));
                }
            }
        }
    }
    // Records after a break in the chain are not exported, since they are unverified.
    Ok(if warn_errors(logs) { ExitCode::from(exit::FAILURE) } else { ExitCode::SUCCESS })
}
