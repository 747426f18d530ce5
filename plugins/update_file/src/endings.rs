//! Line endings: models write `\n`, files may have `\r\n`.

use std::borrow::Cow;

pub(crate) fn to_lf(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { text.into() }
}

pub(crate) fn to_crlf(text: &str) -> Cow<'_, str> {
    if text.contains('\n') { to_lf(text).replace('\n', "\r\n").into() } else { text.into() }
}

/// Looks up line endings of one text, at places that come in order.
#[derive(Debug)]
pub(crate) struct Endings<'t> {
    text: &'t str,
    /// Whether there is anything to look up.
    has_crlf: bool,
    /// The first line break at or after the last place; the text may be one enormous line.
    next: Option<Option<usize>>,
}

impl<'t> Endings<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, has_crlf: text.contains("\r\n"), next: None }
    }

    /// Whether the line at `place` ends with `\r\n`; the last one, which may not end at all, counts
    /// as the one before it.
    pub(crate) fn is_crlf(&mut self, place: usize) -> bool {
        if !self.has_crlf {
            return false;
        }
        let next = match self.next {
            Some(Some(next)) if next >= place => Some(next),
            Some(None) => None,
            Some(Some(_)) | None => self.text[place..].find('\n').map(|distance| place + distance),
        };
        self.next = Some(next);
        let end = next.or_else(|| self.text.rfind('\n'));
        end.is_some_and(|end| self.text[..end].ends_with('\r'))
    }
}

/// Whether a cut here would part `\r` from `\n`.
pub(crate) fn is_inside(text: &str, place: usize) -> bool {
    text[..place].ends_with('\r') && text[place..].starts_with('\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_and_twice() {
        assert_eq!(to_crlf("a\nb\r\nc"), "a\r\nb\r\nc");
        assert_eq!(to_crlf(&to_crlf("a\n")), "a\r\n");
        assert_eq!(to_lf("a\r\nb\rc\n"), "a\nb\rc\n");
    }

    #[test]
    fn each_line_has_its_own_ending() {
        let text = "a\r\nb\nc";
        let mut endings = Endings::new(text);
        let found: Vec<_> = [0, 1, 3, 5, 6].map(|place| endings.is_crlf(place)).into();
        assert_eq!(found, [true, true, false, false, false]);
        assert!(Endings::new("a\r\nb").is_crlf(3));
        assert!(!Endings::new("a\nb").is_crlf(0));
        assert!(is_inside(text, 2) && !is_inside(text, 1) && !is_inside(text, 4));
    }
}
