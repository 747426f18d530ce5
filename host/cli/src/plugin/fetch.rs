//! Fetching of components, with a progress bar.

use indicatif::{ProgressBar, ProgressStyle};

use crate::error::CliError;
use crate::print::eprint_line;
use cofferdam::plugins::{PluginSource, fetch};
use cofferdam::sandbox::{ComponentBytes, ComponentDigest};
use cofferdam::terminal_escape;

/// Fetches a component and compares it with the expected digest before anything else uses it.
///
/// # Errors
///
/// If the source cannot be read or the digest differs.
pub(super) fn fetch_component(
    source: &PluginSource,
    expected: Option<&ComponentDigest>,
) -> Result<ComponentBytes, CliError> {
    let from = terminal_escape::escape_line(&source.to_string(), 400);
    let bar = match source {
        PluginSource::File(_) => ProgressBar::hidden(),
        PluginSource::Url(_) => {
            eprint_line(&format!("fetching {from} …"));
            // Not drawn unless standard error is a terminal.
            ProgressBar::no_length()
        }
    };
    if let Ok(style) = ProgressStyle::with_template("{bytes} of {total_bytes}, {bytes_per_sec}") {
        bar.set_style(style);
    }
    let mut progress = |progress: cofferdam::plugins::FetchProgress| {
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
            "the digest of {from} does not match `--digest`, so it was not used:\n  expected  \
                sha256:{expected}\n  found     sha256:{}",
            component.digest()
        ))),
        Some(_) | None => Ok(component),
    }
}
