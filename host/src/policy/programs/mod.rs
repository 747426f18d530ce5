//! Programs with subcommands: how their options are read, and which subcommands say what the rest
//! of a line can do.
//!
//! The table is data. A program that is not in it is read with the same caution: any of its options
//! may take the next word as its value.

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

/// The programs by each of their names.
static BY_NAME: LazyLock<HashMap<&'static str, &'static ProgramSyntax>> = LazyLock::new(|| {
    let names = |program: &'static ProgramSyntax| {
        program.aliases.split_ascii_whitespace().chain([program.name])
    };
    PROGRAMS.iter().flat_map(|program| names(program).map(move |name| (name, program))).collect()
});

/// A list of words with spaces between them.
type WordList = &'static str;

/// What is known of a program whose subcommand says what it does.
#[derive(Debug)]
pub(super) struct ProgramSyntax {
    /// As it is called.
    pub(super) name: &'static str,
    /// Other names of the same program, or of one that takes the same subcommands.
    pub(super) aliases: WordList,
    /// Options in front of a subcommand that take the next word as their value.
    pub(super) value_options: WordList,
    /// Options in front of a subcommand that take none.
    pub(super) flags: WordList,
    /// Words that may stand in front of a subcommand and leave it what it is, such as `container`
    /// in `docker container run`.
    pub(super) groups: WordList,
    /// Subcommands that a line may leave out: `yarn deploy` is `yarn run deploy`.
    pub(super) implied: WordList,
    /// Words in front of which none is left out, since they are subcommands of their own.
    pub(super) explicit: WordList,
    /// Subcommands with the same meaning, each group of them in front of a `|`.
    pub(super) synonyms: WordList,
    /// Options in front of a subcommand that set what its options and aliases set as well.
    pub(super) settings: WordList,
    /// Its own subcommands, where any other may be an alias of one of them; empty where there are
    /// no aliases.
    pub(super) subcommands: WordList,
    /// Well-known subcommands that come from elsewhere: only a setting on the line makes an alias
    /// of one.
    pub(super) external: WordList,
    /// Subcommands that bound what the rest of the line can do, so that "don't ask again" may cover
    /// all that begins with them. What runs whatever comes next, such as `run` and `exec`, is never
    /// among them.
    pub(super) bounded: WordList,
    /// Beginnings of words that lift that bound: an option that writes a file or runs a program.
    pub(super) unbounding_prefixes: WordList,
    /// What else is special about it.
    pub(super) quirk: ProgramQuirk,
}

/// How the words of a program differ from the usual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramQuirk {
    /// Not at all.
    None,
    /// `git-push` is `git push`.
    Joined,
    /// `+nightly` in front of the subcommand chooses a toolchain.
    Toolchain,
    /// It takes any number of subcommands and does them all.
    MultipleSubcommands,
    /// The same, and in front of a subcommand may stand the project that it is for:
    /// `gradle :lib:publish`.
    SeveralOfProjects,
    /// Each of its words may be shortened: `ip l d` is `ip link delete`.
    Abbreviated,
}

/// How an option in front of a subcommand is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramOptionKind {
    /// It is one word.
    Flag,
    /// The next word is its value.
    TakesValue,
    /// Either of these.
    Unknown,
}

impl ProgramSyntax {
    /// The program of this name. A version at its end and `.exe` mean nothing: `pip3.11` is `pip`.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        BY_NAME.get(name).or_else(|| BY_NAME.get(base_name(name).as_str())).copied()
    }

    /// The program and the subcommand of a name that is both, such as `git-push`.
    pub(super) fn split_joined(name: &str) -> Option<(&'static Self, &str)> {
        let (program, subcommand) =
            name.split_once('-').filter(|(_, subcommand)| !subcommand.is_empty())?;
        Self::find(name)
            .is_none()
            .then(|| Self::find(program))
            .flatten()
            .map(|program| (program, subcommand))
    }

    /// Whether a word may stand in front of a subcommand and leave it what it is.
    pub(super) fn is_group(&self, word: &str) -> bool {
        contains_word(self.groups, word)
    }

    /// Whether a line may leave out this subcommand in front of that word.
    pub(super) fn may_leave_out(&self, subcommand: &str, word: &str) -> bool {
        contains_word(self.implied, subcommand) && !contains_word(self.explicit, word)
    }

    /// Whether it takes any number of subcommands.
    pub(super) fn takes_several(&self) -> bool {
        matches!(self.quirk, ProgramQuirk::MultipleSubcommands | ProgramQuirk::SeveralOfProjects)
    }

    /// Whether it knows these two subcommands as one.
    pub(super) fn is_synonym(&self, one: &str, other: &str) -> bool {
        self.synonyms
            .split('|')
            .any(|group| contains_word(group, one) && contains_word(group, other))
    }

    /// Whether a subcommand may be an alias for another one, where there are settings in front of
    /// it or not.
    pub(super) fn may_be_alias(&self, subcommand: &str, has_settings: bool) -> bool {
        !self.subcommands.is_empty()
            && !contains_word(self.subcommands, subcommand)
            && (has_settings || !contains_word(self.external, subcommand))
    }

    /// Whether a word is an option that sets what other options set as well.
    pub(super) fn is_setting(&self, word: &str) -> bool {
        word.starts_with('-')
            && contains_word(self.settings, word.split_once('=').map_or(word, |(name, _)| name))
    }

    /// Whether the first of these words, which follow the program, bounds what the others can do.
    pub(super) fn is_bounded(&self, words: &[&str]) -> bool {
        let [subcommand, rest @ ..] = words else { return false };
        let lifts = |word: &&str| {
            self.unbounding_prefixes
                .split_ascii_whitespace()
                .any(|beginning| word.starts_with(beginning))
        };
        contains_word(self.bounded, subcommand) && !rest.iter().any(lifts)
    }
}

fn contains_word(words: WordList, word: &str) -> bool {
    words.split_ascii_whitespace().any(|listed| listed == word)
}

/// How an option of a program is read.
pub(super) fn option_kind(program: Option<&ProgramSyntax>, option: &str) -> ProgramOptionKind {
    // Whoever is called so, `--x=y` brings its value along, and `--` has none.
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

/// Whether two names are those of one program, or of two that take the same subcommands. On some
/// file systems case means nothing.
pub(super) fn is_same_program(one: &str, other: &str) -> bool {
    let same_entry = || {
        ProgramSyntax::find(one)
            .zip(ProgramSyntax::find(other))
            .is_some_and(|(one, other)| one.name == other.name)
    };
    is_version_of(one, other) || is_version_of(other, one) || same_entry()
}

/// Whether a name is another one with a version, or with nothing, at its end: `python3.11` and
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

/// One name for all names of a program.
pub(super) fn canonical_name(name: &str) -> String {
    ProgramSyntax::find(name).map_or_else(|| base_name(name), |program| program.name.to_owned())
}

/// A name in lower case, without `.exe` and the version at its end.
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
    fn a_version_and_case_make_no_other_program() {
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
