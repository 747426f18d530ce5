//! The `jobs` tool: lists background commands, reads their output, sends input, commits their
//! changes, and stops them.

use std::time::Duration;

use cofferdam_sdk::jobs::{self, Job, JobOutput, JobStart, JobStatus, WaitCondition};
use cofferdam_sdk::{Capability, Output, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

/// The time in which a new command shows that it failed, or prints its first lines.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The characters of a command line in a list.
const MAX_SHOWN_LINE: usize = 200;

/// The tool.
pub struct Jobs;

/// What to do with a background command.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// `list`: list all background commands. `read`: return the output since the last `read`.
    /// `write`: send `text` to standard input. `commit`: commit the changes of files so far; the
    /// command continues. `stop`: end the command and all its processes.
    action: Action,
    /// The number of the background command. Every action except `list` needs it.
    #[serde(default)]
    id: Option<u32>,
    /// For `read`: what to wait for, new output or the end of the command.
    #[serde(default)]
    until: Until,
    /// For `read`: the time limit of the wait, in seconds.
    #[serde(default = "default_wait")]
    #[schemars(range(max = 600))]
    wait: u64,
    /// For `write`: the text. End a line with a line break. In a terminal, the character U+0003
    /// interrupts the program.
    #[serde(default)]
    text: Option<String>,
    /// For `write`: close standard input after the text.
    #[serde(default)]
    close: bool,
}

/// The action.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// List all background commands.
    List,
    /// Return new output.
    Read,
    /// Send input.
    Write,
    /// Commit the changes of files so far.
    Commit,
    /// End the command.
    Stop,
}

/// What a `read` waits for.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// New output, or the end of the command.
    #[default]
    Output,
    /// The end of the command.
    End,
}

fn default_wait() -> u64 {
    10
}

impl Tool for Jobs {
    const NAME: &'static str = "jobs";
    const TITLE: Option<&'static str> = Some("Background commands");
    const DESCRIPTION: &'static str = "Controls the background commands that `bash` started with \
        `background`: lists them, reads their output, writes to their standard input, commits \
        their changes, and stops them.\n- `read` returns only new output. With `until: \"end\"` \
        it waits for the exit code; prefer that to many short reads.\n- Each `write` needs \
        approval.\n- Changes of files by a background command appear in the workspace at a \
        `commit` and when it ends. Changes that need approval, such as those of AGENTS.md, are \
        not committed, and are discarded at the end. If another tool or command changes one of \
        these files meanwhile, nothing is committed.\n- All background commands end with the \
        session.";
    type Input = Input;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::RunCommands]
    }

    fn call(input: Input) -> Result<Output, ToolError> {
        let id = || {
            input.id.ok_or_else(|| ToolError::invalid_input("/id", "this action needs a number"))
        };
        let text = match input.action {
            Action::List => describe_list(&jobs::list()?),
            Action::Read => {
                let until = match input.until {
                    Until::Output => WaitCondition::Output,
                    Until::End => WaitCondition::End,
                };
                let id = id()?;
                describe_output(id, &jobs::read(id, until, Duration::from_secs(input.wait))?)
            }
            Action::Write => {
                let text = input.text.as_deref().unwrap_or_default();
                if text.is_empty() && !input.close {
                    return Err(ToolError::invalid_input("/text", "there is nothing to write"));
                }
                let id = id()?;
                jobs::write(id, text, input.close)?;
                describe_output(id, &jobs::read(id, WaitCondition::Output, FIRST_WAIT)?)
            }
            Action::Commit => {
                let id = id()?;
                describe_output(id, &jobs::commit(id)?)
            }
            Action::Stop => {
                let id = id()?;
                describe_output(id, &jobs::stop(id)?)
            }
        };
        Ok(Output::text(text))
    }
}

/// Starts a command in the background, and returns its first output.
pub(crate) fn start(line: String, directory: String, terminal: bool) -> Result<Output, ToolError> {
    let id = jobs::start(&JobStart { line, directory, terminal })?;
    let first = jobs::read(id, WaitCondition::Output, FIRST_WAIT)?;
    Ok(Output::text(describe_output(id, &first)))
}

fn describe_list(all: &[Job]) -> String {
    if all.is_empty() {
        return "There are no background commands.".to_owned();
    }
    let lines = all.iter().map(|job| {
        let line: String = job.line.chars().take(MAX_SHOWN_LINE).collect();
        let cut = if line.len() < job.line.len() { "…" } else { "" };
        let directory = match job.directory.as_str() {
            "" => String::new(),
            directory => format!(" in {directory}"),
        };
        let unread = match job.unread {
            0 => String::new(),
            bytes => format!(", {bytes} bytes of new output"),
        };
        let seconds = Duration::from_nanos(job.elapsed).as_secs();
        format!(
            "{}: `{line}{cut}`{directory}: {} after {seconds} s{unread}\n",
            job.id,
            describe_status(&job.status)
        )
    });
    lines.collect()
}

/// Describes a reading: the state, the notices of the host, and the output.
fn describe_output(id: u32, output: &JobOutput) -> String {
    let mut text = format!("background command {id}: {}\n", describe_status(&output.status));
    for notice in &output.notices {
        text.push_str(&format!("[sandbox] {notice}\n"));
    }
    if output.dropped > 0 {
        text.push_str(&format!("[… {} bytes omitted …]\n", output.dropped));
    }
    match (&output.status, output.text.is_empty()) {
        (JobStatus::Running, true) => text.push_str("(no new output)"),
        (_, true) => {}
        (_, false) => text.push_str(&output.text),
    }
    text
}

fn describe_status(status: &JobStatus) -> String {
    match status {
        JobStatus::Running => "running".to_owned(),
        JobStatus::Exited(code) => format!("ended with exit code {code}"),
        JobStatus::Stopped(reason) => format!("stopped {reason}"),
        JobStatus::Failed(reason) => format!("failed: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use cofferdam_sdk::jobs::JobError;
    use cofferdam_sdk::test::{Host, JobReply, JobRequest};

    use super::*;
    use crate::Bash;

    fn output(status: JobStatus, text: &str) -> JobReply {
        JobReply::Output(JobOutput {
            status,
            text: text.to_owned(),
            dropped: 0,
            notices: Vec::new(),
        })
    }

    /// A host that records the requests and gives these answers.
    fn host(replies: Vec<JobReply>) -> (Host, Rc<RefCell<Vec<JobRequest>>>) {
        let requests = Rc::new(RefCell::new(Vec::new()));
        let (seen, mut replies) = (Rc::clone(&requests), replies.into_iter());
        let host = Host::new().on_job(move |request| {
            seen.borrow_mut().push(request.clone());
            replies.next().ok_or(JobError::UnknownJob(0))
        });
        (host, requests)
    }

    fn text(answer: Result<Output, ToolError>) -> String {
        match answer {
            Ok(output) => output.to_text(),
            Err(error) => panic!("{error:?}"),
        }
    }

    #[test]
    fn a_background_command_returns_its_number_and_first_output() {
        let (mut host, requests) =
            host(vec![JobReply::Started(3), output(JobStatus::Running, "listening\n")]);
        let input = r#"{"command": "npm run dev", "background": true, "terminal": true}"#;
        assert_eq!(text(host.call::<Bash>(input)), "background command 3: running\nlistening\n");
        let start = JobStart { terminal: true, ..JobStart::new("npm run dev") };
        let read = JobRequest::Read { id: 3, until: WaitCondition::Output, timeout: FIRST_WAIT };
        assert_eq!(*requests.borrow(), [JobRequest::Start(start), read]);
    }

    #[test]
    fn a_terminal_needs_a_background_command() {
        let (mut host, requests) = host(Vec::new());
        let answer = host.call::<Bash>(r#"{"command": "python3", "terminal": true}"#);
        let Err(ToolError::InvalidInput(problem)) = answer else { panic!("{answer:?}") };
        assert_eq!(problem.pointer, "/terminal");
        assert!(requests.borrow().is_empty());
    }

    #[test]
    fn each_action_becomes_one_request() {
        let wait = |until, seconds| JobRequest::Read {
            id: 2,
            until,
            timeout: Duration::from_secs(seconds),
        };
        let write = JobRequest::Write { id: 2, text: "y\n".to_owned(), close: true };
        for (input, replies, expected, shown) in [
            (
                r#"{"action": "read", "id": 2}"#,
                vec![output(JobStatus::Running, "")],
                vec![wait(WaitCondition::Output, 10)],
                "background command 2: running\n(no new output)",
            ),
            (
                r#"{"action": "read", "id": 2, "until": "end", "wait": 60}"#,
                vec![output(JobStatus::Exited(1), "error\n")],
                vec![wait(WaitCondition::End, 60)],
                "background command 2: ended with exit code 1\nerror\n",
            ),
            (
                r#"{"action": "write", "id": 2, "text": "y\n", "close": true}"#,
                vec![JobReply::Written, output(JobStatus::Running, "ok\n")],
                vec![write, wait(WaitCondition::Output, 1)],
                "background command 2: running\nok\n",
            ),
            (
                r#"{"action": "commit", "id": 2}"#,
                vec![output(JobStatus::Running, "more\n")],
                vec![JobRequest::Commit(2)],
                "background command 2: running\nmore\n",
            ),
            (
                r#"{"action": "stop", "id": 2}"#,
                vec![output(JobStatus::Stopped("on request".to_owned()), "")],
                vec![JobRequest::Stop(2)],
                "background command 2: stopped on request\n",
            ),
        ] {
            let (mut host, requests) = host(replies);
            assert_eq!(text(host.call::<Jobs>(input)), shown, "{input}");
            assert_eq!(*requests.borrow(), expected, "{input}");
        }
    }

    #[test]
    fn an_action_without_its_arguments_is_refused() {
        for (input, pointer) in [
            (r#"{"action": "read"}"#, "/id"),
            (r#"{"action": "stop"}"#, "/id"),
            (r#"{"action": "commit"}"#, "/id"),
            (r#"{"action": "write", "id": 1}"#, "/text"),
        ] {
            let (mut host, _) = host(Vec::new());
            let answer = host.call::<Jobs>(input);
            let Err(ToolError::InvalidInput(problem)) = answer else { panic!("{answer:?}") };
            assert_eq!(problem.pointer, pointer, "{input}");
        }
        let (mut host, _) = host(Vec::new());
        let answer = host.call::<Jobs>(r#"{"action": "stop", "id": 9}"#);
        assert!(matches!(answer, Err(ToolError::NotFound(_))), "{answer:?}");
    }

    #[test]
    fn the_list_shows_state_time_and_new_output() {
        let job = |id, status, unread| Job {
            id,
            line: "make -j2".to_owned(),
            directory: if id == 1 { String::new() } else { "sub".to_owned() },
            terminal: false,
            status,
            elapsed: 61_500_000_000,
            unread,
        };
        let all = vec![job(1, JobStatus::Exited(2), 0), job(2, JobStatus::Running, 10)];
        let (mut host, _) = host(vec![JobReply::Jobs(all)]);
        assert_eq!(
            text(host.call::<Jobs>(r#"{"action": "list"}"#)),
            "1: `make -j2`: ended with exit code 2 after 61 s\n\
             2: `make -j2` in sub: running after 61 s, 10 bytes of new output\n"
        );
        assert_eq!(describe_list(&[]), "There are no background commands.");
    }

    #[test]
    fn notices_and_omitted_output_come_before_the_text() {
        let output = JobOutput {
            status: JobStatus::Exited(0),
            text: "end\n".to_owned(),
            dropped: 7,
            notices: vec!["the change of .git/config was discarded".to_owned()],
        };
        assert_eq!(
            describe_output(1, &output),
            "background command 1: ended with exit code 0\n\
             [sandbox] the change of .git/config was discarded\n[… 7 bytes omitted …]\nend\n"
        );
    }
}
