//! The user and machine a log belongs to, for whoever collects the logs of several of them.

use cofferdam_confine::HostEnvironment;
use serde::{Deserialize, Serialize};

/// The user who ran the program, and the machine it ran on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// The numeric user id from the kernel.
    pub uid: Option<u32>,
    /// The user name from the environment (`LOGNAME`, then `USER`).
    pub user: Option<String>,
    /// The host name of the machine.
    pub machine: Option<String>,
    /// The authenticated client of a server that the program ran, such as the subject of an access
    /// token; `None` if the program served the user directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

impl Principal {
    /// Returns the current user and machine. The user name comes from `environment`, the rest from
    /// the kernel.
    pub fn new(environment: &HostEnvironment) -> Self {
        let user = ["LOGNAME", "USER"]
            .iter()
            .find_map(|name| environment.variable(name)?.into_string().ok());
        let machine = rustix::system::uname().nodename().to_str().ok().map(str::to_owned);
        Self { uid: Some(rustix::process::getuid().as_raw()), user, machine, client: None }
    }
}
