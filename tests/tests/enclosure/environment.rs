//! What a guest without grants sees.

use std::net::TcpListener;

use cofferdam_tests::guests::{TestGuest, TestHost};

#[test]
fn r014_nothing_asked_is_nothing_there() {
    let test_host = TestHost::with_guest(&TestGuest::from_file("look-around"));
    test_host.write_file("file", "secret");
    assert_eq!(
        test_host.call_ok("look_around", "{}"),
        "variables 0\narguments 0\ncwd 0\ndirectories 0\ninput closed"
    );
    test_host.assert_healthy();
}

#[test]
fn sockets_reach_nobody() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    server.set_nonblocking(true).expect("it can be");
    let port = server.local_addr().expect("it has one").port();
    let test_host = TestHost::with_guest(
        &TestGuest::from_file("connect").with_replacement("{{port}}", &port.to_string()),
    );
    let text = test_host.call_ok("connect", "{}");
    // 20 is `permanent-resolver-failure`, 1 `access-denied`.
    assert_eq!(text, "lookup error 20\nsocket error 1");
    assert!(server.accept().is_err(), "somebody connected");
    test_host.assert_healthy();
}
