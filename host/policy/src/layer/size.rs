//! Size limits for the patterns of a project. Anyone can write them, and each is matched against
//! every path and every command.

use std::ops::Range;

use super::parse::{LayerParser, ParseResult};
use super::{PolicyLevel, PolicyRule, ProtectionRules};

/// The maximum number of patterns in a file.
const MOST_PATTERNS: usize = 1_000;
/// The maximum length of a pattern, in characters.
const LONGEST: usize = 512;
/// The maximum number of stars in a pattern.
const MOST_STARS: usize = 16;
/// The maximum number of characters in all path components and words that contain a star and other
/// characters. Matching a path of 4 KiB takes at most 4,096 times as many steps.
const MOST_STARRED: usize = 10_000;

impl LayerParser<'_> {
    /// Checks the size of one pattern of a project.
    pub(super) fn check_size(&self, span: &Range<usize>, pattern: &str) -> ParseResult<()> {
        let (length, stars) = (pattern.chars().count(), pattern.matches('*').count());
        if self.source.level() != PolicyLevel::Project || length <= LONGEST && stars <= MOST_STARS {
            return Ok(());
        }
        let problem = if length > LONGEST {
            format!(
                "a pattern of {length} characters is too long for a project policy: use at most \
                    {LONGEST}"
            )
        } else {
            format!(
                "a pattern with {stars} stars is too complex for a project policy: use at most \
                    {MOST_STARS}"
            )
        };
        Err(self.error(span, problem))
    }

    /// Checks the total size of all patterns of a project.
    pub(super) fn check_sizes(
        &self,
        rules: &[PolicyRule],
        protected: &ProtectionRules,
    ) -> ParseResult<()> {
        if self.source.level() != PolicyLevel::Project {
            return Ok(());
        }
        let ProtectionRules { hidden, read_only, shown, writable } = protected;
        let listed =
            [hidden, read_only, shown, writable].into_iter().flatten().map(|placed| &placed.text);
        let texts: Vec<&String> =
            rules.iter().map(|rule| &rule.source_rule.text).chain(listed).collect();
        if texts.len() > MOST_PATTERNS {
            let count = texts.len();
            let problem = format!(
                "{count} patterns are too many for a project policy: use at most {MOST_PATTERNS}"
            );
            return Err(self.error(&(0..0), problem));
        }
        let parts = texts.iter().flat_map(|text| text.split(['/', ' ']));
        let starred: usize = parts
            .filter(|part| part.contains('*') && !matches!(*part, "*" | "**"))
            .map(str::len)
            .sum();
        if starred > MOST_STARRED {
            let problem = format!(
                "{starred} characters in words and names with a star are too many for a project \
                    policy: use at most {MOST_STARRED}"
            );
            return Err(self.error(&(0..0), problem));
        }
        Ok(())
    }
}
