//! The directory of the logs: one log per run of the program, private to the user.
//!
//! Logs are started one at a time. Each new name sorts after all existing names, even if the clock
//! was set back. The newest name is therefore the log that was started last, and each log names its
//! predecessor. No two logs name the same one.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::AuditError;
use super::chain::{ChainEnd, HashChain};
use super::head::{self, HeadContent};
use super::log::AuditLogFiles;
use crate::private_dir::{self, PrivateDirError};

const LOG_EXTENSION: &str = "jsonl";
const HEAD_EXTENSION: &str = "head";
/// The lock file that is locked while a log is started.
const START_LOCK_FILE: &str = ".turn";
/// How long to wait for the lock. Starting a log takes far less; a process that holds the lock
/// longer has been stopped.
const START_LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest log that is read, in bytes: more than a million records.
const LONGEST_LOG: u64 = if cfg!(test) { 1 << 20 } else { 256 << 20 };
/// The most bytes that are read of a head file. A head has 86 bytes.
const MAX_HEAD_BYTES: u64 = 200;
/// The format of timestamps in log names, such as `20260131T235959123Z`.
const TIMESTAMP_FORMAT: &str = "%Y%m%dT%H%M%S%3fZ";

/// The audit logs of one user.
#[derive(Clone, Debug)]
pub struct AuditStore {
    directory: PathBuf,
}

/// The name of a log: its start time, and eight hexadecimal digits that make it unique.
///
/// The order of the names is the order in which the logs were started.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuditLogName(String);

/// The lock for starting a log. Other processes wait until it is dropped.
pub(super) struct LogStartLock {
    lock: File,
    /// The name of the new log.
    pub(super) name: AuditLogName,
    /// The previous log and its recorded end.
    pub(super) previous: Option<(AuditLogName, ChainEnd)>,
}

/// A log file that was read, as found on disk.
pub(super) struct FoundAuditLog {
    pub(super) chain: HashChain,
    /// Whether a process is still writing the log.
    pub(super) is_open: bool,
}

impl AuditLogName {
    /// Returns a name for the current time, or for 1 ms after `last` if the clock was set back.
    fn next_after(last: Option<&Self>) -> Self {
        use std::hash::{BuildHasher as _, RandomState};
        let bits = RandomState::new().hash_one(std::process::id());
        let name = |time: jiff::Timestamp| {
            Self(format!("{}-{:08x}", time.strftime(TIMESTAMP_FORMAT), bits >> 32))
        };
        let now = name(jiff::Timestamp::now());
        let Some(last) = last.filter(|last| **last >= now) else { return now };
        let a_moment = jiff::SignedDuration::from_millis(1);
        last.started_at().and_then(|time| time.checked_add(a_moment).ok()).map_or(now, name)
    }

    /// Parses a file name without its extension.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_name = text.len() == 28
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        is_name.then(|| Self(text.to_owned())).filter(|name| name.started_at().is_some())
    }

    /// Returns the start time in the name.
    pub fn started_at(&self) -> Option<jiff::Timestamp> {
        let number = |range: std::ops::Range<usize>| self.0.get(range)?.parse::<i16>().ok();
        let small = |range| i8::try_from(number(range)?).ok();
        let date = jiff::civil::Date::new(number(0..4)?, small(4..6)?, small(6..8)?).ok()?;
        let millis = i32::from(number(15..18)?) * 1_000_000;
        let time =
            jiff::civil::Time::new(small(9..11)?, small(11..13)?, small(13..15)?, millis).ok()?;
        Some(date.to_datetime(time).to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
    }

    /// Returns the name as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AuditStore {
    /// Creates a store for the logs in a directory, which does not need to exist yet.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Returns the directory of the logs.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Lists the names of all logs, oldest first.
    ///
    /// The list includes logs of which only the head file is left.
    pub fn list(&self) -> Result<Vec<AuditLogName>, AuditError> {
        let mut names = Vec::new();
        self.for_each_stem(|stem| names.extend(AuditLogName::parse(stem)))?;
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Returns the newest log.
    ///
    /// This runs at every start and there can be thousands of logs, so only names that sort after
    /// the newest one so far are parsed.
    fn newest(&self) -> Result<Option<AuditLogName>, AuditError> {
        let mut newest: Option<AuditLogName> = None;
        self.for_each_stem(|stem| {
            if newest.as_ref().is_none_or(|newest| stem > newest.as_str()) {
                newest = AuditLogName::parse(stem).or(newest.take());
            }
        })?;
        Ok(newest)
    }

    /// Calls `take` with the name, without extension, of every file that may belong to a log.
    fn for_each_stem(&self, mut take: impl FnMut(&str)) -> Result<(), AuditError> {
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(AuditError::io(&self.directory)(error)),
        };
        for entry in entries {
            let name = entry.map_err(AuditError::io(&self.directory))?.file_name();
            if let Some((stem, LOG_EXTENSION | HEAD_EXTENSION)) =
                name.to_str().and_then(|name| name.rsplit_once('.'))
            {
                take(stem);
            }
        }
        Ok(())
    }

    /// Checks that the directory is private to the user.
    ///
    /// # Errors
    ///
    /// Returns an error that says how the directory is accessible to other users, or that it cannot
    /// be read.
    pub fn check_private(&self) -> Result<(), AuditError> {
        private_dir::check(&self.directory).map_err(|problem| self.not_private_error(problem))
    }

    /// Creates the directory, waits for the start lock, and finds the new name and the previous
    /// log.
    pub(super) fn lock_start(&self) -> Result<LogStartLock, AuditError> {
        private_dir::create(&self.directory).map_err(|problem| self.not_private_error(problem))?;
        let path = self.directory.join(START_LOCK_FILE);
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(open_flags())
            .open(&path);
        let lock = lock.map_err(AuditError::io(&path))?;
        let since = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if since.elapsed() < START_LOCK_TIMEOUT => {
                    std::thread::sleep(Duration::from_millis(1))
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(AuditError::io(&path)(io::Error::other(
                        "timed out: another cofferdam process is starting a log",
                    )));
                }
                // A file system without locks cannot order the starts, so continue without the
                // lock.
                Err(TryLockError::Error(_)) => break,
            }
        }
        let last = self.newest()?;
        let name = AuditLogName::next_after(last.as_ref());
        // A log without a readable end is named too, so that its removal is noticed.
        let end = |name: &AuditLogName| match self.read_head(name) {
            Ok(HeadContent::End(end)) => end,
            Ok(HeadContent::Empty | HeadContent::Invalid) | Err(_) => ChainEnd::default(),
        };
        Ok(LogStartLock { lock, name, previous: last.map(|last| (last.clone(), end(&last))) })
    }

    pub(super) fn log_files(&self, name: &AuditLogName) -> AuditLogFiles {
        AuditLogFiles {
            log: self.log_path(name),
            head: self.head_path(name),
            directory: self.directory.clone(),
        }
    }

    pub(super) fn log_path(&self, name: &AuditLogName) -> PathBuf {
        self.directory.join(name.as_str()).with_extension(LOG_EXTENSION)
    }

    pub(super) fn head_path(&self, name: &AuditLogName) -> PathBuf {
        self.directory.join(name.as_str()).with_extension(HEAD_EXTENSION)
    }

    /// Reads the head of a log.
    pub(super) fn read_head(&self, name: &AuditLogName) -> io::Result<HeadContent> {
        let mut text = String::new();
        match open_file(&self.head_path(name))?.take(MAX_HEAD_BYTES).read_to_string(&mut text) {
            Ok(_) => Ok(head::parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(HeadContent::Invalid),
            Err(error) => Err(error),
        }
    }

    /// Reads and checks a log.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or is longer than [`LONGEST_LOG`].
    pub(super) fn read_log(&self, name: &AuditLogName) -> io::Result<FoundAuditLog> {
        let file = open_file(&self.log_path(name))?;
        let is_open = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        let mut log = BufReader::new(file.take(LONGEST_LOG));
        let chain = HashChain::read_from(&mut log)?;
        let has_more = log.get_ref().limit() == 0
            && log.fill_buf()?.is_empty()
            && log.get_mut().get_mut().read(&mut [0])? > 0;
        if has_more && chain.first_break.is_none() {
            return Err(io::Error::other(format!("it is larger than {} MiB", LONGEST_LOG >> 20)));
        }
        Ok(FoundAuditLog { chain, is_open })
    }

    /// Removes both files of a log. Missing files are not an error.
    pub(super) fn remove(&self, name: &AuditLogName) -> Result<(), AuditError> {
        for path in [self.log_path(name), self.head_path(name)] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(AuditError::io(&path)(error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    fn not_private_error(&self, problem: PrivateDirError) -> AuditError {
        match problem {
            PrivateDirError::Io(error) => AuditError::io(&self.directory)(error),
            PrivateDirError::NotPrivate(problem) => {
                AuditError::NotPrivate { path: self.directory.clone(), reason: problem }
            }
        }
    }
}

impl Drop for LogStartLock {
    fn drop(&mut self) {
        // Unlock explicitly: a child process that is being spawned may still hold the descriptor.
        let _ = self.lock.unlock();
    }
}

/// Returns flags so that opening a FIFO does not block and symbolic links are not followed.
fn open_flags() -> i32 {
    i32::try_from((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits()).unwrap_or_default()
}

fn open_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(open_flags()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a file")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_sorts_after_all_earlier_ones_whatever_the_clock_says() {
        let mut last = AuditLogName::parse("29991231T235959998Z-ffffffff");
        for _ in 0..5 {
            let next = AuditLogName::next_after(last.as_ref());
            assert!(Some(&next) > last.as_ref(), "{next:?} after {last:?}");
            assert_eq!(AuditLogName::parse(next.as_str()), Some(next.clone()));
            last = Some(next);
        }
        assert!(AuditLogName::next_after(None).as_str().starts_with("20"));
        for text in ["20261301T000000000Z-00000000", "2026-12-01T00000000Z-0000000", "x"] {
            assert_eq!(AuditLogName::parse(text), None, "{text}");
        }
    }
}
