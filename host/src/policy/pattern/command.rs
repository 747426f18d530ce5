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
//! A program that a pattern under `ask` or `deny` calls by a path is found by other spellings of that path, and asked about by
//! any other path to a program of that name.
//!
//! Patterns are plain words, as [`SimpleCommand`] understands them. Under an `allow` a line has to be plain words too, so
//! that `*` allows no pipe and no `;`. Under `ask` and `deny` a line that is more than words is searched: a command in it
//! that the pattern covers counts, and anything else *might* run what the pattern names, which is enough to ask.

use super::{Match, PatternProblem, chars, glob, leans_strict};
use crate::policy::{SimpleCommand, Verdict};

/// Bytes of a line that is searched for what is denied. Each word of it is compared with each pattern; of a longer line it is only
/// known that it might run anything.
const LONGEST_SEARCHED: usize = 16 << 10;

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
        if let Some(word) = text.split(' ').find(|word| word.contains("**")) {
            let reason = "`*` stands for any characters of a word, and at the end for any further words";
            return Err(PatternProblem(format!("`{word}` in `{text}` has no meaning: {reason}")));
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
            return Match::certain(simple.is_some_and(|command| self.covers(command.words(), program_is) == Match::Yes));
        }
        if self.words.is_empty() {
            return Match::Yes;
        }
        if line.len() > LONGEST_SEARCHED {
            return Match::Perhaps;
        }
        match simple {
            Some(command) => {
                let words = command.words();
                // `env git push`, and also `echo git push`: who knows what the first word does with the rest.
                let later = (1..words.len()).any(|at| self.covers(&words[at..], program_might_be) >= Match::Perhaps);
                self.covers(words, program_might_be).max(if later { Match::Perhaps } else { Match::No })
            }
            None => {
                // To a shell a tab parts words, and so does nothing at the end of a line that goes on.
                let line = line.replace("\\\n", " ").replace('\t', " ");
                let mut pieces = line.split(|c| !SimpleCommand::is_plain(c));
                let found = pieces.any(|piece| {
                    let words: Vec<&str> = piece.split(' ').filter(|word| !word.is_empty()).collect();
                    (0..words.len()).any(|at| self.covers(&words[at..], program_might_be) == Match::Yes)
                });
                if found { Match::Yes } else { Match::Perhaps }
            }
        }
    }

    /// How far these words are covered, the first of them by `program`.
    fn covers(&self, words: &[&str], program: fn(&str, &str) -> Match) -> Match {
        let enough = if self.open { words.len() >= self.words.len() } else { words.len() == self.words.len() };
        let mut pairs = self.words.iter().zip(words);
        let first = pairs.next().map_or(Match::Yes, |(ours, theirs)| program(ours, theirs));
        if enough && pairs.all(|(ours, theirs)| is(ours, theirs)) { first } else { Match::No }
    }
}

fn is(pattern: &str, word: &str) -> bool {
    glob(&chars(pattern), &chars(word))
}

/// Under an `allow` a program is what it is called, letter by letter.
fn program_is(pattern: &str, word: &str) -> Match {
    Match::certain(is(pattern, word))
}

/// Under `ask` and `deny` a program is the same by whatever path it is called. Where the pattern has a path, another one to a
/// program of the same name might lead to the same file.
fn program_might_be(pattern: &str, word: &str) -> Match {
    if is(pattern, word) || is(pattern, name(word)) || is(&cleaned(pattern), &cleaned(word)) {
        return Match::Yes;
    }
    if pattern.contains('/') && is(name(pattern), name(word)) { Match::Perhaps } else { Match::No }
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A path without what leads nowhere: `./`, `//` and `x/..`.
fn cleaned(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match parts.last() {
            Some(last) if part == ".." && *last != ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    format!("{}{}", if path.starts_with('/') { "/" } else { "" }, parts.join("/"))
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
            ("git\tpush\t--force", Match::Yes),
            ("git \\\npush", Match::Yes),
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
    fn r098_a_line_that_is_too_long_to_be_searched_is_asked() {
        let words = |count: usize| "a ".repeat(count) + "git push";
        assert_eq!(on("git push", &words(100), Verdict::Deny), Match::Perhaps, "as an argument");
        assert_eq!(on("git push", &format!("true; {}; git push", words(8_000)), Verdict::Deny), Match::Yes);
        let started = std::time::Instant::now();
        for line in [words(60_000), "x".repeat(120 << 10), format!("true; {}", words(60_000))] {
            for _ in 0..100 {
                assert_eq!(on("git push *", &line, Verdict::Deny), Match::Perhaps);
                assert_eq!(on("*", &line, Verdict::Ask), Match::Yes);
            }
        }
        assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
    }

    #[test]
    fn a_program_that_is_denied_by_its_path_is_denied_by_every_spelling_of_it() {
        let table = [
            ("scripts/release *", "scripts/release x", Match::Yes),
            ("scripts/release *", "./scripts/release", Match::Yes),
            ("scripts/release *", "scripts//release x", Match::Yes),
            ("scripts/release *", "scripts/../scripts/release", Match::Yes),
            ("scripts/release *", "sh scripts/release", Match::Perhaps),
            ("scripts/release *", "release", Match::Perhaps),
            ("scripts/release *", "scripts/released", Match::No),
            ("./deploy.sh *", "././deploy.sh now", Match::Yes),
            ("./deploy.sh *", "deploy.sh", Match::Yes),
            ("./deploy.sh *", "sh deploy.sh", Match::Perhaps),
            ("./deploy.sh *", "true; ././deploy.sh", Match::Yes),
            ("/usr/bin/git push *", "git push", Match::Perhaps),
            ("/usr/bin/git push *", "/usr/bin/../bin/git push", Match::Yes),
            ("/usr/bin/git push *", "git pull", Match::No),
            ("../tool", "../../tool", Match::Perhaps),
        ];
        for (pattern, line, expected) in table {
            assert_eq!(on(pattern, line, Verdict::Deny), expected, "{pattern} on {line}");
            assert_eq!(on(pattern, line, Verdict::Ask), expected, "{pattern} on {line}");
        }
        for line in ["./scripts/release", "scripts//release", "release"] {
            assert_eq!(on("scripts/release *", line, Verdict::Allow), Match::No, "an allow is for what is written: {line}");
        }
    }

    #[test]
    fn what_could_never_match_is_an_error() {
        let problem = |text| CommandPattern::parse(text).unwrap_err().to_string();
        assert!(problem("").contains("`*` covers every command"));
        assert!(problem("git status; x").contains("';'"));
        assert!(problem("echo $HOME").contains("'$'"));
        assert!(problem("A=b git").contains("sets a variable"));
        assert!(problem("git push **").contains("`**` in `git push **` has no meaning"));
        assert!(problem("** x").contains("has no meaning"));
    }
}
