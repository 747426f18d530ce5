//! `cofferdam audit prune`: removes old logs, so that the rest still holds.

use std::process::ExitCode;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::args::PruneArgs;
use super::{without_keys, without_tools};
use crate::audit::{Audit, PruneError, Store, prune};
use crate::cli::args::{CallArgs, Common, ModelArgs};
use crate::cli::assemble;
use crate::cli::error::{CliError, Done};
use crate::cli::print::{stderr_line, stdout_line};
use crate::shown;

pub(super) fn run(common: &Common, store: &Store, args: &PruneArgs) -> Done {
    let before = before(args)?;
    let (settings, _) = assemble::settings(common, common.flags(ModelArgs::default(), CallArgs::default(), None))?;
    let notify = Box::new(|text: &str| stderr_line(&shown::line(text, 600)));
    // Whatever the configuration says of the log: what goes from it is on record, or it does not go.
    let audit = Audit::begin(store, &without_tools(&settings, &common.workspace), without_keys(&settings), notify)?;
    let pruned = prune(store, &audit, before, args.force).map_err(|error| match error {
        PruneError::Audit(error) => CliError::from(error),
        error @ (PruneError::Unrecorded(_) | PruneError::Bad(_)) => CliError::new(error.to_string()),
    })?;
    stdout_line(&format!("{} logs with {} records were removed.", pruned.logs, pruned.records));
    if pruned.logs > 0 {
        stdout_line(&format!("Their end is on record in {}.", audit.name().as_str()));
    }
    if let Some(log) = pruned.stopped_at {
        stderr_line(&format!("{log} stays, and so do those after it: it is still being written."));
    }
    Ok(ExitCode::SUCCESS)
}

fn before(args: &PruneArgs) -> Result<Timestamp, CliError> {
    let moment = match (args.before, args.keep_days) {
        (Some(date), _) => date.to_zoned(TimeZone::system()).map(|midnight| midnight.timestamp()),
        (None, days) => Timestamp::now().checked_sub(SignedDuration::from_hours(24 * i64::from(days.unwrap_or_default()))),
    };
    moment.map_err(|error| CliError::new(format!("there is no such date: {error}")))
}
