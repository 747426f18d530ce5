//! How the sandbox of commands is described to the user.

use crate::CommandSandbox;
use crate::os;
use crate::protocol::NetworkAccess;
use cofferdam_policy::SandboxLevel;

impl CommandSandbox {
    /// Describes how commands run, for the approval of a command.
    pub fn describe(&self) -> String {
        match self.allowed_level() {
            Ok(SandboxLevel::None) => "WITHOUT a sandbox, with your rights".to_owned(),
            Ok(level) => {
                let network = match self.network_access() {
                    NetworkAccess::Host => "WITH the network",
                    NetworkAccess::Proxy => "only listed hosts",
                    NetworkAccess::None => "no network",
                };
                format!("in the sandbox `{level}`, {network}")
            }
            Err(_) => "which will be denied, because this machine has no sandbox for it".to_owned(),
        }
    }

    /// Describes the sandbox of commands, and the access that commands have but tools do not.
    pub fn describe_access(&self) -> String {
        let secrets = match self.allowed_level() {
            Ok(SandboxLevel::Kernel) => ", and can read .env files and keys in the workspace",
            Ok(SandboxLevel::None) => ", and can read and send everything that you can",
            Ok(SandboxLevel::Full) | Err(_) => "",
        };
        format!("{}{secrets}", self.describe())
    }

    /// Lists the access that is open at the current level although a user might expect otherwise.
    pub fn known_gaps(&self) -> Vec<&'static str> {
        let level = self.measured().level;
        let mut open: Vec<&'static str> = match level {
            SandboxLevel::Full => Vec::new(),
            SandboxLevel::Kernel => vec![
                "reading .env files and keys in the workspace",
                "reading tokens in configuration files in the workspace, such as `.git/config` and \
                    `.cargo/config.toml`",
                "changing permissions and times of your files outside the workspace (not their \
                    contents)",
                "reading names of files outside the workspace and of your processes",
            ],
            SandboxLevel::None => vec!["everything that you can do"],
        };
        open.extend(os::known_gaps(level));
        if self.network_access() == NetworkAccess::Host && level != SandboxLevel::None {
            open.push("network access, which the configuration allows");
        }
        open.push("writing code in the workspace that you run later");
        open
    }
}
