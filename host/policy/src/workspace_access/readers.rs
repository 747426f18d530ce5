//! The built-in list of programs that only read.

use super::shell_words;

/// The maximum length of a line that is examined, in bytes. Longer lines are scripts.
const MAX_LINE_LEN: usize = 4096;

/// A program that changes no file, at least with some arguments.
struct ReaderProgram {
    name: &'static str,
    reads: ReadCondition,
}

/// The arguments with which a program only reads.
enum ReadCondition {
    /// All.
    Always,
    /// All that do not begin with one of these texts.
    Without(&'static [&'static str]),
    /// All, unless a group of short options contains this letter or an argument begins with one of
    /// the texts.
    WithoutLetter(char, &'static [&'static str]),
    /// Only options: an operand could be an output file.
    OptionsOnly,
    /// A subcommand of this list, without arguments that begin with one of the texts.
    Subcommand(&'static [&'static str], &'static [&'static str]),
}

/// The subcommands of git that only read.
const GIT: &[&str] = &[
    "blame",
    "cat-file",
    "check-ignore",
    "count-objects",
    "describe",
    "diff",
    "for-each-ref",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "name-rev",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-ref",
    "status",
    "whatchanged",
];
/// The options of git before a subcommand that have a value.
const GIT_VALUE_OPTIONS: &[&str] = &["-C"];

const PROGRAMS: &[ReaderProgram] = {
    use ReadCondition::{Always, OptionsOnly, Subcommand, Without, WithoutLetter};
    const fn program(name: &'static str, reads: ReadCondition) -> ReaderProgram {
        ReaderProgram { name, reads }
    }
    &[
        program("[", Always),
        program("ag", Without(&["--pager"])),
        program("awk", WithoutLetter('i', &["--include", "--load", "--profile", "--dump"])),
        program("basename", Always),
        program("cargo", Subcommand(&["locate-project", "metadata", "pkgid", "tree"], &[])),
        program("cat", Always),
        program("cd", Always),
        program("cksum", Always),
        program("cmp", Always),
        program("column", Always),
        program("comm", Always),
        program("cut", Always),
        program("date", Always),
        program("df", Always),
        program("diff", Without(&["--output"])),
        program("dirname", Always),
        program("du", Always),
        program("echo", Always),
        program("egrep", Always),
        program("false", Always),
        program("fd", WithoutLetter('x', &["-X", "--exec"])),
        program("fgrep", Always),
        program("file", WithoutLetter('C', &["--compile"])),
        program("find", Without(&["-delete", "-exec", "-fls", "-fprint", "-ok"])),
        program("fold", Always),
        program("git", Subcommand(GIT, &["--out", "-O", "--open", "--ext-diff", "--textconv"])),
        program("grep", Always),
        program("head", Always),
        program("hexdump", Always),
        program("id", Always),
        program("jq", Always),
        program("ls", Always),
        program("md5sum", Always),
        program("nl", Always),
        program("od", Always),
        program("printenv", Always),
        program("printf", Always),
        program("pwd", Always),
        program("readlink", Always),
        program("realpath", Always),
        program("rg", Without(&["--pre"])),
        program("sed", WithoutLetter('i', &["--in-place"])),
        program("sha1sum", Always),
        program("sha256sum", Always),
        program("sort", WithoutLetter('o', &["--o", "--compress"])),
        program("stat", Always),
        program("strings", Always),
        program("tac", Always),
        program("tail", Always),
        program("test", Always),
        program("tr", Always),
        program("tree", WithoutLetter('o', &["--output", "-R"])),
        program("true", Always),
        program("type", Always),
        program("uname", Always),
        program("uniq", OptionsOnly),
        program("wc", Always),
        program("which", Always),
        program("whoami", Always),
    ]
};

/// Returns whether a line consists of commands that only read.
pub(super) fn only_reads(line: &str) -> bool {
    let commands = (line.len() <= MAX_LINE_LEN).then(|| shell_words::split(line)).flatten();
    commands.is_some_and(|commands| {
        !commands.is_empty() && commands.iter().all(|words| is_reader(words))
    })
}

fn is_reader(words: &[String]) -> bool {
    let Some((called, arguments)) = words.split_first() else { return false };
    let known = PROGRAMS.binary_search_by(|program| program.name.cmp(called));
    let Some(program) = known.ok().and_then(|at| PROGRAMS.get(at)) else { return false };
    let begins = |texts: &[&str]| {
        arguments.iter().any(|word| texts.iter().any(|text| word.starts_with(text)))
    };
    match &program.reads {
        ReadCondition::Always => true,
        ReadCondition::Without(texts) => !begins(texts),
        ReadCondition::WithoutLetter(letter, texts) => {
            let has_letter = |word: &String| {
                word.starts_with('-') && !word.starts_with("--") && word.contains(*letter)
            };
            // A script of awk or sed can write the files that it names after `>` or `w`.
            !begins(texts) && !arguments.iter().any(|word| has_letter(word) || word.contains('>'))
        }
        ReadCondition::OptionsOnly => arguments.iter().all(|word| word.starts_with('-')),
        ReadCondition::Subcommand(names, texts) => {
            let mut words = arguments.iter().map(String::as_str);
            let subcommand = loop {
                match words.next() {
                    Some(option) if GIT_VALUE_OPTIONS.contains(&option) => {
                        words.next();
                    }
                    Some("--no-pager" | "-P" | "--no-optional-locks") => {}
                    other => break other,
                }
            };
            subcommand.is_some_and(|name| names.contains(&name)) && !begins(texts)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted() {
        assert!(PROGRAMS.is_sorted_by_key(|program| program.name));
    }

    #[test]
    fn reading_commands_are_recognised() {
        for line in [
            "ls -la src",
            "git status --short",
            "git -C sub --no-pager log -3 --oneline",
            "git diff HEAD~1 -- src | head -50",
            "rg -n 'a|b' src",
            "cat a b | grep x | wc -l",
            "cd src && find . -name '*.rs' | sort | uniq -c",
            "sed -n '1,20p' file",
            "awk '{print $1}' file",
            "cargo metadata --format-version 1",
            "grep -rn x . 2>/dev/null",
            "test -e x && echo yes || echo no",
            "jq .name package.json",
            "fd -e rs",
        ] {
            assert!(only_reads(line), "{line}");
        }
    }

    #[test]
    fn commands_that_may_write_are_not() {
        for line in [
            "",
            "git commit -m x",
            "git",
            "git -c core.pager=x log",
            "git log --output=x",
            "git branch",
            "git status; touch x",
            "find . -delete",
            "find . -exec rm {} +",
            "find . -fprintf x",
            "sed -i s/a/b/ x",
            "sed -ni p x",
            "sed --in-place s/a/b/ x",
            "sort -o x x",
            "sort -uo x x",
            "sort --output=x x",
            "uniq a b",
            "cargo build",
            "ls > x",
            "cat x | tee y",
            "FOO=1 ls",
            "/tmp/ls",
            "./ls",
            "xargs rm",
            "env ls",
            "awk -i inplace x y",
            "awk '{print > \"x\"}' y",
            "fd x -x rm",
            "tree -o x",
            "ls &",
            "echo $(rm x)",
            "file -C",
            "rg --pre x y",
            "git diff --ext-diff",
        ] {
            assert!(!only_reads(line), "{line}");
        }
        assert!(!only_reads(&format!("ls {}", "x".repeat(MAX_LINE_LEN))));
    }
}
