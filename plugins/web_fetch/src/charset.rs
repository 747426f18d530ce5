//! From bytes to text: by the byte order mark, the header, what HTML says of itself, and else by
//! what the bytes can be.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use crate::kind::Kind;

/// HTML has to say it within its first bytes.
const PROLOGUE: usize = 1024;

/// Wrong bytes become replacement characters.
pub(crate) fn decode(bytes: &[u8], content_type: Option<&str>, kind: Kind) -> String {
    let (encoding, mark) = match Encoding::for_bom(bytes) {
        Some(found) => found,
        None => (
            content_type
                .and_then(label)
                .or_else(|| declared_in(bytes, kind))
                .unwrap_or_else(|| guess(bytes)),
            0,
        ),
    };
    encoding.decode_without_bom_handling(&bytes[mark..]).0.into_owned()
}

/// The encoding behind `charset=`.
fn label(text: &str) -> Option<&'static Encoding> {
    let start = text.to_ascii_lowercase().find("charset")? + "charset".len();
    let value =
        text[start..].trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let end = value
        .find(|c: char| !c.is_ascii_alphanumeric() && !"-_.:+".contains(c))
        .unwrap_or(value.len());
    Encoding::for_label(&value.as_bytes()[..end])
}

fn declared_in(bytes: &[u8], kind: Kind) -> Option<&'static Encoding> {
    if kind != Kind::Html {
        return None;
    }
    let prologue = String::from_utf8_lossy(&bytes[..bytes.len().min(PROLOGUE)]);
    let mut metas = prologue.match_indices('<').filter_map(|(at, _)| {
        let tag = &prologue[at..];
        let tag = &tag[..tag.find('>').unwrap_or(tag.len())];
        tag.get(..5).filter(|name| name.eq_ignore_ascii_case("<meta")).and_then(|_| label(tag))
    });
    // What calls itself UTF-16 in bytes that could be read so far is not.
    metas.next().map(|found| if found.output_encoding() == found { found } else { UTF_8 })
}

/// UTF-8 if it can be that; the last character may be cut, if others show what it is.
fn guess(bytes: &[u8]) -> &'static Encoding {
    match std::str::from_utf8(bytes) {
        Ok(_) => UTF_8,
        Err(error) if error.error_len().is_none() && !bytes[..error.valid_up_to()].is_ascii() => {
            UTF_8
        }
        Err(_) => WINDOWS_1252,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r122_text_is_decoded_by_what_is_said_of_it() {
        let meta = b"<html><meta name=a><META http-equiv='Content-Type' content='text/html; \
            charset=iso-8859-2'>\xb1";
        let table: [(&[u8], Option<&str>, &str); 9] = [
            ("\u{e4}".as_bytes(), None, "\u{e4}"),
            (b"\xe4", None, "\u{e4}"),
            (b"\xe4", Some("text/html; charset=ISO-8859-1"), "\u{e4}"),
            (b"\x83\x65", Some("text/html; charset=\"shift_jis\""), "\u{30c6}"),
            (b"\xef\xbb\xbf\xc3\xa4", Some("text/html; charset=latin1"), "\u{e4}"),
            (b"\xff\xfea\0", None, "a"),
            (b"\xc3\xa4", Some("text/html; charset=nonsense"), "\u{e4}"),
            (b"a\xff", Some("text/html; charset=utf-8"), "a\u{fffd}"),
            (b"<meta charset=utf-16>a", None, "<meta charset=utf-16>a"),
        ];
        for (bytes, content_type, expected) in table {
            assert_eq!(decode(bytes, content_type, Kind::Html), expected, "{bytes:?}");
        }
        assert!(decode(meta, Some("text/html"), Kind::Html).ends_with('\u{105}'));
        assert!(decode(meta, Some("text/plain"), Kind::Text).ends_with('\u{b1}'));
    }
}
