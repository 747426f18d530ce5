//! The program as a user runs it, in a home of its own: nothing of the machine but `PATH` gets in.

#![expect(
    clippy::expect_used,
    reason = "a harness that does not work fails the test that needs it"
)]

use std::fs;
use std::io::{Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::prerequisites;
use crate::wire::ProviderServer;

/// How long a run may take before it counts as hanging.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How often something is looked at that cannot be waited for.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Where the program keeps the key of its cache, below the home folder.
const CACHE_KEY: &str = "state/cofferdam/keys/cache";

/// A user with an empty home and a workspace.
#[derive(Debug)]
pub struct TestHome {
    folder: TempDir,
    program: PathBuf,
    cache: PathBuf,
}

impl TestHome {
    /// A new one for this program. The tools are compiled once, into a folder below `temp`
    /// (`CARGO_TARGET_TMPDIR`) that all homes share: each compiling takes seconds.
    pub fn new(program: &str, temp: &str) -> Self {
        static CACHE: OnceLock<PathBuf> = OnceLock::new();
        prerequisites::require();
        let cache = CACHE.get_or_init(|| {
            let cache = Path::new(temp).join("compiled-tools");
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&cache)
                .expect("the cache folder can be made");
            let home = Self::with_cache(program, &cache);
            let prepared = home.run(&["tools", "list"]);
            assert_eq!(prepared.exit_code, 0, "the tools cannot be compiled: {prepared:?}");
            home.save_cache_key();
            cache
        });
        Self::with_cache(program, cache)
    }

    /// Keeps the key of the cache beside it, for the homes that share the cache.
    fn save_cache_key(&self) {
        let folder = self.cache.parent().expect("it has a parent");
        let mut file = tempfile::NamedTempFile::new_in(folder).expect("a file can be made");
        file.write_all(&fs::read(self.path().join(CACHE_KEY)).expect("there is a key"))
            .expect("it can be written");
        file.persist(self.saved_key_path()).expect("it can be put there");
    }

    fn saved_key_path(&self) -> PathBuf {
        self.cache.with_extension("key")
    }

    /// A new one with a cache of its own choice.
    pub fn with_cache(program: &str, cache: &Path) -> Self {
        let folder = TempDir::new().expect("a folder can be made");
        for name in ["workspace", "temp"] {
            fs::create_dir(folder.path().join(name)).expect("a folder can be made");
        }
        let home = Self { folder, program: program.into(), cache: cache.into() };
        if let Ok(key) = fs::read(home.saved_key_path()) {
            let path = home.path().join(CACHE_KEY);
            let parent = path.parent().expect("it has a parent");
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(parent)
                .expect("a folder can be made");
            let mut file = fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)
                .expect("a key can be made");
            file.write_all(&key).expect("it can be written");
        }
        home
    }

    /// The home folder itself.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder that tools see.
    pub fn workspace(&self) -> PathBuf {
        self.path().join("workspace")
    }

    /// With a file in the workspace.
    #[must_use]
    pub fn with_file(self, path: &str, text: impl AsRef<[u8]>) -> Self {
        self.write_file(&format!("workspace/{path}"), text);
        self
    }

    /// Writes a file, relative to the home folder.
    pub fn write_file(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        // Nobody else's to write, whatever the mask of whoever runs the tests: what others could
        // write is not believed.
        let folder = path.parent().expect("it has a parent");
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(folder)
            .expect("the folder can be made");
        let file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(path);
        file.and_then(|mut file| file.write_all(text.as_ref())).expect("the file can be written");
    }

    /// Whether there is something at this path of the workspace.
    pub fn has_file(&self, path: &str) -> bool {
        self.workspace().join(path).exists()
    }

    /// The program with these arguments, in the workspace.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        self.configure(&mut command);
        command.args(args);
        command
    }

    /// A task for the model behind this server.
    pub fn model_command(&self, server: &ProviderServer, args: &[&str]) -> Command {
        let mut command = self.command(&[
            "run",
            "The task.",
            "--model",
            server.provider().model(),
            "--base-url",
            &server.base_url(),
        ]);
        command.args(args).env(server.provider().key_variable(), server.key());
        command
    }

    /// Environment and folder for a program that runs in this home.
    pub fn configure(&self, command: &mut Command) {
        command
            .env_clear()
            .current_dir(self.workspace())
            .env("HOME", self.path())
            .env("TMPDIR", self.path().join("temp"));
        for folder in ["config", "data", "state"] {
            command.env(format!("XDG_{}_HOME", folder.to_uppercase()), self.path().join(folder));
        }
        command.env("XDG_CACHE_HOME", &self.cache);
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
    }

    /// Runs the program to its end.
    pub fn run(&self, args: &[&str]) -> ProgramOutput {
        self.start(self.command(args)).wait_for_exit()
    }

    /// Has a task done and asks for the report. Whatever happens, the key stays where it belongs.
    pub fn run_task(&self, server: &ProviderServer, args: &[&str]) -> ProgramOutput {
        let mut command = self.model_command(server, args);
        command.args(["--output", "json"]);
        let ran = self.start(command).wait_for_exit();
        self.assert_hides_secret(server.key(), &ran);
        ran
    }

    /// Starts a command of this home.
    pub fn start(&self, command: Command) -> RunningProgram {
        let mut child = new_session(&command).spawn().expect("the program starts");
        let stdout = PipeReader::new(child.stdout.take().expect("it is piped"));
        let stderr = PipeReader::new(child.stderr.take().expect("it is piped"));
        RunningProgram {
            child,
            started: Instant::now(),
            stdout: Some(stdout),
            stderr: Some(stderr),
        }
    }

    /// Neither what a run printed nor a file that it left behind holds this text.
    pub fn assert_hides_secret(&self, secret: &str, ran: &ProgramOutput) {
        assert!(
            !ran.stdout.contains(secret) && !ran.stderr.contains(secret),
            "the key is shown: {ran:?}"
        );
        for path in list_files(self.path()) {
            let bytes = fs::read(&path).unwrap_or_default();
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "the key is in {}", path.display());
        }
    }
}

/// In a session of its own it does not find the terminal of whoever runs the tests, and so has
/// nobody to ask.
fn new_session(command: &Command) -> Command {
    let mut wrapped = Command::new("setsid");
    wrapped.arg(command.get_program()).args(command.get_args()).env_clear();
    wrapped.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    wrapped.current_dir(command.get_current_dir().expect("it has a folder"));
    wrapped.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    wrapped
}

fn list_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(list_files(&entry.path())),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    found
}

/// What comes out of a pipe, while it comes.
#[derive(Debug)]
struct PipeReader {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl PipeReader {
    fn new(mut from: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&bytes);
        let reader = std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut chunk) {
                to.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend_from_slice(&chunk[..count]);
            }
        });
        Self { bytes, reader }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
            .into_owned()
    }

    fn into_text(self) -> String {
        self.reader.join().expect("it is read");
        let bytes = std::mem::take(&mut *self.bytes.lock().unwrap_or_else(PoisonError::into_inner));
        String::from_utf8(bytes).expect("all output is text")
    }
}

/// A run that goes on; one that is dropped is killed.
#[derive(Debug)]
pub struct RunningProgram {
    child: Child,
    started: Instant,
    stdout: Option<PipeReader>,
    stderr: Option<PipeReader>,
}

impl RunningProgram {
    /// Ctrl-C.
    pub fn interrupt(&self) {
        self.send_signal(Signal::INT);
    }

    /// Sends a signal.
    pub fn send_signal(&self, signal: Signal) {
        kill_process(pid(&self.child), signal).expect("it runs");
    }

    /// Waits until a text is on standard output.
    #[track_caller]
    pub fn wait_for_stdout(&self, text: &str) {
        let so_far = || self.stdout.as_ref().map(PipeReader::text).unwrap_or_default();
        wait_until(&format!("{text:?} is on standard output"), || so_far().contains(text));
    }

    /// Waits until a text is on standard error.
    #[track_caller]
    pub fn wait_for_stderr(&self, text: &str) {
        let so_far = || self.stderr.as_ref().map(PipeReader::text).unwrap_or_default();
        wait_until(&format!("{text:?} is on standard error"), || so_far().contains(text));
    }

    /// Waits for its end, and tells the most memory that it had in use, in bytes. What the kernel
    /// says last is at most some milliseconds old.
    pub fn wait_with_peak_memory(self) -> (ProgramOutput, u64) {
        let id = self.child.id();
        let is_over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_over);
        let measuring = std::thread::spawn(move || {
            let mut most = 0;
            while !until.load(Ordering::Relaxed) {
                most = peak_memory(id).unwrap_or(0).max(most);
                std::thread::sleep(Duration::from_millis(2));
            }
            most
        });
        let ran = self.wait_for_exit();
        is_over.store(true, Ordering::Relaxed);
        (ran, measuring.join().expect("it measures"))
    }

    /// Waits for its end.
    pub fn wait_for_exit(mut self) -> ProgramOutput {
        let code = wait(&mut self.child);
        let text = |pipe: Option<PipeReader>| pipe.map(PipeReader::into_text).unwrap_or_default();
        let (stdout, stderr) = (text(self.stdout.take()), text(self.stderr.take()));
        let ran = ProgramOutput {
            exit_code: code.unwrap_or(-1),
            stdout,
            stderr,
            duration: self.started.elapsed(),
        };
        assert!(code.is_some(), "it did not end by itself: {ran:?}");
        ran
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(crate) fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// The exit code; `None` if it had to be killed, or something else killed it.
pub(crate) fn wait(child: &mut Child) -> Option<i32> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(status) = child.try_wait().expect("it is a child") {
            return status.code();
        }
        if Instant::now() > deadline {
            drop(child.kill());
            drop(child.wait());
            return None;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The most memory that a process had in use by now, in bytes; `None` once it is over.
fn peak_memory(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

/// A run that is over.
#[derive(Clone, Debug)]
pub struct ProgramOutput {
    /// Its exit code.
    pub exit_code: i32,
    /// All of it.
    pub stdout: String,
    /// All of it.
    pub stderr: String,
    /// From start to end.
    pub duration: Duration,
}

impl ProgramOutput {
    /// The JSON objects on standard output, one for each line.
    pub fn json_lines(&self) -> Vec<Value> {
        let parse = |line: &str| {
            serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("{error} in {line:?}: {self:?}"))
        };
        self.stdout.lines().map(parse).collect()
    }

    /// The report, which is the last line.
    pub fn report(&self) -> Value {
        self.json_lines().pop().unwrap_or_else(|| panic!("there is no report: {self:?}"))
    }

    /// Demands an outcome with its exit code, and gives the report.
    #[track_caller]
    pub fn expect_outcome(&self, outcome: &str, code: i32) -> Value {
        let report = self.report();
        assert!(
            report["outcome"] == outcome && self.exit_code == code,
            "not {outcome} with exit code {code}: {self:?}"
        );
        assert_eq!(report["exit_code"], code, "the report agrees with the exit code");
        report
    }

    /// Demands an answer.
    #[track_caller]
    pub fn expect_answer(&self, text: &str) {
        assert_eq!(self.expect_outcome("answered", 0)["text"], text);
    }
}

/// The command lines of all processes that have this text in them.
pub fn find_processes(text: &str) -> Vec<String> {
    let command_line = |entry: fs::DirEntry| fs::read(entry.path().join("cmdline")).ok();
    let all = fs::read_dir("/proc").expect("there is a /proc").flatten().filter_map(command_line);
    all.map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "))
        .filter(|line| line.contains(text))
        .collect()
}

/// Waits until a command executes `sleep` with this unusual time.
#[track_caller]
pub fn wait_for_sleep(seconds: &str) {
    let line = format!("sleep {seconds} ");
    wait_until("the command sleeps", || find_processes(seconds).contains(&line));
}

/// Waits until something is true.
#[track_caller]
pub fn wait_until(what: &str, is_true: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_true() {
        assert!(Instant::now() < deadline, "it does not come to this: {what}");
        std::thread::sleep(POLL_INTERVAL);
    }
}
