//! The limits of one scan of all repositories in a workspace. They count steps, so that the result
//! does not depend on time.

use std::path::Path;

use super::trace::trace_below;
use crate::links::{LinkChain, LinkFollower};

/// The maximum size of all settings files together, in bytes.
const MOST_BYTES: u64 = 16 << 20;
/// The maximum number of settings that name paths, plus the words in them. Files with the same
/// content count once.
const MOST_WORDS: usize = 20_000;
/// The maximum number of path components that are followed.
const MOST_STEPS: usize = 500_000;

/// The amounts that one scan has used.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadingBudget {
    bytes: u64,
    words: usize,
    links: LinkFollower,
    /// The reason why the analysis stopped, if it did.
    spent: Option<String>,
    has_exceeded: bool,
}

impl ReadingBudget {
    /// Starts another scan, during which links may have other targets.
    pub(super) fn renew(&mut self) {
        *self = Self::default();
    }

    /// Records that a limit is the reason for an incomplete analysis, and returns the reason.
    pub(super) fn exceeded(&mut self, why: String) -> String {
        self.has_exceeded = true;
        why
    }

    /// Returns whether a limit was exceeded since the last call.
    pub(super) fn take_exceeded(&mut self) -> bool {
        std::mem::take(&mut self.has_exceeded)
    }

    /// Counts the bytes of a settings file, or of a file that points to one.
    ///
    /// # Errors
    /// All repositories together exceed the limit.
    pub(super) fn take_bytes(&mut self, bytes: u64) -> Result<(), String> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.check(self.bytes > MOST_BYTES, || {
            format!("it is one of several with more than {} MiB together", MOST_BYTES >> 20)
        })
    }

    /// Counts the settings and words that are analyzed.
    ///
    /// # Errors
    /// All repositories together exceed the limit.
    pub(super) fn take_words(&mut self, words: usize) -> Result<(), String> {
        self.words = self.words.saturating_add(words);
        self.check(self.words > MOST_WORDS, || {
            format!(
                "it is one of several that name more than {MOST_WORDS} programs and paths together"
            )
        })
    }

    /// Follows a path that starts in an absolute directory.
    ///
    /// # Errors
    /// This path, or all paths together, have too many components.
    pub(super) fn trace(&mut self, base: &Path, path: &Path) -> Result<LinkChain, String> {
        self.check(false, String::new)?;
        let chain = trace_below(&mut self.links, base, path);
        if chain.has_too_many_parts() {
            return Err(self.exceeded(
                "a path that leads there or that it names goes through too \
                many directories and links"
                    .to_owned(),
            ));
        }
        let is_spent = self.links.steps() > MOST_STEPS;
        self.check(is_spent, || {
            format!(
                "it is one of several that name paths through more than {MOST_STEPS} \
                directories and links together"
            )
        })?;
        Ok(chain)
    }

    /// Fails if the budget is exceeded. An exceeded budget stays exceeded.
    fn check(&mut self, is_spent: bool, why: impl Fn() -> String) -> Result<(), String> {
        if is_spent && self.spent.is_none() {
            self.spent = Some(why());
        }
        match self.spent.clone() {
            Some(why) => Err(self.exceeded(why)),
            None => Ok(()),
        }
    }
}
