//! `web_fetch` in the real program, against a real server of this machine.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};

use cofferdam_tests::program::{ProgramOutput, TestHome};
use serde_json::json;

use super::new_home;

/// A server on this machine. It keeps the head of each request.
struct LocalServer {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl LocalServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it has one").port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let heads = Arc::clone(&requests);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                    head.push(byte[0]);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let page = "<title>A page</title><h1>Gr\u{fc}\u{df}e</h1>\
                    <script>no</script><p>See <a href=/more>more</a>.";
                let latin: Vec<u8> =
                    page.chars().map(|c| u8::try_from(c).expect("it is latin")).collect();
                let (head_lines, body) = match head.split(' ').nth(1) {
                    Some("/page") => {
                        ("200 OK\r\ncontent-type: text/html; charset=iso-8859-1", latin)
                    }
                    Some("/moved") => ("302 Found\r\nlocation: /page", Vec::new()),
                    Some("/away") => ("302 Found\r\nlocation: http://10.1.2.3/secret", Vec::new()),
                    Some("/image") => ("200 OK\r\ncontent-type: image/png", vec![0; 64]),
                    Some("/endless") => ("200 OK\r\ncontent-type: text/plain", vec![b'x'; 6 << 20]),
                    _ => ("404 Not Found\r\ncontent-type: text/plain", b"nothing here".to_vec()),
                };
                heads.lock().unwrap_or_else(PoisonError::into_inner).push(head);
                let head =
                    format!("HTTP/1.1 {head_lines}\r\ncontent-length: {}\r\n\r\n", body.len());
                // Whoever has had enough hangs up.
                drop(stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body)));
            }
        });
        Self { port, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// A home whose user lets tools reach it, and allows requests everywhere.
    fn new_home(&self) -> TestHome {
        self.new_home_with_rules(&format!(
            "allow = [\"*\", \"*:80\", \"127.0.0.1:{}\"]\n",
            self.port
        ))
    }

    /// A home whose user lets tools reach it, with these rules about requests.
    fn new_home_with_rules(&self, rules: &str) -> TestHome {
        let home = new_home();
        home.write_file(
            "config/cofferdam/policy.toml",
            format!("[fetch]\nlocal = [\"127.0.0.1:{}\"]\n{rules}", self.port),
        );
        home
    }
}

fn fetch(home: &TestHome, url: &str, args: &[&str]) -> ProgramOutput {
    home.run(&[&["tools", "call", "web_fetch", &json!({"url": url}).to_string()], args].concat())
}

#[test]
fn r122_a_page_is_fetched_as_text() {
    let server = LocalServer::start();
    let home = server.new_home();
    let ran = fetch(&home, &server.url("/moved"), &["--mode", "auto"]);
    let expected = format!(
        "{} (redirected from {})\ntext/html; charset=iso-8859-1\ntitle: A page\n\n# \
            Gr\u{fc}\u{df}e\n\nSee [more]({}).",
        server.url("/page"),
        server.url("/moved"),
        server.url("/more")
    );
    assert_eq!((ran.exit_code, ran.stdout.trim_end()), (0, expected.as_str()), "{ran:?}");
    let seen = server.requests();
    assert!(
        seen[0].starts_with("GET /moved HTTP/1.1\r\n")
            && seen[1].starts_with("GET /page HTTP/1.1\r\n"),
        "{seen:?}"
    );
    assert!(
        seen.iter().all(|head| !head.to_lowercase().contains("cookie")
            && !head.to_lowercase().contains("referer")),
        "{seen:?}"
    );
}

#[test]
fn r122_what_cannot_be_shown_says_why() {
    let server = LocalServer::start();
    let home = server.new_home();
    for (path, expected) in [
        ("/image", "is `image/png`, which this tool cannot convert to text"),
        ("/none", "status 404: the page does not exist"),
    ] {
        let ran = fetch(&home, &server.url(path), &["--mode", "auto"]);
        assert!(
            ran.exit_code != 0 && format!("{}{}", ran.stdout, ran.stderr).contains(expected),
            "{ran:?}"
        );
    }
    let ran = fetch(&home, &server.url("/endless"), &["--mode", "auto"]);
    assert!(ran.exit_code == 0 && ran.stdout.len() < 110_000, "{}", ran.stdout.len());
    assert!(
        ran.stdout.contains("[only the first 5000000 bytes were read]"),
        "{}",
        &ran.stdout[ran.stdout.len() - 300..]
    );
}

#[test]
fn r122_an_address_of_this_machine_is_refused_unless_the_user_names_it() {
    let server = LocalServer::start();
    let ran = fetch(&new_home(), &server.url("/page"), &["--mode", "auto"]);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.exit_code != 0
            && said.contains("denied (not-granted)")
            && said.contains("no permission to send GET requests to 127.0.0.1:"),
        "{ran:?}"
    );
    for url in [
        "http://127.0.0.1/",
        "https://localhost/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
    ] {
        let ran = fetch(&server.new_home(), url, &["--mode", "auto"]);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(
            ran.exit_code != 0
                && said.contains("denied (not-granted)")
                && said.contains(" resolves to "),
            "{url}: {ran:?}"
        );
    }
    assert!(server.requests().is_empty());
}

#[test]
fn r122_each_redirect_is_decided_anew() {
    let server = LocalServer::start();
    let ran = fetch(&server.new_home(), &server.url("/away"), &["--mode", "auto"]);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    let way = format!(
        "denied (not-granted): {} redirects to http://10.1.2.3/secret: ",
        server.url("/away")
    );
    assert!(
        ran.exit_code != 0 && said.contains(&way) && said.contains("which is a private network"),
        "{ran:?}"
    );
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn r041_r122_it_is_asked_and_so_denied_where_nobody_is() {
    let server = LocalServer::start();
    for args in [
        &[][..],
        &["--mode", "auto-edit"],
        &["--mode", "auto"],
        &["--mode", "plan"],
        &["--profile", "read-only"],
    ] {
        let ran = fetch(&server.new_home_with_rules(""), &server.url("/page"), args);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.exit_code != 0 && said.contains("denied (nobody-to-ask)"), "{args:?}: {ran:?}");
    }
    let ran = fetch(&server.new_home(), &server.url("/page"), &["--profile", "locked-down"]);
    assert!(
        ran.exit_code != 0
            && format!("{}{}", ran.stdout, ran.stderr).contains(
                "denies that \
            permission"
            ),
        "{ran:?}"
    );
    assert!(server.requests().is_empty());
    let home = new_home();
    let local = format!("127.0.0.1:{}", server.port);
    home.write_file(
        "config/cofferdam/policy.toml",
        format!(
            "[fetch]\nlocal = [\"{local}\"]\nallow = [{{ pattern = \"{local}\", methods = \
            [\"GET\"] }}]\n"
        ),
    );
    assert_eq!(fetch(&home, &server.url("/page"), &[]).exit_code, 0);
}

#[test]
fn r041_r122_in_mode_auto_a_request_goes_only_where_a_rule_allows_it() {
    let server = LocalServer::start();
    let ran = fetch(&server.new_home_with_rules(""), &server.url("/page"), &["--mode", "auto"]);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    // What is said to be missing is what is missing.
    let rule =
        format!("allow = [{{ pattern = \"127.0.0.1:{}\", methods = [\"GET\"] }}]", server.port);
    assert!(ran.exit_code != 0 && said.contains(&format!("`{rule}` under [fetch]")), "{ran:?}");
    assert!(server.requests().is_empty());
    let home = server.new_home_with_rules(&rule);
    assert_eq!(fetch(&home, &server.url("/page"), &["--mode", "auto"]).exit_code, 0);
    // A rule for one host leaves the others closed, by whatever way one gets there.
    let ran = fetch(&home, &server.url("/away"), &["--mode", "auto"]);
    assert!(ran.exit_code != 0 && server.requests().len() == 2, "{ran:?}");
    let ran = fetch(&home, "https://example.com/?q=secret", &["--mode", "auto"]);
    assert!(
        ran.exit_code != 0
            && format!("{}{}", ran.stdout, ran.stderr).contains("denied (nobody-to-ask)"),
        "{ran:?}"
    );
    // A file that the project brings along opens nothing.
    let home = server.new_home_with_rules("");
    home.write_file(".cofferdam/policy.toml", "[fetch]\nallow = [\"*\", \"*:80\"]\n");
    assert_ne!(fetch(&home, "https://example.com/", &["--mode", "auto"]).exit_code, 0);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn what_each_mode_allows_is_said_with_the_network() {
    let home = new_home();
    let said = home.run(&["doctor"]).stdout;
    for line in [
        "ask (current)        each command, write and HTTP request needs approval",
        "plan                 commands and writes are denied until you accept a plan; HTTP \
            requests need approval",
        "auto-edit            writes are allowed without asking; commands and HTTP requests need \
            approval",
        "auto                 commands and writes are allowed without asking; HTTP requests need \
            approval unless a rule allows the host",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    // And what commands reach that tools do not.
    home.write_file(
        "config/cofferdam/config.toml",
        "mode = \"auto\"\n[commands]\nat_most = \"kernel\"\nnetwork = true\n",
    );
    let said = home.run(&["doctor"]).stdout;
    assert!(said.contains("auto (current)"), "{said}");
    assert!(
        said.contains(
            "in the sandbox `kernel`, WITH the network, and can read .env files and \
        keys in the workspace"
        ),
        "{said}"
    );
}

#[test]
fn policy_explain_knows_what_a_request_needs() {
    let server = LocalServer::start();
    let home = server.new_home();
    let explain = |args: &[&str]| {
        home.run(&[&["policy", "explain", "web_fetch", "--mode", "auto"], args].concat())
    };
    let local = format!("127.0.0.1:{}", server.port);
    for (args, code, says) in [
        (&["--fetch", "docs.rs"][..], 0, "web_fetch: send a GET request to docs.rs: allow"),
        (&["--fetch", &local], 0, ": allow"),
        (&["--fetch", "docs.rs", "--method", "POST"], 1, "which does not cover POST to docs.rs"),
        (&["--fetch", "docs.rs:22"], 1, "which does not cover GET to docs.rs:22"),
        (
            &["--fetch", "10.0.0.1"],
            1,
            "10.0.0.1 is a private network, which needs a permission for exactly this host",
        ),
        (&["--fetch", "10.0.0.1"], 1, "`local = [\"10.0.0.1\"]` under [fetch]"),
        (&["--fetch", "docs.rs:80"], 0, ": allow"),
    ] {
        let ran = explain(args);
        assert!(ran.exit_code == code && ran.stdout.contains(says), "{args:?}: {ran:?}");
    }
    let ran = server.new_home_with_rules("").run(&[
        "policy",
        "explain",
        "web_fetch",
        "--mode",
        "auto",
        "--fetch",
        "docs.rs",
    ]);
    assert!(
        ran.exit_code == 1 && ran.stdout.contains("docs.rs: ask (denied without a terminal)"),
        "{ran:?}"
    );
    let shown = home.run(&["tools", "show", "web_fetch"]);
    assert!(
        shown.stdout.contains(&format!(
            "send HTTP requests to GET *, GET *:80, GET {local}, subject to the policy"
        )),
        "{shown:?}"
    );
}

#[test]
fn r114_a_secret_of_the_configuration_reaches_its_host_and_nothing_else() {
    const SECRET: &str = "tok-very-secret-value";
    let server = LocalServer::start();
    let home = server.new_home();
    let config = format!(
        "[credentials.\"127.0.0.1:{}\"]\nheader = \"Authorization\"\nenv = \"TEST_TOKEN\"\nprefix \
            = \"Bearer \"\n",
        server.port
    );
    home.write_file("config/cofferdam/config.toml", config);
    let input = json!({"url": server.url("/page")}).to_string();
    let ran = home.start({
        let mut command = home.command(&["tools", "call", "web_fetch", &input, "--mode", "auto"]);
        command.env("TEST_TOKEN", SECRET);
        command
    });
    let ran = ran.wait_for_exit();
    assert_eq!(ran.exit_code, 0, "{ran:?}");
    assert!(
        server.requests()[0].contains(&format!("authorization: Bearer {SECRET}\r\n")),
        "{:?}",
        server.requests()
    );
    home.assert_hides_secret(SECRET, &ran);
    let without = fetch(&home, &server.url("/page"), &["--mode", "auto"]);
    assert!(
        without.stderr.contains(
            "are sent without the header `Authorization`: TEST_TOKEN is not \
            set"
        ),
        "{without:?}"
    );
    assert!(!server.requests()[1].to_lowercase().contains("authorization"));
}

#[test]
fn whom_a_call_has_asked_is_on_record() {
    let server = LocalServer::start();
    let home = server.new_home();
    assert_eq!(fetch(&home, &server.url("/moved"), &["--mode", "auto"]).exit_code, 0);
    let records = home.run(&["audit", "show", "--json"]).json_lines();
    let decided: Vec<_> = records
        .iter()
        .filter(|record| record["kind"] == "decided")
        .map(|record| &record["effect"]["url"])
        .collect();
    assert_eq!(decided, [&json!(server.url("/moved")), &json!(server.url("/page"))]);
    let ended = records.iter().find(|record| record["kind"] == "ended").expect("it ended");
    let local = format!("127.0.0.1:{}", server.port);
    let sent =
        |status: u16| json!({"method": "GET", "host": local, "address": local, "status": status});
    assert_eq!(ended["contacted"], json!({"requests": [sent(302), sent(200)], "more": 0}));
    let shown = home.run(&["audit", "show"]).stdout;
    assert!(
        shown.contains(&format!(
            "sent GET to {local} at {local}: 302; sent GET to {local} at {local}: 200"
        )),
        "{shown}"
    );
}
