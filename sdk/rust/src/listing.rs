//! A list of names as text: one a line, within limits, and never cut without saying so.
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

/// Of text: more than a model can make use of.
const MAX_BYTES: usize = 256 << 10;
/// How many lines are counted that are left out, only to say how many there are.
const COUNTED: u32 = 100_000;
/// What could not be looked at, in lines.
const MAX_PROBLEMS: usize = 10;

/// Lines that are being listed.
#[derive(Debug)]
pub struct Listing {
    text: String,
    limit: u32,
    listed: u32,
    left_out: u32,
}

impl Listing {
    /// A list of at most so many lines, and of 256 KiB.
    pub fn new(limit: u32) -> Self {
        Self { text: String::new(), limit, listed: 0, left_out: 0 }
    }

    /// Adds a line, or counts it if there is no room for it. False once counting makes no
    /// difference any more: there is no need to look for more.
    pub fn push(&mut self, line: impl FnOnce() -> String) -> bool {
        if self.left_out > 0 || self.listed >= self.limit || self.text.len() >= MAX_BYTES {
            self.left_out += 1;
            return self.left_out < COUNTED;
        }
        self.listed += 1;
        self.text.push_str(&line());
        self.text.push('\n');
        true
    }

    /// Whether it has no line.
    pub fn is_empty(&self) -> bool {
        self.listed == 0
    }

    /// Whether a higher limit would show more.
    pub fn is_limited(&self) -> bool {
        self.left_out > 0 && self.listed == self.limit
    }

    /// Adds a remark for each thing that could not be looked at; of many, the first.
    pub fn add_problems(&mut self, what: &str, problems: &[String]) {
        for problem in problems.iter().take(MAX_PROBLEMS) {
            self.text.push_str(&format!("[{what}: {}]\n", one_line(problem)));
        }
        if let Some(more) = problems.len().checked_sub(MAX_PROBLEMS).filter(|&more| more > 0) {
            self.text.push_str(&format!("[{more} more {what}]\n"));
        }
    }

    /// The text, and whether something was left out, in which case it ends with how much, and with
    /// the ways to see the rest.
    pub fn into_text(mut self, things: &str, ways: &[String]) -> (String, bool) {
        if self.left_out > 0 {
            let total = self.listed + self.left_out;
            let total = if self.left_out >= COUNTED {
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

/// A name with its control characters escaped: it may hold line breaks, and must not pass for two.
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
    fn r121_what_is_left_out_is_counted_and_the_ways_to_it_are_told() {
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
    fn r121_the_text_is_capped_whatever_the_lines_are_like() {
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
        let taken = (0..2 * COUNTED).take_while(|_| listing.push(|| "x".into())).count();
        assert_eq!(taken, COUNTED as usize);
        assert!(listing.into_text("things", &[]).0.contains(" of more than 100001 things"));
    }

    #[test]
    fn of_many_problems_some_are_told_and_the_others_counted() {
        let mut listing = list(1, &[]);
        assert!(listing.is_empty());
        listing.add_problems("could not be listed", &vec!["a\nb".to_owned(); MAX_PROBLEMS + 2]);
        let (text, _) = listing.into_text("things", &[]);
        assert_eq!(text.matches("[could not be listed: a\\nb]\n").count(), MAX_PROBLEMS);
        assert!(text.ends_with("[2 more could not be listed]\n"), "{text}");
    }
}
