//! A parser for server-sent events that accepts bytes in pieces of any size.
//!
//! The parser buffers incomplete lines, so a piece may end within a line, a line ending or a code
//! point. It accepts all three line endings in any mixture, comments, data in several lines and a
//! byte order mark.
//!
//! Some servers omit the blank line after the last event. [`SseParser::finish`] returns that event,
//! and its reader decides whether it is complete. Invalid UTF-8 becomes U+FFFD and is flagged in
//! the event, because only the reader of the data can judge what it affects.

/// The longest line, and the most data of one event, in bytes.
///
/// A provider may send a whole response in one event. The longest responses (128 Ki tokens, about
/// 0.5 MB) stay below this limit even if every character is escaped.
const MAX_EVENT_BYTES: usize = 4 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A complete server-sent event.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct SseEvent {
    /// The value of the `event` field, which is usually empty.
    pub(super) name: String,
    /// The values of the `data` fields, joined by line feeds.
    pub(super) data: String,
    /// Whether the data contained bytes that are not UTF-8.
    pub(super) has_invalid_utf8: bool,
}

/// The error for a line or an event that exceeds [`MAX_EVENT_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {} MiB", MAX_EVENT_BYTES >> 20)]
pub(super) struct EventTooLong;

/// The state of the parser: the part of the next event received so far.
#[derive(Debug, Default)]
pub(super) struct SseParser {
    line: Vec<u8>,
    past_first_line: bool,
    ended_in_cr: bool,
    event: SseEvent,
    has_data: bool,
}

impl SseParser {
    /// Parses the next bytes and appends the completed events to `events`.
    ///
    /// # Errors
    ///
    /// Returns an error if a line or an event is too long. The stream is unusable after that.
    pub(super) fn push(
        &mut self,
        mut bytes: &[u8],
        events: &mut Vec<SseEvent>,
    ) -> Result<(), EventTooLong> {
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.ended_in_cr) && *first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + piece.len() > MAX_EVENT_BYTES {
                return Err(EventTooLong);
            }
            self.line.extend_from_slice(piece);
            let Some(end) = end else { return Ok(()) };
            self.ended_in_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            let line = std::mem::take(&mut self.line);
            self.parse_line(&line, events)?;
        }
        Ok(())
    }

    /// Returns the event that the end of the stream cut off, if there is one.
    ///
    /// It lacks its blank line, and perhaps more.
    pub(super) fn finish(mut self) -> Option<SseEvent> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.parse_line(&line, &mut Vec::new()).ok()?;
        }
        self.has_data.then_some(self.event)
    }

    fn parse_line(
        &mut self,
        mut line: &[u8],
        events: &mut Vec<SseEvent>,
    ) -> Result<(), EventTooLong> {
        if !std::mem::replace(&mut self.past_first_line, true) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            if std::mem::take(&mut self.has_data) {
                events.push(event);
            }
            return Ok(());
        }
        let is_text = std::str::from_utf8(line).is_ok();
        let line = String::from_utf8_lossy(line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.event.data.len() + value.len() >= MAX_EVENT_BYTES {
                    return Err(EventTooLong);
                }
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.event.has_invalid_utf8 |= !is_text;
            }
            "event" => value.clone_into(&mut self.event.name),
            // Comments (an empty field name), `id`, `retry` and unknown fields are ignored.
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        for piece in pieces {
            parser.push(piece, &mut events).expect("within the limits");
        }
        events.extend(parser.finish());
        events.into_iter().map(|event| (event.name, event.data)).collect()
    }

    #[test]
    fn r088_fields_comments_and_line_endings() {
        let cases: &[(&str, &[(&str, &str)])] = &[
            ("data: a\n\n", &[("", "a")]),
            ("data:a\r\n\r\n", &[("", "a")]),
            ("data: a\r\rdata: b\n\r\n", &[("", "a"), ("", "b")]),
            ("\u{FEFF}data: a\n\n", &[("", "a")]),
            ("data:  two spaces\n\n", &[("", " two spaces")]),
            ("data: one\ndata\ndata: three\n\n", &[("", "one\n\nthree")]),
            (": ping\n\n: ping\n\ndata: a\n\n", &[("", "a")]),
            ("event: ping\ndata: {}\nid: 7\nretry: 3\n\n", &[("ping", "{}")]),
            ("event: lonely\n\ndata: a\n\n", &[("", "a")]),
            ("data: a:b: c\n\n", &[("", "a:b: c")]),
            ("data: a\n\ndata: without a blank line\n", &[("", "a"), ("", "without a blank line")]),
            ("event: x\ndata: without a line's end", &[("x", "without a line's end")]),
            ("event: without data\n", &[]),
            ("", &[]),
        ];
        for (text, expected) in cases {
            let expected: Vec<_> =
                expected.iter().map(|(name, data)| ((*name).into(), (*data).into())).collect();
            assert_eq!(parsed(&[text.as_bytes()]), expected, "{text:?}");
        }
    }

    #[test]
    fn r088_pieces_may_end_anywhere() {
        let text = "\u{FEFF}event: a\r\ndata: {\"t\":\"grüße 🦀\"}\r\n\r\n: comment\rdata: \
            x\r\rdata: y\ndata: z\n\n"
            .as_bytes();
        let whole = parsed(&[text]);
        assert_eq!(whole.len(), 3);
        for first in 0..=text.len() {
            for second in first..=text.len() {
                assert_eq!(
                    parsed(&[&text[..first], &text[first..second], &text[second..]]),
                    whole,
                    "cut at {first} and {second}"
                );
            }
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(parsed(&bytes), whole);
    }

    #[test]
    fn r088_an_event_flags_invalid_utf8() {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        parser
            .push(b": \xFF\nid: \xFF\ndata: a\n\ndata: gr\xC3\xBCn\n\ndata: \xC3\n\n", &mut events)
            .expect("within the limits");
        let flags: Vec<(&str, bool)> =
            events.iter().map(|event| (event.data.as_str(), event.has_invalid_utf8)).collect();
        assert_eq!(flags, [("a", false), ("gr\u{fc}n", false), ("\u{FFFD}", true)]);
    }

    #[test]
    fn r088_an_endless_line_is_an_error() {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        let piece = vec![b'x'; 1 << 20];
        let outcome = (0..16).try_for_each(|_| parser.push(&piece, &mut events));
        assert_eq!(outcome, Err(EventTooLong));
    }

    #[test]
    fn r088_endless_data_is_an_error() {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        let line = format!("data: {}\n", "x".repeat(1 << 19));
        let outcome = (0..32).try_for_each(|_| parser.push(line.as_bytes(), &mut events));
        assert_eq!(outcome, Err(EventTooLong));
    }
}
