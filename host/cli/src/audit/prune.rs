//! `cofferdam audit prune`: removes old logs so that the rest can still be verified.

use std::process::ExitCode;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::args::AuditPruneArgs;
use super::{key_redactor, run_start_without_tools};
use crate::args::CommonArgs;
use crate::context;
use crate::error::{CliError, CommandResult};
use crate::print::{eprint_line, print_line};
use cofferdam::audit::{AuditStore, AuditWriter, PruneError, prune_logs};
use cofferdam::terminal_escape;

pub(super) fn run(common: &CommonArgs, store: &AuditStore, args: &AuditPruneArgs) -> CommandResult {
    let before = cutoff_time(args)?;
    let (settings, _) = context::load_settings(common, common.common_flags())?;
    let notify = Box::new(|text: &str| eprint_line(&terminal_escape::escape_line(text, 600)));
    // Even if the configuration disables the audit log: logs are only removed if a record says so.
    let audit = AuditWriter::begin(
        store,
        &run_start_without_tools(&settings, common),
        key_redactor(&settings),
        notify,
    )?;
    let pruned = prune_logs(store, &audit, before, args.force).map_err(|error| match error {
        PruneError::Audit(error) => CliError::from(error),
        error => CliError::new(error.to_string()),
    })?;
    print_line(&format!("Removed {} logs with {} records.", pruned.logs, pruned.records));
    if pruned.logs > 0 {
        print_line(&format!("Log {} records where they ended.", audit.name().as_str()));
    }
    if let Some(log) = pruned.stopped_at {
        eprint_line(&format!("Kept {log} and all later logs, because it is still being written."));
    }
    Ok(ExitCode::SUCCESS)
}

fn cutoff_time(args: &AuditPruneArgs) -> Result<Timestamp, CliError> {
    let cutoff = match (args.before, args.keep_days) {
        (Some(date), _) => date.to_zoned(TimeZone::system()).map(|midnight| midnight.timestamp()),
        (None, days) => Timestamp::now()
            .checked_sub(SignedDuration::from_hours(24 * i64::from(days.unwrap_or_default()))),
    };
    cutoff.map_err(|error| CliError::new(format!("invalid date: {error}")))
}
