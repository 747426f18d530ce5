//! The built-in lists of paths, as data: each entry is a pattern with its reason.
//!
//! How an entry is chosen:
//! - *protected* (never changed): a program obeys the file without being told to, when a directory
//!   is opened or entered, when a shell, a debugger or an agent starts, or when version control
//!   acts.
//! - *instructions* and *runs code* (each change needs approval, in every mode): an agent obeys the
//!   file, or a program runs it at a routine act (install, build, test, commit, push), and people
//!   change it rarely.
//! - *ordinary* (no special treatment): people change it daily, and see in the diff that it is
//!   code.

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
pub struct ListedPathEntry {
    /// A pattern that holds at any depth, and for everything below a match.
    pub pattern: &'static str,
    /// Which program reads the file, and what it does with it.
    pub reason: &'static str,
}

/// The built-in lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BuiltInList {
    /// Neither read nor changed.
    Hidden,
    /// Never changed.
    Protected,
    /// Each change needs approval: agents obey these files.
    Instructions,
    /// Each change needs approval: programs run what these files say.
    RunsCode,
    /// No special treatment, for the reason given.
    Ordinary,
}

impl BuiltInList {
    /// All of them, the strictest first.
    pub const ALL: [Self; 5] =
        [Self::Hidden, Self::Protected, Self::Instructions, Self::RunsCode, Self::Ordinary];
    /// The lists whose paths change only with an approval.
    pub const NEEDS_APPROVAL: [Self; 2] = [Self::Instructions, Self::RunsCode];

    /// The entries, sorted by pattern.
    pub fn entries(self) -> &'static [ListedPathEntry] {
        match self {
            Self::Hidden => HIDDEN,
            Self::Protected => PROTECTED,
            Self::Instructions => INSTRUCTIONS,
            Self::RunsCode => RUNS_CODE,
            Self::Ordinary => ORDINARY,
        }
    }

    /// What is done with its files, as the end of a sentence.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Hidden => "hold secrets",
            Self::Protected => "programs obey without being told to",
            Self::Instructions => "tell agents what to do",
            Self::RunsCode => "programs run code from",
            Self::Ordinary => "can run code",
        }
    }

    /// A heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Hidden => "hidden: neither read nor changed",
            Self::Protected => "protected: never changed",
            Self::Instructions => {
                "instructions: agents obey these files, so each change needs approval in every mode"
            }
            Self::RunsCode => {
                "runs code: programs run what these files say, so each change needs approval in \
                    every mode"
            }
            Self::Ordinary => "ordinary: decided like any other file, although it can run code",
        }
    }
}

const fn entry(pattern: &'static str, reason: &'static str) -> ListedPathEntry {
    ListedPathEntry { pattern, reason }
}
