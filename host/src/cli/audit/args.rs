//! The command line of `cofferdam audit`.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    cofferdam audit show                         everything on record, oldest first\n  \
    cofferdam audit show --session 5f0c --tool bash\n  \
    cofferdam audit verify                       exit code 1 if anything was changed, and where\n  \
    cofferdam audit verify --contains HASH       a hash that verify printed before, kept elsewhere\n  \
    cofferdam audit export --format ocsf > events.jsonl\n\n\
    Each run of the program has a log of its own in $XDG_STATE_HOME/cofferdam/audit, for your eyes only. Its records are a chain of\n\
    hashes: a changed, missing or moved record shows. Whoever can write as you can write a whole log anew; to see that, keep the\n\
    hashes that verify prints somewhere else.")]
pub(in crate::cli) struct AuditArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: AuditCommand,
    /// Only the session, or the log, whose name begins so
    #[arg(long, global = true, value_name = "ID")]
    pub(in crate::cli) session: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum AuditCommand {
    /// Show what was decided and done
    Show {
        /// Only the calls of this tool
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        /// The records as JSON, one a line
        #[arg(long)]
        json: bool,
    },
    /// Check that the logs are as they were written
    Verify {
        /// Demand that a record with this hash is there (may be given more than once)
        #[arg(long, value_name = "HASH")]
        contains: Vec<String>,
    },
    /// Print all records for another program, one a line
    Export {
        /// As they are, or as events of the Open Cybersecurity Schema Framework
        #[arg(long, value_enum, default_value_t = AuditFormat::Json)]
        format: AuditFormat,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum AuditFormat {
    /// As they are written
    Json,
    /// OCSF 1.5.0, class 6003 (API Activity)
    Ocsf,
}
