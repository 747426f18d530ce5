//! Commands that may connect to listed hosts only.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};

use cofferdam_tests::program::{ProgramOutput, TestHome};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

/// Answers every HTTP request with this text. Returns the port.
pub(crate) fn serve(text: &'static str) -> u16 {
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

pub(crate) fn home(config: &str) -> TestHome {
    let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"));
    home.write_file("config/cofferdam/config.toml", config);
    home
}

pub(crate) fn call(home: &TestHome, line: &str) -> ProgramOutput {
    let input = serde_json::json!({"command": line}).to_string();
    home.run(&["tools", "call", "bash", &input, "--mode", "auto"])
}

/// Requests a URL with Python, which uses the proxy of the environment.
pub(crate) fn request(url: &str) -> String {
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
        "[sandbox] the connection to 127.0.0.1:{other} was refused: bash may not connect to \
            127.0.0.1:{other}: the `allow` list of [commands.network] at "
    );
    let remedy = format!(
        "config.toml:1:1 does not contain it. The user can allow it in their policy file: `allow = \
            [\"127.0.0.1:{other}\"]` under [commands.network]."
    );
    assert!(said.contains(&notice) && said.contains(&remedy), "{said}");
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
fn policy_files_open_hosts_and_bound_the_configuration() {
    let port = serve("policy-answer");
    let allow = format!("[commands.network]\nallow = [\"127.0.0.1:{port}\"]\n");
    let deny = "[commands.network]\ndeny = [\"127.0.0.1\"]\n";
    let only_others = "[commands.network]\nallow = [\"docs.rs\"]\n";
    // The configuration, the user's policy, the file of the untrusted project, and the result.
    for (config, user, project, is_reached) in [
        ("", allow.as_str(), "", true),
        (allow.as_str(), only_others, "", true),
        (allow.as_str(), deny, "", false),
        (allow.as_str(), "", deny, false),
        (allow.as_str(), "", only_others, false),
        ("", "", allow.as_str(), false),
        ("", allow.as_str(), "[commands]\nnetwork = false\n", false),
        ("[commands]\nnetwork = false\n", allow.as_str(), "", false),
        ("[commands]\nnetwork = true\n", only_others, "", false),
        ("[commands.network]\nunlisted = \"ask\"\n", "", "", false),
    ] {
        let home = home(config).with_file(".cofferdam/policy.toml", project);
        home.write_file("config/cofferdam/policy.toml", user);
        let ran = call(&home, &request(&format!("http://127.0.0.1:{port}/")));
        let case = format!("{config:?} {user:?} {project:?}: {ran:?}");
        assert_eq!(ran.stdout.contains("policy-answer"), is_reached, "{case}");
        let host = format!("127.0.0.1:{port}");
        let explained = home.run(&["policy", "explain", "bash", "--connect", &host]);
        assert_eq!(explained.exit_code == 0, is_reached, "{case}\n{explained:?}");
    }
}

#[test]
fn the_policy_in_force_shows_its_hosts() {
    let home = home("[commands.network]\nallow = [\"docs.rs\"]\n");
    home.write_file(
        "config/cofferdam/policy.toml",
        "[commands.network]\nallow = [\"example.com:22\"]\nunlisted = \"ask\"\n",
    );
    let shown = home.run(&["policy", "show"]).stdout;
    for part in [
        "allow [commands.network] example.com:22  (",
        "[commands.network] unlisted: ask  (",
        "commands.network = listed hosts  (",
        "commands.network allow: docs.rs  (",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let checked = home.run(&["policy", "check"]);
    assert_eq!(checked.exit_code, 0, "{checked:?}");
    home.write_file("config/cofferdam/policy.toml", "[commands.network]\nallow = [\"*.com\"]\n");
    let checked = home.run(&["policy", "check"]);
    let said = format!("{}{}", checked.stdout, checked.stderr);
    assert!(checked.exit_code == 78 && said.contains("policy.toml:2:10"), "{said}");
    let explained = home.run(&["policy", "explain", "bash", "--connect", "example.com:22"]);
    assert_eq!(explained.exit_code, 78, "{explained:?}");
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

#[test]
fn presets_allow_the_hosts_that_the_users_own_clients_know() {
    let port = serve("preset-answer");
    let index = ".cargo/registry/index/index.example.com-0123456789abcdef/config.json";
    let home = home("[commands.network]\npresets = [\"rust\", \"debian\"]\n")
        .with_file(".cargo/config.toml", "[registries.x]\nindex = \"https://evil.example.org/\"\n");
    home.write_file(index, format!("{{\"dl\": \"http://127.0.0.1:{port}/crates\"}}"));
    let doctor = home.run(&["doctor"]).stdout;
    let show = home.run(&["policy", "show"]).stdout;
    for host in ["index.example.com".to_owned(), format!("127.0.0.1:{port}")] {
        assert!(doctor.contains(&format!("{host} (")), "{doctor}");
        assert!(
            show.contains(&format!("commands.network allow: {host}  (preset rust, ")),
            "{show}"
        );
    }
    assert!(doctor.contains("preset rust") && doctor.contains("preset debian"), "{doctor}");
    assert!(!doctor.contains("evil") && !show.contains("evil"), "{doctor}{show}");
    let ran = call(&home, &request(&format!("http://127.0.0.1:{port}/")));
    assert!(ran.stdout.contains("preset-answer"), "{ran:?}");
    let other = self::home("[commands.network]\npresets = [\"rust\", \"go\"]\n");
    let doctor = other.run(&["doctor"]).stdout;
    assert!(doctor.contains("NO HOST found: run `cargo search"), "{doctor}");
    let wrong = self::home("[commands.network]\npresets = [\"perl\"]\n").run(&["doctor"]);
    let said = format!("{}{}", wrong.stdout, wrong.stderr);
    assert!(wrong.exit_code == 78 && said.contains("config.toml:2:12"), "{said}");
}
