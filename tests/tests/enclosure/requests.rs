//! Requests of guests: to whom, on whose word, and how much comes back.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};

use cofferdam::agent::events::Tier;
use cofferdam::policy::{Capability, HostPattern, Mode};
use cofferdam::sandbox::Credential;
use cofferdam_tests::guests::{Guest, House, Plan, Tool};

use crate::assert_says;

/// A server on this machine. It keeps the head of each request.
struct Server {
    port: u16,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it has one").port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let heads = Arc::clone(&seen);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                    head.push(byte[0]);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let (status, more, body) = match head.split(' ').nth(1) {
                    Some("/away") => ("302 Found", format!("location: http://127.0.0.1:{port}/there\r\n"), "go there".to_owned()),
                    Some("/big") => ("200 OK", String::new(), "x".repeat(9 << 20)),
                    _ => ("200 OK", String::new(), "hello".to_owned()),
                };
                heads.lock().unwrap_or_else(PoisonError::into_inner).push(head);
                let response = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{more}\r\n{body}", body.len());
                // Whoever has had enough hangs up.
                drop(stream.write_all(response.as_bytes()));
            }
        });
        Self { port, seen }
    }

    fn here(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A guest that sends one request without encryption.
fn guest(authority: &str, path: &str, hosts: &[String]) -> Guest {
    let guest = Guest::named("fetch").with("{{scheme}}", "0").with("{{authority}}", authority).with("{{path}}", path);
    guest.asking(&[Capability::Fetch(hosts.to_vec())])
}

fn fetched(authority: &str, path: &str, hosts: &[String]) -> String {
    let house = House::with(&guest(authority, path, hosts));
    let text = house.answers("fetch", "{}");
    house.assert_is_fine();
    text
}

#[test]
fn r014_a_granted_host_answers() {
    let server = Server::start();
    let house = House::with(&guest(&server.here(), "/a?b", &[server.here()]));
    assert_eq!(house.tier("fetch"), Tier::Write, "nobody here knows what a request changes there");
    assert_eq!(house.answers("fetch", "{}"), "status 200: hello (5 bytes, then the end)");
    let [head] = &server.seen()[..] else { panic!("{:?}", server.seen()) };
    assert!(head.starts_with("GET /a?b HTTP/1.1\r\n") && head.contains(&format!("host: {}\r\n", server.here())), "{head}");
    assert!(!head.to_lowercase().contains("user-agent") && !head.to_lowercase().contains("referer"), "{head}");
}

#[test]
fn r042_a_host_that_was_not_granted_hears_nothing() {
    let server = Server::start();
    let other_port = format!("127.0.0.1:{}", server.port ^ 1);
    for hosts in [vec![], vec![other_port], vec!["example.com".into()], vec!["127.0.0.1".into()], vec!["*".into()]] {
        let text = fetched(&server.here(), "/", &hosts);
        assert_says(&text, "denied (not-granted)");
    }
    assert!(server.seen().is_empty());
}

#[test]
fn r122_a_name_that_leads_inside_is_refused_unless_the_address_is_granted_too() {
    let server = Server::start();
    let name = format!("localhost:{}", server.port);
    let text = fetched(&name, "/", std::slice::from_ref(&name));
    assert_says(&text, &format!("denied (not-granted): {name} leads to "));
    assert!(server.seen().is_empty());
    let text = fetched(&name, "/", &[name.clone(), server.here(), format!("[::1]:{}", server.port)]);
    assert_says(&text, "status 200: hello");
}

#[test]
fn r122_what_hides_where_it_goes_is_refused() {
    let server = Server::start();
    for disguise in [format!("example.com@{}", server.here()), format!("2130706433:{}", server.port), format!("127.1:{}", server.port)] {
        let text = fetched(&disguise, "/", &[server.here(), format!("*:{}", server.port)]);
        assert_says(&text, "denied (bad-request)");
    }
    assert!(server.seen().is_empty());
}

#[test]
fn r122_a_redirect_is_not_followed() {
    let server = Server::start();
    assert_says(&fetched(&server.here(), "/away", &[server.here()]), "status 302: go there");
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn r098_a_response_has_an_end() {
    let server = Server::start();
    let text = fetched(&server.here(), "/big", &[server.here()]);
    assert_says(&text, "status 200: xxx");
    assert_says(&text, "then an error)");
    let bytes: usize = text.split('(').nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok()).expect("a number");
    assert!(bytes <= 8 << 20, "{bytes}");
}

#[test]
fn r041_what_would_be_asked_is_denied_where_nobody_can_be_asked() {
    let server = Server::start();
    for mode in [Mode::Ask, Mode::AutoEdit, Mode::Plan] {
        let house = Plan::default().guest(&guest(&server.here(), "/", &[server.here()])).mode(mode).build();
        assert_says(&house.answers("fetch", "{}"), "denied (nobody-to-ask)");
    }
    assert!(server.seen().is_empty());
}

#[test]
fn r014_an_import_of_http_that_no_tool_asks_for_is_not_offered() {
    let guest = guest("example.com", "/", &[]);
    let house = House::with(&guest.clone().asking(&[Capability::ReadFiles]));
    assert_says(house.refusal(), "it imports wasi:http/outgoing-handler without any of its tools asking for that");
    let able = Tool::named("able").asking(&[Capability::Fetch(vec!["example.com".into()])]);
    let house = House::with(&guest.tools([able, Tool::named("harmless")]));
    assert_says(&house.answers("harmless", "{}"), "denied (not-granted): this tool may not send HTTP requests.");
}

#[test]
fn a_host_that_is_no_pattern_is_not_offered() {
    let house = House::with(&guest("example.com", "/", &["https://example.com".into()]));
    assert_says(house.refusal(), "asks for a host that cannot be understood: `https://example.com`");
}

#[test]
fn r114_a_secret_is_not_sent_without_encryption() {
    let server = Server::start();
    let hosts = HostPattern::parse(&server.here()).expect("a pattern");
    let credential = Credential::new(hosts, "authorization", "Bearer sk-very-secret").expect("it can be sent");
    let house = Plan::default().guest(&guest(&server.here(), "/", &[server.here()])).credential(credential).build();
    assert_says(&house.answers("fetch", "{}"), "status 200");
    assert!(!server.seen()[0].contains("sk-very-secret"), "{:?}", server.seen());
}
