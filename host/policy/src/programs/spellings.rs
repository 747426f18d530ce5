//! Options with the same or nearly the same meaning. A rule about one of them covers the others
//! too.
//!
//! The table is data, in groups separated by `|`. A word without a hyphen is an operand with the
//! same meaning and may end with `*`, such as the `+main` of a forced push.

use super::{ProgramSyntax, WordList, base_name, contains_word};

/// The known spellings of a program's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionSpellings {
    /// These groups of options have the same meaning.
    Known(OptionGroups),
    /// The options of the program are unknown.
    Unknown,
}

/// Groups of options with the same meaning, separated by `|`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OptionGroups(WordList);

impl OptionGroups {
    /// Returns the other spellings of an option.
    pub(crate) fn others(self, option: &str) -> impl Iterator<Item = &'static str> {
        let groups = self.0.split('|').filter(move |group| contains_word(group, option));
        groups.flat_map(str::split_ascii_whitespace)
    }
}

/// Returns the known spellings of the options of a program, or of its subcommand.
pub(crate) fn option_spellings(called: &str, subcommand: Option<&str>) -> OptionSpellings {
    let program = ProgramSyntax::find(called)
        .map_or_else(|| base_name(called), |program| program.name.to_owned());
    let is_about = |(names, of, _): &&SpellingEntry| {
        contains_word(names, &program)
            && (of.is_empty() || subcommand.is_some_and(|word| contains_word(of, word)))
    };
    SPELLINGS.iter().find(is_about).map_or(OptionSpellings::Unknown, |(_, _, groups)| {
        OptionSpellings::Known(OptionGroups(groups))
    })
}

/// The names of a program, its subcommands, and the groups of options.
type SpellingEntry = (WordList, WordList, WordList);

/// The table of spellings. An entry without subcommands applies to the whole program.
const SPELLINGS: &[SpellingEntry] = &[
    (
        "rm grm",
        "",
        "-r -R --recursive | -f --force | -d --dir | -i -I --interactive | -v --verbose",
    ),
    ("rmdir", "", "-p --parents | -v --verbose"),
    (
        "cp gcp",
        "",
        "-r -R -a --recursive --archive | -f --force --remove-destination | -l --link | -s \
            --symbolic-link | -p -a --preserve --archive \
        | -t --target-directory | -u --update | -v --verbose | -n --no-clobber",
    ),
    (
        "mv gmv",
        "",
        "-f --force | -t --target-directory | -b --backup | -u --update | -v --verbose | -n \
            --no-clobber",
    ),
    (
        "ln gln",
        "",
        "-s --symbolic | -f --force | -t --target-directory | -r --relative | -n --no-dereference \
            | -v --verbose",
    ),
    (
        "chmod chown chgrp chcon",
        "",
        "-R --recursive | -f --silent --quiet | -c --changes | -v --verbose | -h --no-dereference",
    ),
    (
        "kill pkill killall",
        "",
        "-9 -KILL -SIGKILL -s --signal -n | -15 -TERM -SIGTERM -s --signal -n | -f --full | -u \
            --euid --user",
    ),
    ("mkdir", "", "-p --parents | -m --mode | -v --verbose"),
    ("shred", "", "-u --remove | -f --force | -n --iterations | -z --zero"),
    ("tee", "", "-a --append"),
    (
        "curl",
        "",
        "-o -O --output --remote-name --remote-name-all -J --remote-header-name | -d --data \
            --data-raw --data-binary --data-urlencode --data-ascii --json \
        | -F --form --form-string | -T --upload-file | -X --request | -K --config | -k --insecure \
        | -u --user | -H --header | -L --location | -x --proxy",
    ),
    (
        "wget",
        "",
        "-O --output-document | -P --directory-prefix | -i --input-file | -e --execute | -r \
            --recursive -m --mirror | -q --quiet",
    ),
    (
        "rsync",
        "",
        "-a -r --archive --recursive | --delete --del --delete-before --delete-during \
            --delete-delay --delete-after --delete-excluded \
        | -e --rsh | -z --compress | -n --dry-run",
    ),
    (
        "tar gtar bsdtar",
        "",
        "-x --extract --get | -c --create | -f --file | -C --directory --cd | -I \
            --use-compress-program \
        | -P --absolute-names | -t --list | -r --append | -u --update",
    ),
    (
        "npm pnpm",
        "",
        "-g --global --location | -f --force | -D --save-dev | -w --workspace | -y --yes",
    ),
    (
        "pip",
        "",
        "-e --editable | -r --requirement | -t --target | -i --index-url | -U --upgrade | -y --yes",
    ),
    (
        "cargo",
        "",
        "-p --package | -r --release --profile | -F --features --all-features | -j --jobs | -q \
            --quiet | -v --verbose",
    ),
    (
        "make",
        "",
        "-C --directory | -f --file --makefile | -B --always-make | -j --jobs | -k --keep-going | \
            -n --just-print --dry-run --recon",
    ),
    (
        "git",
        "push",
        "-f --force --force-with-lease --mirror +* | -d --delete :* --prune --mirror | -n \
            --dry-run | -u --set-upstream \
        | -o --push-option | --all --branches --mirror | --tags --follow-tags --mirror",
    ),
    (
        "git",
        "commit",
        "-a --all | -p --patch | -m --message | -F --file | -s --signoff | -n --no-verify | -e \
            --edit | -S --gpg-sign | -i --include | -o --only",
    ),
    ("git", "reset", "-p --patch | -N --intent-to-add | --hard --merge --keep"),
    ("git", "clean", "-f --force | -i --interactive | -n --dry-run | -e --exclude | -x -X | -d"),
    (
        "git",
        "checkout switch",
        "-f --force --discard-changes | -b -B -c -C --create --force-create --orphan | -d \
            --detach | -m --merge | -p --patch",
    ),
    (
        "git",
        "branch",
        "-d -D --delete | -D -f --force -M -C | -m -M --move | -c -C --copy | -u --set-upstream-to",
    ),
    (
        "git",
        "tag",
        "-d --delete | -f --force | -a --annotate | -s --sign -u --local-user | -m --message",
    ),
    (
        "git",
        "rebase",
        "-i --interactive | -x --exec | -f --force-rebase --no-ff | -r --rebase-merges",
    ),
    ("git", "rm mv", "-f --force | -r | -n --dry-run"),
    (
        "git",
        "add stage",
        "-A --all --no-ignore-removal | -f --force | -u --update | -p --patch | -e --edit | -i \
            --interactive",
    ),
    ("git", "fetch pull", "-f --force +* | -p --prune | -t --tags | -a --append | -r --rebase"),
    ("git", "stash", "-u --include-untracked | -a --all | -k --keep-index | -p --patch"),
    ("git", "worktree", "-f --force | -b -B"),
    ("git", "log diff show", "-p -u --patch | -O | -S | -G"),
];

/// The position at which a program takes letters of options without a hyphen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LetterOptions {
    /// Only in the first word: `tar xf a` is `tar -x -f a`.
    First,
    /// In any word: `ps a u x`.
    Anywhere,
}

/// Programs that take letters of options without a hyphen.
const LETTERS: &[(WordList, LetterOptions)] = &[
    ("tar gtar bsdtar star jar ar gar llvm-ar gcc-ar", LetterOptions::First),
    ("ps", LetterOptions::Anywhere),
];

/// Returns the words after a program with hyphens added to letters of options; `None` if there are
/// no such letters.
pub(crate) fn with_hyphens(called: &str, behind: &[&str]) -> Option<Vec<String>> {
    let name = base_name(called);
    let (_, place) = LETTERS.iter().find(|(names, _)| contains_word(names, &name))?;
    let is_place = |at: usize| at == 0 || *place == LetterOptions::Anywhere;
    // A pattern can have a star after a letter.
    let are_letters = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '*')
    };
    let is_one = |at: usize, word: &str| is_place(at) && are_letters(word);
    if !behind.iter().enumerate().any(|(at, word)| is_one(at, word)) {
        return None;
    }
    Some(
        behind
            .iter()
            .enumerate()
            .map(
                |(at, word)| if is_one(at, word) { format!("-{word}") } else { (*word).to_owned() },
            )
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_hold_options_or_operands_with_a_star() {
        for (names, of, groups) in SPELLINGS {
            for word in groups.split('|').flat_map(str::split_ascii_whitespace) {
                assert!(word.starts_with('-') || word.ends_with('*'), "{names} {of}: {word}");
            }
            let group = |group: &str| group.split_ascii_whitespace().count() > 0;
            assert!(groups.split('|').all(group), "{names} {of} has an empty group");
        }
    }

    #[test]
    fn letters_of_options_get_a_hyphen_where_a_program_takes_them_without_one() {
        let table = [
            ("tar xf a", Some("-xf a")),
            ("GTAR x", Some("-x")),
            ("tar -xf a", None),
            ("tar --list a", None),
            ("ar x liba", Some("-x liba")),
            ("ps a -u x", Some("-a -u -x")),
            ("ps -p 1", None),
            ("unzip x", None),
            ("tar x* a", Some("-x* a")),
            ("tar", None),
        ];
        for (line, expected) in table {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(
                with_hyphens(words[0], &words[1..]).map(|words| words.join(" ")).as_deref(),
                expected,
                "{line}"
            );
        }
    }

    #[test]
    fn options_are_found_by_program_and_subcommand() {
        assert!(matches!(option_spellings("rm", Some("x")), OptionSpellings::Known(_)));
        assert!(matches!(option_spellings("git", Some("push")), OptionSpellings::Known(_)));
        assert_eq!(option_spellings("git", Some("bisect")), OptionSpellings::Unknown);
        assert_eq!(option_spellings("mytool", None), OptionSpellings::Unknown);
    }
}
