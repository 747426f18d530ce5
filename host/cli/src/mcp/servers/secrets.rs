//! The secrets of headers: from environment variables and files, never from the configuration.

use crate::args::CommonArgs;
use crate::secret_file::{Privacy, read_checked};
use cofferdam::config::SecretSource;

/// Reads the secret of a header.
///
/// # Errors
///
/// What is wrong, as a sentence without a full stop.
pub(super) fn read(common: &CommonArgs, source: &SecretSource) -> Result<String, String> {
    match source {
        SecretSource::Variable(name) => {
            let value = common.environment.variable(name);
            let value = value.and_then(|value| value.into_string().ok());
            value.ok_or_else(|| {
                format!("the environment variable {name} is not set, or it is not text")
            })
        }
        SecretSource::File(path) => {
            read_checked(path, Privacy::Secret).map_err(|error| error.message().to_owned())
        }
    }
}
