//! What a response is, by what the server says, and where it says nothing by its first bytes.

/// How the bytes of a response become text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// By leaving out the markup.
    Html,
    /// They are text.
    Text,
    /// They do not.
    Other,
    /// Nobody said.
    Unknown,
}

/// How much decides whether it is text.
const HEAD: usize = 8 << 10;

impl Kind {
    /// By the `content-type`.
    pub(crate) fn declared(content_type: Option<&str>) -> Self {
        let essence = content_type
            .unwrap_or_default()
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        let (of, is) = essence.split_once('/').unwrap_or_default();
        match (of, is) {
            ("text", "html") | ("application", "xhtml+xml") => Self::Html,
            ("text", _) => Self::Text,
            ("" | "application" | "binary" | "unknown", "" | "octet-stream" | "unknown") => {
                Self::Unknown
            }
            (_, is) if is.ends_with("+json") || is.ends_with("+xml") || is.ends_with("+yaml") => {
                Self::Text
            }
            (
                "application",
                "json" | "xml" | "javascript" | "ecmascript" | "yaml" | "x-yaml" | "toml"
                | "graphql" | "sql" | "x-sh" | "x-ndjson" | "jsonl" | "x-tex" | "rtf",
            ) => Self::Text,
            _ => Self::Other,
        }
    }

    /// The same, or what the bytes look like if nobody said.
    pub(crate) fn or_of(self, bytes: &[u8]) -> Self {
        let head = &bytes[..bytes.len().min(HEAD)];
        match self {
            Self::Unknown if head.contains(&0) => Self::Other,
            Self::Unknown if looks_like_html(head) => Self::Html,
            // A character may be cut at the end of what is looked at.
            Self::Unknown => match std::str::from_utf8(head) {
                Err(error) if error.error_len().is_some() => Self::Other,
                Ok(_) | Err(_) => Self::Text,
            },
            known @ (Self::Html | Self::Text | Self::Other) => known,
        }
    }
}

fn looks_like_html(head: &[u8]) -> bool {
    let begins = |word: &[u8]| {
        head.trim_ascii_start()
            .get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    begins(b"<!doctype html") || begins(b"<html")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r122_the_content_type_decides() {
        let table = [
            ("text/html; charset=utf-8", Kind::Html),
            ("Application/XHTML+XML", Kind::Html),
            ("text/markdown", Kind::Text),
            ("application/json", Kind::Text),
            ("application/ld+json", Kind::Text),
            ("image/svg+xml", Kind::Text),
            ("image/png", Kind::Other),
            ("application/pdf", Kind::Other),
            ("application/octet-stream", Kind::Unknown),
            ("", Kind::Unknown),
            ("nonsense", Kind::Unknown),
        ];
        for (content_type, kind) in table {
            assert_eq!(Kind::declared(Some(content_type)), kind, "{content_type}");
        }
    }

    #[test]
    fn where_nobody_says_the_bytes_do() {
        let cut = [b'a'; HEAD - 1].iter().copied().chain("\u{e4}".bytes()).collect::<Vec<_>>();
        for (bytes, kind) in [
            (&b" <!DOCTYPE html><p>"[..], Kind::Html),
            (b"plain", Kind::Text),
            (b"", Kind::Text),
            (&cut, Kind::Text),
            (b"\x7fELF\0", Kind::Other),
            (b"\xff\xd8\xff\xe0", Kind::Other),
        ] {
            assert_eq!(Kind::Unknown.or_of(bytes), kind);
            assert_eq!(Kind::Html.or_of(bytes), Kind::Html);
        }
    }
}
