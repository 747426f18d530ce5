//! A stream into a staged file, limited by the write budget of the call and by the largest file
//! size.

use bytes::Bytes;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{DynOutputStream, OutputStream, Pollable, StreamError, StreamResult};

use crate::sandbox::stage::{MAX_FILE_SIZE, WriteBudget};

/// An output stream that counts the bytes written to another stream.
pub(super) struct MeteredStream {
    inner: DynOutputStream,
    budget: WriteBudget,
    /// The bytes until the file reaches its largest size.
    remaining: u64,
}

impl MeteredStream {
    /// Wraps a stream that begins at this offset.
    pub(super) fn new(inner: DynOutputStream, budget: WriteBudget, offset: u64) -> Self {
        Self { inner, budget, remaining: MAX_FILE_SIZE.saturating_sub(offset) }
    }

    fn consume(&mut self, bytes: &Bytes) -> StreamResult<()> {
        let failed = |error: std::io::Error| StreamError::LastOperationFailed(error.into());
        let bytes = bytes.len() as u64;
        let room = self
            .remaining
            .checked_sub(bytes)
            .ok_or_else(|| failed(rustix::io::Errno::FBIG.into()))?;
        self.budget.consume(bytes).map_err(failed)?;
        self.remaining = room;
        Ok(())
    }
}

#[async_trait]
impl OutputStream for MeteredStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.consume(&bytes)?;
        self.inner.write(bytes)
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.consume(&bytes)?;
        self.inner.blocking_write_and_flush(bytes).await
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.inner.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.inner.check_write()
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}

#[async_trait]
impl Pollable for MeteredStream {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}
