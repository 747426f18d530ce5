//! Background commands, or *jobs*: commands that continue after the call that started them.
//!
//! A job has a private view of the workspace, so it neither waits for other commands nor stops
//! them. When it ends, the host decides on its changes as on those of other commands, but nobody is
//! asked: changes that need an approval of their own are discarded. All jobs end with the session.
//!
//! A [`checkpoint`] commits what a job has changed so far, and the job continues.

mod checkpoint;
mod interface;
mod job;
mod output;
mod task;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

pub(super) use interface::{JobAccess, JobsHost};
pub use job::{Job, JobRecorder, JobStage, JobStatus};
pub use output::NewOutput;
pub(super) use task::{deny_all, deny_changes};

use crate::policy::ComponentDigest;

/// The number of jobs of a session that run at the same time, by the WIT contract.
const MAX_RUNNING_JOBS: usize = 16;
/// The number of jobs of a session that are remembered, by the WIT contract.
const MAX_KNOWN_JOBS: usize = 64;

/// The number of a job, unique in its session and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(u32);

impl JobId {
    /// Returns the ID with this number.
    pub fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number.
    pub fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The background commands of one session. If the value is dropped, all of them are stopped.
#[derive(Debug, Default)]
pub struct JobTable {
    known: Mutex<KnownJobs>,
}

#[derive(Debug, Default)]
struct KnownJobs {
    by_id: BTreeMap<JobId, Arc<Job>>,
    last_number: u32,
    /// Whether the session has ended, so that no more jobs start.
    is_closed: bool,
}

/// Why a job cannot start.
#[derive(Debug, thiserror::Error)]
pub(super) enum JobTableError {
    #[error("{MAX_RUNNING_JOBS} background commands run already; stop one of them first")]
    TooManyRunning,
    #[error("the session has ended")]
    Closed,
}

impl JobTable {
    /// Returns all jobs, oldest first.
    pub fn jobs(&self) -> Vec<Arc<Job>> {
        self.lock().by_id.values().cloned().collect()
    }

    /// Returns the job with this ID.
    pub fn find(&self, id: JobId) -> Option<Arc<Job>> {
        self.lock().by_id.get(&id).cloned()
    }

    /// Stops all jobs, waits until their changes are committed or discarded, and returns those that
    /// were running. No job starts afterwards.
    pub async fn close(&self) -> Vec<Arc<Job>> {
        self.lock().is_closed = true;
        let mut running = self.jobs();
        running.retain(|job| job.status() == JobStatus::Running);
        for job in &running {
            job.request_stop();
        }
        for job in &running {
            job.wait_for_end().await;
        }
        running
    }

    /// Checks whether one more job can start.
    fn check_room(&self) -> Result<(), JobTableError> {
        let known = self.lock();
        if known.is_closed {
            return Err(JobTableError::Closed);
        }
        match known.running() < MAX_RUNNING_JOBS {
            true => Ok(()),
            false => Err(JobTableError::TooManyRunning),
        }
    }

    /// Adds a job that `start` creates, and forgets the oldest ones that have ended.
    fn add(&self, start: impl FnOnce(JobId) -> Job) -> Result<Arc<Job>, JobTableError> {
        let mut known = self.lock();
        if known.is_closed {
            return Err(JobTableError::Closed);
        }
        if known.running() >= MAX_RUNNING_JOBS {
            return Err(JobTableError::TooManyRunning);
        }
        known.last_number += 1;
        let id = JobId(known.last_number);
        let job = Arc::new(start(id));
        known.by_id.insert(id, Arc::clone(&job));
        let surplus = known.by_id.len().saturating_sub(MAX_KNOWN_JOBS);
        let ended = known.by_id.iter().filter(|(_, job)| job.status() != JobStatus::Running);
        let forgotten: Vec<JobId> = ended.map(|(id, _)| *id).take(surplus).collect();
        for id in forgotten {
            known.by_id.remove(&id);
        }
        Ok(job)
    }

    /// Returns the job with this ID that a component started.
    fn find_own(&self, id: JobId, owner: &ComponentDigest) -> Option<Arc<Job>> {
        self.find(id).filter(|job| job.owner() == owner)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, KnownJobs> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownJobs {
    fn running(&self) -> usize {
        self.by_id.values().filter(|job| job.status() == JobStatus::Running).count()
    }
}
