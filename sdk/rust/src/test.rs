//! A host for native tests, which calls a tool as the real host calls it in a component.
//!
//! A [`Host`] has a workspace in a temporary directory, keeps state between calls, and answers
//! commands, plans and tasks with functions of the test. A tool gets the permissions that
//! [`Tool::capabilities`] requests and no others, so a test detects a missing capability.
//!
//! ```
//! use cofferdam_sdk::commands::{self, Command, CommandOutput};
//! use cofferdam_sdk::test::Host;
//! use cofferdam_sdk::{Capability, Output, Tool, ToolError, state};
//!
//! /// Reports whether the output of a command changed.
//! struct Watch;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Input {}
//!
//! impl Tool for Watch {
//!     const NAME: &'static str = "watch";
//!     const DESCRIPTION: &'static str = "Reports whether there is a new commit.";
//!     type Input = Input;
//!
//!     fn capabilities() -> Vec<Capability> {
//!         vec![Capability::RunCommands, Capability::KeepState]
//!     }
//!
//!     fn call(_: Input) -> Result<Output, ToolError> {
//!         let now = commands::run(&Command::new("git rev-parse HEAD"))?.stdout;
//!         let before: String = state::load("head")?;
//!         state::save("head", &now)?;
//!         Ok(Output::text(if now == before { "nothing new" } else { "something new" }))
//!     }
//! }
//!
//! let mut host = Host::new().on_command(|_| Ok(CommandOutput::exited(0, "ca6a0b8")));
//! assert_eq!(host.call::<Watch>("{}"), Ok(Output::text("something new")));
//! assert_eq!(host.call::<Watch>("{}"), Ok(Output::text("nothing new")));
//! ```

pub(crate) mod imports;
mod temp_dir;
mod walk;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::agents::{AgentError, Answer};
use crate::commands::{Command, CommandError, CommandOutput};
use crate::http::{HttpError, Request, Response};
use crate::jobs::{Job, JobError, JobOutput, JobStart, WaitCondition};
use crate::plans::PlanError;
use crate::{Capability, Output, Tool, ToolError};

use imports::TestImports;
use temp_dir::TempDir;

/// What a tool wants from its background commands.
#[derive(Clone, Debug, PartialEq)]
pub enum JobRequest {
    /// Starts a command.
    Start(JobStart),
    /// Lists the commands.
    List,
    /// Reads output.
    Read {
        /// The number of the command.
        id: u32,
        /// What the tool waits for.
        until: WaitCondition,
        /// How long it waits.
        timeout: Duration,
    },
    /// Writes input.
    Write {
        /// The number of the command.
        id: u32,
        /// The input.
        text: String,
        /// Whether the input is closed afterwards.
        close: bool,
    },
    /// Commits what the command with this number has changed so far.
    Commit(u32),
    /// Stops the command with this number.
    Stop(u32),
}

/// The answer of a test to a [`JobRequest`].
#[derive(Clone, Debug, PartialEq)]
pub enum JobReply {
    /// The command with this number was started.
    Started(u32),
    /// The list of commands.
    Jobs(Vec<Job>),
    /// The output that was read, that came with a commit, or the last output of a stopped command.
    Output(JobOutput),
    /// The input was written.
    Written,
}

/// A host for tests.
#[derive(Debug)]
pub struct Host {
    directory: TempDir,
    imports: Option<TestImports>,
}

/// Held during a call: the workspace of a tool is the working directory of the process.
static WORKING_DIRECTORY: Mutex<()> = Mutex::new(());

impl Host {
    /// Creates a host with an empty workspace, without state and without answers.
    ///
    /// # Panics
    ///
    /// Panics if the temporary directory cannot be created.
    pub fn new() -> Self {
        Self { directory: TempDir::new(), imports: Some(TestImports::default()) }
    }

    /// Adds a file to the workspace, and the directories that it needs.
    ///
    /// # Panics
    ///
    /// Panics if the file cannot be written.
    #[must_use]
    pub fn with_file(self, path: &str, contents: impl AsRef<[u8]>) -> Self {
        self.directory.write(path, contents.as_ref());
        self
    }

    /// Runs the commands of tools with this function.
    #[must_use]
    pub fn on_command(
        mut self,
        run: impl FnMut(&Command) -> Result<CommandOutput, CommandError> + 'static,
    ) -> Self {
        self.imports().command = Some(Box::new(run));
        self
    }

    /// Answers the requests for background commands with this function.
    #[must_use]
    pub fn on_job(
        mut self,
        answer: impl FnMut(&JobRequest) -> Result<JobReply, JobError> + 'static,
    ) -> Self {
        self.imports().job = Some(Box::new(answer));
        self
    }

    /// Answers the plans of tools with this function.
    #[must_use]
    pub fn on_plan(
        mut self,
        present: impl FnMut(&str) -> Result<String, PlanError> + 'static,
    ) -> Self {
        self.imports().plan = Some(Box::new(present));
        self
    }

    /// Answers the tasks of tools with this function.
    #[must_use]
    pub fn on_task(
        mut self,
        delegate: impl FnMut(&str) -> Result<Answer, AgentError> + 'static,
    ) -> Self {
        self.imports().task = Some(Box::new(delegate));
        self
    }

    /// Answers the HTTP requests of tools with this function.
    #[must_use]
    pub fn on_request(
        mut self,
        send: impl FnMut(&Request) -> Result<Response, HttpError> + 'static,
    ) -> Self {
        self.imports().request = Some(Box::new(send));
        self
    }

    /// Calls a tool with the JSON text of its input. The calls of all hosts of a process wait for
    /// each other.
    ///
    /// # Panics
    ///
    /// Panics if the tool panics, or if it uses an interface for which the test set no function.
    pub fn call<T: Tool>(&mut self, input: &str) -> Result<Output, ToolError> {
        let _one_at_a_time = WORKING_DIRECTORY.lock().unwrap_or_else(PoisonError::into_inner);
        let requested = T::capabilities();
        let sees_files = requested
            .iter()
            .any(|capability| matches!(capability, Capability::ReadFiles | Capability::WriteFiles));
        // Without the permission there are no files. An empty directory looks the same.
        let empty = (!sees_files).then(TempDir::new);
        let _working_directory = empty.as_ref().unwrap_or(&self.directory).enter();
        self.imports().requested = requested;
        let _installed = imports::InstalledImports::install(&mut self.imports);
        crate::call::<T>(input)
    }

    /// Returns the path of the workspace.
    pub fn workspace(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the text of a file of the workspace, or `None` if there is none.
    pub fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.workspace().join(path)).ok()
    }

    /// Returns the stored values. All tools of this host share them; in the real host each tool has
    /// its own.
    pub fn state(&mut self) -> &mut BTreeMap<String, Vec<u8>> {
        &mut self.imports().state
    }

    /// Returns the progress messages so far.
    pub fn progress_messages(&mut self) -> &[String] {
        &self.imports().progress_messages
    }

    fn imports(&mut self) -> &mut TestImports {
        self.imports.get_or_insert_default()
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::workspace::{Walk, WalkOptions};
    use crate::{WorkspacePath, agents, plans, progress, state};

    #[derive(Deserialize, schemars::JsonSchema)]
    struct Input {
        #[serde(default)]
        path: WorkspacePath,
    }

    /// Uses all interfaces, and requests all or none of the capabilities.
    struct All<const REQUESTS: bool>;

    impl<const REQUESTS: bool> Tool for All<REQUESTS> {
        const NAME: &'static str = "all";
        const DESCRIPTION: &'static str = "";
        type Input = Input;

        fn capabilities() -> Vec<Capability> {
            let fetch = Capability::Fetch(vec!["example.com".into()]);
            let all = [
                Capability::ReadFiles,
                Capability::KeepState,
                Capability::Delegate,
                Capability::PresentPlan,
                Capability::RunCommands,
                fetch,
            ];
            if REQUESTS { all.to_vec() } else { Vec::new() }
        }

        fn call(_: Input) -> Result<Output, ToolError> {
            progress::report("begun");
            let mut said = Vec::new();
            let mut say = |what: Result<String, ToolError>| {
                said.push(what.unwrap_or_else(|error| format!("{error:?}")))
            };
            say(Walk::open(&WalkOptions::default()).map_err(ToolError::from).map(|mut walk| {
                walk.entries().flatten().map(|entry| entry.path).collect::<Vec<_>>().join(" ")
            }));
            say(state::set("k", "v")
                .map_err(ToolError::from)
                .and_then(|()| state::get_text("k"))
                .map(Option::unwrap_or_default));
            say(agents::delegate("look").map(|answer| answer.text).map_err(ToolError::from));
            say(plans::present("1. Go").map_err(ToolError::from));
            say(crate::commands::run(&Command::new("date"))
                .map(|output| output.stdout)
                .map_err(ToolError::from));
            say(crate::http::send(&Request::get("https://example.com"))
                .map(|response| response.status.to_string())
                .map_err(ToolError::from));
            Ok(Output::text(said.join("\n")))
        }
    }

    fn host() -> Host {
        Host::new()
            .with_file("src/a.rs", "fn a() {}")
            .with_file(".gitignore", "target/")
            .with_file("target/out", "")
            .with_file("b.txt", "")
            .on_task(|task| Ok(Answer { text: format!("{task}ed"), complete: true, turns: 1 }))
            .on_plan(|_| Ok("ask".into()))
            .on_request(|_| Ok(Response::new(204, [], "")))
            .on_command(|command| Ok(CommandOutput::exited(0, command.line.clone())))
    }

    #[test]
    fn a_tool_gets_the_permissions_that_it_requests() {
        let mut host = host();
        assert_eq!(
            host.call::<All<true>>("{}"),
            Ok(Output::text("b.txt src src/a.rs\nv\nlooked\nask\ndate\n204"))
        );
        assert_eq!(host.progress_messages(), ["begun"]);
        assert_eq!(host.state().get("k").map(Vec::as_slice), Some(&b"v"[..]));
    }

    #[test]
    fn a_tool_gets_no_permission_that_it_does_not_request() {
        let Ok(output) = host().call::<All<false>>("{}") else { panic!("it answers") };
        let text = output.to_text();
        assert_eq!(text.matches("not-granted").count(), 6, "{text}");
    }

    struct Read;

    impl Tool for Read {
        const NAME: &'static str = "read";
        const DESCRIPTION: &'static str = "";
        type Input = Input;

        fn capabilities() -> Vec<Capability> {
            vec![Capability::ReadFiles]
        }

        fn call(input: Input) -> Result<Output, ToolError> {
            assert!(input.path.as_str() != "panic", "as asked");
            std::fs::read_to_string(&input.path)
                .map(Output::text)
                .map_err(ToolError::io("read", &input.path))
        }
    }

    /// Reads a file without requesting the permission.
    struct Forgetful;

    impl Tool for Forgetful {
        const NAME: &'static str = "forgetful";
        const DESCRIPTION: &'static str = "";
        type Input = Input;

        fn capabilities() -> Vec<Capability> {
            Vec::new()
        }

        fn call(input: Input) -> Result<Output, ToolError> {
            Read::call(input)
        }
    }

    #[test]
    fn a_tool_that_does_not_request_files_sees_none() {
        let mut host = Host::new().with_file("b.txt", "text");
        assert!(host.call::<Forgetful>(r#"{"path":"b.txt"}"#).is_err());
        assert_eq!(host.call::<Read>(r#"{"path":"b.txt"}"#), Ok(Output::text("text")));
    }

    #[test]
    fn state_has_the_limits_of_the_contract() {
        struct Keep;
        impl Tool for Keep {
            const NAME: &'static str = "keep";
            const DESCRIPTION: &'static str = "";
            type Input = Input;
            fn capabilities() -> Vec<Capability> {
                vec![Capability::KeepState]
            }
            fn call(_: Input) -> Result<Output, ToolError> {
                assert!(matches!(state::set("a key", ""), Err(state::StateError::InvalidKey(_))));
                assert!(matches!(state::get(""), Err(state::StateError::InvalidKey(_))));
                let large = "x".repeat(60 << 10);
                let full = (0..5)
                    .map(|n| state::set(&format!("large/{n}"), &large))
                    .filter(Result::is_err)
                    .count();
                assert_eq!(full, 1, "four times 60 KiB are less than 256 KiB, five times are more");
                assert!((0..4).all(|n| state::delete(&format!("large/{n}")).is_ok()));
                let set = (0..300).filter(|n| state::set(&format!("k{n}"), "").is_ok()).count();
                Ok(Output::text(set.to_string()))
            }
        }
        assert_eq!(Host::new().call::<Keep>("{}"), Ok(Output::text("256")));
    }

    #[test]
    fn a_panic_leaves_the_host_usable() {
        let here = || {
            let _one_at_a_time = WORKING_DIRECTORY.lock().unwrap_or_else(PoisonError::into_inner);
            std::env::current_dir().ok()
        };
        let before = here();
        let mut host = Host::new().with_file("a/b.txt", "text");
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            host.call::<Read>(r#"{"path":"panic"}"#)
        }));
        assert!(panicked.is_err());
        assert_eq!(host.call::<Read>(r#"{"path":"a/b.txt"}"#), Ok(Output::text("text")));
        assert_eq!(host.read("a/b.txt").as_deref(), Some("text"));
        let workspace = host.workspace().to_owned();
        drop(host);
        assert!(!workspace.exists());
        assert_eq!(here(), before);
    }
}
