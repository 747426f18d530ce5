//! Plugins that come from a server.

use cofferdam::sandbox::ComponentDigest;
use cofferdam_tests::program::wait_until;

use super::added::{
    call_tool, echo_plugin, list_plugins, read_lock_file, reading_tool, stored_files, stored_name,
};
use super::file_server::FileServer;
use super::new_home;

#[test]
fn a_plugin_comes_from_a_server_and_again_from_there() {
    let (home, site) = (new_home(), FileServer::start());
    let (first, second) =
        (echo_plugin(&reading_tool()), echo_plugin(&reading_tool().with_description("Better.")));
    site.serve_file("/v/echo.wasm?x=1", &first);
    site.serve_response(
        "/latest",
        "HTTP/1.1 302 Found\r\nlocation: /v/echo.wasm?x=1\r\ncontent-length: 0\r\nconnection: \
            close\r\n\r\n",
        false,
    );
    let (url, other) =
        (site.url("/latest"), format!("sha256:{}", ComponentDigest::compute(&second)));
    let ran = home.run(&["plugin", "add", &url, "--name", "echo", "--yes", "--digest", &other]);
    assert!(
        ran.exit_code == 1
            && ran.stderr.contains("does not match `--digest`")
            && ran.stderr.contains(&other),
        "{ran:?}"
    );
    assert!(stored_files(&home).is_empty());
    let digest = format!("sha256:{}", ComponentDigest::compute(&first));
    let ran = home.run(&["plugin", "add", &url, "--name", "echo", "--yes", "--digest", &digest]);
    assert_eq!(ran.exit_code, 0, "{ran:?}");
    assert_eq!(
        (list_plugins(&home)[0]["source"].as_str(), call_tool(&home).exit_code),
        (Some(url.as_str()), 0)
    );
    site.serve_file("/v/echo.wasm?x=1", &second);
    let ran = home.run(&["plugin", "update"]);
    assert!(ran.exit_code == 0 && ran.stderr.contains("it requests no new permissions"), "{ran:?}");
    assert_eq!(
        (stored_files(&home), call_tool(&home).exit_code),
        (vec![stored_name("echo", &second)], 0)
    );
}

#[test]
fn a_server_that_does_not_deliver_changes_nothing() {
    let (home, site) = (new_home(), FileServer::start());
    site.serve_file("/echo.wasm", &echo_plugin(&reading_tool()));
    assert_eq!(home.run(&["plugin", "add", &site.url("/echo.wasm"), "--yes"]).exit_code, 0);
    let before = (read_lock_file(&home), stored_files(&home));
    let head = |length: usize| format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\nsome");
    let away = |to: &str| {
        format!(
            "HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        )
    };
    let endless =
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(), endless_chunks(65)]
            .concat();
    let table: [(&str, Vec<u8>, &str); 8] = [
        (
            "an error",
            b"HTTP/1.1 500 No\r\ncontent-length: 4\r\nconnection: close\r\n\r\noops".to_vec(),
            "the server responded with 500",
        ),
        ("half of it", head(1000).into(), "cannot fetch it: "),
        ("too much, as it says", head(1 << 30).into(), "it is larger than 64 MiB"),
        ("too much", endless, "it is larger than 64 MiB"),
        (
            "elsewhere, for anyone to read",
            away("http://example.org/echo.wasm").into(),
            "it is not https",
        ),
        ("a file", away("file:///etc/passwd").into(), "cannot fetch it: "),
        ("in a circle", away("/echo.wasm").into(), "more than 5 times"),
        (
            "something else",
            b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nwasm".to_vec(),
            "it is not WebAssembly (it begins with `wasm`)",
        ),
    ];
    for (what, answer, problem) in table {
        site.serve_response("/echo.wasm", answer, false);
        let ran = home.run(&["plugin", "update", "--yes"]);
        assert!(ran.exit_code == 1 && ran.stderr.contains(problem), "{what}: {ran:?}");
        assert_eq!((read_lock_file(&home), stored_files(&home)), before, "{what}");
    }
    assert_eq!(call_tool(&home).exit_code, 0);
}

/// So many MiB, a chunk each, and no end.
fn endless_chunks(count: usize) -> Vec<u8> {
    let chunk = [b"100000\r\n".to_vec(), vec![b'x'; 1 << 20], b"\r\n".to_vec()].concat();
    chunk.repeat(count)
}

#[test]
fn a_stop_in_the_middle_leaves_the_old_one() {
    let (home, site) = (new_home(), FileServer::start());
    site.serve_file("/echo.wasm", &echo_plugin(&reading_tool()));
    assert_eq!(home.run(&["plugin", "add", &site.url("/echo.wasm"), "--yes"]).exit_code, 0);
    let before = (read_lock_file(&home), stored_files(&home));
    site.serve_response("/echo.wasm", "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nsome", true);
    for kill in [false, true] {
        let asked = site.request_count("/echo.wasm");
        let running = home.start(home.command(&["plugin", "update"]));
        wait_until("the server was asked", || site.request_count("/echo.wasm") > asked);
        if !kill {
            running.interrupt();
        }
        // One that is dropped is killed.
        drop(running);
        assert_eq!((read_lock_file(&home), stored_files(&home)), before);
        assert_eq!(call_tool(&home).exit_code, 0);
    }
}
