//! A list of names as text: one per line, within limits, with a note if something is left out.
//!
//! ```
//! use cofferdam_sdk::listing::Listing;
//!
//! let mut files = Listing::new(2);
//! for name in ["a.rs", "b.rs", "c.rs"] {
//!     if !files.push(|| name.to_owned()) {
//!         break;
//!     }
//! }
//! let (text, _) = files.into_text("files", &["narrow the pattern".to_owned()]);
//! assert_eq!(text, "a.rs\nb.rs\n[the first 2 of 3 files; to see the rest, narrow the pattern]\n");
//! ```

/// The largest text, in bytes. A model cannot use more.
const MAX_BYTES: usize = 256 << 10;
/// The largest number of omitted lines that are counted.
const MAX_COUNTED: u32 = 100_000;
/// The number of listed problems.
const MAX_PROBLEMS: usize = 10;

/// A list under construction.
#[derive(Debug)]
pub struct Listing {
    text: String,
    limit: u32,
    listed: u32,
    left_out: u32,
}

impl Listing {
    /// Creates a list of at most `limit` lines and 256 KiB.
    pub fn new(limit: u32) -> Self {
        Self { text: String::new(), limit, listed: 0, left_out: 0 }
    }

    /// Adds a line, or only counts it if the list is full. Returns `false` if further lines would
    /// not even be counted.
    pub fn push(&mut self, line: impl FnOnce() -> String) -> bool {
        if self.left_out > 0 || self.listed >= self.limit || self.text.len() >= MAX_BYTES {
            self.left_out += 1;
            return self.left_out < MAX_COUNTED;
        }
        self.listed += 1;
        self.text.push_str(&line());
        self.text.push('\n');
        true
    }

    /// Returns whether the list has no lines.
    pub fn is_empty(&self) -> bool {
        self.listed == 0
    }

    /// Returns whether a higher limit would show more lines.
    pub fn is_limited(&self) -> bool {
        self.left_out > 0 && self.listed == self.limit
    }

    /// Adds a note for each of the first ten problems, and the number of the others.
    pub fn add_problems(&mut self, what: &str, problems: &[String]) {
        for problem in problems.iter().take(MAX_PROBLEMS) {
            self.text.push_str(&format!("[{what}: {}]\n", one_line(problem)));
        }
        if let Some(more) = problems.len().checked_sub(MAX_PROBLEMS).filter(|&more| more > 0) {
            self.text.push_str(&format!("[{more} more {what}]\n"));
        }
    }

    /// Returns the text, and whether lines were left out. The text then ends with their number and
    /// the ways to see them.
    pub fn into_text(mut self, things: &str, ways: &[String]) -> (String, bool) {
        if self.left_out > 0 {
            let total = self.listed + self.left_out;
            let total = if self.left_out >= MAX_COUNTED {
                format!("more than {total}")
            } else {
                total.to_string()
            };
            let ways = ways.join(", or ");
            self.text.push_str(&format!(
                "[the first {} of {total} {things}; to see the rest, {ways}]\n",
                self.listed
            ));
        }
        (self.text, self.left_out > 0)
    }
}

/// Returns a name with its control characters escaped, so that a line break in it does not look
/// like a second entry.
pub fn one_line(name: &str) -> String {
    name.chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(limit: u32, lines: &[&str]) -> Listing {
        let mut listing = Listing::new(limit);
        for line in lines {
            listing.push(|| (*line).to_owned());
        }
        listing
    }

    #[test]
    fn r121_omitted_lines_are_counted_and_the_ways_to_see_them_are_named() {
        let listing = list(1, &["a", "b", "c"]);
        assert!(listing.is_limited());
        let ways = ["go there".to_owned(), "come here".to_owned()];
        let expected =
            "a\n[the first 1 of 3 things; to see the rest, go there, or come here]\n".to_owned();
        assert_eq!(listing.into_text("things", &ways), (expected, true));
        assert_eq!(
            list(3, &["a", "b", "c"]).into_text("things", &ways),
            ("a\nb\nc\n".to_owned(), false)
        );
    }

    #[test]
    fn r121_the_size_of_the_text_is_limited() {
        let long = "x".repeat(4000);
        let listing = list(2000, &vec![long.as_str(); 2000]);
        assert!(!listing.is_limited(), "a higher limit would show no more");
        let (text, truncated) = listing.into_text("things", &[]);
        assert!(
            truncated && text.len() < MAX_BYTES + 5000 && text.contains(" of 2000 things"),
            "{}",
            text.len()
        );
    }

    #[test]
    fn counting_ends() {
        let mut listing = Listing::new(1);
        let taken = (0..2 * MAX_COUNTED).take_while(|_| listing.push(|| "x".into())).count();
        assert_eq!(taken, MAX_COUNTED as usize);
        assert!(listing.into_text("things", &[]).0.contains(" of more than 100001 things"));
    }

    #[test]
    fn the_first_problems_are_listed_and_the_others_counted() {
        let mut listing = list(1, &[]);
        assert!(listing.is_empty());
        listing.add_problems("could not be listed", &vec!["a\nb".to_owned(); MAX_PROBLEMS + 2]);
        let (text, _) = listing.into_text("things", &[]);
        assert_eq!(text.matches("[could not be listed: a\\nb]\n").count(), MAX_PROBLEMS);
        assert!(text.ends_with("[2 more could not be listed]\n"), "{text}");
    }
}
