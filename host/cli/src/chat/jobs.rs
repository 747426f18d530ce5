//! Background commands in a chat: `/jobs`, and notices about commands that have ended.

use std::sync::Arc;

use super::chat_session::ChatSession;
use super::{format_notice, format_reply};
use crate::background::{describe_ended_job, describe_job};
use crate::error::CliError;
use cofferdam::sandbox::{Job, JobId, JobStatus};

/// The bytes of output that `/jobs ID` shows.
const SHOWN_OUTPUT_LEN: usize = 4 << 10;

/// The argument of `/jobs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobsCommand {
    /// Lists all background commands.
    List,
    /// Shows one, with its last output.
    Show(JobId),
    /// Commits what one has changed so far.
    Commit(JobId),
    /// Ends one.
    Stop(JobId),
}

impl JobsCommand {
    /// Parses the argument: nothing, `ID`, `commit ID`, or `stop ID`.
    ///
    /// # Errors
    ///
    /// Returns a message if the argument is something else.
    pub(super) fn parse(argument: &str) -> Result<Self, String> {
        let id = |word: &str| {
            let number = word.parse().map(JobId::new);
            number.map_err(|_| format!("`{word}` is not the number of a background command"))
        };
        match argument.split_whitespace().collect::<Vec<_>>()[..] {
            [] => Ok(Self::List),
            ["commit", number] => id(number).map(Self::Commit),
            ["stop", number] => id(number).map(Self::Stop),
            [number] => id(number).map(Self::Show),
            [..] => {
                Err("/jobs takes nothing, a number, or `commit` or `stop` and a number".to_owned())
            }
        }
    }
}

impl ChatSession<'_> {
    /// Runs `/jobs`, and returns its reply.
    pub(super) fn run_jobs_command(&mut self, command: JobsCommand) -> Result<String, CliError> {
        match command {
            JobsCommand::List => {
                let jobs = self.session.jobs();
                let lines: Vec<_> = jobs.iter().map(|job| describe_job(job)).collect();
                Ok(match lines.is_empty() {
                    true => "there are no background commands".to_owned(),
                    false => lines.join("\n"),
                })
            }
            JobsCommand::Show(id) => {
                let job = self.find_job(id)?;
                let output = job.output_tail(SHOWN_OUTPUT_LEN);
                Ok(format!("{}\n{output}", describe_ended_job(&job)))
            }
            JobsCommand::Commit(id) => {
                let job = self.find_job(id)?;
                let committed = self.runtime.block_on(job.commit());
                let notices = committed.map_err(|reason| {
                    CliError::new(format!(
                        "cannot commit the changes of background command {id}: {reason}"
                    ))
                })?;
                Ok(std::iter::once(describe_job(&job))
                    .chain(notices)
                    .collect::<Vec<_>>()
                    .join("\n"))
            }
            JobsCommand::Stop(id) => {
                let job = self.find_job(id)?;
                job.request_stop();
                self.runtime.block_on(job.wait_for_end());
                self.reported_jobs.push(id);
                Ok(describe_ended_job(&job))
            }
        }
    }

    fn find_job(&self, id: JobId) -> Result<Arc<Job>, CliError> {
        let mut jobs = self.session.jobs().into_iter();
        jobs.find(|job| job.id() == id).ok_or_else(|| {
            CliError::new(format!("no background command has the number {id}; /jobs lists them"))
        })
    }

    /// Prints a notice about each background command that has ended since the last call.
    pub(super) fn report_ended_jobs(&mut self) {
        for job in self.session.jobs() {
            if job.status() != JobStatus::Running && !self.reported_jobs.contains(&job.id()) {
                self.reported_jobs.push(job.id());
                self.view.print_line(&format_notice(&describe_ended_job(&job)));
            }
        }
    }

    /// Stops all background commands before the session ends, and prints what became of them.
    pub(super) fn end_jobs(&mut self) {
        for job in self.runtime.block_on(self.session.end_jobs()) {
            self.view.print_line(&format_reply(&describe_ended_job(&job)));
        }
        self.reported_jobs.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_argument_of_jobs_is_nothing_a_number_a_commit_or_a_stop() {
        for (argument, expected) in [
            ("", Ok(JobsCommand::List)),
            ("3", Ok(JobsCommand::Show(JobId::new(3)))),
            ("commit 3", Ok(JobsCommand::Commit(JobId::new(3)))),
            ("stop 3", Ok(JobsCommand::Stop(JobId::new(3)))),
        ] {
            assert_eq!(JobsCommand::parse(argument), expected, "{argument}");
        }
        for wrong in ["stop", "commit", "x", "stop x", "commit x", "1 2", "-1", "stop 1 2"] {
            assert!(JobsCommand::parse(wrong).is_err(), "{wrong}");
        }
    }
}
