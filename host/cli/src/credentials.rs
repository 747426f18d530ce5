//! Credentials of the configuration: headers that the host adds to requests of tools, and that
//! tools never see.

use super::error::CliError;
use super::print::eprint_line;
use cofferdam::config::{RawCredential, RunSettings};
use cofferdam::model::ApiKey;
use cofferdam::policy::HostPattern;
use cofferdam::sandbox::HostCredential;

/// Returns the headers and their secrets. If the variable of a credential is not set, prints a
/// warning and omits it.
///
/// # Errors
///
/// If a host pattern or a header is not valid.
pub(super) fn load(settings: &RunSettings) -> Result<(Vec<HostCredential>, Vec<ApiKey>), CliError> {
    let mut all = (Vec::new(), Vec::new());
    for (host, RawCredential { header, env, prefix }) in &settings.credentials {
        let bad = |problem: String| {
            CliError::configuration(format!(
                "[credentials.\"{host}\"] in the configuration: {problem}"
            ))
        };
        let pattern = HostPattern::parse(host).map_err(|problem| bad(problem.to_string()))?;
        let Some(secret) = std::env::var(env).ok().and_then(|value| ApiKey::new(&value)) else {
            eprint_line(&cofferdam::terminal_escape::escape_line(
                &format!(
                    "warning: requests to {host} are sent without the header `{header}`: \
                    {env} is not set"
                ),
                400,
            ));
            continue;
        };
        let credential = HostCredential::new(pattern, header, prefix, &secret.to_header())
            .map_err(|problem| bad(problem.to_string()))?;
        all.0.push(credential);
        all.1.push(secret);
    }
    Ok(all)
}
