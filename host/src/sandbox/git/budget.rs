//! The limits of one look at all repositories of a workspace. They count steps, so that the result
//! does not depend on time.

use std::path::Path;

use super::trace::trace_below;
use crate::sandbox::links::{LinkChain, LinkFollower};

/// Bytes of all files of settings.
const MOST_BYTES: u64 = 16 << 20;
/// Settings that name paths, and the words in them. Files with the same content count once.
const MOST_WORDS: usize = 20_000;
/// Components of paths that are followed.
const MOST_STEPS: usize = 500_000;

/// What one look has spent.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadingBudget {
    bytes: u64,
    words: usize,
    links: LinkFollower,
    /// Why no more is analysed.
    spent: Option<String>,
    has_exceeded: bool,
}

impl ReadingBudget {
    /// Begins another look, at which links may lead elsewhere.
    pub(super) fn renew(&mut self) {
        *self = Self::default();
    }

    /// Notes that a limit is the reason why something is not analysed. Gives the reason back.
    pub(super) fn exceeded(&mut self, why: String) -> String {
        self.has_exceeded = true;
        why
    }

    /// Whether a limit was exceeded since this was asked last.
    pub(super) fn take_exceeded(&mut self) -> bool {
        std::mem::take(&mut self.has_exceeded)
    }

    /// Counts bytes of a file that settings are in or that leads to settings.
    ///
    /// # Errors
    /// All repositories together have more.
    pub(super) fn take_bytes(&mut self, bytes: u64) -> Result<(), String> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.check(self.bytes > MOST_BYTES, || {
            format!("it is one of several with more than {} MiB together", MOST_BYTES >> 20)
        })
    }

    /// Counts settings and words that are analysed.
    ///
    /// # Errors
    /// All repositories together have more.
    pub(super) fn take_words(&mut self, words: usize) -> Result<(), String> {
        self.words = self.words.saturating_add(words);
        self.check(self.words > MOST_WORDS, || {
            format!(
                "it is one of several that name more than {MOST_WORDS} programs and paths together"
            )
        })
    }

    /// Follows a path from an absolute directory on.
    ///
    /// # Errors
    /// The path has too many components, or all paths together have.
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

    /// Once the budget is spent, it stays so.
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
