//! Requests of guests: to whom, on whose word, and how much comes back.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};

use cofferdam::agent::events::Tier;
use cofferdam::conversation::ResultStatus;
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
    template(authority, path).with("{{header}}", "x-a").with("{{method}}", "0").asking(&[Capability::Fetch(hosts.to_vec())])
}

fn template(authority: &str, path: &str) -> Guest {
    Guest::named("fetch").with("{{scheme}}", "0").with("{{authority}}", authority).with("{{path}}", path)
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
fn r114_a_secret_is_added_for_its_host_and_no_guest_has_it() {
    let (server, other) = (Server::start(), Server::start());
    let hosts = HostPattern::parse(&server.here()).expect("a pattern");
    let credential = Credential::new(hosts, "x-a", "Bearer ", "sk-very-secret").expect("it can be sent");
    for (at, has_it) in [(&server, true), (&other, false)] {
        let house = Plan::default().guest(&guest(&at.here(), "/", &[at.here()])).credential(credential.clone()).build();
        let answered = house.call("fetch", "{}");
        assert!(answered.text.contains("status 200") && !format!("{answered:?}").contains("very-secret"), "{answered:?}");
        let [head] = &at.seen()[..] else { panic!("{:?}", at.seen()) };
        assert_eq!(head.contains("x-a: Bearer sk-very-secret\r\n"), has_it, "{head}");
        assert_eq!(head.contains("from-the-guest"), !has_it, "it takes the place of what the guest wrote there: {head}");
    }
}

#[test]
fn r122_a_method_that_was_not_granted_is_not_sent() {
    let server = Server::start();
    let granted = [Capability::Fetch(vec![format!("GET,HEAD {}", server.here())])];
    for (number, method, says) in
        [("0", "GET", "status 200"), ("2", "POST", "may not send a POST request to 127.0.0.1"), ("4", "DELETE", "denied")]
    {
        let guest = template(&server.here(), "/").with("{{header}}", "x-a").with("{{method}}", number).asking(&granted);
        assert_says(&House::with(&guest).answers("fetch", "{}"), says);
        assert_eq!(server.seen().len(), 1, "{method}");
    }
}

#[test]
fn r122_a_header_that_says_where_a_request_goes_is_refused() {
    let server = Server::start();
    for header in ["Host", "connection", "Proxy-Authorization", "proxy-connection", "Transfer-Encoding", "upgrade", "te", "Forwarded"] {
        let guest = template(&server.here(), "/").with("{{header}}", header).with("{{method}}", "0");
        let text = House::with(&guest.asking(&[Capability::Fetch(vec![server.here()])])).answers("fetch", "{}");
        assert_eq!(text, "the header is refused", "{header}");
    }
    assert!(server.seen().is_empty());
}

#[test]
fn r122_an_address_that_is_not_for_everybody_is_refused_under_a_grant_for_every_host() {
    let special = [
        ("0.0.0.0", "this network"),
        ("10.0.0.1", "a private network"),
        ("100.64.0.1", "a provider's own network"),
        ("127.0.0.1", "this machine"),
        ("169.254.169.254", "cloud metadata"),
        ("172.16.0.1", "a private network"),
        ("192.168.0.1", "a private network"),
        ("[::1]", "no part of the public internet"),
        ("[::ffff:10.0.0.1]", "a private network"),
        ("[64:ff9b::a00:1]", "no part of the public internet"),
        ("[fd00:ec2::254]", "no part of the public internet"),
        ("[fe80::1]", "no part of the public internet"),
        ("[2002:a00:1::]", "6to4"),
    ];
    for (address, what) in special {
        let text = fetched(address, "/", &["*:80".into()]);
        assert_says(&text, "denied (not-granted): ");
        assert_says(&text, what);
    }
}

#[test]
fn r101_a_request_ends_when_its_call_is_cancelled() {
    let server = Server::start();
    let house = House::with(&guest(&server.here(), "/silent", &[server.here()]));
    let report = house.turn_cancelled(&[("fetch", "{}")], Some(std::time::Duration::from_millis(1500)));
    assert_eq!(report.answers[0].status, ResultStatus::Interrupted);
    // The connection goes too, while the house goes on working.
    let hung_up = (0..1000).any(|n| {
        house.answers("good", &format!(r#"{{"text":"{n}"}}"#));
        server.seen().iter().any(|seen| seen == "hung up")
    });
    assert!(hung_up, "{:?}", server.seen());
}

#[test]
fn r098_a_call_that_waits_for_an_answer_uses_up_its_time() {
    let server = Server::start();
    let house = Plan::default().guest(&guest(&server.here(), "/silent", &[server.here()])).millis(300).build();
    assert_says(&house.fails("fetch", "{}"), "it ran longer than its 0.3 seconds");
    house.assert_is_fine();
}

#[test]
fn r114_a_server_that_repeats_a_secret_does_not_give_it_away() {
    let server = Server::start();
    let hosts = HostPattern::parse(&server.here()).expect("a pattern");
    let credential = Credential::new(hosts, "x-a", "Bearer ", "sk-very-secret").expect("it can be sent");
    let house = Plan::default().guest(&guest(&server.here(), "/echo", &[server.here()])).credential(credential).build();
    assert_says(&house.answers("fetch", "{}"), "x-a: Bearer **************\r\n");
    assert!(server.seen()[0].contains("x-a: Bearer sk-very-secret\r\n"));
}
