//! Programs with subcommands: the syntax of their options, and the subcommands that limit the
//! effects of a line.
//!
//! The table is data. Programs outside the table are read with caution: any of their options may
//! take the next word as its value.

mod code_values;
mod runners;
mod spellings;
mod table;

use std::collections::HashMap;
use std::sync::LazyLock;

pub(super) use code_values::sets_code_variable;
pub(super) use runners::{does_the_work_of, has_whole_word_options, runs_code};
pub(super) use spellings::{OptionSpellings, option_spellings, with_hyphens};
pub(super) use table::PROGRAMS;

/// The programs, by each of their names.
static BY_NAME: LazyLock<HashMap<&'static str, &'static ProgramSyntax>> = LazyLock::new(|| {
    let names = |program: &'static ProgramSyntax| {
        program.aliases.split_ascii_whitespace().chain([program.name])
    };
    PROGRAMS.iter().flat_map(|program| names(program).map(move |name| (name, program))).collect()
});

/// A list of words, separated by spaces.
type WordList = &'static str;

/// The syntax of a program with subcommands.
#[derive(Debug)]
pub(super) struct ProgramSyntax {
    /// The usual name of the program.
    pub(super) name: &'static str,
    /// Other names of the program, or of programs with the same subcommands.
    pub(super) aliases: WordList,
    /// Options before the subcommand that take the next word as their value.
    pub(super) value_options: WordList,
    /// Options before the subcommand that take no value.
    pub(super) flags: WordList,
    /// Words that may precede a subcommand without changing it, such as `container` in
    /// `docker container run`.
    pub(super) groups: WordList,
    /// Subcommands that a line may omit: `yarn deploy` is `yarn run deploy`.
    pub(super) implied: WordList,
    /// Subcommands that cannot follow an omitted one, because they are subcommands themselves.
    pub(super) explicit: WordList,
    /// Groups of subcommands with the same meaning, separated by `|`.
    pub(super) synonyms: WordList,
    /// Options before the subcommand that set the same values as other options or define aliases.
    pub(super) settings: WordList,
    /// The built-in subcommands of a program with aliases: any other word may be an alias. Empty
    /// for a program without aliases.
    pub(super) subcommands: WordList,
    /// Well-known subcommands of other packages. Only a setting on the line can make one an alias.
    pub(super) external: WordList,
    /// Subcommands that limit the effects of the line, so that "don't ask again" may cover every
    /// line that begins with them. Subcommands that run arbitrary commands, such as `run` and
    /// `exec`, are never among them.
    pub(super) bounded: WordList,
    /// Prefixes of words that lift this limit: options that write a file or run a program.
    pub(super) unbounding_prefixes: WordList,
    /// The special syntax of the program, if it has one.
    pub(super) quirk: ProgramQuirk,
}

/// A deviation of a program from the usual syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramQuirk {
    /// The usual syntax of options and subcommands.
    None,
    /// Program and subcommand can be one word: `git-push` is `git push`.
    Joined,
    /// `+nightly` before the subcommand selects a toolchain.
    Toolchain,
    /// The program takes any number of subcommands and executes all of them.
    MultipleSubcommands,
    /// Like [`MultipleSubcommands`](Self::MultipleSubcommands), and a project may precede the
    /// subcommand: `gradle :lib:publish`.
    SeveralOfProjects,
    /// Each word can be abbreviated: `ip l d` is `ip link delete`.
    Abbreviated,
}

/// The syntax of an option before a subcommand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramOptionKind {
    /// The option is a single word.
    Flag,
    /// The next word is the value of the option.
    TakesValue,
    /// The option is a single word or takes the next word.
    Unknown,
}

impl ProgramSyntax {
    /// Finds a program by name. A version at the end and `.exe` are ignored: `pip3.11` is `pip`.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        BY_NAME.get(name).or_else(|| BY_NAME.get(base_name(name).as_str())).copied()
    }

    /// Splits a name such as `git-push` into the program and its subcommand.
    pub(super) fn split_joined(name: &str) -> Option<(&'static Self, &str)> {
        let (program, subcommand) =
            name.split_once('-').filter(|(_, subcommand)| !subcommand.is_empty())?;
        Self::find(name)
            .is_none()
            .then(|| Self::find(program))
            .flatten()
            .map(|program| (program, subcommand))
    }

    /// Returns whether a word may precede a subcommand without changing it.
    pub(super) fn is_group(&self, word: &str) -> bool {
        contains_word(self.groups, word)
    }

    /// Returns whether a line may omit this subcommand before `word`.
    pub(super) fn may_leave_out(&self, subcommand: &str, word: &str) -> bool {
        contains_word(self.implied, subcommand) && !contains_word(self.explicit, word)
    }

    /// Returns whether the program takes any number of subcommands.
    pub(super) fn takes_several(&self) -> bool {
        matches!(self.quirk, ProgramQuirk::MultipleSubcommands | ProgramQuirk::SeveralOfProjects)
    }

    /// Returns whether two subcommands have the same meaning.
    pub(super) fn is_synonym(&self, one: &str, other: &str) -> bool {
        self.synonyms
            .split('|')
            .any(|group| contains_word(group, one) && contains_word(group, other))
    }

    /// Returns whether a subcommand may be an alias of another one. `has_settings` says whether
    /// settings precede it.
    pub(super) fn may_be_alias(&self, subcommand: &str, has_settings: bool) -> bool {
        !self.subcommands.is_empty()
            && !contains_word(self.subcommands, subcommand)
            && (has_settings || !contains_word(self.external, subcommand))
    }

    /// Returns whether a word is an option that sets the same values as other options.
    pub(super) fn is_setting(&self, word: &str) -> bool {
        word.starts_with('-')
            && contains_word(self.settings, word.split_once('=').map_or(word, |(name, _)| name))
    }

    /// Returns whether the first of these words, which follow the program, limits the effects of
    /// the others.
    pub(super) fn is_bounded(&self, words: &[&str]) -> bool {
        let [subcommand, rest @ ..] = words else { return false };
        let lifts = |word: &&str| {
            let begins_so = self
                .unbounding_prefixes
                .split_ascii_whitespace()
                .any(|beginning| word.starts_with(beginning));
            begins_so
                || match self.quirk {
                    // What follows `--` is for another program, which may write files. Options of
                    // one letter can come together, as in `-vC DIR`.
                    ProgramQuirk::Toolchain => {
                        let is_bundle = word.starts_with('-') && !word.starts_with("--");
                        *word == "--" || is_bundle && word.contains(['C', 'Z'])
                    }
                    // These parts of a format run the program that checks signatures.
                    ProgramQuirk::Joined => word.contains("%G"),
                    _ => false,
                }
        };
        contains_word(self.bounded, subcommand) && !rest.iter().any(lifts)
    }
}

fn contains_word(words: WordList, word: &str) -> bool {
    words.split_ascii_whitespace().any(|listed| listed == word)
}

/// Returns the syntax of an option.
pub(super) fn option_kind(program: Option<&ProgramSyntax>, option: &str) -> ProgramOptionKind {
    // For every program, `--x=y` includes its value and `--` takes none.
    if option == "--" || option.contains('=') {
        return ProgramOptionKind::Flag;
    }
    match program {
        Some(program) if contains_word(program.flags, option) => ProgramOptionKind::Flag,
        Some(program) if contains_word(program.value_options, option) => {
            ProgramOptionKind::TakesValue
        }
        Some(_) | None => ProgramOptionKind::Unknown,
    }
}

/// Returns whether two names denote the same program, or programs with the same subcommands. The
/// case of letters is ignored, as on some file systems.
pub(super) fn is_same_program(one: &str, other: &str) -> bool {
    let same_entry = || {
        ProgramSyntax::find(one)
            .zip(ProgramSyntax::find(other))
            .is_some_and(|(one, other)| one.name == other.name)
    };
    is_version_of(one, other) || is_version_of(other, one) || same_entry()
}

/// Returns whether `longer` is `name` with an optional version at the end: `python3.11` and
/// `python3`.
fn is_version_of(longer: &str, name: &str) -> bool {
    let (longer, name) = (strip_exe(longer), strip_exe(name));
    let begins =
        longer.get(..name.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(name));
    begins
        && !name.is_empty()
        && longer[name.len()..]
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b'-')
}

/// Returns one name that all names of a program share.
pub(super) fn canonical_name(name: &str) -> String {
    ProgramSyntax::find(name).map_or_else(|| base_name(name), |program| program.name.to_owned())
}

/// Returns a name in lower case, without `.exe` and without a version at the end.
fn base_name(name: &str) -> String {
    strip_exe(name)
        .trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
        .to_ascii_lowercase()
}

fn strip_exe(name: &str) -> &str {
    let stem = name
        .len()
        .checked_sub(4)
        .filter(|at| name.get(*at..).is_some_and(|end| end.eq_ignore_ascii_case(".exe")));
    stem.map_or(name, |at| &name[..at])
}

#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_its_other_names_too() {
        let table = [
            ("git", Some("git")),
            ("pip3", Some("pip")),
            ("pip3.11", Some("pip")),
            ("apt-get", Some("apt")),
            ("Git.EXE", Some("git")),
            ("gitk", None),
            ("7", None),
            ("", None),
        ];
        for (name, found) in table {
            assert_eq!(ProgramSyntax::find(name).map(|program| program.name), found, "{name}");
        }
        assert_eq!(
            ProgramSyntax::split_joined("git-push")
                .map(|(program, subcommand)| (program.name, subcommand)),
            Some(("git", "push"))
        );
        assert!(
            ProgramSyntax::split_joined("apt-get").is_none()
                && ProgramSyntax::split_joined("git-").is_none()
                && ProgramSyntax::split_joined("x-y").is_none()
        );
    }

    #[test]
    fn version_and_case_do_not_change_the_program() {
        let same = [
            ("pip", "pip3"),
            ("python3", "python3.11"),
            ("git", "Git.exe"),
            ("apt", "apt-get"),
            ("dnf", "yum"),
            ("x", "X-2"),
        ];
        let other = [("base32", "base64"), ("git", "gitk"), ("a", "b"), ("go", "gofmt"), ("", "7")];
        for (one, two) in same {
            assert!(is_same_program(one, two) && is_same_program(two, one), "{one} {two}");
        }
        for (one, two) in other {
            assert!(!is_same_program(one, two) && !is_same_program(two, one), "{one} {two}");
        }
    }

    #[test]
    fn the_table_agrees_with_itself() {
        for (at, program) in PROGRAMS.iter().enumerate() {
            let words = |words: WordList| words.split_ascii_whitespace();
            let names = || words(program.aliases).chain([program.name]);
            let mut others = PROGRAMS[at + 1..]
                .iter()
                .flat_map(|other| words(other.aliases).chain([other.name]));
            assert!(
                others.all(|other| names().all(|name| name != other)),
                "{} is there twice",
                program.name
            );
            assert!(names().all(|name| name.to_ascii_lowercase() == name), "{}", program.name);
            for option in words(program.value_options).chain(words(program.flags)) {
                assert!(
                    option.starts_with('-') && !option.contains('='),
                    "{}: {option}",
                    program.name
                );
                assert!(
                    !(contains_word(program.value_options, option)
                        && contains_word(program.flags, option)),
                    "{}: {option}",
                    program.name
                );
            }
            for word in words(program.bounded) {
                let runs = [
                    "run",
                    "exec",
                    "x",
                    "dlx",
                    "start",
                    "script",
                    "run-script",
                    "shell",
                    "eval",
                    "foreach",
                    "bisect",
                    "rebase",
                ];
                assert!(!runs.contains(&word), "{} {word} runs what comes next", program.name);
                assert!(
                    program.subcommands.is_empty()
                        || contains_word(program.subcommands, word)
                        || contains_word(program.external, word),
                    "{} {word}",
                    program.name
                );
            }
        }
    }
}
