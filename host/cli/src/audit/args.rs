//! Arguments of `cofferdam audit`.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    cofferdam audit show                         shows all records, oldest first\n  \
    cofferdam audit show --session 5f0c --tool bash\n  \
    cofferdam audit verify                       checks all logs; exits with 1 if a log was \
    changed\n  \
    cofferdam audit verify --contains HASH       also checks that the logs contain this hash\n  \
    cofferdam audit export --format ocsf > events.jsonl\n  \
    cofferdam audit prune --keep-days 90         removes logs started more than 90 days ago\n\n\
    Each run has its own log in $XDG_STATE_HOME/cofferdam/audit, which only you can read. The \
    records form a hash chain, so `verify` detects changed, missing and moved records. A process \
    that can write your files can replace a whole log. To detect this, store the hashes that \
    `verify` prints in another place.")]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    pub(crate) command: AuditCommand,
    /// Show only the session or log with this prefix
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) session: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Show decisions and actions
    #[command(after_help = "Examples:\n  \
        cofferdam audit show --session 5f0c\n  \
        cofferdam audit show --tool bash --json | jq .effect.line\n\n\
        Times are in UTC.")]
    Show {
        /// Show only calls of this tool
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        /// Print records as JSON, one per line
        #[arg(long)]
        json: bool,
    },
    /// Check that the logs were not changed
    #[command(after_help = "Examples:\n  \
        cofferdam audit verify\n  \
        cofferdam audit verify --contains HASH       also checks that the logs contain this \
        hash\n\n\
        Exit codes: 0 all logs are intact, 1 a log is not intact or a hash is missing.")]
    Verify {
        /// Fail unless a record has this hash (repeatable)
        #[arg(long, value_name = "HASH")]
        contains: Vec<String>,
    },
    /// Print all records for another program, one per line
    #[command(after_help = "Examples:\n  \
        cofferdam audit export > records.jsonl\n  \
        cofferdam audit export --format ocsf > events.jsonl")]
    Export {
        /// Output format
        #[arg(long, value_enum, default_value_t = AuditFormat::Json)]
        format: AuditFormat,
    },
    /// Remove the oldest logs, and record where they ended
    #[command(after_help = "Examples:\n  \
        cofferdam audit prune --keep-days 90         removes logs started more than 90 days \
        ago\n  \
        cofferdam audit prune --before 2026-01-01    removes logs started before that day\n\n\
        The oldest logs are removed first, up to the first log that is still being written. A new \
        log records their number and the last hash, so that the remaining logs can still be \
        verified. To keep a copy, run `cofferdam audit export` first.")]
    Prune(AuditPruneArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct AuditPruneArgs {
    /// Remove logs started before this day
    #[arg(
        long,
        value_name = "DATE",
        required_unless_present = "keep_days",
        conflicts_with = "keep_days"
    )]
    pub(crate) before: Option<jiff::civil::Date>,
    /// Remove logs started more than this many days ago
    #[arg(long, value_name = "N")]
    pub(crate) keep_days: Option<u32>,
    /// Also remove logs that fail verification
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuditFormat {
    /// The records in the format of the log
    Json,
    /// OCSF 1.5.0, class 6003 (API Activity)
    Ocsf,
}
