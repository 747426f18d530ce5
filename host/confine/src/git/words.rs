//! A search for words of a shell command line that may be paths of programs.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::str::Chars;

/// The maximum depth of nested command lines (`sh -c '…'`).
const MOST_LEVELS: usize = 4;
/// The maximum number of words in one setting.
const MOST_WORDS: usize = 1000;

/// Programs that treat their arguments as data, or only edit the files.
const READERS: &[&str] = &[
    "[", "[[", "basename", "cat", "code", "cp", "cut", "diff", "dirname", "du", "echo", "egrep",
    "emacs", "fgrep", "file", "grep", "head", "jq", "less", "ls", "mkdir", "more", "mv", "nano",
    "nvim", "open", "printf", "readlink", "realpath", "rg", "rm", "rmdir", "sort", "stat", "tail",
    "tee", "test", "touch", "tr", "uniq", "vi", "vim", "wc", "xdg-open",
];
/// Programs that run a program which they read or find.
const RUNNERS: &[&str] = &[
    ".", "bash", "dash", "eval", "find", "fish", "ksh", "node", "perl", "php", "python", "python3",
    "ruby", "sh", "source", "xargs", "zsh",
];
/// Subcommands of git that are followed by a program.
const RUNNING_SUBCOMMANDS: &[&str] = &[
    "-c",
    "bisect",
    "config",
    "difftool",
    "filter-branch",
    "for-each-repo",
    "mergetool",
    "rebase",
    "send-email",
    "submodule",
];
/// Words that can precede a program in a command.
const PREFIXES: &[&str] = &[
    "!", "command", "do", "elif", "else", "env", "exec", "if", "nice", "nohup", "sudo", "then",
    "time", "until", "while", "{",
];

/// Returns the words of a line that may be paths of files which it runs, without duplicates.
pub(super) fn paths_in(line: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    collect(line, MOST_LEVELS, &mut found);
    found.into_iter().take(MOST_WORDS).collect()
}

fn collect(line: &str, levels: usize, found: &mut BTreeSet<String>) {
    let (commands, mut substitutions) = commands_of(line);
    let program_of = |command: &[String]| {
        command.iter().position(|word| !PREFIXES.contains(&word.as_str()) && !is_assignment(word))
    };
    let runs_what_it_reads = commands.iter().any(|command| {
        let program = program_of(command).map(|at| name_of(&command[at]));
        program.is_some_and(|program| RUNNERS.contains(&program))
    });
    let mut directory = None;
    // The number of words in each command that were searched for paths.
    let mut entered = vec![0; commands.len()];
    for (number, command) in commands.iter().enumerate() {
        let at = program_of(command).unwrap_or(command.len());
        let program = command.get(at).map_or("", |word| name_of(word));
        if let ("cd" | "pushd", Some(to)) = (program, command.get(at + 1)) {
            directory = path_of(to);
            continue;
        }
        let is_data = match program {
            "git" => !command.iter().any(|word| RUNNING_SUBCOMMANDS.contains(&word.as_str())),
            program => READERS.contains(&program) && !runs_what_it_reads,
        };
        let words = if is_data { &command[..(at + 1).min(command.len())] } else { &command[..] };
        entered[number] = words.len();
        for word in words {
            add(word, directory.as_deref(), found);
            if levels > 0 && word.contains([' ', '\t', '\n', ';', '&', '|', '(', '`']) {
                collect(word, levels - 1, found);
            }
        }
    }
    // A shell runs substitutions in data too.
    substitutions.retain(|substitution| substitution.word >= entered[substitution.command]);
    if levels > 0 {
        substitutions
            .iter()
            .for_each(|substitution| collect(&substitution.line, levels - 1, found));
    }
}

/// A command substitution in double quotes.
struct CommandSubstitution {
    line: String,
    command: usize,
    /// The index of the word in the command. A redirection target is not a word and has the highest
    /// index.
    word: usize,
}

/// Returns the last component of the path of a program.
fn name_of(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

fn add(word: &str, directory: Option<&str>, found: &mut BTreeSet<String>) {
    // A path may follow the name of an option or of a variable.
    let glued = word
        .strip_prefix('-')
        .filter(|option| !option.starts_with('-'))
        .and_then(|option| option.get(1..));
    let assigned = word.match_indices('=').filter_map(|(at, _)| word.get(at + 1..));
    for path in [Some(word), glued].into_iter().flatten().chain(assigned).filter_map(path_of) {
        if found.len() >= MOST_WORDS {
            return;
        }
        if let Some(directory) = directory.filter(|_| !path.starts_with('/')) {
            found.insert(format!("{directory}/{path}"));
        }
        found.insert(path);
    }
}

/// Returns the path in a word. A variable or command substitution is assumed to be the top
/// directory.
fn path_of(word: &str) -> Option<String> {
    let expansion = word.rfind(['$', '`']).map(|at| {
        let rest = &word[at + 1..];
        let end = match rest.chars().next() {
            Some('{') => rest.find('}').map(|end| end + 1),
            Some('(') => rest.rfind(')').map(|end| end + 1),
            _ => rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_'),
        };
        end.map_or("", |end| &rest[end..]).trim_start_matches('/')
    });
    let path = expansion.unwrap_or(word);
    let is_option = path.starts_with('-');
    let is_address = path.contains("://")
        || path.contains("@{")
        || path.starts_with("refs/")
        || path.starts_with("origin/");
    let is_path = !path.is_empty()
        && !is_option
        && !is_address
        && !path.contains(['\0', '\n', '*', '%', '^', ':']);
    is_path.then(|| path.to_owned())
}

/// Returns the simple commands of a line as words without quotes, and the substitutions in double
/// quotes. Redirection targets are not words.
fn commands_of(line: &str) -> (Vec<Vec<String>>, Vec<CommandSubstitution>) {
    let mut substitutions = Vec::new();
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut is_target = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let current = || commands.len() - 1;
        match c {
            '\'' => word.get_or_insert_default().extend(chars.by_ref().take_while(|c| *c != '\'')),
            '"' => {
                let word = word.get_or_insert_default();
                while let Some(c) = chars.next().filter(|c| *c != '"') {
                    let line = match c {
                        '\\' => {
                            word.extend(chars.next());
                            continue;
                        }
                        '$' if chars.next_if_eq(&'(').is_some() => {
                            let line = until_parenthesis(&mut chars);
                            word.extend(["$(", &line, ")"]);
                            line
                        }
                        '`' => {
                            let line = until_backtick(&mut chars);
                            word.extend(["`", &line, "`"]);
                            line
                        }
                        c => {
                            word.push(c);
                            continue;
                        }
                    };
                    let command = current();
                    let word = if is_target { usize::MAX } else { commands[command].len() };
                    substitutions.push(CommandSubstitution { line, command, word });
                }
            }
            '\\' => word.get_or_insert_default().extend(chars.next().filter(|c| *c != '\n')),
            ' ' | '\t' | '\n' | '\r' | ';' | '&' | '|' | '(' | ')' | '`' | '<' | '>' => {
                let at = current();
                if let Some(ended) = word.take()
                    && !std::mem::take(&mut is_target)
                {
                    commands[at].push(ended);
                }
                match c {
                    ' ' | '\t' | '<' | '\r' => {}
                    '>' => is_target = true,
                    '&' if is_target => {}
                    _ => {
                        is_target = false;
                        commands.push(Vec::new());
                    }
                }
                // `$(git rev-parse --show-toplevel)/tools/x`
                if matches!(c, ')' | '`') && chars.peek() == Some(&'/') {
                    chars.next();
                }
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    if let Some(ended) = word.filter(|_| !is_target)
        && let Some(last) = commands.last_mut()
    {
        last.push(ended);
    }
    (commands, substitutions)
}

/// Returns the line of a `$(…)`, up to its closing parenthesis.
fn until_parenthesis(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut line = String::new();
    // The open delimiters, innermost last.
    let mut open = vec![')'];
    while let Some(c) = chars.next() {
        let is_in_quotes = open.last() == Some(&'"');
        match c {
            // The parenthesis after a `case` pattern closes nothing.
            ')' if line.contains("case ") && !line.contains("esac") => {}
            c if open.last() == Some(&c) => {
                open.pop();
                if open.is_empty() {
                    break;
                }
            }
            '\\' => {
                line.push(c);
                line.extend(chars.next());
                continue;
            }
            '\'' if !is_in_quotes => {
                line.push(c);
                for c in chars.by_ref() {
                    line.push(c);
                    if c == '\'' {
                        break;
                    }
                }
                continue;
            }
            '"' | '`' => open.push(c),
            '(' if !is_in_quotes || line.ends_with('$') => open.push(')'),
            _ => {}
        }
        line.push(c);
    }
    line
}

/// Returns the line between backticks, without the backslashes that protect it from the outer
/// quotes.
fn until_backtick(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut line = String::new();
    while let Some(c) = chars.next().filter(|c| *c != '`') {
        let escaped =
            (c == '\\').then(|| chars.next_if(|c| matches!(c, '`' | '\\' | '$' | '"'))).flatten();
        line.push(escaped.unwrap_or(c));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_may_be_programs_are_found_and_data_is_not() {
        for (line, expected) in [
            ("./tools/x --flag", &["./tools/x"][..]),
            ("tools/pager | less -R", &["less", "tools/pager"]),
            ("'my tools/x' %O %A %B", &["my", "my tools/x", "tools/x"]),
            ("sh -c './a && \"b c/d\"'", &["./a", "./a && \"b c/d\"", "b", "b c/d", "c/d", "sh"]),
            ("$(git rev-parse --show-toplevel)/tools/x", &["git", "tools/x"]),
            ("\"$(git rev-parse --show-toplevel)/tools/x\"", &["git", "tools/x"]),
            ("\"${TOP}/tools/x\" $TOP/y", &["tools/x", "y"]),
            ("cd tools && ./x", &["./x", "tools/./x"]),
            ("X=./a env -f./b prog --config=./c", &["./a", "./b", "./c", "X=./a", "env", "prog"]),
            ("npm run lint", &["lint", "npm", "run"]),
            ("git log --format=%h src/main.rs", &["git"]),
            ("git bisect run ./test.sh", &["./test.sh", "bisect", "git", "run"]),
            ("grep -rn TODO src/a.rs", &["grep"]),
            ("cat ./x | sh", &["./x", "cat", "sh"]),
            ("make > out/log 2>&1", &["2", "make"]),
            ("gh pr view https://a/b refs/heads/x", &["gh", "pr", "view"]),
            ("echo \"$(./tools/x1)\"", &["./tools/x1", "echo"]),
            ("echo \"base: $(tools/x2 --q)\" a/b", &["echo", "tools/x2"]),
            ("echo \"`tools/x3`\" '$(a/b)' \"\\$(c/d)\" \"\\`e/f\\`\"", &["echo", "tools/x3"]),
            (
                "printf %s \"$(echo \"`tools/x4 \\\"a b\\\"`\")\"",
                &["a", "a b", "b", "echo", "printf", "tools/x4"],
            ),
            ("cd \"$(tools/x5)\"; echo > \"$(tools/o)\"", &["echo", "tools/o", "tools/x5"]),
            (
                "git log --format=\"$(sh tools/x6 'a b')\"",
                &["a", "a b", "b", "git", "sh", "tools/x6"],
            ),
            ("echo \"$(echo ')' \"(\" $((1)) $(tools/x7))\" c/d", &["1", "echo", "tools/x7"]),
            ("cat \"${X:-$(tools/x8)}\" \"it's $(tools/x9)\"", &["cat", "tools/x8", "tools/x9"]),
            (
                "echo \"$(case a in a) tools/y ;; esac)\" b/c",
                &["a", "case", "echo", "esac", "in", "tools/y"],
            ),
            ("echo \"$(\" tools/x", &[" tools/x", "echo", "tools/x"]),
            ("unclosed 'a/b", &["a/b", "unclosed"]),
            ("back\\", &["back"]),
        ] {
            assert_eq!(paths_in(line), expected, "{line}");
        }
    }

    #[test]
    fn a_line_of_lines_has_an_end() {
        let mut line = "./x".to_owned();
        for _ in 0..12 {
            line = format!("sh -c \"{}\"", line.replace('\\', "\\\\").replace('"', "\\\""));
        }
        assert!(paths_in(&line).len() < 100);
        assert!(paths_in(&"a/b ".repeat(100_000)).len() == 1);
        assert!(
            paths_in(&(0..5000).map(|n| format!("./{n} ")).collect::<String>()).len() <= MOST_WORDS
        );
    }
}
