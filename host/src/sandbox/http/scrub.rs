//! Taking a secret out of what comes back: a server that repeats what it was sent, as some do in their errors, must not hand a
//! guest the secret that the host added.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{HeaderMap, HeaderValue};
use http_body::{Body, Frame};
use wasmtime_wasi_http::{Error, WasiBody};

const BLOT: u8 = b'*';

/// Texts to be taken out, whatever pieces they come in.
#[derive(Clone, Debug, Default)]
pub(super) struct Scrub {
    secrets: Vec<Vec<u8>>,
    /// What may be the beginning of a secret.
    held: Vec<u8>,
}

/// A body without the secrets, and without trailers, which nobody needs.
pub(super) struct Scrubbed {
    body: WasiBody,
    scrub: Scrub,
}

impl Scrub {
    pub(super) fn of<'s>(secrets: impl Iterator<Item = &'s [u8]>) -> Self {
        Self { secrets: secrets.filter(|secret| !secret.is_empty()).map(<[u8]>::to_vec).collect(), held: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    pub(super) fn headers(&self, headers: &mut HeaderMap) {
        for value in headers.values_mut() {
            let mut bytes = value.as_bytes().to_vec();
            self.blot(&mut bytes);
            if bytes != value.as_bytes() {
                *value = HeaderValue::from_bytes(&bytes).unwrap_or_else(|_| HeaderValue::from_static(""));
            }
        }
    }

    pub(super) fn body(self, body: WasiBody) -> Scrubbed {
        Scrubbed { body, scrub: self }
    }

    /// What can be passed on of all that came so far.
    fn pass(&mut self, piece: &[u8]) -> Bytes {
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(piece);
        self.blot(&mut held);
        let longest = self.secrets.iter().map(Vec::len).max().unwrap_or(1);
        self.held = held.split_off(held.len().saturating_sub(longest - 1));
        held.into()
    }

    fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.held).into()
    }

    fn blot(&self, bytes: &mut [u8]) {
        for secret in &self.secrets {
            let mut from = 0;
            while let Some(at) = bytes[from..].windows(secret.len()).position(|window| window == secret) {
                bytes[from + at..from + at + secret.len()].fill(BLOT);
                from += at + secret.len();
            }
        }
    }
}

impl Body for Scrubbed {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        loop {
            let passed = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => self.scrub.pass(&piece),
                    Err(_) => continue,
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    let rest = self.scrub.rest();
                    return Poll::Ready((!rest.is_empty()).then(|| Ok(Frame::data(rest))));
                }
            };
            if !passed.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(passed))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn r114_a_secret_is_taken_out_whatever_pieces_it_comes_in(pieces in prop::collection::vec("[abc]{0,9}", 0..8)) {
            let mut scrub = Scrub::of([&b"abcab"[..], b"cc"].into_iter());
            let whole: String = pieces.concat();
            let mut passed: Vec<u8> = pieces.iter().flat_map(|piece| scrub.pass(piece.as_bytes())).collect();
            passed.extend(scrub.rest());
            prop_assert_eq!(passed.len(), whole.len());
            let passed = String::from_utf8(passed).expect("it is text");
            prop_assert!(!passed.contains("abcab") && !passed.contains("cc"), "{}", passed);
        }
    }

    #[test]
    fn r114_a_header_that_repeats_a_secret_does_not() {
        let scrub = Scrub::of([&b"sk-very-secret"[..]].into_iter());
        let mut headers = HeaderMap::new();
        headers.insert("x-echo", HeaderValue::from_static("Bearer sk-very-secret!"));
        headers.insert("x-other", HeaderValue::from_static("sk"));
        scrub.headers(&mut headers);
        assert_eq!((headers["x-echo"].as_bytes(), headers["x-other"].as_bytes()), (&b"Bearer **************!"[..], &b"sk"[..]));
    }
}
