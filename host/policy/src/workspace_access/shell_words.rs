//! Splits a command line into the words of its commands, if it contains nothing that needs a shell
//! to understand.

/// Returns the words of each command of a line, without quotes and redirections.
///
/// Returns `None` for lines with substitutions, subshells, background commands, here-documents,
/// comments, or redirections to files other than `/dev/null`.
pub(super) fn split(line: &str) -> Option<Vec<Vec<String>>> {
    let mut splitter = WordSplitter { rest: line, ..WordSplitter::default() };
    while let Some(next) = splitter.take() {
        splitter.step(next)?;
    }
    splitter.end_command();
    Some(splitter.commands)
}

#[derive(Default)]
struct WordSplitter<'a> {
    rest: &'a str,
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    /// The word so far; `None` between words.
    word: Option<String>,
}

impl WordSplitter<'_> {
    fn take(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    /// Takes a text if it comes next.
    fn take_text(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn step(&mut self, next: char) -> Option<()> {
        match next {
            ' ' | '\t' => self.end_word(),
            '\n' | ';' => self.end_command(),
            '|' => {
                let _ = self.take_text("|");
                self.end_command();
            }
            '&' if self.take_text("&") => self.end_command(),
            '\'' => {
                let (text, rest) = self.rest.split_once('\'')?;
                self.push(text);
                self.rest = rest;
            }
            '"' => self.quoted()?,
            '\\' => {
                let escaped = self.take()?;
                // A line continuation joins two lines.
                if escaped != '\n' {
                    self.push(escaped.encode_utf8(&mut [0; 4]));
                }
            }
            '>' => self.redirect()?,
            '<' if !self.rest.starts_with(['<', '(', '>', '&']) => self.end_word(),
            '&' | '<' | '`' | '(' | ')' => return None,
            '#' if self.word.is_none() => return None,
            '{' | '}' if self.word.is_none() => return None,
            '$' if self.rest.starts_with(['(', '\'', '"', '{']) => return None,
            other => self.push(other.encode_utf8(&mut [0; 4])),
        }
        Some(())
    }

    /// Reads the rest of a text in double quotes.
    fn quoted(&mut self) -> Option<()> {
        self.push("");
        loop {
            match self.take()? {
                '"' => return Some(()),
                '`' => return None,
                '$' if self.rest.starts_with(['(', '{']) => return None,
                '\\' => {
                    let escaped = self.take()?;
                    if !matches!(escaped, '$' | '`' | '"' | '\\' | '\n') {
                        self.push("\\");
                    }
                    self.push(escaped.encode_utf8(&mut [0; 4]));
                }
                other => self.push(other.encode_utf8(&mut [0; 4])),
            }
        }
    }

    /// Reads the target of a redirection of output.
    fn redirect(&mut self) -> Option<()> {
        // The number of the redirected descriptor is no word of the command.
        if self.word.as_ref().is_some_and(|word| word.chars().all(|c| c.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        if self.take_text("&1") || self.take_text("&2") {
            return Some(());
        }
        let _ = self.take_text(">");
        self.rest = self.rest.trim_start_matches(' ');
        let is_whole =
            |rest: &str| rest.is_empty() || rest.starts_with([' ', '\t', '\n', ';', '|', '&', '>']);
        (self.take_text("/dev/null") && is_whole(self.rest)).then_some(())
    }

    fn push(&mut self, text: &str) {
        self.word.get_or_insert_default().push_str(text);
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_as_a_shell_does_it() {
        let table: &[(&str, &[&[&str]])] = &[
            ("ls -l  src", &[&["ls", "-l", "src"]]),
            ("cat a | head -n 5", &[&["cat", "a"], &["head", "-n", "5"]]),
            ("cd x && rg y || true; pwd", &[&["cd", "x"], &["rg", "y"], &["true"], &["pwd"]]),
            (r#"rg 'a | b' "c > d" e\ f"#, &[&["rg", "a | b", "c > d", "e f"]]),
            ("ls a 2>/dev/null", &[&["ls", "a"]]),
            ("ls 2>&1 >/dev/null | wc", &[&["ls"], &["wc"]]),
            ("wc < file", &[&["wc", "file"]]),
            ("echo ''", &[&["echo", ""]]),
            ("ls\npwd", &[&["ls"], &["pwd"]]),
            ("ls \\\n -l", &[&["ls", "-l"]]),
            ("", &[]),
        ];
        for (line, expected) in table {
            assert_eq!(split(line).expect(line), *expected, "{line}");
        }
    }

    #[test]
    fn lines_that_need_a_shell_are_not_split() {
        for line in [
            "ls > file",
            "ls >> file",
            "ls 2> file",
            "ls >/dev/nullx",
            "ls >/dev/null/x",
            "ls >&3",
            "ls &> file",
            "ls &",
            "cat <<E",
            "cat <(ls)",
            "cat <>x",
            "echo $(ls)",
            "echo `ls`",
            "echo \"$(ls)\"",
            "echo \"`ls`\"",
            "echo ${x}",
            "(ls)",
            "{ ls; }",
            "ls # x",
            "echo 'x",
            "echo \"x",
            "echo \\",
            "echo $'x'",
        ] {
            assert_eq!(split(line), None, "{line}");
        }
    }
}
