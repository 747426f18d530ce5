//! What programs can and cannot do with the proxy, on real sockets.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;
use crate::policy::{
    ApprovalMode, Authorization, Authorizer, Denial, DenialCode, Effect, HostAddress, NetworkRules,
    Policy, ToolId, Verdict,
};
use crate::sandbox::gate::{ConnectionDecision, Gate, GateRuling};
use cofferdam_confine::process::CommandTimeLimit;

/// A proxy with a server that it may reach.
struct ProxyTest {
    _runtime: tokio::runtime::Runtime,
    proxy: EgressProxy,
    address: SocketAddr,
    /// The port of the server on this machine.
    port: u16,
    /// What the server received, one text for each connection.
    received: Arc<Mutex<Vec<String>>>,
}

impl ProxyTest {
    /// `{port}` in a rule stands for the port of the server.
    fn new(allow: &[&str], deny: &[&str]) -> Self {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = server.local_addr().expect("it has an address").port();
        let received = Arc::new(Mutex::new(Vec::new()));
        let texts = Arc::clone(&received);
        std::thread::spawn(move || {
            for connection in server.incoming().flatten() {
                let texts = Arc::clone(&texts);
                std::thread::spawn(move || answer(connection, &texts));
            }
        });
        let rules = |all: &[&str]| -> Vec<String> {
            all.iter().map(|rule| rule.replace("{port}", &port.to_string())).collect()
        };
        let rules = NetworkRules::parse(&rules(allow), &rules(deny)).expect("they are rules");
        let proxy = EgressProxy::new(connection_rules(&rules));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("it has an address");
        let runtime = tokio::runtime::Runtime::new().expect("it starts");
        let start = proxy.starter();
        runtime.block_on(async { start(listener) });
        Self { _runtime: runtime, proxy, address, port, received }
    }

    /// Sends bytes, and returns what comes back until the end.
    fn exchange(&self, pieces: &[&[u8]]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).expect("it accepts");
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("it is set");
        for piece in pieces {
            // The proxy may have closed already.
            let _ = stream.write_all(piece);
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = stream.shutdown(Shutdown::Write);
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply);
        reply
    }

    /// Sends texts in which `{port}` stands for the port of the server.
    fn send(&self, pieces: &[&str]) -> String {
        let pieces: Vec<String> =
            pieces.iter().map(|piece| piece.replace("{port}", &self.port.to_string())).collect();
        let pieces: Vec<&[u8]> = pieces.iter().map(String::as_bytes).collect();
        String::from_utf8_lossy(&self.exchange(&pieces)).into_owned()
    }

    fn received(&self) -> Vec<String> {
        self.received.lock().expect("it is not poisoned").clone()
    }
}

/// Rules without a user to ask.
fn connection_rules(rules: &NetworkRules) -> ConnectionRules {
    let mut policy = Policy::default();
    policy.add_layer(rules.to_layer());
    let authorizer = Authorizer::new(ApprovalMode::Auto, false).with_policy(Arc::new(policy));
    ConnectionRules {
        judge: Arc::new(move |host| ConnectionDecision {
            verdict: authorizer.judge_connection(ToolId::new("bash", ""), host),
            names_address: authorizer.names_address(host),
        }),
        gate: Arc::new(|_| panic!("nobody is asked")),
        line: "make".to_owned(),
        limit: CommandTimeLimit::new(Duration::from_secs(60)),
    }
}

/// Answers every request, and each other message with the same bytes.
fn answer(mut connection: TcpStream, texts: &Mutex<Vec<String>>) {
    let place = {
        let mut texts = texts.lock().expect("it is not poisoned");
        texts.push(String::new());
        texts.len() - 1
    };
    let mut bytes = [0; 64 << 10];
    while let Ok(count @ 1..) = connection.read(&mut bytes) {
        let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
        let reply = match text.contains(" HTTP/1.1\r\n") {
            true => "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nkeep-alive: x\r\n\r\nhi".to_owned(),
            false => text.clone(),
        };
        texts.lock().expect("it is not poisoned")[place].push_str(&text);
        if connection.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

fn status(reply: &str) -> &str {
    reply.split(' ').nth(1).unwrap_or("none")
}

#[test]
fn listed_hosts_are_reached_by_plain_http_by_connect_and_by_socks() {
    let test = ProxyTest::new(&["127.0.0.1:{port}"], &[]);
    let get = "GET http://127.0.0.1:{port}/a?b HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n";
    let reply = test.send(&[get]);
    assert!(status(&reply) == "200" && reply.ends_with("hi"), "{reply}");
    assert!(!reply.contains("keep-alive"), "{reply}");
    let connect = "CONNECT 127.0.0.1:{port} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n";
    let reply = test.send(&[connect, "SSH-2.0-x\r\n"]);
    assert!(status(&reply) == "200" && reply.ends_with("\r\n\r\nSSH-2.0-x\r\n"), "{reply}");
    let [high, low] = test.port.to_be_bytes();
    let reply = test.exchange(&[&[5, 1, 0], &[5, 1, 0, 1, 127, 0, 0, 1, high, low], b"hell\n"]);
    assert_eq!(reply, [&[5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], b"hell\n"].concat());
    let origin = format!("GET /a?b HTTP/1.1\r\nhost: 127.0.0.1:{}\r\n", test.port);
    assert!(test.received()[0].starts_with(&origin), "{:?}", test.received());
    let records = test.proxy.finish();
    let expected = format!("127.0.0.1:{}", test.port);
    assert_eq!(records.len(), 3);
    for record in &records {
        assert!(record.host == expected && record.refused.is_none(), "{record:?}");
        assert_eq!(record.address.map(|address| address.to_string()), Some(expected.clone()));
    }
    assert_eq!(
        [(records[1].sent, records[1].received), (records[2].sent, records[2].received)],
        [(11, 11), (5, 5)]
    );
}

#[test]
fn hostile_http_requests_are_refused() {
    let long =
        format!("GET http://127.0.0.1:{{port}}/ HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(999_999));
    let many = "x: y\r\n".repeat(300);
    let many = format!("GET http://127.0.0.1:{{port}}/ HTTP/1.1\r\n{many}\r\n");
    // the request, and the status, or how a request that cannot be parsed ends
    let cases: &[(&str, &str)] = &[
        ("CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n", "403"),
        ("CONNECT example.com:443 HTTP/1.1\r\n\r\n", "403"),
        ("CONNECT example.com:{port} HTTP/1.1\r\n\r\n", "403"),
        ("CONNECT 127.0.0.1 HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT 127.0.0.1:99999 HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT 127.0.0.1:+1 HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT u@127.0.0.1:{port} HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT http://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nhost: example.com:{port}\r\n\r\n", "400"),
        ("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nhost: 127.0.0.1:1\r\n\r\n", "400"),
        ("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nhost: a\r\nhost: 127.0.0.1:{port}\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n", "400"),
        ("GET https://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n", "400"),
        ("GET ftp://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n", "400"),
        ("GET file:///etc/passwd HTTP/1.1\r\n\r\n", "400"),
        ("GET http:///x HTTP/1.1\r\n\r\n", "400"),
        ("GET http://example.com/ HTTP/1.1\r\n\r\n", "403"),
        ("GET http://127.0.0.1/ HTTP/1.1\r\n\r\n", "403"),
        ("GET http://127.0.0.1:{port}/ HTTP/1.1\r\nhost: example.com\r\n\r\n", "400"),
        ("GET http://127.0.0.1:{port}/ HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n", "400"),
        ("GET http://127.0.0.1:{port}/ HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", "400"),
        ("GET http://127.0.0.1:{port}/ HTTP/1.1\r\nhost: a@127.0.0.1:{port}\r\n\r\n", "400"),
        ("GET http://u:p@127.0.0.1:{port}/ HTTP/1.1\r\n\r\n", "400"),
        ("GET http://127.0.0.1:{port}@example.com/ HTTP/1.1\r\n\r\n", "400"),
        ("GET http://127.0.0.1:{port} /x HTTP/1.1\r\n\r\n", "400"),
        ("GET http://127.0.0.1:{port}/ HTTP/1.1\r\nx : y\r\n\r\n", "400"),
        ("GET http://127.0.0.1:{port}/ HTTP/1.1\r\nx: y\r\n folded\r\n\r\n", "400"),
        (
            "POST http://127.0.0.1:{port}/ HTTP/1.1\r\ncontent-length: 1\r\n\
                content-length: 2\r\n\r\n\
                ab",
            "400",
        ),
        ("POST http://127.0.0.1:{port}/ HTTP/1.1\r\ncontent-length: -1\r\n\r\n", "400"),
        ("POST http://127.0.0.1:{port}/ HTTP/1.1\r\ntransfer-encoding: x\r\n\r\n", "400"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "closed"),
        ("\u{4}\u{1}\0P\u{7f}\0\0\u{1}\0", "closed"),
        ("nonsense\r\n\r\n", "closed"),
        (&long, "closed"),
        (&many, "closed"),
    ];
    let test = ProxyTest::new(&["127.0.0.1:{port}"], &[]);
    for (request, expected) in cases {
        let shown: String = request.chars().take(99).collect();
        let reply = test.send(&[request]);
        let status = status(&reply);
        let is_expected = match *expected {
            "closed" => ["none", "400", "431"].contains(&status),
            expected => status == expected,
        };
        assert!(is_expected, "{shown:?}: {expected}: {reply}");
    }
    assert_eq!(test.received(), [""; 0], "the server was not reached");
}

#[test]
fn no_spelling_of_an_address_of_this_machine_is_reached_by_a_rule_for_names() {
    let test = ProxyTest::new(&["*:{port}", "localhost:{port}"], &[]);
    for host in [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "127.0.0.1.",
        "0",
        "0.0.0.0",
        "localhost",
        "LOCALHOST.",
        "ip6-localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[0:0:0:0:0:0:0:1]",
        "[64:ff9b::7f00:1]",
        "169.254.169.254",
        "[fd00:ec2::254]",
    ] {
        let connect = format!("CONNECT {host}:{{port}} HTTP/1.1\r\n\r\n");
        let reply = test.send(&[&connect, "hello"]);
        assert!(["400", "403", "502"].contains(&status(&reply)), "{host}: {reply}");
    }
    assert_eq!(test.received(), [""; 0], "the server was not reached");
    let records = test.proxy.finish();
    assert!(records.iter().all(|record| record.refused.is_some()), "{records:?}");
}

#[test]
fn a_deny_rule_has_priority() {
    let test = ProxyTest::new(&["127.0.0.1:{port}"], &["127.0.0.1"]);
    let reply = test.send(&["CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n"]);
    assert_eq!(status(&reply), "403", "{reply}");
    assert_eq!(test.received(), [""; 0]);
}

#[test]
fn each_request_of_a_connection_is_decided_by_itself() {
    let test = ProxyTest::new(&["127.0.0.1:{port}"], &[]);
    let reply = test.send(&[
        "GET http://127.0.0.1:{port}/one HTTP/1.1\r\n\r\n",
        "GET http://example.com/two HTTP/1.1\r\n\r\n",
    ]);
    assert!(reply.contains("200 OK") && reply.contains("403 Forbidden"), "{reply}");
    // A second request cannot hide in the body of the first.
    let body = "0\r\n\r\nGET http://example.com/three HTTP/1.1\r\nhost: example.com\r\n\r\n";
    let reply = test.send(&[&format!(
        "POST http://127.0.0.1:{{port}}/smuggle HTTP/1.1\r\ncontent-length: {}\r\n\
            transfer-encoding: chunked\r\n\r\n{body}",
        body.len()
    )]);
    assert!(!reply.contains("200 OK\r\n\r\n\r\nHTTP"), "{reply}");
    for text in test.received() {
        assert!(!text.contains("/two") && !text.contains("/three"), "{text}");
        assert!(text.matches("HTTP/1.1").count() <= 1, "{text}");
    }
}

#[test]
fn headers_for_the_proxy_do_not_reach_the_server() {
    let test = ProxyTest::new(&["127.0.0.1:{port}"], &[]);
    test.send(&[
        "GET http://127.0.0.1:{port}/ HTTP/1.1\r\nproxy-authorization: Basic x\r\nconnection: \
        mine, upgrade\r\nmine: 1\r\nupgrade: websocket\r\nproxy-connection: x\r\nkept: 2\r\n\r\n",
    ]);
    let received = test.received().concat().to_ascii_lowercase();
    for name in ["proxy-authorization", "mine:", "upgrade", "proxy-connection", "keep-alive"] {
        assert!(!received.contains(name), "{name}: {received}");
    }
    assert!(received.contains("kept: 2") && received.contains("connection: close"), "{received}");
}

#[test]
fn a_tunnel_passes_nothing_on_that_contradicts_its_host() {
    let test = ProxyTest::new(&["127.0.0.1:{port}"], &[]);
    let connect = "CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n";
    for first in ["GET / HTTP/1.1\r\nhost: example.com\r\n\r\n", "\u{16}\u{3}\u{1}\0\u{1}x"] {
        let reply = test.send(&[connect, first]);
        assert_eq!(status(&reply), "200", "the tunnel is open: {reply}");
    }
    assert_eq!(test.received().concat(), "", "nothing was passed on");
    let refused: Vec<_> = test.proxy.finish().into_iter().map(|record| record.refused).collect();
    assert_eq!(refused.len(), 2);
    assert!(refused.iter().all(Option::is_some), "{refused:?}");
}

#[test]
fn hostile_socks_requests_are_refused() {
    let test = ProxyTest::new(&["127.0.0.1:{port}"], &[]);
    let [high, low] = test.port.to_be_bytes();
    let refusal = |code| vec![5, 0, 5, code, 0, 1, 0, 0, 0, 0, 0, 0];
    let name = |name: &[u8]| {
        let length = u8::try_from(name.len()).expect("it is short");
        [&[5, 1, 0, 3, length], name, &[high, low]].concat()
    };
    // the greeting, the request, the reply
    let cases: Vec<(&[u8], Vec<u8>, Vec<u8>)> = vec![
        (&[5, 1, 2], vec![], vec![5, 0xff]),
        (&[5, 0], vec![], vec![5, 0xff]),
        (&[5, 1, 0], vec![5, 2, 0, 1, 127, 0, 0, 1, high, low], refusal(7)),
        (&[5, 1, 0], vec![5, 3, 0, 1, 127, 0, 0, 1, high, low], refusal(7)),
        (&[5, 1, 0], vec![4, 1, 0, 1, 127, 0, 0, 1, high, low], refusal(7)),
        (&[5, 1, 0], vec![5, 1, 0, 9, 127, 0, 0, 1, high, low], refusal(8)),
        (&[5, 1, 0], vec![5, 1, 0, 1, 127, 0, 0, 2, high, low], refusal(2)),
        (&[5, 1, 0], vec![5, 1, 0, 1, 127, 0, 0, 1, 0, 1], refusal(2)),
        (&[5, 1, 0], name(b"example.com"), refusal(2)),
        (&[5, 1, 0], name(b"localhost"), refusal(2)),
        (&[5, 1, 0], name(b"127.0.0.1\0.example.com"), refusal(4)),
        (&[5, 1, 0], name(b"127.0.0.1/x"), refusal(4)),
        (&[5, 1, 0], name(b"\xff\xfe"), refusal(4)),
        (&[5, 1, 0], name(b""), refusal(4)),
        (&[5, 1, 0], vec![5, 1, 0, 3, 200, b'x'], vec![5, 0]),
    ];
    for (greeting, request, expected) in cases {
        assert_eq!(test.exchange(&[greeting, &request, b"hello"]), expected, "{request:?}");
    }
    assert_eq!(test.received(), [""; 0], "the server was not reached");
}

#[test]
fn everything_ends_with_the_command() {
    let test = ProxyTest::new(&["127.0.0.1:{port}"], &[]);
    let mut stream = TcpStream::connect(test.address).expect("it accepts");
    let connect = format!("CONNECT 127.0.0.1:{} HTTP/1.1\r\n\r\n", test.port);
    stream.write_all(connect.as_bytes()).expect("it is sent");
    let mut bytes = [0; 256];
    let count = stream.read(&mut bytes).expect("it answers");
    assert!(bytes[..count].starts_with(b"HTTP/1.1 200"));
    test.proxy.finish();
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("it is set");
    assert_eq!(stream.read(&mut bytes).expect("it ends"), 0);
    let refused = TcpStream::connect(test.address).map(|mut stream| stream.read(&mut bytes));
    assert!(!matches!(refused, Ok(Ok(1..))), "{refused:?}");
}

/// Rules under which every host that no list contains is asked about. Each question is answered
/// by `answer`, after a while. Returns the rules and the hosts that were asked about.
fn asking_rules(
    deny: &[&str],
    answer: impl Fn(&str) -> bool + Send + Sync + 'static,
) -> (ConnectionRules, Arc<Mutex<Vec<String>>>) {
    let deny: Vec<String> = deny.iter().map(|rule| (*rule).to_owned()).collect();
    let rules =
        NetworkRules::parse(&[], &deny).expect("they are rules").with_unlisted(Verdict::Ask);
    let mut policy = Policy::default();
    policy.add_layer(rules.to_layer());
    let authorizer =
        Arc::new(Authorizer::new(ApprovalMode::Auto, true).with_policy(Arc::new(policy)));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (judge, log, answer) = (Arc::clone(&authorizer), Arc::clone(&asked), Arc::new(answer));
    let gate: Gate = Arc::new(move |effect| {
        let (authorizer, answer) = (Arc::clone(&authorizer), Arc::clone(&answer));
        let Effect::Connect { host, line } = &effect else { panic!("{effect:?}") };
        assert_eq!(line, "make");
        let host = host.to_string();
        log.lock().expect("it is not poisoned").push(host.clone());
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            match authorizer.authorize(ToolId::new("bash", ""), "{}", effect) {
                Authorization::Ask(pending) if answer(&host) => {
                    GateRuling::Permitted(authorizer.approve(pending).expect("a permit"))
                }
                _ => GateRuling::Denied(Denial::without_remedy(
                    DenialCode::RejectedByUser,
                    format!("the user rejected the connection to {host}."),
                )),
            }
        })
    });
    let judge = Arc::new(move |host: &HostAddress| ConnectionDecision {
        verdict: judge.judge_connection(ToolId::new("bash", ""), host),
        names_address: judge.names_address(host),
    });
    let limit = CommandTimeLimit::new(Duration::from_secs(60));
    (ConnectionRules { judge, gate, line: "make".to_owned(), limit }, asked)
}

fn approvals(rules: ConnectionRules) -> (Arc<HostApprovals>, CancellationToken) {
    let ended = CancellationToken::new();
    (Arc::new(HostApprovals::new(rules, ended.clone())), ended)
}

fn host(text: &str) -> HostAddress {
    HostAddress::parse(text).expect(text)
}

#[tokio::test]
async fn connections_to_one_host_ask_once_and_the_answer_counts_for_the_command() {
    let (rules, asked) = asking_rules(&[], |host| host != "evil.org");
    let (approvals, _ended) = approvals(rules);
    let ask = |text: &str| {
        let (approvals, host) = (Arc::clone(&approvals), host(text));
        async move { approvals.ask(&host).await.map_err(|denial| denial.reason) }
    };
    let (first, second) = tokio::join!(ask("a.org"), ask("a.org"));
    assert_eq!((first, second, ask("a.org").await), (Ok(()), Ok(()), Ok(())));
    let rejected = Err("the user rejected the connection to evil.org.".to_owned());
    assert_eq!((ask("evil.org").await, ask("evil.org").await), (rejected.clone(), rejected));
    assert_eq!(ask("a.org:22").await, Ok(()));
    // A connection that closes leaves its question open.
    assert!(tokio::time::timeout(Duration::from_millis(10), ask("b.org")).await.is_err());
    assert_eq!(ask("b.org").await, Ok(()));
    let asked = asked.lock().expect("it is not poisoned").clone();
    assert_eq!(asked, ["a.org", "evil.org", "a.org:22", "b.org"]);
}

#[tokio::test]
async fn one_command_asks_about_a_limited_number_of_hosts() {
    let (rules, asked) = asking_rules(&[], |_| false);
    let (approvals, _ended) = approvals(rules);
    let mut last = Ok(());
    for number in 0..30 {
        last = approvals.ask(&host(&format!("h{number}.org"))).await;
    }
    assert_eq!(last.expect_err("it is denied").code, DenialCode::TooMany);
    assert_eq!(asked.lock().expect("it is not poisoned").len(), 20);
}

#[tokio::test]
async fn a_question_ends_with_its_command_and_pauses_its_time() {
    let (mut rules, _) = asking_rules(&[], |_| true);
    rules.gate = Arc::new(|_| Box::pin(std::future::pending()));
    let limit = rules.limit.clone();
    let (approvals, ended) = approvals(rules);
    let waiting = tokio::spawn({
        let approvals = Arc::clone(&approvals);
        async move { approvals.ask(&host("a.org")).await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(limit.pauses(), 1);
    ended.cancel();
    let denial = waiting.await.expect("it ends").expect_err("it is denied");
    assert_eq!(denial.code, DenialCode::Cancelled);
    assert_eq!(limit.pauses(), 0);
}

#[test]
fn what_is_asked_is_dialled_and_nothing_else() {
    let (rules, asked) = asking_rules(&["denied.org", "127.0.0.3"], |_| true);
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = server.local_addr().expect("it has an address").port();
    let texts = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&texts);
    std::thread::spawn(move || {
        for connection in server.incoming().flatten() {
            answer(connection, &received);
        }
    });
    let proxy = EgressProxy::new(rules);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("it has an address");
    let runtime = tokio::runtime::Runtime::new().expect("it starts");
    let start = proxy.starter();
    runtime.block_on(async { start(listener) });
    let send = |text: String| {
        let mut stream = TcpStream::connect(address).expect("it accepts");
        stream.write_all(text.as_bytes()).expect("it is sent");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("it answers");
        reply
    };
    let get = |host: &str| {
        let head = format!("GET http://{host}/ HTTP/1.1\r\nhost: {host}\r\n");
        send(format!("{head}connection: close\r\n\r\n"))
    };
    assert_eq!(status(&get(&format!("127.0.0.1:{port}"))), "200");
    // A host that a rule denies is not asked about.
    for refused in ["denied.org", "denied.org:8080", "127.0.0.3:80", "[::ffff:127.0.0.3]:80"] {
        assert_eq!(status(&get(refused)), "403", "{refused}");
    }
    // The name was approved, and its address is one of this machine.
    assert_eq!(status(&get(&format!("localhost:{port}"))), "403");
    let asked = asked.lock().expect("it is not poisoned").clone();
    assert_eq!(asked, [format!("127.0.0.1:{port}"), format!("localhost:{port}")]);
    assert_eq!(texts.lock().expect("it is not poisoned").len(), 1);
}
