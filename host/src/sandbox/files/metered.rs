//! A stream into a file aside, which ends where the call's budget does.

use bytes::Bytes;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{DynOutputStream, OutputStream, Pollable, StreamError, StreamResult};

use crate::sandbox::stage::Budget;

/// Counts what is written to another stream.
pub(super) struct Metered {
    inner: DynOutputStream,
    budget: Budget,
}

impl Metered {
    pub(super) fn new(inner: DynOutputStream, budget: Budget) -> Self {
        Self { inner, budget }
    }

    fn take(&self, bytes: &Bytes) -> StreamResult<()> {
        self.budget.take(bytes.len() as u64).map_err(|error| StreamError::LastOperationFailed(error.into()))
    }
}

#[async_trait]
impl OutputStream for Metered {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes)?;
        self.inner.write(bytes)
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes)?;
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
impl Pollable for Metered {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}
