//! The beginning and the end of a stream of any length, in bounded memory.

use std::collections::VecDeque;

/// The number of bytes kept at each end: half of the 512 KiB in the contract.
const HALF_CAPACITY: usize = 256 << 10;

/// A buffer for the first and the last bytes of a stream.
#[derive(Debug, Default)]
pub(super) struct HeadAndTail {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    omitted: u64,
}

impl HeadAndTail {
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        let room = HALF_CAPACITY - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        bytes = rest;
        if bytes.len() > HALF_CAPACITY {
            self.omitted += (bytes.len() - HALF_CAPACITY) as u64;
            bytes = &bytes[bytes.len() - HALF_CAPACITY..];
        }
        let surplus = (self.tail.len() + bytes.len()).saturating_sub(HALF_CAPACITY);
        self.tail.drain(..surplus);
        self.omitted += surplus as u64;
        self.tail.extend(bytes);
    }

    /// Returns the kept text, with a line that marks the gap if there is one.
    pub(super) fn into_text(mut self) -> String {
        if self.omitted == 0 {
            self.head.extend(self.tail);
            return String::from_utf8_lossy(&self.head).into_owned();
        }
        let head = String::from_utf8_lossy(&self.head);
        let tail: Vec<u8> = self.tail.into();
        format!("{head}\n[… {} bytes omitted …]\n{}", self.omitted, String::from_utf8_lossy(&tail))
    }
}

/// The space for the line that states how many bytes are missing, in bytes.
const GAP_LEN: usize = 64;

/// Removes the middle of a text that has more than `most` bytes.
pub fn shorten(text: &mut String, most: usize) {
    if text.len() <= most {
        return;
    }
    let half = most.saturating_sub(GAP_LEN) / 2;
    let head = text.floor_char_boundary(half);
    let tail = text.ceil_char_boundary(text.len() - half);
    let gap = format!("\n[… {} bytes omitted …]\n", tail - head);
    text.replace_range(head..tail, &gap);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortened_text_keeps_both_ends_and_its_bound() {
        for (text, most) in [("ä".repeat(5000), 999), ("x".repeat(1000), 999), (String::new(), 0)]
        {
            let mut short = text.clone();
            shorten(&mut short, most);
            assert!(short.len() <= most, "{}", short.len());
        }
        let mut text = format!("begin{}end", "x".repeat(1000));
        shorten(&mut text, 200);
        assert!(text.starts_with("begin") && text.ends_with("xend"), "{text}");
        assert!(text.contains("\n[… 872 bytes omitted …]\n"), "{text}");
    }

    #[test]
    fn what_fits_is_kept_whole() {
        let mut kept = HeadAndTail::default();
        for _ in 0..8 {
            kept.push(&vec![b'x'; 64 << 10]);
        }
        assert_eq!(kept.into_text().len(), 512 << 10);
    }

    #[test]
    fn r095_the_gap_is_counted_exactly() {
        let mut kept = HeadAndTail::default();
        kept.push(&vec![b'a'; HALF_CAPACITY]);
        kept.push(&[b'b'; 10]);
        kept.push(&vec![b'c'; 3 * HALF_CAPACITY]);
        kept.push(b"end");
        let text = kept.into_text();
        assert!(
            text.contains(&format!("[… {} bytes omitted …]", 10 + 2 * HALF_CAPACITY + 3)),
            "{}",
            &text[HALF_CAPACITY..HALF_CAPACITY + 60]
        );
        assert!(text.ends_with("cend"));
    }
}
