//! Requests of guests: to whom, on whose word, and how much comes back.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};

use cofferdam::conversation::ResultStatus;
use cofferdam::policy::{ApprovalMode, Capability, HostPattern, Tier};
use cofferdam::sandbox::HostCredential;
use cofferdam_tests::guests::{GuestTool, TestGuest, TestHost, TestHostBuilder};

use crate::assert_contains;

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
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                    head.push(byte[0]);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let (status, more, body) = match head.split(' ').nth(1) {
                    Some("/away") => (
                        "302 Found",
                        format!("location: http://127.0.0.1:{port}/there\r\n"),
                        "go there".to_owned(),
                    ),
                    Some("/big") => ("200 OK", String::new(), "x".repeat(9 << 20)),
                    Some("/echo") => ("200 OK", String::new(), head.clone()),
                    _ => ("200 OK", String::new(), "hello".to_owned()),
                };
                let is_silent = head.starts_with("GET /silent ");
                heads.lock().unwrap_or_else(PoisonError::into_inner).push(head);
                if is_silent {
                    // Until whoever asked hangs up.
                    drop(stream.read(&mut byte));
                    heads.lock().unwrap_or_else(PoisonError::into_inner).push("hung up".to_owned());
                    continue;
                }
                let response = format!(
                    "HTTP/1.1 {status}\r\ncontent-length: {}\r\n{more}\r\n{body}",
                    body.len()
                );
                // Whoever has had enough hangs up.
                drop(stream.write_all(response.as_bytes()));
            }
        });
        Self { port, requests }
    }

    fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A guest that sends one request without encryption.
fn request_guest(authority: &str, path: &str, hosts: &[String]) -> TestGuest {
    request_guest_template(authority, path)
        .with_replacement("{{header}}", "x-a")
        .with_replacement("{{method}}", "0")
        .with_requested(&[Capability::Fetch(hosts.to_vec())])
}

fn request_guest_template(authority: &str, path: &str) -> TestGuest {
    TestGuest::from_file("fetch")
        .with_replacement("{{scheme}}", "0")
        .with_replacement("{{authority}}", authority)
        .with_replacement("{{path}}", path)
}

fn fetch(authority: &str, path: &str, hosts: &[String]) -> String {
    let test_host = TestHost::with_guest(&request_guest(authority, path, hosts));
    let text = test_host.call_ok("fetch", "{}");
    test_host.assert_healthy();
    text
}

#[test]
fn r014_a_granted_host_answers() {
    let server = LocalServer::start();
    let test_host =
        TestHost::with_guest(&request_guest(&server.authority(), "/a?b", &[server.authority()]));
    assert_eq!(
        test_host.tier("fetch"),
        Tier::Write,
        "nobody here knows what a request changes there"
    );
    assert_eq!(test_host.call_ok("fetch", "{}"), "status 200: hello (5 bytes, then the end)");
    let [head] = &server.requests()[..] else { panic!("{:?}", server.requests()) };
    assert!(
        head.starts_with("GET /a?b HTTP/1.1\r\n")
            && head.contains(&format!("host: {}\r\n", server.authority())),
        "{head}"
    );
    assert!(
        !head.to_lowercase().contains("user-agent") && !head.to_lowercase().contains("referer"),
        "{head}"
    );
}

#[test]
fn r042_a_host_that_was_not_granted_hears_nothing() {
    let server = LocalServer::start();
    let other_port = format!("127.0.0.1:{}", server.port ^ 1);
    for hosts in [
        vec![],
        vec![other_port],
        vec!["example.com".into()],
        vec!["127.0.0.1".into()],
        vec!["*".into()],
    ] {
        let text = fetch(&server.authority(), "/", &hosts);
        assert_contains(&text, "denied (not-granted)");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn r122_a_name_that_leads_inside_is_refused_unless_the_address_is_granted_too() {
    let server = LocalServer::start();
    let name = format!("localhost:{}", server.port);
    let text = fetch(&name, "/", std::slice::from_ref(&name));
    assert_contains(&text, &format!("denied (not-granted): {name} resolves to "));
    assert!(server.requests().is_empty());
    let text =
        fetch(&name, "/", &[name.clone(), server.authority(), format!("[::1]:{}", server.port)]);
    assert_contains(&text, "status 200: hello");
}

#[test]
fn r122_what_hides_where_it_goes_is_refused() {
    let server = LocalServer::start();
    for disguise in [
        format!("example.com@{}", server.authority()),
        format!("2130706433:{}", server.port),
        format!("127.1:{}", server.port),
    ] {
        let text = fetch(&disguise, "/", &[server.authority(), format!("*:{}", server.port)]);
        assert_contains(&text, "denied (bad-request)");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn r122_a_redirect_is_not_followed() {
    let server = LocalServer::start();
    assert_contains(
        &fetch(&server.authority(), "/away", &[server.authority()]),
        "status 302: go there",
    );
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn r098_a_response_has_an_end() {
    let server = LocalServer::start();
    let text = fetch(&server.authority(), "/big", &[server.authority()]);
    assert_contains(&text, "status 200: xxx");
    assert_contains(&text, "then an error)");
    let bytes: usize = text
        .split('(')
        .nth(1)
        .and_then(|rest| rest.split(' ').next()?.parse().ok())
        .expect("a number");
    assert!(bytes <= 8 << 20, "{bytes}");
}

#[test]
fn r041_without_an_approver_effects_that_need_approval_are_denied() {
    let server = LocalServer::start();
    for mode in [ApprovalMode::Ask, ApprovalMode::AutoEdit, ApprovalMode::Plan] {
        let test_host = TestHostBuilder::default()
            .with_guest(&request_guest(&server.authority(), "/", &[server.authority()]))
            .with_mode(mode)
            .build();
        assert_contains(&test_host.call_ok("fetch", "{}"), "denied (nobody-to-ask)");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn r014_an_import_of_http_that_no_tool_asks_for_is_not_offered() {
    let guest = request_guest("example.com", "/", &[]);
    let test_host = TestHost::with_guest(&guest.clone().with_requested(&[Capability::ReadFiles]));
    assert_contains(
        test_host.refusal_reason(),
        "it imports wasi:http/outgoing-handler, but none of its tools requests the capability",
    );
    let able =
        GuestTool::new("able").with_requested(&[Capability::Fetch(vec!["example.com".into()])]);
    let test_host = TestHost::with_guest(&guest.with_tools([able, GuestTool::new("harmless")]));
    assert_contains(
        &test_host.call_ok("harmless", "{}"),
        "denied (not-granted): this tool has no permission to send HTTP requests.",
    );
}

#[test]
fn a_host_that_is_no_pattern_is_not_offered() {
    let test_host =
        TestHost::with_guest(&request_guest("example.com", "/", &["https://example.com".into()]));
    assert_contains(test_host.refusal_reason(), "requests an invalid host: `https://example.com`");
}

#[test]
fn r114_a_secret_is_added_for_its_host_and_no_guest_has_it() {
    let (server, other) = (LocalServer::start(), LocalServer::start());
    let hosts = HostPattern::parse(&server.authority()).expect("a pattern");
    let credential =
        HostCredential::new(hosts, "x-a", "Bearer ", "sk-very-secret").expect("it can be sent");
    for (at, has_it) in [(&server, true), (&other, false)] {
        let test_host = TestHostBuilder::default()
            .with_guest(&request_guest(&at.authority(), "/", &[at.authority()]))
            .with_credential(credential.clone())
            .build();
        let answered = test_host.call("fetch", "{}");
        assert!(
            answered.text.contains("status 200")
                && !format!("{answered:?}").contains("very-secret"),
            "{answered:?}"
        );
        let [head] = &at.requests()[..] else { panic!("{:?}", at.requests()) };
        assert_eq!(head.contains("x-a: Bearer sk-very-secret\r\n"), has_it, "{head}");
        assert_eq!(
            head.contains("from-the-guest"),
            !has_it,
            "it takes the place of what the guest wrote there: {head}"
        );
    }
}

#[test]
fn r122_a_method_that_was_not_granted_is_not_sent() {
    let server = LocalServer::start();
    let granted = [Capability::Fetch(vec![format!("GET,HEAD {}", server.authority())])];
    for (number, method, says) in [
        ("0", "GET", "status 200"),
        ("2", "POST", "no permission to send POST requests to 127.0.0.1"),
        ("4", "DELETE", "denied"),
    ] {
        let guest = request_guest_template(&server.authority(), "/")
            .with_replacement("{{header}}", "x-a")
            .with_replacement("{{method}}", number)
            .with_requested(&granted);
        assert_contains(&TestHost::with_guest(&guest).call_ok("fetch", "{}"), says);
        assert_eq!(server.requests().len(), 1, "{method}");
    }
}

#[test]
fn r122_a_header_that_says_where_a_request_goes_is_refused() {
    let server = LocalServer::start();
    for header in [
        "Host",
        "connection",
        "Proxy-Authorization",
        "proxy-connection",
        "Transfer-Encoding",
        "upgrade",
        "te",
        "Forwarded",
    ] {
        let guest = request_guest_template(&server.authority(), "/")
            .with_replacement("{{header}}", header)
            .with_replacement("{{method}}", "0");
        let text = TestHost::with_guest(
            &guest.with_requested(&[Capability::Fetch(vec![server.authority()])]),
        )
        .call_ok("fetch", "{}");
        assert_eq!(text, "the header is refused", "{header}");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn r122_an_address_that_is_not_for_everybody_is_refused_under_a_grant_for_every_host() {
    let special = [
        ("0.0.0.0", "this network"),
        ("10.0.0.1", "a private network"),
        ("100.64.0.1", "a network of a provider"),
        ("127.0.0.1", "this machine"),
        ("169.254.169.254", "cloud metadata"),
        ("172.16.0.1", "a private network"),
        ("192.168.0.1", "a private network"),
        ("[::1]", "not a public internet address"),
        ("[::ffff:10.0.0.1]", "a private network"),
        ("[64:ff9b::a00:1]", "not a public internet address"),
        ("[fd00:ec2::254]", "not a public internet address"),
        ("[fe80::1]", "not a public internet address"),
        ("[2002:a00:1::]", "6to4"),
    ];
    for (address, what) in special {
        let text = fetch(address, "/", &["*:80".into()]);
        assert_contains(&text, "denied (not-granted): ");
        assert_contains(&text, what);
    }
}

#[test]
fn r101_a_request_ends_when_its_call_is_cancelled() {
    let server = LocalServer::start();
    let test_host =
        TestHost::with_guest(&request_guest(&server.authority(), "/silent", &[server.authority()]));
    let report = test_host
        .run_turn_cancelled(&[("fetch", "{}")], Some(std::time::Duration::from_millis(1500)));
    assert_eq!(report.outcomes[0].status, ResultStatus::Interrupted);
    // The connection goes too, while the test host goes on working.
    let hung_up = (0..1000).any(|n| {
        test_host.call_ok("good", &format!(r#"{{"text":"{n}"}}"#));
        server.requests().iter().any(|seen| seen == "hung up")
    });
    assert!(hung_up, "{:?}", server.requests());
}

#[test]
fn r098_a_call_that_waits_for_an_answer_uses_up_its_time() {
    let server = LocalServer::start();
    let test_host = TestHostBuilder::default()
        .with_guest(&request_guest(&server.authority(), "/silent", &[server.authority()]))
        .with_timeout_millis(300)
        .build();
    assert_contains(
        &test_host.call_error("fetch", "{}"),
        "the call exceeded its time limit of 0.3 \
        seconds",
    );
    test_host.assert_healthy();
}

#[test]
fn r114_a_server_that_repeats_a_secret_does_not_give_it_away() {
    let server = LocalServer::start();
    let hosts = HostPattern::parse(&server.authority()).expect("a pattern");
    let credential =
        HostCredential::new(hosts, "x-a", "Bearer ", "sk-very-secret").expect("it can be sent");
    let test_host = TestHostBuilder::default()
        .with_guest(&request_guest(&server.authority(), "/echo", &[server.authority()]))
        .with_credential(credential)
        .build();
    assert_contains(&test_host.call_ok("fetch", "{}"), "x-a: Bearer **************\r\n");
    assert!(server.requests()[0].contains("x-a: Bearer sk-very-secret\r\n"));
}
