//! Analysis of a command line without running it.
//!
//! Only a *simple command* is understood here: unquoted words separated by spaces, without
//! variables, pipes, redirections, substitutions and operators such as `;` and `&&`. Every other
//! line is *opaque*: it needs approval each time, and "don't ask again" is not offered. The
//! analysis selects the question for the user; it cannot determine whether a line is safe.

use std::fmt;

use serde::Serialize;

use super::programs::ProgramSyntax;

/// A simple command: a command line of unquoted words without shell syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimpleCommand<'a> {
    words: Vec<&'a str>,
}

/// The command lines that a user approves for the rest of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "which", content = "words", rename_all = "kebab-case")]
pub enum CommandScope {
    /// All lines that begin with these words, a program and its subcommand.
    BeginsWith(Vec<String>),
    /// Only lines of exactly these words.
    Exactly(Vec<String>),
}

impl<'a> SimpleCommand<'a> {
    /// Parses a simple command; returns `None` for an opaque line.
    pub fn parse(line: &'a str) -> Option<Self> {
        if !line.chars().all(Self::is_plain) {
            return None;
        }
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        // `A=b command` sets a variable, which can change the meaning of the command.
        let program = words.first()?;
        (!program.contains('=')).then_some(Self { words })
    }

    /// Returns whether a character has no special meaning to a shell. The space, which separates
    /// words, counts as plain.
    pub(super) fn is_plain(c: char) -> bool {
        c.is_ascii_alphanumeric() || "-_./:,+@%=^ ".contains(c)
    }

    /// Returns the words, the program first.
    pub fn words(&self) -> &[&'a str] {
        &self.words
    }

    /// Returns the scope that "don't ask again" would cover: every line of the same subcommand if
    /// that subcommand limits the effects of the line, otherwise exactly these words.
    pub fn scope(&self) -> CommandScope {
        let words =
            |count: usize| self.words[..count].iter().map(|word| (*word).to_owned()).collect();
        match self.words[..] {
            [program, _, ..] if is_bounded(program, &self.words[1..]) => {
                CommandScope::BeginsWith(words(2))
            }
            _ => CommandScope::Exactly(words(self.words.len())),
        }
    }
}

/// Returns whether the first of `words` limits the effects of the others. `program` has to be the
/// plain name of a known program.
fn is_bounded(program: &str, words: &[&str]) -> bool {
    ProgramSyntax::find(program)
        .is_some_and(|known| known.name == program && known.is_bounded(words))
}

impl CommandScope {
    /// Returns whether a line is within the approved scope. An opaque line never is.
    pub fn covers(&self, line: &str) -> bool {
        SimpleCommand::parse(line).is_some_and(|command| match self {
            Self::BeginsWith(ours) => {
                let begins = command.words.len() >= ours.len()
                    && ours.iter().zip(&command.words).all(|(ours, theirs)| ours == theirs);
                // A later option can lift the limit that the subcommand sets.
                begins
                    && ours.first().is_some_and(|program| is_bounded(program, &command.words[1..]))
            }
            Self::Exactly(ours) => *ours == command.words,
        })
    }
}

impl fmt::Display for CommandScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Such an option is not covered.
            Self::BeginsWith(words) => write!(
                f,
                "commands that begin with `{}`, without options that write files or run programs",
                words.join(" ")
            ),
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
        assert_eq!(
            scope("cargo test --release").as_deref(),
            Some(
                "commands that begin with `cargo test`, without options that write files or run \
                    programs"
            )
        );
        assert_eq!(scope("git status -s"), scope("git status"));
        for exact in [
            "ls -la src",
            "make",
            "make test",
            "rm build",
            "cp a b",
            "./git status",
            "git -C x status",
            "Git status",
            "git2 log",
        ] {
            assert_eq!(scope(exact), Some(format!("exactly `{exact}`")));
        }
    }

    #[test]
    fn r039_the_scope_of_what_runs_anything_is_exactly_its_words() {
        let runners = [
            "npm run lint",
            "npm test",
            "npm exec eslint",
            "npm install left-pad",
            "npx eslint",
            "pnpm run lint",
            "pnpm exec eslint",
            "pnpm dlx x",
            "yarn lint",
            "yarn run lint",
            "bun run lint",
            "bunx x",
            "deno run a.ts",
            "deno task x",
            "docker run alpine",
            "docker exec c ls",
            "docker compose up",
            "podman run alpine",
            "kubectl exec p",
            "bundle exec rake",
            "uv run a.py",
            "uv tool run ruff",
            "uvx ruff",
            "poetry run pytest",
            "python -m pytest",
            "python3 a.py",
            "pip install x",
            "cargo run",
            "cargo xtask a",
            "cargo install x",
            "rustup run stable ls",
            "go run .",
            "go generate",
            "go tool x",
            "make lint",
            "just lint",
            "mix run a",
            "nix run x",
            "nix develop",
            "dotnet run",
            "swift run",
            "zig build",
            "zig run a.zig",
            "gradle build",
            "mvn test",
            "gem exec x",
            "composer exec x",
            "terraform apply",
            "gh alias list",
            "gh pr list",
            "git -c core.pager=x log",
            "git bisect run",
            "git rebase --exec=x",
            "git submodule foreach ls",
            "git config user.name x",
            "git fetch --upload-pack=x",
            "git difftool",
            "git grep x",
            "git for-each-repo push",
            "tar -xf a.tar",
            "find src -name a",
            "rg x",
            "fd x",
            "sort a",
            "split a",
            "sed -n 1p a",
            "awk 1 a",
            "rsync a b",
            "ssh host",
            "scp a b",
            "zip a b",
            "man x",
            "less x",
            "vim x",
            "wget x",
            "curl x",
            "xargs ls",
            "env ls",
            "nice ls",
            "perl x.pl",
            "node x.js",
            "ruby x.rb",
        ];
        for line in runners {
            assert_eq!(scope(line), Some(format!("exactly `{line}`")), "{line}");
        }
        let approved = SimpleCommand::parse("npm run lint").expect("a simple command").scope();
        assert!(approved.covers("npm run lint"));
        assert!(!approved.covers("npm run evil") && !approved.covers("npm run lint -- --fix"));
    }

    #[test]
    fn r039_an_option_that_writes_or_runs_is_not_covered_by_its_subcommand() {
        let table = [
            ("git log", "git log --oneline", true),
            ("git log", "git log --output=src/main.rs", false),
            ("git log", "git log --outp=src/main.rs", false),
            ("git diff", "git diff --ext-diff", false),
            ("cargo test", "cargo test --lib", true),
            ("cargo test", "cargo test --config evil.toml", false),
            ("cargo test", "cargo test --manifest-path=x/Cargo.toml", false),
            ("go test", "go test ./...", true),
            ("go test", "go test -exec ./evil", false),
            ("go test", "go test --toolexec=./evil", false),
            ("go build", "go build -o main.go", false),
            ("go build", "go build -ldflags=-extld=./evil", false),
            ("go test", "go test -coverprofile=main.go", false),
            ("go test", "go test --test.cpuprofile=main.go", false),
            ("cargo doc", "cargo doc --open", false),
            ("pip list", "pip list --python ./evil", false),
            ("pip check", "pip check --l=x", false),
            ("pip list", "pip list --outdated", true),
        ];
        for (approved, line, covered) in table {
            let scope = SimpleCommand::parse(approved).expect(approved).scope();
            assert_eq!(scope.covers(line), covered, "{approved}: {line}");
            let own = SimpleCommand::parse(line).expect(line).scope();
            assert_eq!(matches!(own, CommandScope::BeginsWith(_)), covered, "{line}");
            assert!(own.covers(line), "{line}");
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
        let other_subcommands = ["git diff", "git log", "git show", "git log status"];
        for line in other_subcommands {
            assert!(!git_status.covers(line), "{line}");
        }
        assert_eq!(SimpleCommand::parse(" rm  x ").expect("a simple command").words(), ["rm", "x"]);
        let rm = SimpleCommand::parse("rm -rf target").unwrap().scope();
        assert!(rm.covers("rm  -rf target"));
        assert!(!rm.covers("rm -rf target src"));
    }
}
