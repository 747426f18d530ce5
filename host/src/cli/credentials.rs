//! What the configuration lends to hosts: headers that are added to the requests of tools, and that no tool sees.

use super::error::CliError;
use super::print::stderr_line;
use crate::config::{RawCredential, Settings};
use crate::model::Secret;
use crate::policy::HostPattern;
use crate::sandbox::Credential;

/// The headers, and the secrets in them. One whose variable is not set is left out, and said.
pub(super) fn of(settings: &Settings) -> Result<(Vec<Credential>, Vec<Secret>), CliError> {
    let mut all = (Vec::new(), Vec::new());
    for (host, RawCredential { header, env, prefix }) in &settings.credentials {
        let bad = |problem: String| CliError::configuration(format!("[credentials.\"{host}\"] in the configuration: {problem}"));
        let pattern = HostPattern::parse(host).map_err(|problem| bad(problem.to_string()))?;
        let Some(secret) = std::env::var(env).ok().and_then(|value| Secret::new(&value)) else {
            stderr_line(&crate::shown::line(&format!("warning: requests to {host} go without {header}: {env} is not set"), 400));
            continue;
        };
        let credential = Credential::new(pattern, header, prefix, &secret.for_header()).map_err(|problem| bad(problem.to_string()))?;
        all.0.push(credential);
        all.1.push(secret);
    }
    Ok(all)
}
