//! Looking after what is there.

use clap::Args as ClapArgs;

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct UndoArgs {
    /// List what can be undone, and change nothing
    #[arg(long)]
    pub(in crate::cli) list: bool,
    /// Put back what was there even where files were changed since; those changes are lost
    #[arg(long, conflicts_with = "list")]
    pub(in crate::cli) force: bool,
    /// As JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct DemoArgs {
    /// Do not wait between the recorded words
    #[arg(long)]
    pub(in crate::cli) fast: bool,
    /// Keep the sample project and say where it is
    #[arg(long)]
    pub(in crate::cli) keep: bool,
}

#[derive(Debug, ClapArgs)]
#[group(multiple = false)]
pub(in crate::cli) struct LockArgs {
    /// Only tell how they stand
    #[arg(long)]
    pub(in crate::cli) check: bool,
    /// Accept all of them without being asked
    #[arg(long)]
    pub(in crate::cli) yes: bool,
}

#[derive(Debug, ClapArgs)]
#[group(multiple = false)]
pub(in crate::cli) struct TrustArgs {
    /// Tell whether the file is trusted, and change nothing
    #[arg(long)]
    pub(in crate::cli) show: bool,
    /// Stop trusting it
    #[arg(long)]
    pub(in crate::cli) revoke: bool,
    /// Trust it without being asked, if this is its SHA-256
    #[arg(long, value_name = "DIGEST")]
    pub(in crate::cli) digest: Option<String>,
}
