//! Arguments of `cofferdam audit`.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    cofferdam audit show                         everything on record, oldest first\n  \
    cofferdam audit show --session 5f0c --tool bash\n  \
    cofferdam audit verify                       exit code 1 if anything was changed, and where\n  \
    cofferdam audit verify --contains HASH       a hash that verify printed before, kept \
    elsewhere\n  \
    cofferdam audit export --format ocsf > events.jsonl\n  \
    cofferdam audit prune --keep-days 90         remove what is older; where that ended stays on \
    record\n\n\
    Each run of the program has a log of its own in $XDG_STATE_HOME/cofferdam/audit, readable \
    only by you. Its records are a chain of \
        hashes: a changed, missing or moved record shows. Whoever can write as you can write a \
        whole log anew; to see that, keep the \
        hashes that verify prints somewhere else.")]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    pub(crate) command: AuditCommand,
    /// Only the session, or the log, whose name begins so
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) session: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Show what was decided and done
    #[command(after_help = "Examples:\n  \
        cofferdam audit show --session 5f0c\n  \
        cofferdam audit show --tool bash --json | jq .effect.line\n\n\
        Times are in UTC.")]
    Show {
        /// Only the calls of this tool
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        /// The records as JSON, one a line
        #[arg(long)]
        json: bool,
    },
    /// Check that the logs are as they were written
    #[command(after_help = "Examples:\n  \
        cofferdam audit verify\n  \
        cofferdam audit verify --contains HASH       a hash that was printed before, and kept \
        where this user cannot write\n\n\
        Exit code: 0 if they are, 1 if not.")]
    Verify {
        /// Demand that a record with this hash is there (may be given more than once)
        #[arg(long, value_name = "HASH")]
        contains: Vec<String>,
    },
    /// Print all records for another program, one a line
    #[command(after_help = "Examples:\n  \
        cofferdam audit export > records.jsonl\n  \
        cofferdam audit export --format ocsf > events.jsonl")]
    Export {
        /// As they are, or as events of the Open Cybersecurity Schema Framework
        #[arg(long, value_enum, default_value_t = AuditFormat::Json)]
        format: AuditFormat,
    },
    /// Remove the oldest logs; a record of where they ended stays, so that the others can still be
    /// checked
    #[command(after_help = "Examples:\n  \
        cofferdam audit prune --keep-days 90         removes what was begun more than 90 days \
        ago\n  \
        cofferdam audit prune --before 2026-01-01    removes what was begun before that day\n\n\
        Logs go from the oldest on, up to the first that is still being written. Before they go, \
        a new \
        log says how many there were and where the last one ended. `cofferdam audit export` keeps \
        a \
        copy elsewhere.")]
    Prune(AuditPruneArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct AuditPruneArgs {
    /// Remove the logs that were begun before this day
    #[arg(
        long,
        value_name = "DATE",
        required_unless_present = "keep_days",
        conflicts_with = "keep_days"
    )]
    pub(crate) before: Option<jiff::civil::Date>,
    /// Remove the logs that were begun more than this many days ago
    #[arg(long, value_name = "N")]
    pub(crate) keep_days: Option<u32>,
    /// Also such as are not as they were written
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuditFormat {
    /// As they are written
    Json,
    /// OCSF 1.5.0, class 6003 (API Activity)
    Ocsf,
}
