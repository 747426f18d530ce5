//! Logins to servers over HTTP: a real login server, a browser, and servers that lie.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::login_server::{LoginKnobs, LoginServers, browse, parameters};

const LOGIN: [&str; 3] = ["mcp", "login", "s"];
const TOKENS: &str = "state/cofferdam/mcp-logins";

#[test]
fn a_user_logs_in_and_only_the_server_gets_the_token() {
    let servers = LoginServers::start();
    let home = &servers.user.home;
    let refused = home.run(&["mcp", "add", "s", "--yes"]);
    assert_eq!(refused.exit_code, 1, "{refused:?}");
    assert!(refused.stderr.contains("log in with `cofferdam mcp login s`"), "{refused:?}");
    let login = servers.begin(&LOGIN);
    let (_, query) = login.url.split_once('?').expect("a query");
    let asked = parameters(query);
    assert_eq!(asked["resource"], servers.server.url());
    assert_eq!((&*asked["scope"], &*asked["client_id"]), ("call", "client-1"));
    let (status, page) = login.visit();
    assert!(status == 200 && page.contains("The login is complete"), "{page}");
    assert!(page.contains("default-src 'none'"), "{page}");
    let (code, text) = login.finish();
    assert_eq!(code, Some(0), "{text}");
    let issuer = format!("http://{}", servers.login.address);
    assert!(text.contains(&format!("Logged in to s at {issuer}, with the scopes call.")), "{text}");
    // Only the owner can read the tokens.
    let directory = home.path().join(TOKENS);
    let mode = |path: &std::path::Path| fs::metadata(path).expect("it is there").mode() & 0o777;
    assert_eq!((mode(&directory), mode(&directory.join("s.json"))), (0o700, 0o600));
    let added = home.run(&["mcp", "add", "s", "--yes"]);
    assert_eq!(added.exit_code, 0, "{added:?}");
    servers.user.begin("auto").assert_usable();
    let token = servers.valid_tokens().pop().expect("a token");
    let bearer = format!("Bearer {token}");
    let requests = servers.server.requests();
    assert!(requests.iter().any(|request| request.header("authorization") == Some(&bearer)));
    for request in servers.login.requests() {
        assert_eq!(request.header("authorization"), None);
        assert!(!request.text().contains(&token));
    }
    for output in [&text, &added.stdout, &added.stderr] {
        assert!(!output.contains("access-token") && !output.contains("refresh-token"), "{output}");
    }
    // A program of the sandbox cannot read them.
    let read = home.run(&["tools", "call", "read_file", "{\"path\": \"../state\"}"]);
    assert_ne!(read.exit_code, 0, "{read:?}");
    // Without the tokens, there is nothing to send.
    let logout = home.run(&["mcp", "logout", "s"]);
    assert_eq!(logout.exit_code, 0, "{logout:?}");
    assert!(!directory.join("s.json").exists());
    assert_eq!(home.run(&["mcp", "logout", "s"]).exit_code, 1);
    assert_eq!(home.run(&["mcp", "logout", "../s"]).exit_code, 78);
    let problem = servers.user.begin("auto").error("echo", json!({}));
    assert!(problem.contains("it demands authentication"), "{problem}");
}

#[test]
fn a_server_is_added_with_its_login_in_one_step() {
    let servers = LoginServers::start();
    let url = servers.server.url();
    servers.user.home.write_file("config/cofferdam/config.toml", "");
    let args =
        ["mcp", "add", "t", "--yes", "--url", &url, "--login", "--scope", "one", "--scope", "two"];
    let login = servers.begin(&args);
    let (_, query) = login.url.split_once('?').expect("a query");
    assert_eq!(parameters(query)["scope"], "one two");
    login.visit();
    let (code, text) = login.finish();
    assert_eq!(code, Some(0), "{text}");
    let config = fs::read_to_string(servers.user.home.path().join("config/cofferdam/config.toml"));
    assert!(config.expect("it is there").contains("scopes = [\"one\", \"two\"]"));
    let removed = servers.user.home.run(&["mcp", "remove", "t"]);
    assert_eq!(removed.exit_code, 0, "{removed:?}");
    assert!(!servers.user.home.path().join(TOKENS).join("t.json").exists());
}

#[test]
fn tokens_are_refreshed_before_they_expire_and_when_they_are_rejected() {
    let servers = LoginServers::start();
    servers.turn(LoginKnobs { lifetime: Some(1), ..LoginKnobs::default() });
    let (code, text) = servers.log_in(&LOGIN);
    assert_eq!(code, Some(0), "{text}");
    let added = servers.user.home.run(&["mcp", "add", "s", "--yes"]);
    assert_eq!(added.exit_code, 0, "{added:?}");
    assert!(servers.valid_tokens().len() > 1, "the token was refreshed before its end");
    servers.turn(LoginKnobs::default());
    let mut session = servers.user.begin("auto");
    session.assert_usable();
    let before = servers.valid_tokens();
    // The server knows the token no more, whatever its lifetime was.
    servers.revoke();
    session.assert_usable();
    let after = servers.valid_tokens();
    assert!(after.len() == 1 && !before.contains(&after[0]), "{before:?} {after:?}");
    // Another program uses the new token, which is in the file.
    servers.user.begin("auto").assert_usable();
    assert_eq!(servers.valid_tokens(), after);
    servers.revoke();
    servers.end_logins();
    let problem = session.error("echo", json!({}));
    assert!(problem.contains("the login has ended: invalid_grant"), "{problem}");
    assert!(problem.contains("run `cofferdam mcp login s`"), "{problem}");
    assert!(!problem.contains("-token-"), "{problem}");
}

#[test]
fn a_token_is_bound_to_the_url_of_its_server() {
    let servers = LoginServers::start();
    let (code, text) = servers.log_in(&LOGIN);
    assert_eq!(code, Some(0), "{text}");
    let thief = crate::http_script::HttpScript::well_behaved();
    servers.user.home.write_file(
        "config/cofferdam/config.toml",
        format!("[mcp.servers.s]\nurl = \"{}\"\n", thief.url()),
    );
    let added = servers.user.home.run(&["mcp", "add", "s", "--yes"]);
    assert_eq!(added.exit_code, 0, "{added:?}");
    servers.user.begin("auto").assert_usable();
    let requests = thief.requests();
    assert!(!requests.is_empty());
    assert!(requests.iter().all(|request| request.header("authorization").is_none()));
    // A file that others can read is not used either.
    let file = servers.user.home.path().join(TOKENS).join("s.json");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    fs::set_permissions(&file, open).expect("it is ours");
    servers.user.home.write_file(
        "config/cofferdam/config.toml",
        format!("[mcp.servers.s]\nurl = \"{}\"\n", servers.server.url()),
    );
    let inspected = servers.user.home.run(&["mcp", "inspect", "s"]);
    assert!(inspected.stderr.contains("readable by other users"), "{inspected:?}");
}

#[test]
fn only_the_browser_that_got_the_url_ends_a_login() {
    let servers = LoginServers::start();
    let login = servers.begin(&LOGIN);
    let (_, query) = login.url.split_once('?').expect("a query");
    let asked = parameters(query);
    let callback = &asked["redirect_uri"];
    let issuer = format!("iss=http%3A%2F%2F{}", servers.login.address);
    for query in [
        "code=evil".to_owned(),
        format!("code=evil&state=wrong&{issuer}"),
        format!("code=evil&state=&{issuer}"),
        format!("error=access_denied&state=wrong&{issuer}"),
        format!("code=evil&state={0}&state={0}&{issuer}", asked["state"]),
    ] {
        let (status, page) = browse(&format!("{callback}?{query}"));
        assert!(status == 404 && !page.contains("evil"), "{page}");
    }
    assert_eq!(login.visit().0, 200);
    let (code, text) = login.finish();
    assert_eq!(code, Some(0), "{text}");
    // Each login has a state and a verifier of its own.
    let again = servers.begin(&LOGIN);
    let (_, query) = again.url.split_once('?').expect("a query");
    let second = parameters(query);
    assert_ne!(asked["state"], second["state"]);
    assert_ne!(asked["code_challenge"], second["code_challenge"]);
    again.visit();
    assert_eq!(again.finish().0, Some(0));
}

/// A name, what the servers do, and what the error says.
fn hostile_logins(issuer: &str) -> Vec<(&'static str, LoginKnobs, &'static str)> {
    let base = LoginKnobs::default;
    let resource = |resource: Value| LoginKnobs { resource, ..base() };
    let metadata = |issuer: Value| LoginKnobs { issuer, ..base() };
    let answered = |answered: Value| LoginKnobs { answered, ..base() };
    let tokens = |tokens: Value| LoginKnobs { tokens, ..base() };
    let challenge = |text: &str| LoginKnobs { challenge: Some(text.to_owned()), ..base() };
    let raw = |path: &'static str, text: String| LoginKnobs { raw: Some((path, text)), ..base() };
    let redirect =
        |target: &str| format!("HTTP/1.1 302 S\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n");
    let large = format!(
        "HTTP/1.1 200 S\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n\"{}",
        "x".repeat(300 << 10)
    );
    let authorization = "/.well-known/oauth-authorization-server";
    let with = |path: &str| format!("{issuer}{path}");
    vec![
        (
            "another audience",
            resource(json!({"resource": "https://mcp.example.com/mcp"})),
            "is for another server, `https://mcp.example.com/mcp`",
        ),
        ("no audience", resource(json!({"resource": null})), "is for another server"),
        (
            "no login server",
            resource(json!({"authorization_servers": []})),
            "names no login server",
        ),
        (
            "a login server without encryption",
            resource(json!({"authorization_servers": ["http://login.example.com"]})),
            "would not be encrypted",
        ),
        (
            "a login server at the metadata service",
            resource(json!({"authorization_servers": ["https://169.254.169.254"]})),
            "cloud metadata",
        ),
        (
            "a login server in a private network",
            resource(json!({"authorization_servers": ["https://10.0.0.5"]})),
            "a private network",
        ),
        (
            "a login server that is no URL",
            resource(json!({"authorization_servers": ["\u{1b}[2J"]})),
            "cannot use the login server",
        ),
        (
            "a login server with a user name",
            resource(json!({"authorization_servers": ["https://a@b.com"]})),
            "a user name",
        ),
        (
            "metadata at another origin",
            challenge("Bearer resource_metadata=\"http://127.0.0.1:9/x\""),
            "at another origin",
        ),
        (
            "metadata that is no URL",
            challenge("Bearer resource_metadata=\"file:///etc/passwd\""),
            "invalid metadata",
        ),
        (
            "no login server there",
            raw(authorization, "HTTP/1.1 404 S\r\ncontent-length: 0\r\n\r\n".into()),
            "it has no metadata",
        ),
        (
            "metadata that redirects",
            raw(authorization, redirect("http://127.0.0.1:9/")),
            "redirects are not followed",
        ),
        ("metadata without end", raw(authorization, large.clone()), "a response of more than"),
        (
            "another issuer",
            metadata(json!({"issuer": "https://evil.example.com"})),
            "its metadata is for another issuer, `https://evil.example.com`",
        ),
        (
            "an issuer with another end",
            metadata(json!({"issuer": with("/")})),
            "is for another issuer",
        ),
        ("no PKCE", metadata(json!({"code_challenge_methods_supported": null})), "PKCE with S256"),
        (
            "only plain PKCE",
            metadata(json!({"code_challenge_methods_supported": ["plain"]})),
            "PKCE with S256",
        ),
        (
            "no codes",
            metadata(json!({"response_types_supported": ["token"]})),
            "does not support codes",
        ),
        (
            "tokens without encryption",
            metadata(json!({"token_endpoint": "http://a.example.com/t"})),
            "would not be encrypted",
        ),
        (
            "a page that runs code",
            metadata(json!({"authorization_endpoint": "javascript:alert(1)"})),
            "`authorization_endpoint` of the login server is",
        ),
        (
            "a page of a file",
            metadata(json!({"authorization_endpoint": "file:///etc/passwd"})),
            "`authorization_endpoint` of the login server is",
        ),
        ("no token endpoint", metadata(json!({"token_endpoint": null})), "has no `token_endpoint`"),
        ("no registration", metadata(json!({"registration_endpoint": null})), "set `client_id`"),
        (
            "a refused registration",
            raw("/register", "HTTP/1.1 403 S\r\ncontent-length: 0\r\n\r\n".into()),
            "HTTP 403",
        ),
        (
            "a client ID that breaks a header",
            LoginKnobs { registered: json!({"client_id": "a\r\nb"}), ..base() },
            "no valid client ID",
        ),
        (
            "an answer of another login server",
            answered(json!({"iss": "https://evil.example.com"})),
            "from another login server",
        ),
        (
            "an answer without its login server",
            answered(json!({"iss": null})),
            "does not name its login server",
        ),
        (
            "a user who refuses",
            answered(json!({"code": null, "error": "access_denied",
            "error_description": "no\u{1b}[2J"})),
            "access_denied (no\\u{1b}[2J)",
        ),
        ("an answer without a code", answered(json!({"code": null})), "the answer has no code"),
        ("another code", answered(json!({"code": "stolen"})), "invalid_grant"),
        ("a token of another kind", tokens(json!({"token_type": "mac"})), "not a bearer token"),
        (
            "a token that breaks a header",
            tokens(json!({"access_token": "a\r\nX: y"})),
            "no valid access token",
        ),
        ("no token", tokens(json!({"access_token": null})), "no valid access token"),
        (
            "tokens that redirect",
            raw("/token", redirect("http://127.0.0.1:9/")),
            "redirects are not followed",
        ),
        ("tokens without end", raw("/token", large), "a response of more than"),
        (
            "tokens that are no JSON",
            raw("/token", "HTTP/1.1 200 S\r\ncontent-length: 2\r\n\r\nok".into()),
            "not JSON",
        ),
    ]
}

#[test]
fn servers_that_lie_get_no_login() {
    let servers = LoginServers::start();
    let issuer = format!("http://{}", servers.login.address);
    let cases = hostile_logins(&issuer);
    assert!(cases.len() >= 30);
    for (name, knobs, expected) in cases {
        servers.turn(knobs);
        let (code, text) = servers.log_in(&LOGIN);
        assert_eq!(code, Some(1), "{name}: {text}");
        assert!(text.contains(expected), "{name}: {text}");
        assert!(!text.contains('\u{1b}') && !text.contains("-token-"), "{name}: {text}");
        assert!(!servers.user.home.path().join(TOKENS).join("s.json").exists(), "{name}");
    }
    std::thread::sleep(Duration::from_millis(10));
    servers.turn(LoginKnobs::default());
    assert_eq!(servers.log_in(&LOGIN).0, Some(0));
}

#[test]
fn a_login_that_makes_no_sense_is_an_error() {
    let servers = LoginServers::start();
    let home = &servers.user.home;
    let url = servers.server.url();
    let table = [
        ("[mcp.servers.s]\ncommand = \"python3\"\n".to_owned(), "needs no login"),
        (
            format!(
                "[mcp.servers.s]\nurl = \"{url}\"\nheaders = {{ Authorization = {{ env = \"HOME\" \
                }} }}\n"
            ),
            "has the header `authorization`",
        ),
        (
            "[mcp.servers.s]\nurl = \"http://192.0.2.1/\"\nallow_plain_http = true\n".to_owned(),
            "is not encrypted",
        ),
        (String::new(), "there is no MCP server"),
    ];
    for (config, expected) in table {
        home.write_file("config/cofferdam/config.toml", config);
        let refused = home.run(&LOGIN);
        assert_eq!(refused.exit_code, 78, "{refused:?}");
        assert!(refused.stderr.contains(expected), "{refused:?}");
    }
    // A policy that denies the login server denies the login.
    home.write_file("config/cofferdam/config.toml", format!("[mcp.servers.s]\nurl = \"{url}\"\n"));
    let rule = format!("[fetch]\ndeny = [\"{}\"]\n", servers.login.address);
    home.write_file("config/cofferdam/policy.toml", rule);
    let refused = home.run(&LOGIN);
    assert_eq!(refused.exit_code, 1, "{refused:?}");
    assert!(refused.stderr.contains("denied"), "{refused:?}");
    assert!(servers.login.requests().is_empty());
}
