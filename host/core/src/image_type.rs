//! Detection of the image formats that models accept.
//!
//! A provider refuses a request with an image whose bytes do not match its declared type. It then
//! refuses every later request of the conversation too. So the bytes of the image decide its type,
//! not its declared one.

/// The image types that every supported provider accepts.
pub(crate) const MEDIA_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Number of base64 characters that encode enough bytes to detect the type.
const BASE64_PREFIX_LEN: usize = 16;

/// Returns the media type of a file by its first bytes.
///
/// `None` means that the file is not an image of one of [`MEDIA_TYPES`].
pub(crate) fn media_type(file: &[u8]) -> Option<&'static str> {
    match file {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Returns the media type of a file that is encoded in base64.
///
/// `None` also covers text that is not base64.
pub(crate) fn media_type_from_base64(text: &str) -> Option<&'static str> {
    use base64::Engine as _;
    let beginning = text.get(..BASE64_PREFIX_LEN).unwrap_or(text);
    media_type(&base64::engine::general_purpose::STANDARD.decode(beginning).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_determine_the_type() {
        let table: [(&[u8], &str, Option<&str>); 6] = [
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "iVBORw0KGgoAAAANSUhEUg==", Some("image/png")),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", "/9j/4AAQSkZJRg==", Some("image/jpeg")),
            (b"GIF89a", "R0lGODlh", Some("image/gif")),
            (b"RIFF\x10\0\0\0WEBPVP8 ", "UklGRhAAAABXRUJQVlA4IA==", Some("image/webp")),
            (b"RIFF\x10\0\0\0WAVEfmt ", "UklGRhAAAABXQVZFZm10IA==", None),
            (b"", "", None),
        ];
        for (file, text, expected) in table {
            assert_eq!(
                (media_type(file), media_type_from_base64(text)),
                (expected, expected),
                "{text}"
            );
        }
        for damaged in
            ["iVBOR", "ö".repeat(20).as_str(), "<svg xmlns='http://www.w3.org/2000/svg'/>"]
        {
            assert_eq!(media_type_from_base64(damaged), None, "{damaged}");
        }
    }
}
