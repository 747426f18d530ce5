//! Where logs are: one file for each run of the program in one folder, all of them the user's alone.
//!
//! Logs are begun one after the other, each under a name that comes after all names that are there, whatever the clock says:
//! so the newest by name is the one that was begun last, and each names the one before it. No two name the same.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::AuditError;
use super::chain::{Chain, End};
use super::head::{self, Kept};
use super::log::Files;
use crate::private::{self, NotPrivate};

const LOG: &str = "jsonl";
const HEAD: &str = "head";
/// Held while a log is begun.
const TURN: &str = ".turn";
/// Beginning a log takes no time worth mentioning; somebody who takes longer has been stopped.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest log that is read: a million records and more.
const LONGEST_LOG: u64 = if cfg!(test) { 1 << 20 } else { 256 << 20 };
/// A head has 86 bytes.
const LONGEST_HEAD: u64 = 200;
/// `20260131T235959123Z`
const STAMP: &str = "%Y%m%dT%H%M%S%3fZ";

/// All logs of this user.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// The name of a log: when it began, and eight digits that make it unique. In the order of their names they were begun.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogName(String);

/// The turn to begin a log: whoever comes next waits until this is dropped.
pub(super) struct Turn {
    lock: File,
    /// The name of the new log.
    pub(super) name: LogName,
    /// The log before, and where it ended as far as that was put on the disk.
    pub(super) before: Option<(LogName, End)>,
}

/// What is found under the name of a log.
pub(super) struct Found {
    pub(super) chain: Chain,
    /// A process is still writing it.
    pub(super) is_open: bool,
}

impl LogName {
    /// A name for now, or for the moment after this one, if the clock stood back since.
    fn after(last: Option<&Self>) -> Self {
        use std::hash::{BuildHasher as _, RandomState};
        let bits = RandomState::new().hash_one(std::process::id());
        let name = |time: jiff::Timestamp| Self(format!("{}-{:08x}", time.strftime(STAMP), bits >> 32));
        let now = name(jiff::Timestamp::now());
        let Some(last) = last.filter(|last| **last >= now) else { return now };
        let a_moment = jiff::SignedDuration::from_millis(1);
        last.time().and_then(|time| time.checked_add(a_moment).ok()).map_or(now, name)
    }

    /// From a file name without its ending, if it is one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_name = text.len() == 28 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        is_name.then(|| Self(text.to_owned())).filter(|name| name.time().is_some())
    }

    /// When it was begun, going by its name.
    pub fn time(&self) -> Option<jiff::Timestamp> {
        let number = |range: std::ops::Range<usize>| self.0.get(range)?.parse::<i16>().ok();
        let small = |range| i8::try_from(number(range)?).ok();
        let date = jiff::civil::Date::new(number(0..4)?, small(4..6)?, small(6..8)?).ok()?;
        let millis = i32::from(number(15..18)?) * 1_000_000;
        let time = jiff::civil::Time::new(small(9..11)?, small(11..13)?, small(13..15)?, millis).ok()?;
        Some(date.to_datetime(time).to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
    }

    /// The name itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Store {
    /// The logs in a folder, which need not be there yet.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// From the oldest to the newest: those with a file, and those that only a head is left of.
    pub fn list(&self) -> Result<Vec<LogName>, AuditError> {
        let mut names = Vec::new();
        self.each_stem(|stem| names.extend(LogName::parse(stem)))?;
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// The newest of them. Each start asks for it, beside logs by the thousand: only what is newer than what was found so far
    /// is looked at closely.
    fn newest(&self) -> Result<Option<LogName>, AuditError> {
        let mut newest: Option<LogName> = None;
        self.each_stem(|stem| {
            if newest.as_ref().is_none_or(|newest| stem > newest.as_str()) {
                newest = LogName::parse(stem).or(newest.take());
            }
        })?;
        Ok(newest)
    }

    /// The names of all files that may be of logs, without their endings.
    fn each_stem(&self, mut take: impl FnMut(&str)) -> Result<(), AuditError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(AuditError::io(&self.folder)(error)),
        };
        for entry in entries {
            let name = entry.map_err(AuditError::io(&self.folder))?.file_name();
            if let Some((stem, LOG | HEAD)) = name.to_str().and_then(|name| name.rsplit_once('.')) {
                take(stem);
            }
        }
        Ok(())
    }

    /// What others could do in the folder, if anything.
    pub fn is_private(&self) -> Result<(), AuditError> {
        private::check(&self.folder).map_err(|problem| self.not_private(problem))
    }

    /// Makes the folder, waits for the turn to begin a log, and finds a name and the log before.
    pub(super) fn next(&self) -> Result<Turn, AuditError> {
        private::folder(&self.folder).map_err(|problem| self.not_private(problem))?;
        let path = self.folder.join(TURN);
        let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).custom_flags(flags()).open(&path);
        let lock = lock.map_err(AuditError::io(&path))?;
        let since = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if since.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(1)),
                Err(TryLockError::WouldBlock) => {
                    return Err(AuditError::io(&path)(io::Error::other("another cofferdam is beginning a log and does not get on")));
                }
                // A file system without locks: as good as can be had there.
                Err(TryLockError::Error(_)) => break,
            }
        }
        let last = self.newest()?;
        let name = LogName::after(last.as_ref());
        // One whose end is not told is named all the same, so that somebody notices if it goes.
        let end = |name: &LogName| match self.head(name) {
            Ok(Kept::End(end)) => end,
            Ok(Kept::Nothing | Kept::Other) | Err(_) => End::default(),
        };
        Ok(Turn { lock, name, before: last.map(|last| (last.clone(), end(&last))) })
    }

    pub(super) fn files(&self, name: &LogName) -> Files {
        Files { log: self.log_path(name), head: self.head_path(name), folder: self.folder.clone() }
    }

    pub(super) fn log_path(&self, name: &LogName) -> PathBuf {
        self.folder.join(name.as_str()).with_extension(LOG)
    }

    pub(super) fn head_path(&self, name: &LogName) -> PathBuf {
        self.folder.join(name.as_str()).with_extension(HEAD)
    }

    /// The head of a log.
    pub(super) fn head(&self, name: &LogName) -> io::Result<Kept> {
        let mut text = String::new();
        match open(&self.head_path(name))?.take(LONGEST_HEAD).read_to_string(&mut text) {
            Ok(_) => Ok(head::parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Kept::Other),
            Err(error) => Err(error),
        }
    }

    /// Reads and checks a log.
    pub(super) fn find(&self, name: &LogName) -> io::Result<Found> {
        let file = open(&self.log_path(name))?;
        let is_open = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        let mut log = BufReader::new(file.take(LONGEST_LOG));
        let chain = Chain::read_from(&mut log)?;
        let has_more = log.get_ref().limit() == 0 && log.fill_buf()?.is_empty() && log.get_mut().get_mut().read(&mut [0])? > 0;
        if has_more && chain.broken.is_none() {
            return Err(io::Error::other(format!("it is longer than {} MiB", LONGEST_LOG >> 20)));
        }
        Ok(Found { chain, is_open })
    }

    /// Removes a log.
    pub(super) fn remove(&self, name: &LogName) -> Result<(), AuditError> {
        for path in [self.log_path(name), self.head_path(name)] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(AuditError::io(&path)(error)),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    fn not_private(&self, problem: NotPrivate) -> AuditError {
        match problem {
            NotPrivate::Io(error) => AuditError::io(&self.folder)(error),
            NotPrivate::Is(problem) => AuditError::NotPrivate { path: self.folder.clone(), problem },
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // By name: a process that is just being started may still hold the descriptor.
        drop(self.lock.unlock());
    }
}

/// A FIFO is not waited for, and no link leads elsewhere.
fn flags() -> i32 {
    i32::try_from((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits()).unwrap_or_default()
}

fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(flags()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a file")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_after_all_before_it_whatever_the_clock_says() {
        let mut last = LogName::parse("29991231T235959998Z-ffffffff");
        for _ in 0..5 {
            let next = LogName::after(last.as_ref());
            assert!(Some(&next) > last.as_ref(), "{next:?} after {last:?}");
            assert_eq!(LogName::parse(next.as_str()), Some(next.clone()));
            last = Some(next);
        }
        assert!(LogName::after(None).as_str().starts_with("20"));
        for text in ["20261301T000000000Z-00000000", "2026-12-01T00000000Z-0000000", "x"] {
            assert_eq!(LogName::parse(text), None, "{text}");
        }
    }
}
