//! Fetching a component, with somebody watching.

use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::error::CliError;
use crate::cli::print::eprint_line;
use crate::plugins::{PluginSource, fetch};
use crate::sandbox::{ComponentBytes, ComponentDigest};
use crate::terminal_escape;

/// The bytes that are there now. They are compared with the digest before anything else is done
/// with them.
pub(super) fn fetch_component(
    source: &PluginSource,
    expected: Option<&ComponentDigest>,
) -> Result<ComponentBytes, CliError> {
    let from = terminal_escape::escape_line(&source.to_string(), 400);
    let bar = match source {
        PluginSource::File(_) => ProgressBar::hidden(),
        PluginSource::Url(_) => {
            eprint_line(&format!("fetching {from} …"));
            // Not drawn where standard error is no terminal.
            ProgressBar::no_length()
        }
    };
    if let Ok(style) = ProgressStyle::with_template("{bytes} of {total_bytes}, {bytes_per_sec}") {
        bar.set_style(style);
    }
    let mut progress = |progress: crate::plugins::FetchProgress| {
        if let Some(of) = progress.total {
            bar.set_length(of);
        }
        bar.set_position(progress.fetched);
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let fetched = runtime.block_on(fetch(source, &mut progress));
    bar.finish_and_clear();
    let component = fetched.map_err(|error| CliError::new(format!("{from}: {error}")))?;
    match expected {
        Some(expected) if expected != component.digest() => Err(CliError::new(format!(
            "{from} is not what --digest names, and nothing was done with it:\n  expected  \
                sha256:{expected}\n  found     sha256:{}",
            component.digest()
        ))),
        Some(_) | None => Ok(component),
    }
}
