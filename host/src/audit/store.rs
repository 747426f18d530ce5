//! Where logs are: one file for each run of the program in one folder, all of them the user's
//! alone.
//!
//! Logs are begun one after the other, each under a name that comes after all names that are there,
//! whatever the clock says: so the newest by name is the one that was begun last, and each names
//! the one before it. No two name the same.

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
/// Held while a log is begun.
const START_LOCK_FILE: &str = ".turn";
/// Beginning a log takes no time worth mentioning; somebody who takes longer has been stopped.
const START_LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest log that is read: a million records and more.
const LONGEST_LOG: u64 = if cfg!(test) { 1 << 20 } else { 256 << 20 };
/// A head has 86 bytes.
const MAX_HEAD_BYTES: u64 = 200;
/// `20260131T235959123Z`
const TIMESTAMP_FORMAT: &str = "%Y%m%dT%H%M%S%3fZ";

/// All logs of this user.
#[derive(Clone, Debug)]
pub struct AuditStore {
    directory: PathBuf,
}

/// The name of a log: when it began, and eight digits that make it unique. In the order of their
/// names they were begun.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuditLogName(String);

/// The turn to begin a log: whoever comes next waits until this is dropped.
pub(super) struct LogStartLock {
    lock: File,
    /// The name of the new log.
    pub(super) name: AuditLogName,
    /// The log before, and where it ended as far as that was put on the disk.
    pub(super) previous: Option<(AuditLogName, ChainEnd)>,
}

/// What is found under the name of a log.
pub(super) struct FoundAuditLog {
    pub(super) chain: HashChain,
    /// A process is still writing it.
    pub(super) is_open: bool,
}

impl AuditLogName {
    /// A name for now, or for the moment after this one, if the clock stood back since.
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

    /// From a file name without its ending, if it is one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_name = text.len() == 28
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        is_name.then(|| Self(text.to_owned())).filter(|name| name.started_at().is_some())
    }

    /// When it was begun, going by its name.
    pub fn started_at(&self) -> Option<jiff::Timestamp> {
        let number = |range: std::ops::Range<usize>| self.0.get(range)?.parse::<i16>().ok();
        let small = |range| i8::try_from(number(range)?).ok();
        let date = jiff::civil::Date::new(number(0..4)?, small(4..6)?, small(6..8)?).ok()?;
        let millis = i32::from(number(15..18)?) * 1_000_000;
        let time =
            jiff::civil::Time::new(small(9..11)?, small(11..13)?, small(13..15)?, millis).ok()?;
        Some(date.to_datetime(time).to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
    }

    /// The name itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AuditStore {
    /// The logs in a folder, which need not be there yet.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The folder.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// From the oldest to the newest: those with a file, and those that only a head is left of.
    pub fn list(&self) -> Result<Vec<AuditLogName>, AuditError> {
        let mut names = Vec::new();
        self.for_each_stem(|stem| names.extend(AuditLogName::parse(stem)))?;
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// The newest of them. Each start asks for it, beside logs by the thousand: only what is newer
    /// than what was found so far is looked at closely.
    fn newest(&self) -> Result<Option<AuditLogName>, AuditError> {
        let mut newest: Option<AuditLogName> = None;
        self.for_each_stem(|stem| {
            if newest.as_ref().is_none_or(|newest| stem > newest.as_str()) {
                newest = AuditLogName::parse(stem).or(newest.take());
            }
        })?;
        Ok(newest)
    }

    /// The names of all files that may be of logs, without their endings.
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

    /// What others could do in the folder, if anything.
    pub fn check_private(&self) -> Result<(), AuditError> {
        private_dir::check(&self.directory).map_err(|problem| self.not_private_error(problem))
    }

    /// Makes the folder, waits for the turn to begin a log, and finds a name and the log before.
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
                        "another cofferdam is beginning a log and does not get on",
                    )));
                }
                // A file system without locks: as good as can be had there.
                Err(TryLockError::Error(_)) => break,
            }
        }
        let last = self.newest()?;
        let name = AuditLogName::next_after(last.as_ref());
        // One whose end is not told is named all the same, so that somebody notices if it goes.
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

    /// The head of a log.
    pub(super) fn read_head(&self, name: &AuditLogName) -> io::Result<HeadContent> {
        let mut text = String::new();
        match open_file(&self.head_path(name))?.take(MAX_HEAD_BYTES).read_to_string(&mut text) {
            Ok(_) => Ok(head::parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(HeadContent::Invalid),
            Err(error) => Err(error),
        }
    }

    /// Reads and checks a log.
    pub(super) fn read_log(&self, name: &AuditLogName) -> io::Result<FoundAuditLog> {
        let file = open_file(&self.log_path(name))?;
        let is_open = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        let mut log = BufReader::new(file.take(LONGEST_LOG));
        let chain = HashChain::read_from(&mut log)?;
        let has_more = log.get_ref().limit() == 0
            && log.fill_buf()?.is_empty()
            && log.get_mut().get_mut().read(&mut [0])? > 0;
        if has_more && chain.first_break.is_none() {
            return Err(io::Error::other(format!("it is longer than {} MiB", LONGEST_LOG >> 20)));
        }
        Ok(FoundAuditLog { chain, is_open })
    }

    /// Removes a log.
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
        // By name: a process that is just being started may still hold the descriptor.
        drop(self.lock.unlock());
    }
}

/// A FIFO is not waited for, and no link leads elsewhere.
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
    fn a_name_comes_after_all_before_it_whatever_the_clock_says() {
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
