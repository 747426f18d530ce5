//! The limits of one scan of all repositories in a workspace. They count steps, so that the result
//! does not depend on time.

use std::path::Path;

use super::error::GitLimit;
use super::trace::trace_below;
use crate::links::{LinkChain, LinkFollower};

/// The maximum size of all settings files together, in bytes.
pub(super) const MOST_BYTES: u64 = 16 << 20;
/// The maximum number of settings that name paths, plus the words in them. Files with the same
/// content count once.
pub(super) const MOST_WORDS: usize = 20_000;
/// The maximum number of path components that are followed.
pub(super) const MOST_STEPS: usize = 500_000;

/// The amounts that one scan has used.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadingBudget {
    bytes: u64,
    words: usize,
    links: LinkFollower,
    /// The limit of all repositories that was exceeded first.
    spent: Option<GitLimit>,
    has_exceeded: bool,
}

impl ReadingBudget {
    /// Starts another scan, during which links may have other targets.
    pub(super) fn renew(&mut self) {
        *self = Self::default();
    }

    /// Records that a limit is the reason for an incomplete analysis, and returns the limit.
    pub(super) fn exceeded(&mut self, limit: GitLimit) -> GitLimit {
        self.has_exceeded = true;
        limit
    }

    /// Returns whether a limit was exceeded since the last call.
    pub(super) fn take_exceeded(&mut self) -> bool {
        std::mem::take(&mut self.has_exceeded)
    }

    /// Counts the bytes of a settings file, or of a file that points to one.
    ///
    /// # Errors
    /// All repositories together exceed the limit.
    pub(super) fn take_bytes(&mut self, bytes: u64) -> Result<(), GitLimit> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.check(self.bytes > MOST_BYTES, GitLimit::TotalBytes)
    }

    /// Counts the settings and words that are analyzed.
    ///
    /// # Errors
    /// All repositories together exceed the limit.
    pub(super) fn take_words(&mut self, words: usize) -> Result<(), GitLimit> {
        self.words = self.words.saturating_add(words);
        self.check(self.words > MOST_WORDS, GitLimit::TotalWords)
    }

    /// Follows a path that starts in an absolute directory.
    ///
    /// # Errors
    /// This path, or all paths together, have too many components.
    pub(super) fn trace(&mut self, base: &Path, path: &Path) -> Result<LinkChain, GitLimit> {
        self.check_spent()?;
        let chain = trace_below(&mut self.links, base, path);
        if chain.has_too_many_parts() {
            return Err(self.exceeded(GitLimit::PathComponents));
        }
        self.check(self.links.steps() > MOST_STEPS, GitLimit::TotalSteps)?;
        Ok(chain)
    }

    /// Fails if this limit, or an earlier one, is exceeded.
    fn check(&mut self, is_spent: bool, limit: GitLimit) -> Result<(), GitLimit> {
        if is_spent {
            self.spent.get_or_insert(limit);
        }
        self.check_spent()
    }

    /// Fails if a limit of all repositories is exceeded. An exceeded budget stays exceeded.
    fn check_spent(&mut self) -> Result<(), GitLimit> {
        match self.spent {
            Some(limit) => Err(self.exceeded(limit)),
            None => Ok(()),
        }
    }
}
