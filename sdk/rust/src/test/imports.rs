//! The interfaces of the host in a native test. Each function has the signature of the generated
//! one.
#![expect(clippy::panic, reason = "a test cannot continue without a function that it needs")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::walk::OpenWalkCount;
use crate::agents::{AgentError, Answer};
use crate::bindings::cofferdam::plugin::commands as wit;
use crate::commands::{Command, CommandError, CommandOutput};
use crate::http::{HttpError, Request, Response};
use crate::jobs::JobError;
use crate::plans::PlanError;
use crate::test::{JobReply, JobRequest};
use crate::{Capability, Denial};

type AnswerFn<A, T, E> = Option<Box<dyn FnMut(&A) -> Result<T, E>>>;

/// The state behind the interfaces.
#[derive(Default)]
pub(super) struct TestImports {
    pub(super) requested: Vec<Capability>,
    pub(super) command: AnswerFn<Command, CommandOutput, CommandError>,
    pub(super) job: AnswerFn<JobRequest, JobReply, JobError>,
    pub(super) plan: AnswerFn<str, String, PlanError>,
    pub(super) task: AnswerFn<str, Answer, AgentError>,
    pub(super) request: AnswerFn<Request, Response, HttpError>,
    pub(super) state: BTreeMap<String, Vec<u8>>,
    pub(super) progress_messages: Vec<String>,
    open_walks: OpenWalkCount,
}

impl fmt::Debug for TestImports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestImports")
            .field("state", &self.state)
            .field("progress_messages", &self.progress_messages)
            .finish_non_exhaustive()
    }
}

thread_local! {
    static IMPORTS: RefCell<Option<TestImports>> = const { RefCell::new(None) };
}

/// While this exists, the calls of this thread use the imports of one host.
pub(super) struct InstalledImports<'h> {
    host: &'h mut Option<TestImports>,
}

impl<'h> InstalledImports<'h> {
    pub(super) fn install(host: &'h mut Option<TestImports>) -> Self {
        IMPORTS.with(|imports| *imports.borrow_mut() = host.take());
        Self { host }
    }
}

impl Drop for InstalledImports<'_> {
    fn drop(&mut self) {
        *self.host = IMPORTS.with(|imports| imports.borrow_mut().take());
    }
}

/// Calls a function with the imports of the running call.
fn with_imports<T>(function: impl FnOnce(&mut TestImports) -> T) -> T {
    IMPORTS.with(|imports| match &mut *imports.borrow_mut() {
        Some(imports) => function(imports),
        None => panic!("no host: call the tool through `cofferdam_sdk::test::Host`"),
    })
}

impl TestImports {
    fn check(&self, any: &[Capability], action: &str) -> Result<(), Denial> {
        if self.requested.iter().any(|requested| any.contains(requested)) {
            Ok(())
        } else {
            Err(Self::not_granted(any, action))
        }
    }

    fn not_granted(any: &[Capability], action: &str) -> Denial {
        Denial {
            code: "not-granted".to_owned(),
            reason: format!("this tool has no permission to {action}."),
            remedy: Some(format!("It has to request one of {any:?}.")),
        }
    }
}

fn answer_fn<'l, A: ?Sized, T, E>(
    answer: &'l mut AnswerFn<A, T, E>,
    setter: &str,
) -> &'l mut dyn FnMut(&A) -> Result<T, E> {
    match answer {
        Some(answer) => answer.as_mut(),
        None => panic!(
            "the tool uses an interface for which this test set no function: call `Host::{setter}`"
        ),
    }
}

pub(crate) mod agents {
    use super::*;

    pub(crate) fn delegate(task: &str) -> Result<Answer, AgentError> {
        with_imports(|imports| {
            imports.check(&[Capability::Delegate], "delegate tasks").map_err(AgentError::Denied)?;
            answer_fn(&mut imports.task, "on_task")(task)
        })
    }
}

pub(crate) mod commands {
    use super::*;

    pub(crate) fn run(command: &wit::Command) -> Result<wit::CommandOutput, CommandError> {
        let command = Command {
            line: command.line.clone(),
            directory: command.directory.clone(),
            timeout: Duration::from_nanos(command.timeout),
        };
        let output = with_imports(|imports| {
            imports
                .check(&[Capability::RunCommands], "run commands")
                .map_err(CommandError::Denied)?;
            answer_fn(&mut imports.command, "on_command")(&command)
        })?;
        Ok(wit::CommandOutput {
            status: output.status,
            stdout: output.stdout,
            stderr: output.stderr,
            elapsed: u64::try_from(output.elapsed.as_nanos()).unwrap_or(u64::MAX),
        })
    }
}

pub(crate) mod jobs {
    use super::*;
    use crate::jobs::{Job, JobOutput, JobStart, WaitCondition};

    fn answer(request: &JobRequest) -> Result<JobReply, JobError> {
        with_imports(|imports| {
            imports.check(&[Capability::RunCommands], "run commands").map_err(JobError::Denied)?;
            answer_fn(&mut imports.job, "on_job")(request)
        })
    }

    pub(crate) fn start(job: &JobStart) -> Result<u32, JobError> {
        match answer(&JobRequest::Start(job.clone()))? {
            JobReply::Started(id) => Ok(id),
            other => panic!("the test answered a start with {other:?}"),
        }
    }

    pub(crate) fn list_jobs() -> Result<Vec<Job>, JobError> {
        match answer(&JobRequest::List)? {
            JobReply::Jobs(jobs) => Ok(jobs),
            other => panic!("the test answered a list with {other:?}"),
        }
    }

    pub(crate) fn read(id: u32, until: WaitCondition, timeout: u64) -> Result<JobOutput, JobError> {
        let timeout = Duration::from_nanos(timeout);
        match answer(&JobRequest::Read { id, until, timeout })? {
            JobReply::Output(output) => Ok(output),
            other => panic!("the test answered a read with {other:?}"),
        }
    }

    pub(crate) fn write(id: u32, text: &str, close: bool) -> Result<(), JobError> {
        match answer(&JobRequest::Write { id, text: text.to_owned(), close })? {
            JobReply::Written => Ok(()),
            other => panic!("the test answered a write with {other:?}"),
        }
    }

    pub(crate) fn commit(id: u32) -> Result<JobOutput, JobError> {
        match answer(&JobRequest::Commit(id))? {
            JobReply::Output(output) => Ok(output),
            other => panic!("the test answered a stop with {other:?}"),
        }
    }

    pub(crate) fn stop(id: u32) -> Result<JobOutput, JobError> {
        match answer(&JobRequest::Stop(id))? {
            JobReply::Output(output) => Ok(output),
            other => panic!("the test answered a stop with {other:?}"),
        }
    }
}

pub(crate) mod http {
    use super::*;

    /// The real host also compares the request with the patterns.
    pub(crate) fn send(request: &Request) -> Result<Response, HttpError> {
        with_imports(|imports| {
            if !imports.requested.iter().any(|one| matches!(one, Capability::Fetch(_))) {
                let needed = [Capability::Fetch(vec![request.url.clone()])];
                return Err(HttpError::Denied(TestImports::not_granted(&needed, "send requests")));
            }
            answer_fn(&mut imports.request, "on_request")(request)
        })
    }
}

pub(crate) mod plans {
    use super::*;

    pub(crate) fn present(plan: &str) -> Result<String, PlanError> {
        with_imports(|imports| {
            imports
                .check(&[Capability::PresentPlan], "present plans")
                .map_err(PlanError::Denied)?;
            answer_fn(&mut imports.plan, "on_plan")(plan)
        })
    }
}

pub(crate) mod progress {
    use super::*;

    pub(crate) fn report(message: &str) {
        with_imports(|imports| imports.progress_messages.push(message.to_owned()));
    }
}

pub(crate) mod state {
    use super::*;
    use crate::state::StateError;

    /// The limits of the contract.
    const MAX_KEYS: usize = 256;
    const MAX_KEY_LEN: usize = 64;
    const MAX_VALUE_LEN: usize = 64 << 10;
    const MAX_BYTES: usize = 256 << 10;

    fn with_state<T>(
        function: impl FnOnce(&mut BTreeMap<String, Vec<u8>>) -> Result<T, StateError>,
    ) -> Result<T, StateError> {
        with_imports(|imports| {
            imports.check(&[Capability::KeepState], "keep state").map_err(StateError::Denied)?;
            function(&mut imports.state)
        })
    }

    fn check(key: &str) -> Result<(), StateError> {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
        if !key.is_empty() && key.len() <= MAX_KEY_LEN && key.bytes().all(is_letter) {
            return Ok(());
        }
        Err(StateError::InvalidKey(format!(
            "a key is 1 to {MAX_KEY_LEN} characters of a-z, A-Z, 0-9, '.', '_', '/' and '-'"
        )))
    }

    pub(crate) fn get(key: &str) -> Result<Option<Vec<u8>>, StateError> {
        with_state(|state| check(key).map(|()| state.get(key).cloned()))
    }

    pub(crate) fn set(key: &str, value: &[u8]) -> Result<(), StateError> {
        with_state(|state| {
            check(key)?;
            let others = state.iter().filter(|(other, _)| *other != key);
            let (keys, bytes) = others
                .fold((1, key.len() + value.len()), |(keys, bytes), (key, value)| {
                    (keys + 1, bytes + key.len() + value.len())
                });
            if value.len() > MAX_VALUE_LEN || keys > MAX_KEYS || bytes > MAX_BYTES {
                return Err(StateError::Full(
                    "a value has at most 64 KiB, and a tool at most 256 keys and 256 KiB in all"
                        .into(),
                ));
            }
            state.insert(key.to_owned(), value.to_owned());
            Ok(())
        })
    }

    pub(crate) fn delete(key: &str) -> Result<(), StateError> {
        with_state(|state| check(key).map(|()| drop(state.remove(key))))
    }

    pub(crate) fn keys() -> Result<Vec<String>, StateError> {
        with_state(|state| Ok(state.keys().cloned().collect()))
    }
}

pub(crate) mod workspace {
    use super::super::walk;
    use super::*;
    use crate::bindings::cofferdam::plugin::workspace::Entry;
    use crate::workspace::{Batch, WalkOptions, WorkspaceError};

    /// An open walk, in place of the generated resource.
    #[derive(Debug)]
    pub(crate) struct Walk(RefCell<walk::TestWalk>);

    pub(crate) fn open_walk(options: &WalkOptions) -> Result<Walk, WorkspaceError> {
        with_imports(|imports| {
            let needed = [Capability::ReadFiles, Capability::WriteFiles];
            imports.check(&needed, "read files").map_err(WorkspaceError::Denied)?;
            walk::TestWalk::open(options, &imports.open_walks).map(RefCell::new).map(Walk)
        })
    }

    impl Walk {
        pub(crate) fn next_entries(&self, limit: u32) -> Result<Vec<Entry>, WorkspaceError> {
            Ok(self.0.borrow_mut().next_entries(limit))
        }

        pub(crate) fn next_files(&self, max_bytes: u32) -> Result<Batch, WorkspaceError> {
            Ok(self.0.borrow_mut().next_files(max_bytes))
        }

        pub(crate) fn problems(&self) -> Vec<String> {
            self.0.borrow().problems()
        }
    }
}
