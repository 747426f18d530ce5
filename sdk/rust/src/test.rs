//! Calling a tool in a native test, as the host calls it in a component.
//!
//! A [`Host`] has a workspace in a temporary folder, keeps state between calls, and answers
//! commands, plans and tasks as the test says. A tool gets what it asks for in
//! [`Tool::capabilities`] and nothing else, so that a capability which was forgotten shows.
//!
//! ```
//! use cofferdam_sdk::commands::{self, Command, Finished};
//! use cofferdam_sdk::test::Host;
//! use cofferdam_sdk::{Capability, Output, Tool, ToolError, state};
//!
//! /// Tells when the answer of a command changes.
//! struct Watch;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Input {}
//!
//! impl Tool for Watch {
//!     const NAME: &'static str = "watch";
//!     const DESCRIPTION: &'static str = "Tells whether there is something new.";
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
//! let mut host = Host::new().on_command(|_| Ok(Finished::exited(0, "ca6a0b8")));
//! assert_eq!(host.call::<Watch>("{}"), Ok(Output::text("something new")));
//! assert_eq!(host.call::<Watch>("{}"), Ok(Output::text("nothing new")));
//! ```

mod folder;
pub(crate) mod lent;
mod walk;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::agents::{AgentError, Answer};
use crate::commands::{Command, CommandError, Finished};
use crate::http::{HttpError, Request, Response};
use crate::plans::PlanError;
use crate::{Capability, Output, Tool, ToolError};

use folder::Folder;
use lent::Lender;

/// A host for tests.
#[derive(Debug)]
pub struct Host {
    folder: Folder,
    lender: Option<Lender>,
}

/// The working directory belongs to the process, and a tool's workspace is its working directory.
static WORKING_DIRECTORY: Mutex<()> = Mutex::new(());

impl Host {
    /// With an empty workspace, no state, and nobody who answers.
    ///
    /// # Panics
    ///
    /// If there is no place for temporary files.
    pub fn new() -> Self {
        Self { folder: Folder::new(), lender: Some(Lender::default()) }
    }

    /// With a file in the workspace, and the directories that it needs.
    ///
    /// # Panics
    ///
    /// If it cannot be written.
    #[must_use]
    pub fn with_file(self, path: &str, contents: impl AsRef<[u8]>) -> Self {
        self.folder.write(path, contents.as_ref());
        self
    }

    /// With somebody who runs the tool's commands.
    #[must_use]
    pub fn on_command(
        mut self,
        run: impl FnMut(&Command) -> Result<Finished, CommandError> + 'static,
    ) -> Self {
        self.lender().command = Some(Box::new(run));
        self
    }

    /// With a user who answers the tool's plans.
    #[must_use]
    pub fn on_plan(
        mut self,
        present: impl FnMut(&str) -> Result<String, PlanError> + 'static,
    ) -> Self {
        self.lender().plan = Some(Box::new(present));
        self
    }

    /// With a sub-agent that works on the tool's tasks.
    #[must_use]
    pub fn on_task(
        mut self,
        delegate: impl FnMut(&str) -> Result<Answer, AgentError> + 'static,
    ) -> Self {
        self.lender().task = Some(Box::new(delegate));
        self
    }

    /// With a network that answers the tool's requests.
    #[must_use]
    pub fn on_request(
        mut self,
        send: impl FnMut(&Request) -> Result<Response, HttpError> + 'static,
    ) -> Self {
        self.lender().request = Some(Box::new(send));
        self
    }

    /// Calls a tool with the JSON text of its input. The calls of all hosts of a process wait for
    /// each other.
    ///
    /// # Panics
    ///
    /// If the tool does, or if it uses something that it asks for and this host was not told how to
    /// answer.
    pub fn call<T: Tool>(&mut self, input: &str) -> Result<Output, ToolError> {
        let _one_at_a_time = WORKING_DIRECTORY.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = T::capabilities();
        let sees_files = asked
            .iter()
            .any(|asked| matches!(asked, Capability::ReadFiles | Capability::WriteFiles));
        // Without files there is no directory to be in; an empty one shows the same.
        let nowhere = (!sees_files).then(Folder::new);
        let _inside = nowhere.as_ref().unwrap_or(&self.folder).enter();
        self.lender().asked = asked;
        let _lent = lent::Lent::from(&mut self.lender);
        crate::call::<T>(input)
    }

    /// Where the workspace is.
    pub fn workspace(&self) -> &Path {
        self.folder.path()
    }

    /// The text of a file of the workspace; `None` if there is none.
    pub fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.workspace().join(path)).ok()
    }

    /// What the tools of this host keep. All tools of this host share it; in the real one each has
    /// its own.
    pub fn state(&mut self) -> &mut BTreeMap<String, String> {
        &mut self.lender().state
    }

    /// The lines that were reported so far.
    pub fn reported(&mut self) -> &[String] {
        &self.lender().reported
    }

    fn lender(&mut self) -> &mut Lender {
        self.lender.get_or_insert_default()
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

    /// Uses everything, and asks for what its parameter says.
    struct All<const ASKS: bool>;

    impl<const ASKS: bool> Tool for All<ASKS> {
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
            if ASKS { all.to_vec() } else { Vec::new() }
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
                .and_then(|()| state::get("k"))
                .map(Option::unwrap_or_default)
                .map_err(ToolError::from));
            say(agents::delegate("look").map(|answer| answer.text).map_err(ToolError::from));
            say(plans::present("1. Go").map_err(ToolError::from));
            say(crate::commands::run(&Command::new("date"))
                .map(|finished| finished.stdout)
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
            .on_command(|command| Ok(Finished::exited(0, command.line.clone())))
    }

    #[test]
    fn a_tool_gets_what_it_asks_for() {
        let mut host = host();
        assert_eq!(
            host.call::<All<true>>("{}"),
            Ok(Output::text("b.txt src src/a.rs\nv\nlooked\nask\ndate\n204"))
        );
        assert_eq!(host.reported(), ["begun"]);
        assert_eq!(host.state().get("k").map(String::as_str), Some("v"));
    }

    #[test]
    fn a_tool_gets_nothing_that_it_does_not_ask_for() {
        let Ok(output) = host().call::<All<false>>("{}") else { panic!("it answers") };
        let [crate::Content::Text(text)] = output.content.as_slice() else { panic!("{output:?}") };
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

    /// Reads a file and asks for nothing.
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
    fn a_tool_that_forgot_to_ask_for_files_sees_none() {
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
    fn files_are_those_of_the_workspace_also_after_a_panic() {
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
