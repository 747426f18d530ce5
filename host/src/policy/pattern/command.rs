//! Patterns for command lines.
//!
//! | pattern | covers | does not cover |
//! |---|---|---|
//! | `git status` | `git status` | `git status --short` |
//! | `git status *` | `git status` with any further words | `git statusx`, `git status; x` |
//! | `cargo t*` | `cargo test`, `cargo tree` | `cargo test --lib` |
//! | `git * --stat` | one word in the middle | `git log -p --stat` |
//! | `*` | every line | – |
//!
//! Patterns are plain words, as [`SimpleCommand`] understands them. Under an `allow` a line has to be plain words too, so
//! that `*` allows no pipe and no `;`. Under `ask` and `deny` a line that is more than words is searched: a command in it
//! that the pattern covers counts, and anything else *might* run what the pattern names, which is enough to ask.

use super::{Match, PatternProblem, chars, glob, leans_strict};
use crate::policy::{SimpleCommand, Verdict};

/// A pattern for command lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandPattern {
    words: Vec<String>,
    /// Whether any further words may follow.
    open: bool,
}

impl CommandPattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Self, PatternProblem> {
        let unstarred = text.replace('*', "x");
        if text.trim().is_empty() {
            return Err(PatternProblem("an empty pattern covers nothing; `*` covers every command".into()));
        }
        if SimpleCommand::parse(&unstarred).is_none() {
            let reason = match unstarred.chars().find(|c| !SimpleCommand::is_plain(*c)) {
                Some(c) => format!("{c:?} is more than plain words, which is all that patterns for commands are made of"),
                None => "a word that sets a variable comes before the program".to_owned(),
            };
            return Err(PatternProblem(format!("no command is covered by `{text}`: {reason}")));
        }
        let mut words: Vec<String> = text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        let open = words.last().is_some_and(|word| word == "*");
        if open {
            words.pop();
        }
        Ok(Self { words, open })
    }

    /// How far a line falls under this pattern, in a rule with this verdict.
    pub fn matches(&self, line: &str, verdict: Verdict) -> Match {
        let simple = SimpleCommand::parse(line);
        if leans_strict(verdict) {
            return Match::certain(simple.is_some_and(|command| self.covers(command.words(), false)));
        }
        if self.words.is_empty() {
            return Match::Yes;
        }
        match simple {
            Some(command) if self.covers(command.words(), true) => Match::Yes,
            // `env git push`, and also `echo git push`: who knows what the first word does with the rest.
            Some(command) => {
                let later = (1..command.words().len()).any(|at| self.covers(&command.words()[at..], true));
                if later { Match::Perhaps } else { Match::No }
            }
            None => {
                let mut pieces = line.split(|c| !SimpleCommand::is_plain(c));
                let found = pieces.any(|piece| {
                    let words: Vec<&str> = piece.split(' ').filter(|word| !word.is_empty()).collect();
                    (0..words.len()).any(|at| self.covers(&words[at..], true))
                });
                if found { Match::Yes } else { Match::Perhaps }
            }
        }
    }

    /// Whether these words are covered. `by_any_path`: also a program that is called by its path.
    fn covers(&self, words: &[&str], by_any_path: bool) -> bool {
        let enough = if self.open { words.len() >= self.words.len() } else { words.len() == self.words.len() };
        enough
            && self.words.iter().zip(words).enumerate().all(|(n, (ours, theirs))| {
                let matches = |theirs: &str| glob(&chars(ours), &chars(theirs));
                let name = theirs.rsplit('/').next().unwrap_or(theirs);
                matches(theirs) || (n == 0 && by_any_path && matches(name))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(pattern: &str, line: &str, verdict: Verdict) -> Match {
        CommandPattern::parse(pattern).expect(pattern).matches(line, verdict)
    }

    #[test]
    fn an_allow_covers_plain_words_and_nothing_else() {
        let table = [
            ("git status", "git status", true),
            ("git status", "git  status ", true),
            ("git status", "git status --short", false),
            ("git status *", "git status", true),
            ("git status *", "git status --short -b", true),
            ("git status *", "git statusx", false),
            ("git status *", "git", false),
            ("git status *", "/tmp/git status", false),
            ("cargo t*", "cargo test", true),
            ("cargo t*", "cargo test --lib", false),
            ("git * --stat", "git log --stat", true),
            ("git * --stat", "git log -p --stat", false),
            ("*", "rm -rf x", true),
        ];
        for (pattern, line, expected) in table {
            assert_eq!(on(pattern, line, Verdict::Allow), Match::certain(expected), "{pattern} on {line}");
        }
    }

    #[test]
    fn r039_an_opaque_line_is_never_allowed() {
        for line in
            ["git status; x", "git status | sh", "git status && x", "git status $(x)", "A=b git status", "git 'status'", "git status\nx"]
        {
            assert_eq!(on("git status *", line, Verdict::Allow), Match::No, "{line}");
            assert_eq!(on("*", line, Verdict::Allow), Match::No, "{line}");
        }
    }

    #[test]
    fn a_denied_command_is_found_in_longer_lines() {
        let table = [
            ("git push", Match::Yes),
            ("git push --force", Match::Yes),
            ("/usr/bin/git push", Match::Yes),
            ("true; git push", Match::Yes),
            ("sh -c 'git push'", Match::Yes),
            ("A=b git push", Match::Yes),
            ("true && (git push)", Match::Yes),
            ("env git push", Match::Perhaps),
            ("git -C x push", Match::No),
            ("g''it push", Match::Perhaps),
            ("git status", Match::No),
            ("cat a | wc", Match::Perhaps),
        ];
        for (line, expected) in table {
            for verdict in [Verdict::Ask, Verdict::Deny] {
                assert_eq!(on("git push *", line, verdict), expected, "{line}");
            }
        }
        assert_eq!(on("*", "anything | at all", Verdict::Deny), Match::Yes);
    }

    #[test]
    fn what_could_never_match_is_an_error() {
        let problem = |text| CommandPattern::parse(text).unwrap_err().to_string();
        assert!(problem("").contains("`*` covers every command"));
        assert!(problem("git status; x").contains("';'"));
        assert!(problem("echo $HOME").contains("'$'"));
        assert!(problem("A=b git").contains("sets a variable"));
    }
}
