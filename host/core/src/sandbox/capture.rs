//! Captures a guest's standard output and standard error up to a cap.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError};

/// A stream that accepts everything, keeps the last `cap` bytes, and counts the dropped bytes.
#[derive(Clone, Debug)]
pub(super) struct TailCapture {
    tail: Arc<Mutex<CapturedTail>>,
}

#[derive(Debug)]
struct CapturedTail {
    cap: usize,
    bytes: Vec<u8>,
    dropped: u64,
}

impl TailCapture {
    pub(super) fn new(cap: usize) -> Self {
        Self { tail: Arc::new(Mutex::new(CapturedTail { cap, bytes: Vec::new(), dropped: 0 })) }
    }

    /// Returns the captured text. If bytes were dropped, the first line says how many.
    pub(super) fn text(&self) -> String {
        let kept = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept.bytes);
        match kept.dropped {
            0 => text.into_owned(),
            dropped => format!("[{dropped} earlier bytes dropped]\n{text}"),
        }
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        // The end is kept, because a panic message comes last. Trimming at twice the cap keeps this
        // linear.
        let cap = kept.cap;
        let tail = &bytes[bytes.len().saturating_sub(cap)..];
        kept.dropped += (bytes.len() - tail.len()) as u64;
        kept.bytes.extend_from_slice(tail);
        if kept.bytes.len() >= 2 * cap {
            let surplus = kept.bytes.len() - cap;
            kept.bytes.drain(..surplus);
            kept.dropped += surplus as u64;
        }
    }
}

impl OutputStream for TailCapture {
    fn write(&mut self, bytes: Bytes) -> Result<(), StreamError> {
        self.push(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StreamError> {
        Ok(())
    }

    fn check_write(&mut self) -> Result<usize, StreamError> {
        Ok(64 << 10)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for TailCapture {
    async fn ready(&mut self) {}
}

impl IsTerminal for TailCapture {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for TailCapture {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl AsyncWrite for TailCapture {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.push(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r098_a_flood_keeps_its_end_and_counts_the_dropped_bytes() {
        let capture = TailCapture::new(10);
        capture.push(b"short");
        assert_eq!(capture.text(), "short");
        capture.push(&[b'x'; 100]);
        capture.push(b"the end");
        let text = capture.text();
        assert!(text.starts_with("[102 earlier bytes dropped]\n"), "{text}");
        assert!(text.ends_with("the end"));
    }
}
