//! The trait that a tool implements.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::{Annotation, Capability, Hint, Output, ToolError};

/// One tool that a model can call.
pub trait Tool {
    /// The name: 1 to 64 characters of `a-z`, `A-Z`, `0-9`, `_` and `-`, unique within the plugin.
    const NAME: &'static str;

    /// A short name for people, at most 128 bytes in one line. Without it, people see the name.
    const TITLE: Option<&'static str> = None;

    /// The description from which the model decides whether and how to call the tool. At most 16
    /// KiB. Describe what the tool does, when to use it, and its limits.
    const DESCRIPTION: &'static str;

    /// The input, a struct. Its JSON Schema is derived, and the host validates each input against
    /// it before the call.
    ///
    /// Give it `#[serde(deny_unknown_fields)]`, so that a misspelled argument is an error, and
    /// document its fields, because the model reads the documentation.
    type Input: DeserializeOwned + JsonSchema;

    /// Returns the permissions that the tool requests. Request as few as possible: a tool that can
    /// neither write files nor run commands runs in parallel with others and needs no approval.
    fn capabilities() -> Vec<Capability>;

    /// Returns the JSON Schema of the structured result, if the tool has one: in most cases
    /// `Some(json_schema::<Answer>())`, where [`json_schema`](crate::json_schema) derives it from a
    /// type. Each call then returns a value of that type with [`Output::structured`] or
    /// [`Output::with_structured`].
    fn output_schema() -> Option<String> {
        None
    }

    /// Returns the hints. They make the host stricter than the permissions require.
    fn hints() -> Vec<Hint> {
        Vec::new()
    }

    /// Returns named values. A host ignores unknown ones.
    fn annotations() -> Vec<Annotation> {
        Vec::new()
    }

    /// Runs the tool. By default the host ends a call after 60 seconds, at 256 MiB of memory, or at
    /// 1 MiB of output.
    fn call(input: Self::Input) -> Result<Output, ToolError>;
}
