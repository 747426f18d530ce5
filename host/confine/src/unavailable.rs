//! The reasons why a sandbox level is unavailable on this machine.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::error::ConfineError;

/// How to install bubblewrap.
const INSTALL_BUBBLEWRAP: &str = "install bubblewrap 0.8 or newer (Debian, Ubuntu: `apt install \
    bubblewrap`; Fedora: `dnf install bubblewrap`)";

/// The reason why a sandbox level is unavailable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LevelUnavailable {
    /// The level is higher than the highest one that the configuration allows.
    #[error("`commands.at_most` in the configuration does not allow it")]
    AboveMaximum,
    /// The machine lacks something that the level needs.
    #[error(transparent)]
    Prerequisite(#[from] PrerequisiteError),
    /// The level failed its self-test.
    #[error(transparent)]
    SelfTest(#[from] SelfTestError),
    /// Neither this program nor bubblewrap can create the namespaces that the level needs.
    #[error("it needs namespaces, and this system does not allow them ({own}); {bubblewrap}")]
    Namespaces {
        /// The result of the test with namespaces that this program creates.
        own: SelfTestError,
        /// Why bubblewrap cannot create them either.
        bubblewrap: BubblewrapUnavailable,
    },
}

/// The reason why bubblewrap cannot create the namespaces of a command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BubblewrapUnavailable {
    /// It is missing, or cannot be used.
    #[error(transparent)]
    Prerequisite(#[from] PrerequisiteError),
    /// The self-test with it failed.
    #[error("with bubblewrap: {0}")]
    SelfTest(#[from] SelfTestError),
}

/// Something that a sandbox level needs and that this machine lacks.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrerequisiteError {
    /// The kernel is too old, or Landlock is disabled.
    #[error("it needs Linux 6.7 or newer with Landlock enabled (`lsm=…,landlock`)")]
    Landlock,
    /// bubblewrap is not installed.
    #[error("{INSTALL_BUBBLEWRAP}")]
    BubblewrapMissing,
    /// bubblewrap does not start.
    #[error("{}: {source}", .path.display())]
    BubblewrapFailed {
        /// The path of bubblewrap.
        path: PathBuf,
        /// The error of the start.
        source: Arc<io::Error>,
    },
    /// bubblewrap is too old, or does not print its version.
    #[error("{} is {version}; {INSTALL_BUBBLEWRAP}", .path.display())]
    BubblewrapVersion {
        /// The path of bubblewrap.
        path: PathBuf,
        /// The output of `bwrap --version`.
        version: String,
    },
    /// The operating system has no namespaces.
    #[error("it needs Linux namespaces; on macOS, the highest level is `kernel`")]
    Namespaces,
    /// The program that creates the macOS sandbox is missing.
    #[error("{} is missing", .0.display())]
    SandboxExec(PathBuf),
    /// The feature `commands` is disabled.
    #[error("this program was built without the command sandbox")]
    NotBuilt,
    /// Cofferdam supports no sandbox of this operating system.
    #[error("this operating system has no supported sandbox")]
    OperatingSystem,
}

/// The reason why a self-test of a sandbox level failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelfTestError {
    /// The temporary directory of the test cannot be created.
    #[error("cannot create a temporary directory: {0}")]
    TemporaryDirectory(#[source] io::Error),
    /// The test cannot be prepared or started.
    #[error("cannot run the self-test: {0}")]
    Start(#[source] io::Error),
    /// The supervisor ended without a report.
    #[error("the supervisor ended without a report ({stderr})")]
    MissingReport {
        /// The first line of standard error.
        stderr: String,
    },
    /// The sandbox could not be created.
    #[error("{source}{}", parenthesized(.stderr))]
    Sandbox {
        /// The step that failed.
        source: ConfineError,
        /// The first line of standard error.
        stderr: String,
    },
    /// The test ended with an exit code other than 0.
    #[error("the self-test ended with exit code {code} ({stderr})")]
    ExitCode {
        /// The exit code, which is 128 plus the signal if a signal ended the test.
        code: i32,
        /// The first line of standard error.
        stderr: String,
    },
    /// The supervisor killed the test, because it had too many processes or took too long.
    #[error("the self-test was killed ({stderr})")]
    Killed {
        /// The first line of standard error.
        stderr: String,
    },
    /// A process survived the end of the test.
    #[error("a process survived its command")]
    SurvivingProcess,
    /// The output of the test is not a result.
    #[error("the output of the self-test is not a result: {output:?}: {source}")]
    Output {
        /// The output.
        output: String,
        /// The error of its decoding.
        source: serde_json::Error,
    },
    /// Some access succeeded that the level must prevent.
    #[error("the self-test found gaps: {}", .0.join(", "))]
    Gaps(Vec<&'static str>),
}

/// Returns a text in parentheses after a space, or nothing if it is empty.
fn parenthesized(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" ({text})") }
}
