//! Media types of RFC 6838, as tools name them.

/// The longest media type, in bytes.
const MAX_MEDIA_TYPE_LEN: usize = 127;

/// Checks the syntax of a media type without parameters, such as `text/plain`, and returns it in
/// lower case. Media types are case-insensitive.
pub(super) fn normalize(text: &str) -> Option<String> {
    let (main, sub) = text.split_once('/')?;
    let is_valid = text.len() <= MAX_MEDIA_TYPE_LEN && is_restricted_name(main);
    (is_valid && is_restricted_name(sub)).then(|| text.to_ascii_lowercase())
}

/// Returns whether a text is a `restricted-name` of RFC 6838.
fn is_restricted_name(name: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b);
    name.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric) && name.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_follow_rfc_6838() {
        for valid in ["text/plain", "application/vnd.x+json", "image/svg+xml", "a/1"] {
            assert_eq!(normalize(valid).as_deref(), Some(valid));
        }
        assert_eq!(normalize("Text/PLAIN").as_deref(), Some("text/plain"));
        let long = format!("text/{}", "x".repeat(123));
        for invalid in [
            "",
            "text",
            "text/",
            "/plain",
            "text/plain; charset=utf-8",
            "text/pl ain",
            "text/plain\n",
            "text/a/b",
            "text/\u{e4}",
            "+a/b",
            &long,
        ] {
            assert_eq!(normalize(invalid), None, "{invalid:?}");
        }
        assert!(normalize(&long[..127]).is_some());
    }
}
