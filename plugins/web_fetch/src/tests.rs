//! The tool, as the host calls it.

use cofferdam_sdk::http::{HttpError, Request, Response};
use cofferdam_sdk::test::Host;
use cofferdam_sdk::{Denial, Output, ToolError};

use crate::WebFetch;

/// Answers like a server with a few pages.
fn serve(request: &Request) -> Result<Response, HttpError> {
    let html = |text: &str| {
        Ok(Response::new(
            200,
            [("Content-Type", "text/html; charset=utf-8")],
            text.as_bytes().to_vec(),
        ))
    };
    let moved = |to: &str| Ok(Response::new(302, [("location", to)], ""));
    let of_type =
        |kind: &str, bytes: &[u8]| Ok(Response::new(200, [("content-type", kind)], bytes.to_vec()));
    assert_eq!(request.method, "GET");
    match request.url.as_str() {
        "https://example.com/" => {
            html("<title>Example</title><h1>Hello</h1><p>See <a href=more>more</a>.")
        }
        "https://example.com/old" => moved("/newer"),
        "https://example.com/newer" => moved("https://example.com/"),
        "https://example.com/circle" => moved("circle"),
        "https://example.com/inside" => moved("http://169.254.169.254/latest/meta-data"),
        "https://example.com/odd" => moved("javascript:alert(1)"),
        "https://example.com/nowhere" => Ok(Response::new(301, [("x", "y")], "")),
        "https://example.com/json" => of_type("application/json", br#"{"a": 1}"#),
        "https://example.com/pdf" => of_type("application/pdf", b"%PDF-1.7"),
        "https://example.com/binary" => of_type("application/octet-stream", b"\x7fELF\0\0"),
        "https://example.com/long" => {
            of_type("text/plain", "line of text\n".repeat(20_000).as_bytes())
        }
        "https://example.com/huge" => of_type("text/plain", &vec![b'x'; 6_000_000]),
        "https://example.com/login" => {
            Ok(Response::new(403, [("content-type", "text/plain")], b"members only".to_vec()))
        }
        "https://example.com/silent" => Err(HttpError::TimedOut("no answer within 30 s".into())),
        "http://169.254.169.254/latest/meta-data" => Err(HttpError::Denied(Denial {
            code: "not-granted".into(),
            reason: "169.254.169.254:80 leads to 169.254.169.254, which is the local link.".into(),
            remedy: None,
        })),
        _ => Ok(Response::new(404, [("content-type", "text/html")], b"<p>No such page.".to_vec())),
    }
}

fn fetch(input: &str) -> Result<Output, ToolError> {
    Host::new().on_request(serve).call::<WebFetch>(input)
}

fn text(path: &str) -> String {
    let output = fetch(&format!(r#"{{"url": "https://example.com/{path}"}}"#)).expect(path);
    output.to_text()
}

fn problem(path: &str) -> String {
    format!("{:?}", fetch(&format!(r#"{{"url": "https://example.com/{path}"}}"#)).expect_err(path))
}

#[test]
fn r122_a_page_is_shown_with_where_it_is_from() {
    assert_eq!(
        text(""),
        "https://example.com/\ntext/html; charset=utf-8\ntitle: Example\n\n# Hello\n\nSee \
            [more](https://example.com/more)."
    );
    assert_eq!(text("json"), "https://example.com/json\napplication/json\n\n{\"a\": 1}");
}

#[test]
fn r122_redirects_are_followed_and_told() {
    assert!(
        text("old").starts_with("https://example.com/ (redirected from https://example.com/old)\n")
    );
    assert!(problem("circle").contains("redirected more than 10 times"));
    assert!(
        problem("odd").contains("redirects to `javascript:alert(1)`, which cannot be followed")
    );
    assert!(problem("nowhere").contains("without a target"));
}

#[test]
fn r122_a_redirect_that_the_host_denies_is_denied_with_the_way_that_led_there() {
    let Err(ToolError::Denied(denial)) = fetch(r#"{"url": "https://example.com/inside"}"#) else {
        panic!("it is denied")
    };
    assert_eq!(denial.code, "not-granted");
    assert!(
        denial.reason.starts_with(
            "https://example.com/inside redirects to http://169.254.169.254/latest/meta-data: "
        ),
        "{denial:?}"
    );
}

#[test]
fn r122_what_is_no_text_says_so() {
    assert!(
        problem("pdf").contains("is `application/pdf`, which this tool cannot convert to text")
    );
    assert!(
        problem("binary")
            .contains("is `application/octet-stream`, which this tool cannot convert to text")
    );
}

#[test]
fn r122_long_text_continues_at_an_offset() {
    let first = fetch(r#"{"url": "https://example.com/long"}"#).expect("a page");
    let text = first.to_text();
    assert!(first.truncated && text.len() < 102_400);
    assert!(
        text.ends_with("[160000 of 260000 bytes of text remain; continue with offset 100000]"),
        "{}",
        &text[text.len() - 200..]
    );
    let last = fetch(r#"{"url": "https://example.com/long", "offset": 259994}"#).expect("a page");
    assert_eq!(last, Output::text("https://example.com/long\ntext/plain\n\n text\n"));
    let beyond = fetch(r#"{"url": "https://example.com/long", "offset": 260000}"#);
    assert_eq!(
        beyond,
        Err(ToolError::invalid_input(
            "/offset",
            "the text has 260000 bytes; `offset` has to be smaller"
        ))
    );
}

#[test]
fn r122_no_more_than_five_megabytes_are_read() {
    let output =
        fetch(r#"{"url": "https://example.com/huge", "offset": 4999999}"#).expect("a page");
    let text = output.to_text();
    assert_eq!(
        text,
        "https://example.com/huge\ntext/plain\n\nx\n\n[only the first 5000000 bytes were read]"
    );
}

#[test]
fn errors_say_what_happened_and_what_the_server_said() {
    assert!(problem("missing").contains(concat!(
        r#"NotFound("https://example.com/missing: status 404: "#,
        r#"the page does not exist. It said:\nNo such page.")"#,
    )));
    assert!(problem("login").contains("this tool cannot log in. It said:\\nmembers only"));
    assert!(
        problem("silent").contains(
            r#"TimedOut("cannot fetch https://example.com/silent: no answer within 30 s")"#
        )
    );
    let no_address = fetch(r#"{"url": "example.com"}"#);
    assert_eq!(
        no_address,
        Err(ToolError::invalid_input("/url", "it is not a complete URL; begin it with `https://`"))
    );
}
