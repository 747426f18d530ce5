//! Taking a secret out of what comes back: a server that repeats what it was sent, as some do in their errors, must not hand a
//! guest the secret that the host added.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http_body::{Body, Frame};
use wasmtime_wasi_http::{Error, WasiBody};

const BLOT: u8 = b'*';

/// Texts to be taken out, whatever pieces they come in.
#[derive(Clone, Debug, Default)]
pub(super) struct Scrub {
    secrets: Vec<Vec<u8>>,
    /// What may be the beginning of a secret, as it came, and whether each byte of it belongs to one that was found.
    held: Vec<u8>,
    found: Vec<bool>,
}

/// A body without the secrets, and without trailers, which nobody needs.
pub(super) struct Scrubbed {
    body: WasiBody,
    scrub: Scrub,
}

impl Scrub {
    pub(super) fn of<'s>(secrets: impl Iterator<Item = &'s [u8]>) -> Self {
        Self { secrets: secrets.filter(|secret| !secret.is_empty()).map(<[u8]>::to_vec).collect(), ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Makes a request one for all of an answer, in plain words: neither what is compressed nor a part can be looked through.
    pub(super) fn ask_for_plain(&self, headers: &mut HeaderMap) {
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.remove(header::RANGE);
        headers.remove(header::IF_RANGE);
    }

    /// Whether an answer is in plain words, or there is nothing to be found in it.
    pub(super) fn can_look_through(&self, headers: &HeaderMap) -> Result<(), Error> {
        let is_plain = |encoding: &HeaderValue| encoding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity");
        if self.is_empty() || headers.get_all(header::CONTENT_ENCODING).iter().all(is_plain) {
            return Ok(());
        }
        let why = "the host compressed its answer, although it was asked not to; what is compressed is not passed on, for the secret that was \
                   sent along may be in it";
        Err(Error::InternalError(Some(why.into())))
    }

    pub(super) fn headers(&self, headers: &mut HeaderMap) {
        for value in headers.values_mut() {
            let mut bytes = value.as_bytes().to_vec();
            let mut found = vec![false; bytes.len()];
            self.find(&bytes, &mut found);
            if found.contains(&true) {
                blot(&mut bytes, &found);
                *value = HeaderValue::from_bytes(&bytes).unwrap_or_else(|_| HeaderValue::from_static(""));
            }
        }
    }

    pub(super) fn body(self, body: WasiBody) -> Scrubbed {
        Scrubbed { body, scrub: self }
    }

    /// What can be passed on of all that came so far.
    fn pass(&mut self, piece: &[u8]) -> Bytes {
        self.held.extend_from_slice(piece);
        self.found.resize(self.held.len(), false);
        let mut found = std::mem::take(&mut self.found);
        self.find(&self.held, &mut found);
        let longest = self.secrets.iter().map(Vec::len).max().unwrap_or(1);
        let end = self.held.len().saturating_sub(longest - 1);
        let (held, marks) = (self.held.split_off(end), found.split_off(end));
        let mut passed = std::mem::replace(&mut self.held, held);
        self.found = marks;
        blot(&mut passed, &found);
        passed.into()
    }

    fn rest(&mut self) -> Bytes {
        let mut rest = std::mem::take(&mut self.held);
        blot(&mut rest, &std::mem::take(&mut self.found));
        rest.into()
    }

    /// Marks every byte of every secret, of those too that overlap.
    fn find(&self, bytes: &[u8], found: &mut [bool]) {
        for secret in &self.secrets {
            for (at, _) in bytes.windows(secret.len()).enumerate().filter(|(_, window)| window == secret) {
                found[at..at + secret.len()].fill(true);
            }
        }
    }
}

fn blot(bytes: &mut [u8], found: &[bool]) {
    bytes.iter_mut().zip(found).filter(|(_, is_found)| **is_found).for_each(|(byte, _)| *byte = BLOT);
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
            let secrets = ["abc", "abcab", "cc"];
            let mut scrub = Scrub::of(secrets.iter().map(|secret| secret.as_bytes()));
            let whole: String = pieces.concat();
            let mut passed: Vec<u8> = pieces.iter().flat_map(|piece| scrub.pass(piece.as_bytes())).collect();
            passed.extend(scrub.rest());
            prop_assert_eq!(passed.len(), whole.len());
            let passed = String::from_utf8(passed).expect("it is text");
            let mut expected = whole.clone().into_bytes();
            for secret in secrets {
                for at in (0..whole.len()).filter(|at| whole[*at..].starts_with(secret)) {
                    expected[at..at + secret.len()].fill(BLOT);
                }
            }
            prop_assert_eq!(passed, String::from_utf8(expected).expect("it is text"), "of {}", whole);
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

    #[test]
    fn r114_an_answer_that_cannot_be_looked_through_is_not_asked_for_and_not_passed_on() {
        let scrub = Scrub::of([&b"sk-very-secret"[..]].into_iter());
        let mut headers = HeaderMap::new();
        headers.insert("accept-encoding", HeaderValue::from_static("gzip"));
        headers.insert("range", HeaderValue::from_static("bytes=60-80"));
        headers.insert("if-range", HeaderValue::from_static("x"));
        scrub.ask_for_plain(&mut headers);
        assert_eq!((headers.len(), headers["accept-encoding"].as_bytes()), (1, &b"identity"[..]));
        let answer = |encoding: &'static str| HeaderMap::from_iter([(header::CONTENT_ENCODING, HeaderValue::from_static(encoding))]);
        assert!(scrub.can_look_through(&HeaderMap::new()).is_ok() && scrub.can_look_through(&answer(" Identity")).is_ok());
        for encoding in ["gzip", "br", "identity, gzip"] {
            assert!(scrub.can_look_through(&answer(encoding)).is_err(), "{encoding}");
            assert!(Scrub::default().can_look_through(&answer(encoding)).is_ok(), "{encoding}");
        }
    }
}
