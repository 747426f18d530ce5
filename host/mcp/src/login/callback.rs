//! The page of this machine where a login ends.
//!
//! The browser of the user brings the code here. Other programs and pages can reach the port as
//! well, so only a request with the random `state` of this login counts, and everything that a
//! request can do is limited.

use std::time::Duration;

use subtle::ConstantTimeEq as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::LoginError;
use super::encoding::decode_query;
use crate::servers::shown;

/// The largest request, in bytes, and the time for it.
const MAX_REQUEST_LEN: usize = 16 << 10;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of connections of one login.
const MAX_CONNECTIONS: usize = 1000;
const CALLBACK_PATH: &str = "/callback";

/// What the browser has to bring.
#[derive(Clone, Debug)]
pub(super) struct ExpectedAnswer {
    /// The random text of this login.
    pub(super) state: String,
    /// The login server.
    pub(super) issuer: String,
    /// Whether the answer has to name the login server.
    pub(super) names_issuer: bool,
}

/// The page where a login ends.
pub(super) struct CallbackPage {
    listener: TcpListener,
    port: u16,
}

impl CallbackPage {
    /// Listens on this port, or on a free one.
    pub(super) async fn bind(port: Option<u16>) -> Result<Self, LoginError> {
        let address = ("127.0.0.1", port.unwrap_or(0));
        let failed = |error: std::io::Error| {
            LoginError::new(format!("cannot listen on port {} of this machine: {error}", address.1))
        };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self { listener, port })
    }

    /// Returns the address that the login server sends the browser to.
    pub(super) fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}{CALLBACK_PATH}", self.port)
    }

    /// Waits for the answer of this login, and returns its code.
    pub(super) async fn wait_for_code(
        self,
        expected: ExpectedAnswer,
    ) -> Result<String, LoginError> {
        let (found, mut answers) = mpsc::channel(1);
        for _ in 0..MAX_CONNECTIONS {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                Some(answer) = answers.recv() => return answer,
            };
            let Ok((stream, _)) = accepted else { continue };
            let (found, expected, port) = (found.clone(), expected.clone(), self.port);
            tokio::spawn(async move {
                if let Ok(Some(answer)) =
                    timeout(REQUEST_TIMEOUT, serve(stream, &expected, port)).await
                {
                    let _ = found.send(answer).await;
                }
            });
        }
        Err(LoginError::new("too many programs connect to the page where the login ends"))
    }
}

type LoginAnswer = Result<String, LoginError>;

/// Answers one request. Returns the answer of the login if the request has it.
async fn serve(mut stream: TcpStream, expected: &ExpectedAnswer, port: u16) -> Option<LoginAnswer> {
    let head = read_head(&mut stream).await?;
    let (page, answer) = match read_answer(&head, expected, port) {
        Some(Ok(code)) => {
            (page("200 OK", "The login is complete. You can close this page."), Ok(code))
        }
        Some(Err(error)) => (
            page("400 Bad Request", "The login failed. The terminal shows the reason."),
            Err(error),
        ),
        None => {
            let page = page("404 Not Found", "This is not the page of a login that is under way.");
            let _ = stream.write_all(page.as_bytes()).await;
            return None;
        }
    };
    let _ = stream.write_all(page.as_bytes()).await;
    let _ = stream.shutdown().await;
    Some(answer)
}

/// Nothing of a request is in a page.
fn page(status: &str, text: &str) -> String {
    let body =
        format!("<!doctype html><meta charset=\"utf-8\"><title>Cofferdam</title><p>{text}</p>\n");
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
            cache-control: no-store\r\nreferrer-policy: no-referrer\r\n\
            content-security-policy: default-src 'none'\r\nx-content-type-options: nosniff\r\n\
            connection: close\r\n\r\n{body}",
        body.len()
    )
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 2048];
    while !bytes.windows(4).any(|window| window == b"\r\n\r\n") {
        let length = stream.read(&mut buffer).await.ok().filter(|length| *length > 0)?;
        bytes.extend_from_slice(buffer.get(..length)?);
        if bytes.len() > MAX_REQUEST_LEN {
            return None;
        }
    }
    String::from_utf8(bytes).ok()
}

/// Returns the answer of the login, if the request is from the browser that began it.
fn read_answer(head: &str, expected: &ExpectedAnswer, port: u16) -> Option<LoginAnswer> {
    let mut lines = head.split("\r\n");
    let query = lines
        .next()?
        .strip_prefix("GET ")?
        .strip_suffix(" HTTP/1.1")?
        .strip_prefix(CALLBACK_PATH)?
        .strip_prefix('?')?;
    // A page that gave its own name this address has another host.
    let mut headers = lines.filter_map(|line| line.split_once(':'));
    let host = headers.find(|(name, _)| name.eq_ignore_ascii_case("host"))?.1.trim();
    if host != format!("127.0.0.1:{port}") {
        return None;
    }
    let parameters = decode_query(query)?;
    let find = |name: &str| {
        parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    };
    let state = find("state")?;
    if !bool::from(state.as_bytes().ct_eq(expected.state.as_bytes())) {
        return None;
    }
    let issuer = find("iss");
    if issuer.is_some_and(|issuer| issuer != expected.issuer) {
        let issuer = shown(issuer.unwrap_or_default());
        return Some(Err(LoginError::new(format!(
            "the answer is from another login server, `{issuer}`"
        ))));
    }
    if expected.names_issuer && issuer.is_none() {
        let problem = "the answer does not name its login server, although that was announced";
        return Some(Err(LoginError::new(problem)));
    }
    if let Some(error) = find("error") {
        let more = find("error_description").map(|text| format!(" ({})", shown(text)));
        let problem =
            format!("the login server refused: {}{}", shown(error), more.unwrap_or_default());
        return Some(Err(LoginError::new(problem)));
    }
    let code = find("code").filter(|code| !code.is_empty());
    Some(code.map(str::to_owned).ok_or_else(|| LoginError::new("the answer has no code")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(target: &str, host: &str, names_issuer: bool) -> Option<Result<String, String>> {
        let expected = ExpectedAnswer {
            state: "right".to_owned(),
            issuer: "https://login.example.com".to_owned(),
            names_issuer,
        };
        let head = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        read_answer(&head, &expected, 7000).map(|answer| answer.map_err(|error| error.0))
    }

    #[test]
    fn only_the_answer_of_this_login_counts() {
        let host = "127.0.0.1:7000";
        let iss = "iss=https%3A%2F%2Flogin.example.com";
        let code = |target: &str| answer(target, host, false);
        assert_eq!(code("/callback?code=a%2Fb&state=right"), Some(Ok("a/b".to_owned())));
        let named = answer(&format!("/callback?code=c&state=right&{iss}"), host, true);
        assert_eq!(named, Some(Ok("c".to_owned())));
        for foreign in [
            "/callback",
            "/callback?code=c",
            "/callback?code=c&state=wrong",
            "/callback?code=c&state=righ",
            "/callback?code=c&state=right&state=wrong",
            "/callback?code=c&state=wrong&state=right",
            "/callback?error=access_denied&state=wrong",
            "/callback/?code=c&state=right",
            "/other?code=c&state=right",
            "http://127.0.0.1:7000/callback?code=c&state=right",
        ] {
            assert_eq!(code(foreign), None, "{foreign}");
        }
        for other in ["localhost:7000", "127.0.0.1", "127.0.0.1:7001", "evil.example.com:7000"] {
            assert_eq!(answer("/callback?code=c&state=right", other, false), None, "{other}");
        }
        assert_eq!(
            read_answer(
                "POST /callback?code=c&state=right HTTP/1.1\r\n\r\n",
                &ExpectedAnswer {
                    state: "right".to_owned(),
                    issuer: String::new(),
                    names_issuer: false
                },
                7000
            ),
            None
        );
    }

    #[test]
    fn an_answer_of_another_issuer_fails() {
        let host = "127.0.0.1:7000";
        let evil = "/callback?code=c&state=right&iss=https%3A%2F%2Fevil.example.com";
        for names_issuer in [true, false] {
            let problem =
                answer(evil, host, names_issuer).expect("an answer").expect_err("it fails");
            assert!(problem.contains("another login server, `https://evil"), "{problem}");
        }
        let silent = answer("/callback?code=c&state=right", host, true).expect("an answer");
        assert!(silent.expect_err("it fails").contains("does not name its login server"));
        let refused = "/callback?error=access_denied&error_description=no%1b%5B2J&state=right";
        let problem = answer(refused, host, false).expect("an answer").expect_err("it fails");
        assert_eq!(problem, "the login server refused: access_denied (no\\u{1b}[2J)");
    }

    #[tokio::test]
    async fn floods_and_slow_requests_do_not_end_a_login() {
        let page = CallbackPage::bind(None).await.expect("a port");
        let address = format!("127.0.0.1:{}", page.port);
        let expected = ExpectedAnswer {
            state: "right".to_owned(),
            issuer: String::new(),
            names_issuer: false,
        };
        let waiting = tokio::spawn(page.wait_for_code(expected));
        let mut slow = TcpStream::connect(&address).await.expect("it listens");
        slow.write_all(b"GET /callback?").await.expect("it reads");
        let mut large = TcpStream::connect(&address).await.expect("it listens");
        let _ = large.write_all(&vec![b'x'; 64 << 10]).await;
        let send = async |state: &str| {
            let mut stream = TcpStream::connect(&address).await.expect("it listens");
            let head =
                format!("GET /callback?code=c&state={state} HTTP/1.1\r\nHost: {address}\r\n\r\n");
            stream.write_all(head.as_bytes()).await.expect("it reads");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("it answers");
            answer
        };
        assert!(send("<script>").await.starts_with("HTTP/1.1 404"));
        let done = send("right").await;
        assert!(done.starts_with("HTTP/1.1 200") && !done.contains("right"), "{done}");
        let code = waiting.await.expect("it ends");
        assert_eq!(code.as_deref().map_err(|error| error.0.as_str()), Ok("c"));
    }
}
