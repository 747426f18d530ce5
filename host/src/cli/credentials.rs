//! What the configuration lends to hosts: headers that are added to the requests of tools, and that
//! no tool sees.

use super::error::CliError;
use super::print::eprint_line;
use crate::config::{RawCredential, RunSettings};
use crate::model::ApiKey;
use crate::policy::HostPattern;
use crate::sandbox::HostCredential;

/// The headers, and the secrets in them. One whose variable is not set is left out, and said.
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
            eprint_line(&crate::terminal_escape::escape_line(
                &format!("warning: requests to {host} go without {header}: {env} is not set"),
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
