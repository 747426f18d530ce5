//! A user who has accepted a scripted server, and calls its tools.

use std::path::PathBuf;

use cofferdam_tests::program::{ProgramOutput, TestHome};
use serde_json::{Value, json};

use crate::client::{McpClient, new_home, text_of};

/// The scripted server.
const SERVER: &str = include_str!("server.py");

/// A user with a project and the scripted server.
pub(crate) struct ScriptedUser {
    pub(crate) home: TestHome,
}

impl ScriptedUser {
    /// A user who has accepted nothing yet.
    pub(crate) fn new() -> Self {
        let home = new_home();
        home.write_file("servers/server.py", SERVER);
        Self { home }
    }

    /// A user who has accepted the server `s` with these options, such as `--files read`.
    #[track_caller]
    pub(crate) fn with_server(options: &[&str]) -> Self {
        let user = Self::new();
        let added = user.add(options, "");
        assert_eq!(added.exit_code, 0, "{added:?}");
        user
    }

    /// The directory with the script.
    pub(crate) fn script(&self) -> PathBuf {
        self.home.path().join("servers/server.py")
    }

    /// Adds the server `s` with these options, in a mode of the script.
    pub(crate) fn add(&self, options: &[&str], mode: &str) -> ProgramOutput {
        let script = self.script();
        let (script, servers) = (script.to_str().expect("text"), self.home.path().join("servers"));
        let servers = servers.to_str().expect("text");
        let start = ["mcp", "add", "s", "--yes", "--read", servers];
        let command = ["--", "/usr/bin/python3", script, mode];
        let command = if mode.is_empty() { &command[..3] } else { &command[..] };
        self.home.run(&[&start[..], options, command].concat())
    }

    /// Starts a session in this mode of approval, and returns its client.
    pub(crate) fn begin(&self, mode: &str) -> ScriptedSession {
        ScriptedSession { client: McpClient::begin(&self.home, &["--mode", mode]) }
    }

    /// The path of a file of the workspace, as text.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.home.workspace().join(path)).ok()
    }
}

/// A session in which the tools of the server are called.
pub(crate) struct ScriptedSession {
    pub(crate) client: McpClient,
}

impl ScriptedSession {
    /// Calls a tool of the server, and returns the whole result.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.client.call(&format!("s__{tool}"), arguments)
    }

    /// Calls a tool that succeeds, and returns its text.
    #[track_caller]
    pub(crate) fn text(&mut self, tool: &str, arguments: Value) -> String {
        crate::client::ok_text(&self.call(tool, arguments))
    }

    /// Calls a tool that fails, and returns its text.
    #[track_caller]
    pub(crate) fn error(&mut self, tool: &str, arguments: Value) -> String {
        crate::client::error_text(&self.call(tool, arguments))
    }

    /// The server answers, perhaps after a restart.
    #[track_caller]
    pub(crate) fn assert_usable(&mut self) {
        let result = self.call("echo", json!({"text": "still here"}));
        assert_eq!(
            (result["isError"].clone(), text_of(&result)),
            (json!(false), "still here".to_owned())
        );
    }
}
