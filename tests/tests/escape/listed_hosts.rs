//! Commands that may connect to listed hosts only.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};

use cofferdam_tests::program::{ProgramOutput, TestHome};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

/// Answers every HTTP request with this text. Returns the port.
fn serve(text: &'static str) -> u16 {
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = server.local_addr().expect("it has an address").port();
    std::thread::spawn(move || {
        for mut connection in server.incoming().flatten() {
            let mut head = [0; 4096];
            let _ = connection.read(&mut head);
            let reply = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len());
            let _ = connection.write_all(reply.as_bytes());
        }
    });
    port
}

fn home(config: &str) -> TestHome {
    let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"));
    home.write_file("config/cofferdam/config.toml", config);
    home
}

fn call(home: &TestHome, line: &str) -> ProgramOutput {
    let input = serde_json::json!({"command": line}).to_string();
    home.run(&["tools", "call", "bash", &input, "--mode", "auto"])
}

/// Requests a URL with Python, which uses the proxy of the environment.
fn request(url: &str) -> String {
    format!(
        "PATH=/usr/bin:/bin python3 -c 'import urllib.request as r\ntry: \
            print(r.urlopen(\"{url}\", timeout=10).read().decode())\nexcept Exception as e: \
            print(\"failed:\", e)'"
    )
}

#[test]
fn a_command_reaches_listed_hosts_and_no_others() {
    let (listed, other) = (serve("listed-answer"), serve("other-answer"));
    let home = home(&format!("[commands.network]\nallow = [\"127.0.0.1:{listed}\"]\n"));
    let ran = call(&home, &request(&format!("http://127.0.0.1:{listed}/x")));
    assert!(ran.stdout.contains("listed-answer"), "{ran:?}");
    let ran = call(&home, &request(&format!("http://127.0.0.1:{other}/x")));
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("403") && !said.contains("other-answer"), "{said}");
    let notice = format!(
        "[sandbox] the connection to 127.0.0.1:{other} was refused: it is not in `allow` under \
            [commands.network]"
    );
    assert!(said.contains(&notice), "{said}");
    // Without the proxy, there is nothing to connect to.
    let direct = request(&format!("http://127.0.0.1:{listed}/x")).replace(
        "PATH=",
        "env -u http_proxy \
        -u HTTP_PROXY -u all_proxy -u ALL_PROXY PATH=",
    );
    let ran = call(&home, &direct);
    assert!(ran.stdout.contains("refused") && !ran.stdout.contains("listed-answer"), "{ran:?}");
    // Each connection is in the audit log.
    let log = home.run(&["audit", "show", "--json"]).stdout;
    let expected = format!("\"address\":\"127.0.0.1:{listed}\"");
    assert!(log.contains("\"connections\"") && log.contains(&expected), "{log}");
}

#[test]
fn a_policy_without_network_denies_listed_hosts_and_kernel_has_no_proxy() {
    let port = serve("answer");
    let rules = format!("[commands.network]\nallow = [\"127.0.0.1:{port}\"]\n");
    let closed = home(&rules);
    closed.write_file("config/cofferdam/policy.toml", "[commands]\nnetwork = false\n");
    let kernel = home(&format!("[commands]\nat_most = \"kernel\"\n{rules}"));
    for home in [closed, kernel] {
        let ran = call(&home, &request(&format!("http://127.0.0.1:{port}/x")));
        assert!(ran.stdout.contains("failed:"), "{ran:?}");
        assert!(call(&home, "echo proxy:$http_proxy").stdout.contains("proxy:\n"));
    }
}

#[test]
fn git_clones_through_the_proxy() {
    let served = tempfile::tempdir().expect("a directory");
    let git = |arguments: &[&str]| {
        let ran = std::process::Command::new("git")
            .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
            .args(arguments)
            .current_dir(served.path())
            .output()
            .expect("git starts");
        assert!(ran.status.success(), "git {arguments:?}: {ran:?}");
    };
    git(&["init", "--quiet", "source"]);
    git(&["-C", "source", "commit", "--quiet", "--allow-empty", "-m", "Cloned."]);
    git(&["clone", "--quiet", "--bare", "source", "repository.git"]);
    git(&["-C", "repository.git", "update-server-info"]);
    let mut server = std::process::Command::new("python3")
        .args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "0"])
        .current_dir(served.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("python3 starts");
    let mut line = String::new();
    let output = server.stdout.take().expect("it is a pipe");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("a line");
    let port = line.split(" port ").nth(1).and_then(|rest| rest.split(' ').next()).expect(&line);
    let home = home(&format!("[commands.network]\nallow = [\"127.0.0.1:{port}\"]\n"));
    let clone = format!("git clone --quiet http://127.0.0.1:{port}/repository.git clone");
    let ran = call(&home, &format!("{clone} && git -C clone --no-pager log --format=%s"));
    let _ = server.kill();
    let _ = server.wait();
    assert!(ran.stdout.contains("Cloned."), "{ran:?}");
}
