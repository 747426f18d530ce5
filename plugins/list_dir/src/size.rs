//! Sizes for people.

/// The units, each 1024 times the one before.
const UNITS: [&str; 5] = ["B", "K", "M", "G", "T"];

/// Returns a size with about two significant digits, such as `734B`, `1.5K` or `12M`.
pub(crate) fn human(bytes: u64) -> String {
    // Precise enough for two digits.
    let mut size = bytes as f64;
    let mut units = UNITS.into_iter();
    let mut unit = units.next().unwrap_or_default();
    // 1024 of a unit are 1.0 of the next.
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
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.0K"),
            (1536, "1.5K"),
            (10_188, "9.9K"),
            (10_189, "10K"),
            (1_048_575, "1.0M"),
            (123_456_789, "118M"),
            (1_000_000_000_000_000_000, "909495T"),
        ] {
            assert_eq!(human(bytes), shown, "{bytes}");
        }
    }
}
