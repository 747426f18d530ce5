//! Converts call ids to forms that strict servers accept.
//!
//! The ids of a conversation are unique. A converted id depends only on the original one, so it is
//! the same in every request, even if parts of the conversation are omitted.

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};

use crate::conversation::CallId;

/// The bytes of a changed id that stay readable. A `_` and eight hexadecimal digits follow.
const READABLE_LEN: usize = 31;

/// The length of the ids that Mistral accepts.
const SHORT_LEN: usize = 9;

/// Returns an id of letters, digits, `_` and `-`, the characters that Anthropic accepts.
pub(super) fn plain_id(id: &CallId) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let id = id.as_str();
    if !id.is_empty() && id.chars().all(fits) {
        return Cow::Borrowed(id);
    }
    let readable: String =
        id.chars().map(|c| if fits(c) { c } else { '_' }).take(READABLE_LEN).collect();
    Cow::Owned(format!("{readable}_{:08x}", digest(id) >> 32))
}

/// Returns an id of nine letters and digits.
///
/// Mistral's API and the chat templates of its models accept nothing else.
pub(super) fn short_id(id: &CallId) -> Cow<'_, str> {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let id = id.as_str();
    if id.len() == SHORT_LEN && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Cow::Borrowed(id);
    }
    let mut left = digest(id);
    let short = (0..SHORT_LEN).map(|_| {
        let digit = usize::try_from(left % 62).unwrap_or_default();
        left /= 62;
        char::from(DIGITS[digit])
    });
    Cow::Owned(short.collect())
}

fn digest(id: &str) -> u64 {
    Sha256::digest(id).iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r021_ids_are_valid_for_strict_servers_and_stay_distinct() {
        let ids = [
            "call_1",
            "functions.grep:0",
            "functions_grep_0",
            "functions:grep.0",
            "é",
            "abc123XYZ",
            &"x".repeat(40),
            "a b",
        ];
        let ids: Vec<CallId> = ids.iter().map(|id| CallId::new(*id)).collect();
        let plain: Vec<_> = ids.iter().map(plain_id).collect();
        let short: Vec<_> = ids.iter().map(short_id).collect();
        for id in &plain {
            assert!(
                id.len() <= 40
                    && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'),
                "{id}"
            );
        }
        assert!(
            short.iter().all(|id| id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric())),
            "{short:?}"
        );
        for written in [&plain, &short] {
            let distinct: std::collections::HashSet<_> = written.iter().collect();
            assert_eq!(distinct.len(), ids.len(), "{written:?}");
        }
        assert_eq!(
            (plain[0].as_ref(), plain[2].as_ref(), short[5].as_ref()),
            ("call_1", "functions_grep_0", "abc123XYZ")
        );
        assert!(plain[1].starts_with("functions_grep_0_"), "{}", plain[1]);
    }
}
