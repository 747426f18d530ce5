//! The built-in lists of paths, as data. Each entry is a pattern with its reason: one clause that
//! says what a program does with the path. In a reason, "it" is the path.
//!
//! Criteria for an entry:
//! - *protected* (never changed): a program runs or loads the file automatically. This happens when
//!   a user opens or enters a directory, when a shell, a debugger or an agent starts, or when
//!   version control acts.
//! - *instructions* and *runs code* (each change needs approval, in every mode): an agent follows
//!   the file, or a program runs it during routine work (install, build, test, commit, push), and
//!   people change it rarely.
//! - *ordinary* (no special treatment): people change it daily, and the diff shows that it is code.

mod hidden;
mod instructions;
mod ordinary;
mod protected;
mod runs_code;

use serde::Serialize;

pub(super) use hidden::{HIDDEN, HIDDEN_EXCEPTIONS};
use instructions::INSTRUCTIONS;
use ordinary::ORDINARY;
pub(super) use protected::{PINNED, PROTECTED};
use runs_code::RUNS_CODE;

/// An entry of a built-in list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedPathEntry {
    /// A pattern that matches at any depth, and covers everything below a match.
    pub pattern: &'static str,
    /// The use of the path by a program, or the kind of secret in it.
    pub reason: &'static str,
}

/// A built-in list of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BuiltInList {
    /// Paths that cannot be read or changed.
    Hidden,
    /// Paths that cannot be changed.
    Protected,
    /// Paths whose changes need approval, because agents follow these files.
    Instructions,
    /// Paths whose changes need approval, because programs run these files.
    RunsCode,
    /// Paths without special treatment, for the given reason.
    Ordinary,
}

impl BuiltInList {
    /// All lists, the strictest first.
    pub const ALL: [Self; 5] =
        [Self::Hidden, Self::Protected, Self::Instructions, Self::RunsCode, Self::Ordinary];
    /// The lists whose paths change only with an approval.
    pub const NEEDS_APPROVAL: [Self; 2] = [Self::Instructions, Self::RunsCode];

    /// Returns the entries, sorted by pattern.
    pub fn entries(self) -> &'static [ListedPathEntry] {
        match self {
            Self::Hidden => HIDDEN,
            Self::Protected => PROTECTED,
            Self::Instructions => INSTRUCTIONS,
            Self::RunsCode => RUNS_CODE,
            Self::Ordinary => ORDINARY,
        }
    }

    /// Returns the use of the listed files, as the end of a sentence.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Hidden => "contain secrets",
            Self::Protected => "programs load automatically",
            Self::Instructions => "contain instructions for agents",
            Self::RunsCode => "programs run code from",
            Self::Ordinary => "programs can run",
        }
    }

    /// Returns the heading of the list.
    pub fn title(self) -> &'static str {
        match self {
            Self::Hidden => {
                "hidden: tools can neither read nor change these files, nor the backup, swap, undo \
                    and lock files beside them"
            }
            Self::Protected => "protected: tools can never change these files",
            Self::Instructions => {
                "instructions: agents follow these files, so each change needs approval in every \
                    mode"
            }
            Self::RunsCode => {
                "runs code: programs run code from these files, so each change needs approval in \
                    every mode"
            }
            Self::Ordinary => {
                "ordinary: treated like all other files, although programs can run code from them"
            }
        }
    }
}

const fn entry(pattern: &'static str, reason: &'static str) -> ListedPathEntry {
    ListedPathEntry { pattern, reason }
}
