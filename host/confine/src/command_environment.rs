//! What the supervisor gives to a command besides its sandbox: variables, and the way to its proxy.

use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::path::Path;

use super::error::{ConfineError, ConfineStep};
use super::link::SupervisorLink;
use super::protocol::{
    ChildReadiness, NetworkAccess, PROXY_PORT, SupervisorMessage, SupervisorRequest,
};
use super::supervisor::SandboxSpec;
use cofferdam_policy::SandboxLevel;

/// The variables by which programs find their proxy.
const PROXY_VARIABLES: [&str; 6] =
    ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];

/// The command by which git connects over SSH: ssh itself ignores the variables of a proxy.
const GIT_SSH_COMMAND: &str = r#"ssh -o 'ProxyCommand=bash -c "$COFFERDAM_CONNECT" connect %h %p'"#;

/// The script that connects to a host through the proxy, for programs that start one. It is a
/// variable, because every system has bash, and few have a program for this.
const CONNECT_SCRIPT: &str = include_str!("connect.bash");

/// Passes the socket of the proxy from the first process of the namespaces to the host. Returns
/// another message if that comes instead.
pub(super) fn pass_listener(
    order: &SupervisorRequest,
    confined: &mut SupervisorLink,
    host: &mut SupervisorLink,
) -> Result<Option<ChildReadiness>, ConfineError> {
    if order.network != NetworkAccess::Proxy {
        return Ok(None);
    }
    let failed = ConfineError::at::<std::io::Error>;
    match confined.receive().map_err(failed(ConfineStep::OpenProxy))? {
        Some(ChildReadiness::Listening) => {}
        other => return Ok(other),
    }
    let listener = confined.take_descriptor().ok_or_else(|| {
        ConfineError::new(
            ConfineStep::OpenProxy,
            std::io::Error::from(std::io::ErrorKind::NotFound),
        )
    })?;
    host.send_with_descriptors(&SupervisorMessage::Listening, &[listener.as_fd()])
        .map_err(failed(ConfineStep::OpenProxy))?;
    Ok(None)
}

/// Returns the variables that the command gets in addition to those of the supervisor.
pub(super) fn added_environment(surroundings: &SandboxSpec<'_>) -> Vec<(OsString, OsString)> {
    let is_private = surroundings.level == SandboxLevel::Full;
    let temporary = if is_private { Path::new("/tmp") } else { surroundings.temporary };
    let places = [
        ("TMPDIR", temporary.to_owned()),
        ("XDG_CACHE_HOME", temporary.join(".cache")),
        // npm ignores `XDG_CACHE_HOME`, and its default directory in the home does not exist.
        ("npm_config_cache", temporary.join(".cache/npm")),
    ];
    let all = places.into_iter().chain(surroundings.environment.iter().cloned());
    let all = all.map(|(name, path)| (name.into(), path.into()));
    if surroundings.network != NetworkAccess::Proxy {
        return all.collect();
    }
    let proxy: OsString = format!("http://127.0.0.1:{PROXY_PORT}").into();
    all.chain(PROXY_VARIABLES.iter().map(|name| (name.into(), proxy.clone())))
        .chain([
            // Node uses the variables above only if it is told to.
            ("NODE_USE_ENV_PROXY".into(), "1".into()),
            ("GIT_SSH_COMMAND".into(), GIT_SSH_COMMAND.into()),
            ("COFFERDAM_CONNECT".into(), CONNECT_SCRIPT.into()),
        ])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_connects_to_the_port_of_the_proxy() {
        assert!(CONNECT_SCRIPT.contains(&format!("/dev/tcp/127.0.0.1/{PROXY_PORT} ")));
    }
}
