//! What lies around a command: a workspace with things to protect, and an outside with things to get at.

use std::fs;
use std::io::Read as _;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use cofferdam::policy::SandboxLevel;
use cofferdam_tests::guests::House;
use cofferdam_tests::program::processes_with;
use rustix::process::{Pid, Signal, kill_process};

use super::probes::{Fate, Probe, Sign};
use super::{house, run};

/// All of it, for one probe.
pub(super) struct Scene {
    house: House,
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
    memory: String,
    mark: String,
}

impl Scene {
    pub(super) fn new(level: SandboxLevel) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let id = std::process::id();
        let house = house(level);
        furnish(&house);
        let outside = tempfile::tempdir().expect("a folder");
        let path = |name: &str| outside.path().join(name);
        fs::write(path("secret"), "outside-secret\n").expect("it is written");
        fs::write(path("target"), "as it was\n").expect("it is written");
        fs::set_permissions(path("target"), fs::Permissions::from_mode(0o644)).expect("it is set");
        std::os::unix::fs::symlink("pointer-secret", path("pointer")).expect("it is made");
        rustix::fs::setxattr(path("secret"), "user.kept", b"attribute-secret", rustix::fs::XattrFlags::empty())
            .expect("the temporary directory is on a file system with extended attributes");
        fs::write(path("inherited"), "inherited-secret\n").expect("it is written");
        let inherited = fs::File::open(path("inherited")).expect("it opens");
        rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty()).expect("it is set");
        let abstract_name = format!("cofferdam-escape-{id}-{number}");
        let address = SocketAddr::from_abstract_name(&abstract_name).expect("a name");
        let victim =
            Command::new("sleep").arg("86000").env("VICTIM_KEY", "victim-secret").stdout(Stdio::null()).spawn().expect("it starts");
        let scene = Self {
            tcp: TcpListener::bind("127.0.0.1:0").expect("it is bound"),
            udp: UdpSocket::bind("127.0.0.1:0").expect("it is bound"),
            stream: UnixListener::bind(path("stream")).expect("it is bound"),
            datagram: UnixDatagram::bind(path("datagram")).expect("it is bound"),
            service: listen_in(house.folder()),
            named: UnixListener::bind_addr(&address).expect("it is bound"),
            abstract_name,
            inherited,
            memory: shared_memory(),
            house,
            outside,
            victim,
            mark: format!("86399.{id}{number:03}"),
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
    pub(super) fn runs(mut self, probe: &Probe) -> (Fate, String) {
        let line = self.fill(probe.line);
        let _queue = probe.line.contains("{queue}").then(|| Queue::new(self.queue_name()));
        let path = match probe.sign {
            Sign::Makes(path) | Sign::Changes(path) => PathBuf::from(self.fill(path)),
            Sign::Says(_) | Sign::Connects | Sign::Kills | Sign::Stays => PathBuf::new(),
        };
        let before = state(&path);
        let said = run(&self.house, &line);
        let happened = match probe.sign {
            Sign::Says(text) => said.contains(&self.fill(text)),
            Sign::Makes(_) => path.symlink_metadata().is_ok(),
            Sign::Changes(_) => state(&path) != before,
            Sign::Connects => self.was_reached(),
            // A signal arrives soon, not at once.
            Sign::Kills => (0..50).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(4));
                self.victim.try_wait().expect("it is a child").is_some()
            }),
            Sign::Stays => !processes_with(&self.mark).is_empty(),
        };
        // So says whoever has put something back, or taken it away.
        let was_undone = ["which is not allowed; it is now", "is as it was before the command", "is back where it was"]
            .iter()
            .any(|words| said.contains(words));
        let fate = match (happened, was_undone) {
            (true, _) => Fate::Open("as was seen"),
            (false, true) => Fate::Undone,
            (false, false) => Fate::Closed,
        };
        (fate, said)
    }

    fn fill(&self, text: &str) -> String {
        let port = |address: std::io::Result<std::net::SocketAddr>| address.expect("it is bound").port().to_string();
        text.replace("{out}", &self.outside.path().display().to_string())
            .replace("{ws}", &self.house.folder().display().to_string())
            .replace("{tcp}", &port(self.tcp.local_addr()))
            .replace("{udp}", &port(self.udp.local_addr()))
            .replace("{abstract}", &self.abstract_name)
            .replace("{fd}", &self.inherited.as_raw_fd().to_string())
            .replace("{pid}", &self.victim.id().to_string())
            .replace("{shm}", &self.memory)
            .replace("{queue}", &self.queue_name())
            .replace("{mark}", &self.mark)
    }

    fn queue_name(&self) -> String {
        format!("cofferdam-{}", self.mark)
    }

    fn was_reached(&self) -> bool {
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

impl Drop for Scene {
    fn drop(&mut self) {
        drop(Command::new("ipcrm").args(["-m", &self.memory]).status());
        drop(self.victim.kill());
        drop(self.victim.wait());
        // Without a sandbox some probes leave processes behind.
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let mut line = Vec::new();
            let read = fs::File::open(entry.path().join("cmdline")).and_then(|mut file| file.read_to_end(&mut line));
            let pid = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
            if let (Ok(_), Some(pid)) = (read, pid)
                && String::from_utf8_lossy(&line).contains(&self.mark)
            {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// A message queue of the user, in the namespace of this process.
struct Queue(String);

impl Queue {
    fn new(name: String) -> Self {
        let queue = Self(name);
        assert!(queue.act("240, name, 0o102, 0o600, None"), "a message queue can be made");
        queue
    }

    /// Makes a system call with the name of the queue.
    fn act(&self, arguments: &str) -> bool {
        let code =
            format!("import ctypes,sys; name=ctypes.c_char_p(sys.argv[1].encode()); sys.exit(ctypes.CDLL(None).syscall({arguments}) < 0)");
        Command::new("python3").args(["-c", &code, &self.0]).status().expect("python3 starts").success()
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // The probe may have removed it.
        self.act("241, name");
    }
}

fn shared_memory() -> String {
    let output = Command::new("ipcmk").args(["--shmem", "64", "--mode", "0600"]).output().expect("ipcmk starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.rsplit(' ').next().unwrap_or_default().trim().to_owned()
}

/// Everything that a change could show in.
fn state(path: &Path) -> Option<(u32, i64, u64, Vec<u8>)> {
    let metadata = path.symlink_metadata().ok()?;
    let content = if metadata.is_file() { fs::read(path).unwrap_or_default() } else { Vec::new() };
    // Of a folder the names count and not the time, which a file that came and went changes.
    // What was put back has a new time.
    let time = if path.ends_with("target") { metadata.mtime() } else { 0 };
    let size = if metadata.is_file() { metadata.size() } else { 0 };
    Some((metadata.mode(), time, size, content))
}

fn furnish(house: &House) {
    let folder = house.folder();
    let git = |arguments: &[&str]| {
        let status = Command::new("git").args(arguments).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(status.expect("git starts").success(), "git {arguments:?}");
    };
    git(&["init", "--quiet", "--template="]);
    fs::create_dir_all(folder.join(".git/hooks")).expect("it is made");
    house.write("file.txt", "text\n");
    house.write(".gitignore", ".env\n");
    git(&["add", "file.txt", ".gitignore"]);
    git(&["-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "first"]);
    house.write(".env", "KEY=env-secret\n");
    house.write(".env.example", "KEY=\n");
    house.write("deploy/id_ed25519", "key-secret\n");
    house.write(".vscode/tasks.json", "{}\n");
    house.write("nested/.git/config", "[core]\n");
    house.write("nested/.git/HEAD", "ref: refs/heads/main\n");
    house.write("nested/.git/hooks/sample", "");
    house.write("worktree/.git", "gitdir: ../.git/worktrees/w\n");
    house.write("named/.git/config", "[core]\n\thooksPath = hooks\n[include]\n\tpath = ../included\n");
    house.write("named/hooks/pre-commit", "");
    house.write("named/included", "");
    house.write("tools/servers.json", "{}\n");
    fs::create_dir(folder.join("linked")).expect("it is made");
    std::os::unix::fs::symlink("../tools/servers.json", folder.join("linked/.mcp.json")).expect("it is made");
}
