//! Pages of lists, with cursors that clients cannot interpret.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rmcp::ErrorData;

/// The largest length of a cursor: a path and its encoding.
const MAX_CURSOR_LEN: usize = 8192;

/// Encodes a position in a list.
pub(crate) fn encode(list: &str, position: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{list}\n{position}"))
}

/// Decodes a position in a list.
///
/// # Errors
///
/// Returns an error for a cursor that this server has not made for this list.
pub(crate) fn decode(list: &str, cursor: &str) -> Result<String, ErrorData> {
    let decode = || {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        Some(text.strip_prefix(list)?.strip_prefix('\n')?.to_owned())
    };
    (cursor.len() <= MAX_CURSOR_LEN)
        .then(decode)
        .flatten()
        .ok_or_else(|| ErrorData::invalid_params("the cursor is not valid for this list", None))
}

/// Returns one page of a list, and the cursor of the next one.
///
/// # Errors
///
/// Returns an error for a cursor that this server has not made for this list.
pub(crate) fn page_of<T: Clone>(
    list: &str,
    items: &[T],
    cursor: Option<&str>,
    page_size: usize,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    let start = match cursor {
        None => 0,
        Some(cursor) => {
            let start = decode(list, cursor)?.parse().ok().filter(|start| *start < items.len());
            start.ok_or_else(|| ErrorData::invalid_params("the cursor is out of date", None))?
        }
    };
    let end = start.saturating_add(page_size).min(items.len());
    let next = (end < items.len()).then(|| encode(list, &end.to_string()));
    Ok((items[start..end].to_vec(), next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pages_together_are_the_list() {
        let items: Vec<usize> = (0..25).collect();
        let (mut seen, mut cursor, mut pages) = (Vec::new(), None, 0);
        loop {
            let (page, next) =
                page_of("numbers", &items, cursor.as_deref(), 10).expect("a valid cursor");
            seen.extend(page);
            pages += 1;
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!((seen, pages), (items, 3));
        assert_eq!(page_of::<u8>("numbers", &[], None, 10).expect("a page"), (vec![], None));
    }

    #[test]
    fn a_forged_cursor_is_an_error() {
        let items = [1, 2, 3];
        let forged = [
            String::new(),
            "1".into(),
            encode("others", "1"),
            encode("numbers", "3"),
            encode("numbers", "-1"),
            encode("numbers", "1 "),
            "A".repeat(100_000),
        ];
        for cursor in forged {
            assert!(page_of("numbers", &items, Some(&cursor), 1).is_err(), "{cursor:.40}");
        }
        let cursor = encode("numbers", "1");
        assert_eq!(page_of("numbers", &items, Some(&cursor), 5).expect("a page").0, [2, 3]);
    }
}
