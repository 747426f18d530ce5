//! A server over HTTPS with a certificate authority of the test.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::scripted::ScriptedUser;

const SERVER: &str = include_str!("tls_server.py");

struct TlsServer {
    child: Child,
    port: u16,
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn openssl(directory: &Path, args: &[&str]) {
    let made = Command::new("openssl").args(args).current_dir(directory).output();
    let made = made.expect("openssl is there");
    assert!(made.status.success(), "{made:?}");
}

/// Makes an authority, and a certificate of it for this name.
fn make_certificates(directory: &Path, name: &str) {
    let extensions = format!("subjectAltName={name}\nbasicConstraints=critical,CA:FALSE\n");
    std::fs::write(directory.join("extensions"), extensions).expect("it is written");
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    let authority = ["req", "-x509", "-days", "2", "-subj", "/CN=Test", "-keyout", "ca.key"];
    let constraints = ["-out", "ca.pem", "-addext", "basicConstraints=critical,CA:TRUE"];
    openssl(directory, &[&authority[..], &constraints[..], &key[..]].concat());
    let request = ["req", "-subj", "/CN=server", "-keyout", "server.key", "-out", "server.csr"];
    openssl(directory, &[&request[..], &key[..]].concat());
    let sign = ["x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key"];
    let options = ["-days", "2", "-extfile", "extensions", "-out", "server.pem"];
    openssl(directory, &[&sign[..], &options[..]].concat());
    let read = |file: &str| std::fs::read_to_string(directory.join(file)).expect("it is there");
    std::fs::write(directory.join("both.pem"), read("server.pem") + &read("server.key"))
        .expect("it is written");
}

fn start(directory: &Path) -> TlsServer {
    std::fs::write(directory.join("server.py"), SERVER).expect("it is written");
    let mut child = Command::new("/usr/bin/python3")
        .args(["server.py", "both.pem"])
        .current_dir(directory)
        .stdout(Stdio::piped())
        .spawn()
        .expect("python starts");
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    output.read_line(&mut line).expect("it is text");
    TlsServer { child, port: line.trim().parse().expect("a port") }
}

#[test]
fn a_server_over_https_needs_a_certificate_that_the_system_trusts() {
    let user = ScriptedUser::new();
    let directory = user.home.path().join("tls");
    std::fs::create_dir(&directory).expect("it is made");
    make_certificates(&directory, "IP:127.0.0.1");
    let server = start(&directory);
    let run = |args: &[&str], is_trusted: bool| {
        let mut command = user.home.command(args);
        if is_trusted {
            command.env("SSL_CERT_FILE", directory.join("ca.pem"));
        }
        let output = command.output().expect("it runs");
        let text = [&output.stdout[..], &output.stderr[..]].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    let url = format!("https://127.0.0.1:{}/mcp", server.port);
    let add = ["mcp", "add", "s", "--yes", "--url", &url];
    let refused = run(&add, false);
    assert_eq!(refused.0, Some(1), "{refused:?}");
    assert!(refused.1.contains("certificate"), "{refused:?}");
    let added = run(&add, true);
    assert_eq!(added.0, Some(0), "{added:?}");
    let call = ["tools", "call", "s/echo", "{}", "--mode", "auto"];
    let called = run(&call, true);
    assert!(called.1.contains("encrypted"), "{called:?}");
    // The certificate is for another name.
    let other = format!("https://localhost:{}/mcp", server.port);
    let refused = run(&["mcp", "add", "t", "--yes", "--url", &other], true);
    assert_eq!(refused.0, Some(1), "{refused:?}");
    assert!(refused.1.contains("certificate"), "{refused:?}");
}
