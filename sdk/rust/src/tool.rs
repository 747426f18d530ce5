//! What an author implements.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::{Capability, Hints, Output, ToolError};

/// One tool that a model can call.
pub trait Tool {
    /// 1 to 64 characters of `a-z`, `A-Z`, `0-9`, `_` and `-`, unique within the plugin.
    const NAME: &'static str;

    /// What the model reads to decide whether and how to call the tool; at most 16 KiB. Say what
    /// the tool does, when it is the right one, and where its limits are.
    const DESCRIPTION: &'static str;

    /// A struct; its JSON Schema is derived and the host validates every input against it before
    /// the call.
    ///
    /// Give it `#[serde(deny_unknown_fields)]`, so that a misspelt argument is an error, and
    /// document its fields, because the model reads that too.
    type Input: DeserializeOwned + JsonSchema;

    /// What the tool asks for. Ask for as little as it can work with: a tool that can neither write
    /// files nor run commands runs beside others and needs no approval.
    fn capabilities() -> Vec<Capability>;

    /// Makes the host stricter than the capabilities demand.
    fn hints() -> Hints {
        Hints::empty()
    }

    /// Does the work. By default the host ends a call after 60 seconds, at 256 MiB of memory or 1
    /// MiB of output.
    fn call(input: Self::Input) -> Result<Output, ToolError>;
}
