//! What lies around a command: a workspace with things to protect, and an outside with things to
//! get at.

use std::fs;
use std::io::Read as _;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use cofferdam::policy::SandboxLevel;
use cofferdam_tests::guests::TestHost;
use cofferdam_tests::program::find_processes;
use rustix::process::{Pid, Signal, kill_process};

use super::probes::{EscapeProbe, ProbeOutcome, SuccessSign};
use super::{new_host, run_line};

/// All of it, for one probe.
pub(super) struct ProbeEnvironment {
    host: TestHost,
    outside: tempfile::TempDir,
    tcp: TcpListener,
    udp: UdpSocket,
    stream: UnixListener,
    datagram: UnixDatagram,
    /// In the workspace.
    service: UnixListener,
    abstract_name: String,
    named: UnixListener,
    inherited: fs::File,
    victim: Child,
    /// The number of a segment of shared memory.
    shared_memory_id: String,
    sleep_mark: String,
    /// Whether commands have a private view of the workspace.
    has_private_view: bool,
}

impl ProbeEnvironment {
    pub(super) fn new(level: SandboxLevel) -> Self {
        let mut environment = Self::with_host(new_host(level));
        environment.has_private_view = level == SandboxLevel::Full;
        environment
    }

    /// The same around commands of this host, which write the workspace directly.
    pub(super) fn with_host(test_host: TestHost) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let id = std::process::id();
        write_files(&test_host);
        let outside = tempfile::tempdir().expect("a folder");
        let path = |name: &str| outside.path().join(name);
        fs::write(path("secret"), "outside-secret\n").expect("it is written");
        fs::write(path("target"), "as it was\n").expect("it is written");
        fs::set_permissions(path("target"), fs::Permissions::from_mode(0o644)).expect("it is set");
        std::os::unix::fs::symlink("pointer-secret", path("pointer")).expect("it is made");
        rustix::fs::setxattr(
            path("secret"),
            "user.kept",
            b"attribute-secret",
            rustix::fs::XattrFlags::empty(),
        )
        .expect("the temporary directory is on a file system with extended attributes");
        fs::write(path("inherited"), "inherited-secret\n").expect("it is written");
        let inherited = fs::File::open(path("inherited")).expect("it opens");
        rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty()).expect("it is set");
        let abstract_name = format!("cofferdam-escape-{id}-{number}");
        let address = SocketAddr::from_abstract_name(&abstract_name).expect("a name");
        let victim = Command::new("sleep")
            .arg("86000")
            .env("VICTIM_KEY", "victim-secret")
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        let scene = Self {
            tcp: TcpListener::bind("127.0.0.1:0").expect("it is bound"),
            udp: UdpSocket::bind("127.0.0.1:0").expect("it is bound"),
            stream: UnixListener::bind(path("stream")).expect("it is bound"),
            datagram: UnixDatagram::bind(path("datagram")).expect("it is bound"),
            service: listen_in(test_host.workspace_dir()),
            named: UnixListener::bind_addr(&address).expect("it is bound"),
            abstract_name,
            inherited,
            shared_memory_id: create_shared_memory(),
            host: test_host,
            outside,
            victim,
            sleep_mark: format!("86399.{id}{number:03}"),
            has_private_view: false,
        };
        scene.tcp.set_nonblocking(true).expect("it is set");
        scene.udp.set_nonblocking(true).expect("it is set");
        scene.stream.set_nonblocking(true).expect("it is set");
        scene.datagram.set_nonblocking(true).expect("it is set");
        scene.service.set_nonblocking(true).expect("it is set");
        scene.named.set_nonblocking(true).expect("it is set");
        scene
    }

    /// Runs a probe, and says what became of it and what the command said.
    pub(super) fn run(mut self, probe: &EscapeProbe) -> (ProbeOutcome, String) {
        let line = self.expand_placeholders(probe.command);
        let _queue =
            probe.command.contains("{queue}").then(|| MessageQueue::new(self.queue_name()));
        let path = match probe.success_sign {
            SuccessSign::Creates(path) | SuccessSign::Changes(path) => {
                PathBuf::from(self.expand_placeholders(path))
            }
            SuccessSign::Output(_)
            | SuccessSign::Connects
            | SuccessSign::Kills
            | SuccessSign::Stays => PathBuf::new(),
        };
        let before = file_state(&path);
        let (said, was_visible) = self.run_watched(&line, &path, &before);
        let happened = match probe.success_sign {
            SuccessSign::Output(text) => said.contains(&self.expand_placeholders(text)),
            SuccessSign::Creates(_) => path.symlink_metadata().is_ok(),
            SuccessSign::Changes(_) => file_state(&path) != before,
            SuccessSign::Connects => self.was_contacted(),
            // A signal arrives soon, not at once.
            SuccessSign::Kills => (0..50).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(4));
                self.victim.try_wait().expect("it is a child").is_some()
            }),
            SuccessSign::Stays => !find_processes(&self.sleep_mark).is_empty(),
        };
        // So says whoever has put something back, or taken it away.
        let was_undone = [
            "which is not allowed; it was moved to",
            "it was restored to its state before the command",
            "; it was moved back",
        ]
        .iter()
        .any(|words| said.contains(words));
        let fate = match (happened, was_undone) {
            (true, _) => ProbeOutcome::Allowed("as was seen"),
            (false, _) if self.has_private_view && was_visible => {
                ProbeOutcome::Allowed("seen while the command ran")
            }
            (false, true) if self.has_private_view => ProbeOutcome::Blocked,
            (false, true) => ProbeOutcome::Restored,
            (false, false) => ProbeOutcome::Blocked,
        };
        (fate, said)
    }

    /// Runs a line, and watches a path meanwhile: what the command said, and whether the path was
    /// ever different.
    fn run_watched(&self, line: &str, path: &Path, before: &FileState) -> (String, bool) {
        let has_ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                let mut was_different = false;
                while !has_ended.load(Ordering::Relaxed) {
                    was_different |= &file_state(path) != before;
                    std::thread::sleep(std::time::Duration::from_micros(200));
                }
                was_different
            });
            let said = run_line(&self.host, line);
            has_ended.store(true, Ordering::Relaxed);
            (said, watch.join().expect("it ends"))
        })
    }

    fn expand_placeholders(&self, text: &str) -> String {
        let port = |address: std::io::Result<std::net::SocketAddr>| {
            address.expect("it is bound").port().to_string()
        };
        text.replace("{out}", &self.outside.path().display().to_string())
            .replace("{ws}", &self.host.workspace_dir().display().to_string())
            .replace("{tcp}", &port(self.tcp.local_addr()))
            .replace("{udp}", &port(self.udp.local_addr()))
            .replace("{abstract}", &self.abstract_name)
            .replace("{fd}", &self.inherited.as_raw_fd().to_string())
            .replace("{pid}", &self.victim.id().to_string())
            .replace("{shm}", &self.shared_memory_id)
            .replace("{queue}", &self.queue_name())
            .replace("{mark}", &self.sleep_mark)
    }

    fn queue_name(&self) -> String {
        format!("cofferdam-{}", self.sleep_mark)
    }

    fn was_contacted(&self) -> bool {
        // What was sent to an address of this machine is there when the sender comes back.
        let mut byte = [0];
        self.tcp.accept().is_ok()
            || self.udp.recv(&mut byte).is_ok()
            || self.stream.accept().is_ok()
            || self.datagram.recv(&mut byte).is_ok()
            || self.service.accept().is_ok()
            || self.named.accept().is_ok()
    }
}

/// A service of the user's, at a socket of the workspace.
fn listen_in(workspace: &Path) -> UnixListener {
    let folder = workspace.join("service");
    fs::create_dir(&folder).expect("it is made");
    UnixListener::bind(folder.join("socket")).expect("it is bound")
}

impl Drop for ProbeEnvironment {
    fn drop(&mut self) {
        drop(Command::new("ipcrm").args(["-m", &self.shared_memory_id]).status());
        drop(self.victim.kill());
        drop(self.victim.wait());
        // Without a sandbox some probes leave processes behind.
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let mut line = Vec::new();
            let read = fs::File::open(entry.path().join("cmdline"))
                .and_then(|mut file| file.read_to_end(&mut line));
            let pid = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
                .and_then(Pid::from_raw);
            if let (Ok(_), Some(pid)) = (read, pid)
                && String::from_utf8_lossy(&line).contains(&self.sleep_mark)
            {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// A message queue of the user, in the namespace of this process.
struct MessageQueue(String);

impl MessageQueue {
    fn new(name: String) -> Self {
        let queue = Self(name);
        assert!(
            queue.queue_syscall("240, name, 0o102, 0o600, None"),
            "a message queue can be made"
        );
        queue
    }

    /// Makes a system call with the name of the queue.
    fn queue_syscall(&self, arguments: &str) -> bool {
        let code = format!(
            "import ctypes,sys; name=ctypes.c_char_p(sys.argv[1].encode()); \
                sys.exit(ctypes.CDLL(None).syscall({arguments}) < 0)"
        );
        Command::new("python3")
            .args(["-c", &code, &self.0])
            .status()
            .expect("python3 starts")
            .success()
    }
}

impl Drop for MessageQueue {
    fn drop(&mut self) {
        // The probe may have removed it.
        self.queue_syscall("241, name");
    }
}

fn create_shared_memory() -> String {
    let output = Command::new("ipcmk")
        .args(["--shmem", "64", "--mode", "0600"])
        .output()
        .expect("ipcmk starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.rsplit(' ').next().unwrap_or_default().trim().to_owned()
}

/// Everything that a change could show in; `None` if nothing is there.
type FileState = Option<(u32, i64, u64, Vec<u8>)>;

fn file_state(path: &Path) -> FileState {
    let metadata = path.symlink_metadata().ok()?;
    let content = if metadata.is_file() { fs::read(path).unwrap_or_default() } else { Vec::new() };
    // Of a folder the names count and not the time, which a file that came and went changes.
    // What was put back has a new time.
    let time = if path.ends_with("target") { metadata.mtime() } else { 0 };
    let size = if metadata.is_file() { metadata.size() } else { 0 };
    Some((metadata.mode(), time, size, content))
}

fn write_files(test_host: &TestHost) {
    let folder = test_host.workspace_dir();
    let git = |arguments: &[&str]| {
        let status = Command::new("git")
            .args(arguments)
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(status.expect("git starts").success(), "git {arguments:?}");
    };
    git(&["init", "--quiet", "--template="]);
    fs::create_dir_all(folder.join(".git/hooks")).expect("it is made");
    test_host.write_file("file.txt", "text\n");
    test_host.write_file(".gitignore", ".env\n");
    git(&["add", "file.txt", ".gitignore"]);
    git(&[
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@example.org",
        "commit",
        "--quiet",
        "-m",
        "first",
    ]);
    test_host.write_file(".env", "KEY=env-secret\n");
    test_host.write_file(".env.example", "KEY=\n");
    test_host.write_file("deploy/id_ed25519", "key-secret\n");
    test_host.write_file(".vscode/tasks.json", "{}\n");
    test_host.write_file("nested/.git/config", "[core]\n");
    test_host.write_file("nested/.git/HEAD", "ref: refs/heads/main\n");
    test_host.write_file("nested/.git/hooks/sample", "");
    test_host.write_file("worktree/.git", "gitdir: ../.git/worktrees/w\n");
    test_host.write_file(
        "named/.git/config",
        "[core]\n\thooksPath = hooks\n[include]\n\tpath = ../included\n",
    );
    test_host.write_file("named/hooks/pre-commit", "");
    test_host.write_file("named/included", "");
    test_host.write_file("tools/servers.json", "{}\n");
    fs::create_dir(folder.join("linked")).expect("it is made");
    std::os::unix::fs::symlink("../tools/servers.json", folder.join("linked/.mcp.json"))
        .expect("it is made");
}
