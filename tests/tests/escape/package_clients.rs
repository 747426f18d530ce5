//! Package managers and git at the proxy: they work unchanged with one listed host, and reach
//! nothing without it. The servers are on this machine and speak the true protocols.

use std::fs;
use std::io::BufRead as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use cofferdam_tests::prerequisites;
use cofferdam_tests::program::ProgramOutput;

use super::listed_hosts::{call, home};

/// Serves the files of a directory over HTTP, or over HTTPS with a certificate.
struct PackageServer {
    process: Child,
    port: u16,
    directory: tempfile::TempDir,
    /// Directories that the commands may read.
    read: Vec<String>,
}

const HTTPS_SERVER: &str = "import http.server, ssl\n\
    files = http.server.SimpleHTTPRequestHandler\n\
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), files)\n\
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n\
    context.load_cert_chain('../tls/cert.pem', '../tls/key.pem')\n\
    server.socket = context.wrap_socket(server.socket, server_side=True)\n\
    print('HTTPS port', server.server_port, '.', flush=True)\n\
    server.serve_forever()\n";

impl PackageServer {
    fn http() -> Self {
        Self::start(&["-u", "-m", "http.server", "--bind", "127.0.0.1", "0"])
    }

    /// Serves `served` with the certificate in `tls`, which is for `localhost`.
    fn https() -> Self {
        Self::start(&["-c", HTTPS_SERVER])
    }

    fn start(arguments: &[&str]) -> Self {
        prerequisites::require();
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("served")).expect("it is made");
        fs::create_dir(directory.path().join("tls")).expect("it is made");
        run_in(
            &directory.path().join("tls"),
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
                -keyout key.pem -out cert.pem -subj /CN=localhost -addext \
                subjectAltName=DNS:localhost",
        );
        let mut process = Command::new("python3")
            .args(arguments)
            .current_dir(directory.path().join("served"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("python3 starts");
        let mut line = String::new();
        let output = process.stdout.take().expect("it is a pipe");
        std::io::BufReader::new(output).read_line(&mut line).expect("a line");
        let port = line.split(" port ").nth(1).and_then(|rest| rest.split(' ').next());
        let port = port.and_then(|port| port.parse().ok()).expect(&line);
        Self { process, port, directory, read: Vec::new() }
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.directory.path().join("served").join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("it is made");
        fs::write(path, text).expect("it is written");
    }

    /// Runs a line in the served directory, outside any sandbox. Returns its output.
    fn run(&self, line: &str) -> String {
        run_in(&self.directory.path().join("served"), line)
    }

    /// Runs a line in a sandbox that may connect to this server only.
    fn call(&self, line: &str) -> ProgramOutput {
        let port = self.port;
        self.call_with(&format!("\"127.0.0.1:{port}\", \"localhost:{port}\""), line)
    }

    /// Runs a line in a sandbox that may connect to another port of this machine.
    fn call_elsewhere(&self, line: &str) -> ProgramOutput {
        self.call_with("\"127.0.0.1:1\"", line)
    }

    fn call_with(&self, hosts: &str, line: &str) -> ProgramOutput {
        let read = format!("[commands]\nread = {:?}\n", self.read);
        call(&home(&format!("{read}[commands.network]\nallow = [{hosts}]\n")), line)
    }

    /// Checks that a line prints this text with the server, and is refused without it.
    fn assert_needs_host(&self, line: &str, text: &str) {
        let ran = self.call(line);
        assert!(ran.stdout.contains(text), "{ran:?}");
        let refused = self.call_elsewhere(line);
        let said = format!("{}{}", refused.stdout, refused.stderr);
        assert!(!refused.stdout.contains(text), "{refused:?}");
        assert!(said.contains(&format!(":{} was refused", self.port)), "{said}");
    }
}

impl Drop for PackageServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn run_in(directory: &Path, line: &str) -> String {
    let ran = Command::new("bash").args(["-ec", line]).current_dir(directory).output();
    let ran = ran.expect("bash starts");
    assert!(ran.status.success(), "{line}: {ran:?}");
    String::from_utf8(ran.stdout).expect("it is text")
}

#[test]
fn cargo_adds_and_builds_a_package_of_a_sparse_registry() {
    let mut server = PackageServer::http();
    // The home directory of the test has no toolchain.
    let toolchain = server.run("rustc --print sysroot").trim().to_owned();
    server.read.push(toolchain.clone());
    let base = format!("http://127.0.0.1:{}", server.port);
    server.write(
        "tiny-0.1.0/Cargo.toml",
        "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    );
    server.write("tiny-0.1.0/src/lib.rs", "pub const TEXT: &str = \"from-cargo\";\n");
    let digest = server.run(
        "mkdir crates; tar czf crates/tiny-0.1.0.crate tiny-0.1.0; sha256sum \
            crates/tiny-0.1.0.crate | cut -d' ' -f1",
    );
    let dl = format!("{{\"dl\": \"{base}/crates/{{crate}}-{{version}}.crate\"}}");
    server.write("index/config.json", dl);
    server.write(
        "index/ti/ny/tiny",
        format!(
            "{{\"name\":\"tiny\",\"vers\":\"0.1.0\",\"deps\":[],\"cksum\":\"{}\",\
                \"features\":{{}},\"yanked\":false}}\n",
            digest.trim()
        ),
    );
    let line = format!(
        "export PATH={toolchain}/bin:$PATH CARGO_REGISTRIES_LOCAL_INDEX=sparse+{base}/index/\n\
            cargo init --quiet --vcs none --name app . && cargo add --quiet --registry local tiny \
            && echo 'fn main() {{ println!(\"{{}}\", tiny::TEXT) }}' > src/main.rs && cargo build \
            --quiet && ./target/debug/app"
    );
    server.assert_needs_host(&line, "from-cargo");
}

/// Makes a package for pip.
const MAKE_WHEEL: &str = r#"
import zipfile
info = "tiny-1.0.dist-info/"
files = {
    "tiny.py": "text = 'from-pip'\n",
    info + "METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
    info + "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
files[info + "RECORD"] = "".join(name + ",,\n" for name in [*files, info + "RECORD"])
with zipfile.ZipFile("simple/tiny/tiny-1.0-py3-none-any.whl", "w") as wheel:
    for name, text in files.items():
        wheel.writestr(name, text)
"#;

#[test]
fn pip_installs_a_package_of_a_simple_index() {
    let server = PackageServer::http();
    server.write("make_wheel.py", MAKE_WHEEL);
    server.run("mkdir -p simple/tiny; /usr/bin/python3 make_wheel.py");
    server.write(
        "simple/tiny/index.html",
        "<!DOCTYPE html><a href=\"tiny-1.0-py3-none-any.whl\">tiny-1.0-py3-none-any.whl</a>",
    );
    let line = format!(
        "export PATH=/usr/bin:/bin; python3 -m pip install --quiet --disable-pip-version-check \
            --retries 0 --index-url http://127.0.0.1:{}/simple/ --target lib tiny && \
            PYTHONPATH=lib python3 -c 'import tiny; print(tiny.text)'",
        server.port
    );
    server.assert_needs_host(&line, "from-pip");
}

#[test]
fn npm_installs_a_package_of_a_registry() {
    let server = PackageServer::http();
    let base = format!("http://127.0.0.1:{}", server.port);
    server.write("package/package.json", "{\"name\": \"tiny\", \"version\": \"1.0.0\"}");
    server.write("package/index.js", "module.exports = 'from-npm'\n");
    let digest = server.run(
        "mkdir files; tar czf files/tiny-1.0.0.tgz package; sha1sum files/tiny-1.0.0.tgz | cut -d' \
            ' -f1",
    );
    server.write(
        "registry/tiny",
        format!(
            "{{\"name\": \"tiny\", \"dist-tags\": {{\"latest\": \"1.0.0\"}}, \"versions\": \
                {{\"1.0.0\": {{\"name\": \"tiny\", \"version\": \"1.0.0\", \"dist\": \
                {{\"tarball\": \"{base}/files/tiny-1.0.0.tgz\", \"shasum\": \"{}\"}}}}}}}}",
            digest.trim()
        ),
    );
    let line = format!(
        "npm install --no-audit --no-fund --no-update-notifier --fetch-retries 0 --registry \
            {base}/registry/ tiny && node -p 'require(\"tiny\")'"
    );
    server.assert_needs_host(&line, "from-npm");
}

/// Makes a bare repository with one commit, whose message is the text.
const REPOSITORY: &str = "git init --quiet source; git -C source -c user.name=A -c \
    user.email=a@example.org commit --quiet --allow-empty -m from-git; git clone --quiet --bare \
    source repository.git; git -C repository.git update-server-info";

#[test]
fn git_clones_over_https_and_the_proxy_does_not_read_it() {
    let server = PackageServer::https();
    server.run(REPOSITORY);
    let certificate =
        fs::read_to_string(server.directory.path().join("tls/cert.pem")).expect("it is there");
    let line = format!(
        "cat > ca.crt << 'END'\n{certificate}END\ngit -c http.sslCAInfo=$PWD/ca.crt clone --quiet \
            https://localhost:{}/repository.git clone && git -C clone --no-pager log --format=%s",
        server.port
    );
    server.assert_needs_host(&line, "from-git");
    // The server name of TLS is another one than the host of the tunnel.
    let other = format!(
        "curl --silent --show-error --insecure --connect-to example.com:443:localhost:{} \
            https://example.com/ || echo curl-failed",
        server.port
    );
    let ran = server.call(&other);
    assert!(ran.stdout.contains("curl-failed"), "{ran:?}");
    let said = format!("{}{}", ran.stdout, ran.stderr);
    let refused = "the server name of TLS is not the host that it asked for";
    assert!(said.contains(refused), "{said}");
}

/// A server for SSH on this machine, with the keys of one user.
struct SshServer {
    process: Child,
    port: u16,
    /// The keys of the user, and the known hosts.
    keys: tempfile::TempDir,
    _settings: tempfile::TempDir,
}

impl SshServer {
    fn start() -> Self {
        prerequisites::require();
        let (keys, settings) =
            (tempfile::tempdir().expect("made"), tempfile::tempdir().expect("made"));
        let port = std::net::TcpListener::bind(("127.0.0.1", 0))
            .and_then(|listener| listener.local_addr())
            .expect("a port")
            .port();
        run_in(keys.path(), "ssh-keygen -q -t ed25519 -N '' -f user");
        run_in(
            settings.path(),
            &format!(
                "ssh-keygen -q -t ed25519 -N '' -f host; cp {keys}/user.pub allowed; echo \
                    \"[127.0.0.1]:{port} $(cut -d' ' -f1,2 host.pub)\" > {keys}/known",
                keys = keys.path().display()
            ),
        );
        let directory = settings.path().display();
        let text = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {directory}/host\nAuthorizedKeysFile \
                {directory}/allowed\nPidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin \
                yes\nPasswordAuthentication no\n"
        );
        fs::write(settings.path().join("config"), text).expect("it is written");
        if rustix::process::geteuid().is_root() {
            // The directory for the separation of privileges, which the package's service makes.
            fs::create_dir_all("/run/sshd").expect("it is made");
        }
        let process = Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f"])
            .arg(settings.path().join("config"))
            .stderr(Stdio::null())
            .spawn()
            .expect("sshd starts");
        cofferdam_tests::program::wait_until("sshd listens", || {
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Self { process, port, keys, _settings: settings }
    }
}

impl Drop for SshServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn git_clones_over_ssh_with_a_key_in_an_opened_directory() {
    let server = SshServer::start();
    let served = tempfile::tempdir().expect("a directory");
    run_in(served.path(), REPOSITORY);
    let user = run_in(served.path(), "id -un");
    let (keys, port) = (server.keys.path().display(), server.port);
    let line = format!(
        "GIT_SSH_COMMAND=\"$GIT_SSH_COMMAND -i {keys}/user -o IdentitiesOnly=yes -o \
            UserKnownHostsFile={keys}/known\" git clone --quiet \
            ssh://{}@127.0.0.1:{port}{}/repository.git clone && git -C clone --no-pager log \
            --format=%s",
        user.trim(),
        served.path().display()
    );
    let config = |port: u16| {
        format!(
            "[commands]\nread = [\"{keys}\"]\n[commands.network]\nallow = [\"127.0.0.1:{port}\"]\n"
        )
    };
    let ran = call(&home(&config(port)), &line);
    assert!(ran.stdout.contains("from-git"), "{ran:?}");
    let refused = call(&home(&config(1)), &line);
    let said = format!("{}{}", refused.stdout, refused.stderr);
    assert!(!refused.stdout.contains("from-git"), "{refused:?}");
    assert!(said.contains(&format!("cofferdam: no connection to 127.0.0.1:{port}")), "{said}");
}

/// Tries every way out besides the proxy: UDP, TCP without the proxy, and other families.
const OTHER_WAYS: &str = r#"
import socket, sys
port, own = int(sys.argv[1]), sys.argv[2]
def attempt(name, family, kind, address, protocol=0):
    try:
        s = socket.socket(family, kind, protocol)
        s.settimeout(2)
        if kind == socket.SOCK_DGRAM:
            s.sendto(b"escaped", address)
            s.recvfrom(10)
        else:
            s.connect(address)
        print(name, "REACHED")
    except Exception as error:
        print(name, "failed:", error)
inet, inet6 = socket.AF_INET, socket.AF_INET6
udp, tcp = socket.SOCK_DGRAM, socket.SOCK_STREAM
attempt("udp loopback", inet, udp, ("127.0.0.1", port))
attempt("udp own address", inet, udp, (own, port))
attempt("udp public", inet, udp, ("192.0.2.1", 443))
attempt("udp quic to the proxy", inet, udp, ("127.0.0.1", 3128))
attempt("udp broadcast", inet, udp, ("255.255.255.255", port))
attempt("udp multicast", inet, udp, ("224.0.0.251", 5353))
attempt("udp name server", inet, udp, ("127.0.0.53", 53))
attempt("udp ipv6", inet6, udp, ("::1", port))
attempt("udp ipv6 public", inet6, udp, ("2001:db8::1", 443))
attempt("tcp loopback", inet, tcp, ("127.0.0.1", port))
attempt("tcp own address", inet, tcp, (own, port))
attempt("tcp public", inet, tcp, ("192.0.2.1", 443))
attempt("tcp ipv6", inet6, tcp, ("::1", port))
attempt("raw", inet, socket.SOCK_RAW, ("127.0.0.1", 0), 1)
attempt("sctp", inet, socket.SOCK_SEQPACKET, ("127.0.0.1", port), 132)
attempt("vsock", 40, tcp, (2, port))
attempt("abstract", socket.AF_UNIX, tcp, "\0cofferdam-test-" + str(port))
try:
    socket.getaddrinfo("example.com", 443)
    print("name REACHED")
except Exception as error:
    print("name failed:", error)
"#;

#[test]
fn nothing_but_the_proxy_leads_out() {
    let udp = std::net::UdpSocket::bind(("0.0.0.0", 0)).expect("a socket");
    let port = udp.local_addr().expect("it has an address").port();
    let _tcp = std::net::TcpListener::bind(("0.0.0.0", port)).expect("a socket");
    udp.set_nonblocking(true).expect("it is set");
    let own = run_in(Path::new("/"), "hostname -I 2>/dev/null | cut -d' ' -f1 || true");
    let own = if own.trim().is_empty() { "127.0.0.1" } else { own.trim() };
    let rules = format!("[commands.network]\nallow = [\"127.0.0.1:{port}\", \"{own}:{port}\"]\n");
    let home = home(&rules).with_file("ways.py", OTHER_WAYS);
    let line = format!("PATH=/usr/bin:/bin python3 ways.py {port} {own}");
    let ran = call(&home, &line);
    assert_eq!(ran.stdout.matches(" failed: ").count(), 18, "{ran:?}");
    assert!(!ran.stdout.contains("REACHED"), "{ran:?}");
    let mut bytes = [0; 16];
    let received = udp.recv_from(&mut bytes);
    assert!(received.is_err(), "{received:?}");
}
