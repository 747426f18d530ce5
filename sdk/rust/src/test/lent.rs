//! The lent interfaces, as a test answers them. Each function has the signature of the generated
//! one.
#![expect(clippy::panic, reason = "a test that uses what it did not set up cannot go on")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use super::walk::Walks;
use crate::agents::{AgentError, Answer};
use crate::commands::{Command, CommandError, Finished};
use crate::http::{HttpError, Request, Response};
use crate::plans::PlanError;
use crate::{Capability, Denial};

type Answering<A, T, E> = Option<Box<dyn FnMut(&A) -> Result<T, E>>>;

/// Everything that a call can use.
#[derive(Default)]
pub(super) struct Lender {
    pub(super) asked: Vec<Capability>,
    pub(super) command: Answering<Command, Finished, CommandError>,
    pub(super) plan: Answering<str, String, PlanError>,
    pub(super) task: Answering<str, Answer, AgentError>,
    pub(super) request: Answering<Request, Response, HttpError>,
    pub(super) state: BTreeMap<String, String>,
    pub(super) reported: Vec<String>,
    walks: Walks,
}

impl fmt::Debug for Lender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lender")
            .field("state", &self.state)
            .field("reported", &self.reported)
            .finish_non_exhaustive()
    }
}

thread_local! {
    static LENDER: RefCell<Option<Lender>> = const { RefCell::new(None) };
}

/// While this lives, the calls of this thread are answered by what it was made from.
pub(super) struct Lent<'h> {
    home: &'h mut Option<Lender>,
}

impl<'h> Lent<'h> {
    pub(super) fn from(home: &'h mut Option<Lender>) -> Self {
        LENDER.with(|lender| *lender.borrow_mut() = home.take());
        Self { home }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        *self.home = LENDER.with(|lender| lender.borrow_mut().take());
        if let Some(lender) = self.home {
            lender.walks = Walks::default();
        }
    }
}

/// With what answers this call.
fn lender<T>(with: impl FnOnce(&mut Lender) -> T) -> T {
    LENDER.with(|lender| match &mut *lender.borrow_mut() {
        Some(lender) => with(lender),
        None => panic!("there is no host here: call the tool through `cofferdam_sdk::test::Host`"),
    })
}

impl Lender {
    fn holds(&self, any: &[Capability], what: &str) -> Result<(), Denial> {
        if self.asked.iter().any(|asked| any.contains(asked)) {
            Ok(())
        } else {
            Err(Self::not_granted(any, what))
        }
    }

    fn not_granted(any: &[Capability], what: &str) -> Denial {
        Denial {
            code: "not-granted".to_owned(),
            reason: format!("this tool may not {what}."),
            remedy: Some(format!("It would have to ask for one of {any:?}.")),
        }
    }
}

fn set_up<'l, A: ?Sized, T, E>(
    answering: &'l mut Answering<A, T, E>,
    how: &str,
) -> &'l mut dyn FnMut(&A) -> Result<T, E> {
    match answering {
        Some(answer) => answer.as_mut(),
        None => panic!(
            "the tool uses what this test did not set up: say how to answer with `Host::{how}`"
        ),
    }
}

pub(crate) mod agents {
    use super::*;

    pub(crate) fn delegate(task: &str) -> Result<Answer, AgentError> {
        lender(|lender| {
            lender
                .holds(&[Capability::Delegate], "hand tasks to sub-agents")
                .map_err(AgentError::Denied)?;
            set_up(&mut lender.task, "on_task")(task)
        })
    }
}

pub(crate) mod commands {
    use super::*;

    pub(crate) fn run(command: &Command) -> Result<Finished, CommandError> {
        lender(|lender| {
            lender
                .holds(&[Capability::RunCommands], "run commands")
                .map_err(CommandError::Denied)?;
            set_up(&mut lender.command, "on_command")(command)
        })
    }
}

pub(crate) mod http {
    use super::*;

    /// Which requests the patterns cover is for the host to say; here it is enough to have asked
    /// for some.
    pub(crate) fn send(request: &Request) -> Result<Response, HttpError> {
        lender(|lender| {
            if !lender.asked.iter().any(|asked| matches!(asked, Capability::Fetch(_))) {
                let needed = [Capability::Fetch(vec![request.url.clone()])];
                return Err(HttpError::Denied(Lender::not_granted(&needed, "send requests")));
            }
            set_up(&mut lender.request, "on_request")(request)
        })
    }
}

pub(crate) mod plans {
    use super::*;

    pub(crate) fn present(plan: &str) -> Result<String, PlanError> {
        lender(|lender| {
            lender.holds(&[Capability::PresentPlan], "present plans").map_err(PlanError::Denied)?;
            set_up(&mut lender.plan, "on_plan")(plan)
        })
    }
}

pub(crate) mod progress {
    use super::*;

    pub(crate) fn report(message: &str) {
        lender(|lender| lender.reported.push(message.to_owned()));
    }
}

pub(crate) mod state {
    use super::*;
    use crate::state::StateError;

    /// As the contract has them.
    const MOST_KEYS: usize = 256;
    const LONGEST_KEY: usize = 64;
    const LONGEST_VALUE: usize = 64 << 10;
    const MOST_BYTES: usize = 256 << 10;

    fn kept<T>(
        with: impl FnOnce(&mut BTreeMap<String, String>) -> Result<T, StateError>,
    ) -> Result<T, StateError> {
        lender(|lender| {
            lender.holds(&[Capability::KeepState], "keep anything").map_err(StateError::Denied)?;
            with(&mut lender.state)
        })
    }

    fn check(key: &str) -> Result<(), StateError> {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
        if !key.is_empty() && key.len() <= LONGEST_KEY && key.bytes().all(is_letter) {
            return Ok(());
        }
        Err(StateError::InvalidKey(format!(
            "a key is 1 to {LONGEST_KEY} characters of a-z, A-Z, 0-9, '.', '_', '/' and '-'"
        )))
    }

    pub(crate) fn get(key: &str) -> Result<Option<String>, StateError> {
        kept(|state| check(key).map(|()| state.get(key).cloned()))
    }

    pub(crate) fn set(key: &str, value: &str) -> Result<(), StateError> {
        kept(|state| {
            check(key)?;
            let others = state.iter().filter(|(other, _)| *other != key);
            let (keys, bytes) = others
                .fold((1, key.len() + value.len()), |(keys, bytes), (key, value)| {
                    (keys + 1, bytes + key.len() + value.len())
                });
            if value.len() > LONGEST_VALUE || keys > MOST_KEYS || bytes > MOST_BYTES {
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
        kept(|state| check(key).map(|()| drop(state.remove(key))))
    }

    pub(crate) fn keys() -> Result<Vec<String>, StateError> {
        kept(|state| Ok(state.keys().cloned().collect()))
    }
}

pub(crate) mod workspace {
    use super::*;
    use crate::workspace::{Batch, Entry, WalkOptions, WorkspaceError};

    fn walks<T>(
        with: impl FnOnce(&mut Walks) -> Result<T, WorkspaceError>,
    ) -> Result<T, WorkspaceError> {
        lender(|lender| {
            let needed = [Capability::ReadFiles, Capability::WriteFiles];
            lender.holds(&needed, "look at files").map_err(WorkspaceError::Denied)?;
            with(&mut lender.walks)
        })
    }

    pub(crate) fn open_walk(options: &WalkOptions) -> Result<u32, WorkspaceError> {
        walks(|walks| walks.open(options))
    }

    pub(crate) fn next_entries(walk: u32, limit: u32) -> Result<Vec<Entry>, WorkspaceError> {
        walks(|walks| walks.next_entries(walk, limit))
    }

    pub(crate) fn next_files(walk: u32, max_bytes: u32) -> Result<Batch, WorkspaceError> {
        walks(|walks| walks.next_files(walk, max_bytes))
    }

    pub(crate) fn walk_problems(walk: u32) -> Result<Vec<String>, WorkspaceError> {
        walks(|walks| walks.problems(walk))
    }

    pub(crate) fn close_walk(walk: u32) {
        lender(|lender| lender.walks.close(walk));
    }
}
