//! What a guest without grants sees.

use std::net::TcpListener;

use cofferdam_tests::guests::{Guest, House};

#[test]
fn r014_nothing_asked_is_nothing_there() {
    let house = House::with(&Guest::named("look-around"));
    house.write("file", "secret");
    assert_eq!(house.answers("look_around", "{}"), "variables 0\narguments 0\ncwd 0\ndirectories 0\ninput closed");
    house.assert_is_fine();
}

#[test]
fn sockets_reach_nobody() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    server.set_nonblocking(true).expect("it can be");
    let port = server.local_addr().expect("it has one").port();
    let house = House::with(&Guest::named("connect").with("{{port}}", &port.to_string()));
    let text = house.answers("connect", "{}");
    // 20 is `permanent-resolver-failure`, 1 `access-denied`.
    assert_eq!(text, "lookup error 20\nsocket error 1");
    assert!(server.accept().is_err(), "somebody connected");
    house.assert_is_fine();
}
