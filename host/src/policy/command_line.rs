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

/// The first words of a command line, approved for the rest of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct CommandScope(Vec<String>);

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

    /// What "don't ask again" would cover: the program with its subcommand, if its second word looks like one, or else
    /// the program alone with exactly these words.
    pub fn scope(&self) -> CommandScope {
        let is_subcommand = |word: &&&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-');
        let keep = match self.words.get(1).as_ref().filter(|word| is_subcommand(word)) {
            Some(_) => 2,
            None => self.words.len(),
        };
        CommandScope(self.words[..keep].iter().map(|word| (*word).to_owned()).collect())
    }
}

impl CommandScope {
    /// Whether a line falls under what was approved. An opaque line never does.
    pub fn covers(&self, line: &str) -> bool {
        SimpleCommand::parse(line).is_some_and(|command| {
            command.words.len() >= self.0.len() && self.0.iter().zip(&command.words).all(|(ours, theirs)| ours == theirs)
        })
    }
}

impl fmt::Display for CommandScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
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
        assert_eq!(scope("cargo test --release").as_deref(), Some("cargo test"));
        assert_eq!(scope("git status").as_deref(), Some("git status"));
        assert_eq!(scope("ls -la src").as_deref(), Some("ls -la src"));
        assert_eq!(scope("make").as_deref(), Some("make"));
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
    }
}
