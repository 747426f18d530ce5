//! Removes credentials from responses. Some servers repeat the request in their errors; the guest
//! must not get the credential that the host added.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http_body::{Body, Frame};
use wasmtime_wasi_http::{Error, WasiBody};

const MASK: u8 = b'*';

/// Replaces secrets in a stream, even if they are split across pieces.
#[derive(Clone, Debug, Default)]
pub(super) struct SecretScrubber {
    secrets: Vec<Vec<u8>>,
    /// The last bytes, which may be the beginning of a secret. `marks` says for each byte whether
    /// it belongs to a secret.
    pending: Vec<u8>,
    marks: Vec<bool>,
}

/// A response body without secrets and without trailers.
pub(super) struct ScrubbedBody {
    body: WasiBody,
    scrubber: SecretScrubber,
}

impl SecretScrubber {
    pub(super) fn new<'s>(secrets: impl Iterator<Item = &'s [u8]>) -> Self {
        Self {
            secrets: secrets.filter(|secret| !secret.is_empty()).map(<[u8]>::to_vec).collect(),
            ..Self::default()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Requests an uncompressed and complete response. The scrubber cannot search a compressed one
    /// or a range.
    pub(super) fn request_identity_encoding(&self, headers: &mut HeaderMap) {
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.remove(header::RANGE);
        headers.remove(header::IF_RANGE);
    }

    /// Checks that the headers of a response name no compression and no range, unless there are no
    /// secrets to remove.
    pub(super) fn check_searchable(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<(), Error> {
        if self.is_empty() {
            return Ok(());
        }
        let names_only = |header: HeaderName, plain: &[u8]| {
            headers.get_all(header).iter().all(|value| {
                let mut codings = value.as_bytes().split(|byte| *byte == b',');
                codings.all(|coding| coding.trim_ascii().eq_ignore_ascii_case(plain))
            })
        };
        let problem = if !names_only(header::CONTENT_ENCODING, b"identity")
            || !names_only(header::TRANSFER_ENCODING, b"chunked")
        {
            "compressed its response although the request did not allow that"
        } else if status == StatusCode::PARTIAL_CONTENT {
            "sent a part of its response although the request was for the whole"
        } else {
            return Ok(());
        };
        let reason = format!(
            "the server {problem}; the response is dropped, because it may contain the credential \
                of the request"
        );
        Err(Error::InternalError(Some(reason)))
    }

    pub(super) fn scrub_headers(&self, headers: &mut HeaderMap) {
        for value in headers.values_mut() {
            let mut bytes = value.as_bytes().to_vec();
            let mut found = vec![false; bytes.len()];
            self.mark_secrets(&bytes, &mut found);
            if found.contains(&true) {
                mask(&mut bytes, &found);
                *value = HeaderValue::from_bytes(&bytes)
                    .unwrap_or_else(|_| HeaderValue::from_static(""));
            }
        }
    }

    pub(super) fn scrub_body(self, body: WasiBody) -> ScrubbedBody {
        ScrubbedBody { body, scrubber: self }
    }

    /// Adds a piece and returns the bytes that can be passed on.
    fn push(&mut self, piece: &[u8]) -> Bytes {
        self.pending.extend_from_slice(piece);
        self.marks.resize(self.pending.len(), false);
        let mut found = std::mem::take(&mut self.marks);
        self.mark_secrets(&self.pending, &mut found);
        let longest = self.secrets.iter().map(Vec::len).max().unwrap_or(1);
        let end = self.pending.len().saturating_sub(longest - 1);
        let (held, marks) = (self.pending.split_off(end), found.split_off(end));
        let mut passed = std::mem::replace(&mut self.pending, held);
        self.marks = marks;
        mask(&mut passed, &found);
        passed.into()
    }

    fn finish(&mut self) -> Bytes {
        let mut rest = std::mem::take(&mut self.pending);
        mask(&mut rest, &std::mem::take(&mut self.marks));
        rest.into()
    }

    /// Marks every byte of every secret, including overlapping ones.
    fn mark_secrets(&self, bytes: &[u8], found: &mut [bool]) {
        for secret in &self.secrets {
            for (at, _) in
                bytes.windows(secret.len()).enumerate().filter(|(_, window)| window == secret)
            {
                found[at..at + secret.len()].fill(true);
            }
        }
    }
}

fn mask(bytes: &mut [u8], found: &[bool]) {
    bytes
        .iter_mut()
        .zip(found)
        .filter(|(_, is_found)| **is_found)
        .for_each(|(byte, _)| *byte = MASK);
}

impl Body for ScrubbedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        loop {
            let passed = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => self.scrubber.push(&piece),
                    Err(_) => continue,
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    let rest = self.scrubber.finish();
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
        fn r114_a_secret_is_removed_however_it_is_split(
            pieces in prop::collection::vec("[abc]{0,9}", 0..8),
        ) {
            let secrets = ["abc", "abcab", "cc"];
            let mut scrub = SecretScrubber::new(secrets.iter().map(|secret| secret.as_bytes()));
            let whole: String = pieces.concat();
            let mut passed: Vec<u8> =
                pieces.iter().flat_map(|piece| scrub.push(piece.as_bytes())).collect();
            passed.extend(scrub.finish());
            prop_assert_eq!(passed.len(), whole.len());
            let passed = String::from_utf8(passed).expect("it is text");
            let mut expected = whole.clone().into_bytes();
            for secret in secrets {
                for at in (0..whole.len()).filter(|at| whole[*at..].starts_with(secret)) {
                    expected[at..at + secret.len()].fill(MASK);
                }
            }
            let expected = String::from_utf8(expected).expect("it is text");
            prop_assert_eq!(passed, expected, "of {}", whole);
        }
    }

    #[test]
    fn r114_a_secret_is_removed_from_response_headers() {
        let scrub = SecretScrubber::new([&b"sk-very-secret"[..]].into_iter());
        let mut headers = HeaderMap::new();
        headers.insert("x-echo", HeaderValue::from_static("Bearer sk-very-secret!"));
        headers.insert("x-other", HeaderValue::from_static("sk"));
        scrub.scrub_headers(&mut headers);
        assert_eq!(
            (headers["x-echo"].as_bytes(), headers["x-other"].as_bytes()),
            (&b"Bearer **************!"[..], &b"sk"[..])
        );
    }

    #[test]
    fn r114_a_response_that_cannot_be_searched_is_neither_requested_nor_passed_on() {
        let scrub = SecretScrubber::new([&b"sk-very-secret"[..]].into_iter());
        let mut headers = HeaderMap::new();
        headers.insert("accept-encoding", HeaderValue::from_static("gzip"));
        headers.insert("range", HeaderValue::from_static("bytes=60-80"));
        headers.insert("if-range", HeaderValue::from_static("x"));
        scrub.request_identity_encoding(&mut headers);
        assert_eq!((headers.len(), headers["accept-encoding"].as_bytes()), (1, &b"identity"[..]));
        let whole = StatusCode::OK;
        let answer = |header: HeaderName, value: &'static str| {
            HeaderMap::from_iter([(header, HeaderValue::from_static(value))])
        };
        let (content, transfer) = (header::CONTENT_ENCODING, header::TRANSFER_ENCODING);
        assert!(scrub.check_searchable(whole, &HeaderMap::new()).is_ok());
        for (header, value, is_searchable) in [
            (&content, " Identity", true),
            (&content, "gzip", false),
            (&content, "br", false),
            (&content, "identity, gzip", false),
            (&transfer, "Chunked", true),
            (&transfer, "gzip, chunked", false),
            (&transfer, "deflate", false),
        ] {
            let headers = answer(header.clone(), value);
            let checked = scrub.check_searchable(whole, &headers);
            assert_eq!(checked.is_ok(), is_searchable, "{header}: {value}");
            assert!(SecretScrubber::default().check_searchable(whole, &headers).is_ok());
        }
        let partial = StatusCode::PARTIAL_CONTENT;
        assert!(scrub.check_searchable(partial, &HeaderMap::new()).is_err());
        assert!(SecretScrubber::default().check_searchable(partial, &HeaderMap::new()).is_ok());
    }
}
