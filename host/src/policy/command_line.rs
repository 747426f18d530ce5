//! What can be said of a command line without running it: very little.
//!
//! Only a line of plain words is understood here. Everything else (quotes that hide something, variables, pipes, lists,
//! redirections, substitutions) is *opaque*: it is asked each time and never remembered. Parsing decides what to ask,
//! not what is safe.

use std::fmt;

use serde::Serialize;

/// A line that consists of plain words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimpleCommand<'a> {
    words: Vec<&'a str>,
}

/// What is approved of command lines for the rest of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "which", content = "words", rename_all = "kebab-case")]
pub enum CommandScope {
    /// All that begin with these words, a program and its subcommand.
    BeginsWith(Vec<String>),
    /// Those of exactly these words.
    Exactly(Vec<String>),
}

/// Programs of which the second word says what they do, so that it bounds what the rest can mean. Of any other program the
/// second word may be a file.
const WITH_SUBCOMMANDS: &[&str] = &[
    "apt",
    "brew",
    "bun",
    "bundle",
    "cargo",
    "composer",
    "deno",
    "docker",
    "dotnet",
    "gem",
    "gh",
    "git",
    "go",
    "gradle",
    "helm",
    "hg",
    "just",
    "kubectl",
    "mix",
    "mvn",
    "npm",
    "nix",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "poetry",
    "rustup",
    "swift",
    "terraform",
    "uv",
    "yarn",
    "zig",
];

impl<'a> SimpleCommand<'a> {
    /// Understands a line, or calls it opaque with `None`.
    pub fn parse(line: &'a str) -> Option<Self> {
        if !line.chars().all(Self::is_plain) {
            return None;
        }
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        // `A=b command` sets a variable, which can change what the command is.
        let program = words.first()?;
        (!program.contains('=')).then_some(Self { words })
    }

    /// Whether a character means itself and nothing else to a shell, or parts words.
    pub(super) fn is_plain(c: char) -> bool {
        c.is_ascii_alphanumeric() || "-_./:,+@%=^ ".contains(c)
    }

    /// Its words, the program first.
    pub fn words(&self) -> &[&'a str] {
        &self.words
    }

    /// What "don't ask again" would cover: any line of the same subcommand, if the program is known to have them, or else
    /// exactly these words.
    pub fn scope(&self) -> CommandScope {
        let words = |count: usize| self.words[..count].iter().map(|word| (*word).to_owned()).collect();
        let is_subcommand = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-');
        match self.words[..] {
            [program, second, ..] if WITH_SUBCOMMANDS.contains(&program) && is_subcommand(&second) => CommandScope::BeginsWith(words(2)),
            _ => CommandScope::Exactly(words(self.words.len())),
        }
    }
}

impl CommandScope {
    /// Whether a line falls under what was approved. An opaque line never does.
    pub fn covers(&self, line: &str) -> bool {
        SimpleCommand::parse(line).is_some_and(|command| match self {
            Self::BeginsWith(ours) => {
                command.words.len() >= ours.len() && ours.iter().zip(&command.words).all(|(ours, theirs)| ours == theirs)
            }
            Self::Exactly(ours) => *ours == command.words,
        })
    }
}

impl fmt::Display for CommandScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeginsWith(words) => write!(f, "commands that begin with `{}`", words.join(" ")),
            Self::Exactly(words) => write!(f, "exactly `{}`", words.join(" ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(line: &str) -> Option<String> {
        SimpleCommand::parse(line).map(|command| command.scope().to_string())
    }

    #[test]
    fn r039_the_scope_is_narrower_than_the_program() {
        assert_eq!(scope("cargo test --release").as_deref(), Some("commands that begin with `cargo test`"));
        assert_eq!(scope("git status").as_deref(), Some("commands that begin with `git status`"));
        for exact in ["ls -la src", "make", "make test", "rm build", "cp a b", "./git status", "git -C x status"] {
            assert_eq!(scope(exact), Some(format!("exactly `{exact}`")));
        }
    }

    #[test]
    fn r039_a_line_that_is_more_than_words_is_opaque() {
        let opaque = [
            "git status; rm -rf x",
            "git status && x",
            "git status | sh",
            "git status > f",
            "echo $(x)",
            "echo `x`",
            "echo $HOME",
            "A=b git status",
            "git status\nx",
            "git 'status'",
            "git status &",
            "ls *",
            "ls ~",
            "",
            " ",
            "git statu\u{455}",
        ];
        for line in opaque {
            assert_eq!(scope(line), None, "{line:?}");
        }
    }

    #[test]
    fn r039_a_scope_covers_longer_lines_of_the_same_words_only() {
        let git_status = SimpleCommand::parse("git status").unwrap().scope();
        assert!(git_status.covers("git status"));
        assert!(git_status.covers("git status --short"));
        assert!(!git_status.covers("git status; x"));
        assert!(!git_status.covers("git statusx"));
        assert!(!git_status.covers("git push"));
        assert!(!git_status.covers("git"));
        let rm = SimpleCommand::parse("rm -rf target").unwrap().scope();
        assert!(rm.covers("rm  -rf target"));
        assert!(!rm.covers("rm -rf target src"));
    }
}
