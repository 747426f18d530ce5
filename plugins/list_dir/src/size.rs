//! Sizes as people read them.

/// From bytes up, each 1024 of the one before.
const UNITS: [&str; 5] = ["B", "K", "M", "G", "T"];

/// A size with about two digits that count, such as `734B`, `1.5K` or `12M`.
pub(crate) fn human(bytes: f64) -> String {
    let mut size = bytes;
    let mut units = UNITS.into_iter();
    let mut unit = units.next().unwrap_or_default();
    // What would be shown as 1024 of a unit is 1.0 of the next.
    while size.round() >= 1024.0 {
        let Some(next) = units.next() else { break };
        unit = next;
        size /= 1024.0;
    }
    if unit == UNITS[0] || size >= 9.95 {
        format!("{size:.0}{unit}")
    } else {
        format!("{size:.1}{unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_two_digits_and_a_unit() {
        for (bytes, shown) in [
            (0.0, "0B"),
            (1023.0, "1023B"),
            (1024.0, "1.0K"),
            (1536.0, "1.5K"),
            (10_188.0, "9.9K"),
            (10_189.0, "10K"),
            (1_048_575.0, "1.0M"),
            (123_456_789.0, "118M"),
            (1e18, "909495T"),
        ] {
            assert_eq!(human(bytes), shown, "{bytes}");
        }
    }
}
