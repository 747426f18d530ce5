//! Arguments of `cofferdam undo`, `demo`, `lock` and `trust`.

use clap::Args as ClapArgs;

#[derive(Debug, ClapArgs)]
pub(crate) struct UndoArgs {
    /// List what can be undone, and change nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// Put back what was there even where files were changed since; those changes are lost
    #[arg(long, conflicts_with = "list")]
    pub(crate) force: bool,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DemoArgs {
    /// Do not wait between the recorded words
    #[arg(long)]
    pub(crate) fast: bool,
    /// Keep the sample project and say where it is
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Debug, ClapArgs)]
#[group(multiple = false)]
pub(crate) struct LockArgs {
    /// Only tell how they stand
    #[arg(long)]
    pub(crate) check: bool,
    /// Accept all of them without being asked
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, ClapArgs)]
#[group(multiple = false)]
pub(crate) struct TrustArgs {
    /// Tell whether the file is trusted, and change nothing
    #[arg(long)]
    pub(crate) show: bool,
    /// Stop trusting it
    #[arg(long)]
    pub(crate) revoke: bool,
    /// Trust it without being asked, if this is its SHA-256
    #[arg(long, value_name = "DIGEST")]
    pub(crate) digest: Option<String>,
}
