//! Arguments of `cofferdam undo`, `diff`, `demo`, `lock` and `trust`.

use clap::Args as ClapArgs;

#[derive(Debug, ClapArgs)]
pub(crate) struct UndoArgs {
    /// List the changes that can be undone, without undoing any
    #[arg(long)]
    pub(crate) list: bool,
    /// Restore files even if they were changed since; those later changes are lost
    #[arg(long, conflicts_with = "list")]
    pub(crate) force: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DiffArgs {
    /// Number of changes to show together, from the newest
    #[arg(long, value_name = "COUNT", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) last: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DemoArgs {
    /// Play the recording without pauses
    #[arg(long)]
    pub(crate) fast: bool,
    /// Keep the sample project and print its path
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Debug, ClapArgs)]
#[group(multiple = false)]
pub(crate) struct LockArgs {
    /// Only report whether all plugins are as accepted
    #[arg(long)]
    pub(crate) check: bool,
    /// Accept all plugins without asking
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, ClapArgs)]
#[group(multiple = false)]
pub(crate) struct TrustArgs {
    /// Only report whether the file is trusted
    #[arg(long)]
    pub(crate) show: bool,
    /// Stop trusting the file
    #[arg(long)]
    pub(crate) revoke: bool,
    /// Trust the file without asking, if this is its SHA-256 digest
    #[arg(long, value_name = "DIGEST")]
    pub(crate) digest: Option<String>,
}
