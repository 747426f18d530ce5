//! A server of files on this machine, with whatever answers a test wants it to give.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// Serves until the end of the test run.
pub(super) struct FileServer {
    address: String,
    responses: Arc<Mutex<HashMap<String, FileResponse>>>,
    requested_paths: Arc<Mutex<Vec<String>>>,
}

/// What comes back, byte by byte.
#[derive(Clone)]
struct FileResponse {
    bytes: Vec<u8>,
    /// The connection stays open when all of it was sent.
    hangs: bool,
}

impl FileServer {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there are ports");
        let address = listener.local_addr().expect("it has one").to_string();
        let site = Self { address, responses: Arc::default(), requested_paths: Arc::default() };
        let (answers, asked) = (Arc::clone(&site.responses), Arc::clone(&site.requested_paths));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answers, asked) = (Arc::clone(&answers), Arc::clone(&asked));
                std::thread::spawn(move || serve_connection(stream, &answers, &asked));
            }
        });
        site
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A file, as any server sends it.
    pub(super) fn serve_file(&self, path: &str, body: &[u8]) {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        self.serve_response(path, [head.as_bytes(), body].concat(), false);
    }

    /// Any answer at all.
    pub(super) fn serve_response(&self, path: &str, bytes: impl Into<Vec<u8>>, hangs: bool) {
        let answer = FileResponse { bytes: bytes.into(), hangs };
        self.responses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(path.to_owned(), answer);
    }

    /// How many times a path was asked for.
    pub(super) fn request_count(&self, path: &str) -> usize {
        self.requested_paths
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .filter(|asked| *asked == path)
            .count()
    }
}

fn serve_connection(
    mut stream: TcpStream,
    answers: &Mutex<HashMap<String, FileResponse>>,
    asked: &Mutex<Vec<String>>,
) {
    let (mut request, mut byte) = (Vec::new(), [0]);
    while !request.ends_with(b"\r\n\r\n") {
        if !matches!(stream.read(&mut byte), Ok(1)) {
            return;
        }
        request.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&request).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let answer = answers.lock().unwrap_or_else(PoisonError::into_inner).get(&path).cloned();
    let missing = || FileResponse {
        bytes: b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec(),
        hangs: false,
    };
    let FileResponse { bytes, hangs } = answer.unwrap_or_else(missing);
    // A client that has had enough is what some tests are about.
    let sent = stream.write_all(&bytes);
    asked.lock().unwrap_or_else(PoisonError::into_inner).push(path);
    if hangs && sent.is_ok() {
        // Until the client goes away.
        drop(stream.read(&mut byte));
    }
}
