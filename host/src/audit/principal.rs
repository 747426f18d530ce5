//! Whose log it is, for whoever gathers the logs of several people and machines.

use serde::{Deserialize, Serialize};

/// Who ran the program, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// The number of the user, as the kernel knows it.
    pub uid: Option<u32>,
    /// The user's name, as the environment says.
    pub user: Option<String>,
    /// The name of the machine.
    pub machine: Option<String>,
}

impl Principal {
    pub(super) fn current() -> Self {
        let user = ["LOGNAME", "USER"].iter().find_map(|name| std::env::var(name).ok());
        let machine = rustix::system::uname().nodename().to_str().ok().map(str::to_owned);
        Self { uid: Some(rustix::process::getuid().as_raw()), user, machine }
    }
}
