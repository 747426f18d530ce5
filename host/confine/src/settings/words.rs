//! A filter for files with the arguments of a program, such as JVM options, and the options of
//! Bazel.

use std::path::Path;

use super::lines::{is_secret_pair, unquoted};
use super::secrets::{has_known_token, is_secret_name, without_passwords};

/// Removes secrets from program arguments separated by blanks, and returns whether anything was
/// removed.
///
/// If the name of an option indicates a secret, the following word is removed. A quoted text with a
/// secret loses everything up to the next option in it.
pub(super) fn without_secrets(text: &str) -> (String, bool) {
    let mut words = OptionWords { clean: String::with_capacity(text.len()), ..Default::default() };
    for line in text.split_inclusive('\n') {
        words.end_quote();
        line.split_inclusive(char::is_whitespace).for_each(|word| words.push(word));
    }
    (words.clean, words.has_changed)
}

/// Returns the paths of the files that options of Bazel import.
pub(super) fn included(text: &str, path: &Path) -> Vec<String> {
    let root = path.parent().map(|folder| folder.to_string_lossy()).unwrap_or_default();
    let imports = text.lines().filter_map(|line| {
        let line = line.trim();
        line.strip_prefix("import ").or_else(|| line.strip_prefix("try-import "))
    });
    imports.map(|import| unquoted(import).replace("%workspace%", &root)).collect()
}

/// The words that are kept so far.
#[derive(Debug, Default)]
struct OptionWords {
    clean: String,
    has_changed: bool,
    /// Whether the next word is the value of an option with a secret.
    is_value: bool,
    /// The open quote.
    quote: Option<char>,
    /// The open quote if it was removed with a secret. It comes back before the next word in it.
    removed_quote: Option<char>,
    /// Whether the quoted text contained a secret since the last option in it.
    is_after_secret: bool,
}

impl OptionWords {
    /// A quote does not continue on the next line. It may be an apostrophe.
    fn end_quote(&mut self) {
        (self.quote, self.removed_quote, self.is_after_secret) = (None, None, false);
    }

    fn push(&mut self, word: &str) {
        let plain = word.trim();
        if plain.is_empty() {
            self.clean.push_str(word);
            return;
        }
        let before = self.quote;
        let mut opened_at = None;
        for (at, c) in plain.char_indices().filter(|(_, c)| matches!(c, '"' | '\'')) {
            match self.quote {
                None => {
                    self.quote = Some(c);
                    opened_at.get_or_insert(at);
                }
                Some(open) if open == c => self.quote = None,
                Some(_) => {}
            }
        }
        let option = unquoted(plain);
        let is_option = option.starts_with('-');
        let is_rest = before.is_some() && self.is_after_secret && !is_option;
        let is_secret = is_rest
            || has_known_token(option)
            || has_secret_pair(option)
            || self.is_value && !is_option;
        self.is_value = is_option && !option.contains('=') && is_secret_name(option);
        self.is_after_secret = is_secret && (before.is_some() || self.quote.is_some());
        if !is_secret {
            self.clean.extend(self.removed_quote.take());
            let without = without_passwords(word);
            self.has_changed |= without != word;
            self.clean.push_str(&without);
            return;
        }
        self.has_changed = true;
        match (before, self.quote) {
            (None, Some(quote)) => {
                match plain.find('=').filter(|equals| opened_at.is_some_and(|at| *equals < at)) {
                    Some(equals) if opened_at != Some(0) => {
                        self.clean.push_str(&plain[..=equals]);
                        self.clean.push(quote);
                    }
                    Some(_) | None => self.removed_quote = Some(quote),
                }
            }
            (Some(quote), None) => {
                if self.removed_quote.take().is_none() {
                    self.clean.push(quote);
                }
            }
            (None, None) | (Some(_), Some(_)) => {}
        }
        self.clean.push_str(&word[word.trim_end().len()..]);
    }
}

/// Returns whether a word contains a name of a secret and its value. The value of an option can
/// itself be a pair: `--header=x-api-key=value`.
fn has_secret_pair(option: &str) -> bool {
    let mut rest = option;
    while let Some((name, value)) = rest.split_once('=') {
        if is_secret_pair(name, value) {
            return true;
        }
        rest = value;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_lose_their_secrets() {
        for (text, clean) in [
            ("-Xmx2g -Dhttp.proxyPassword=SECRET -Da=b\n", "-Xmx2g  -Da=b\n"),
            ("-s\nsettings.xml\n--token\nSECRET\n-T4\n", "-s\nsettings.xml\n--token\n\n-T4\n"),
            ("-Durl=https://u:SECRET@h/x\n", "-Durl=https://h/x\n"),
            (
                "-Xmx2g\n-Dpassword=${env.PW}\n-Djava.io.tmpdir=/tmp\n",
                "-Xmx2g\n-Dpassword=${env.PW}\n-Djava.io.tmpdir=/tmp\n",
            ),
            (
                "MAVEN_OPTS=\"-Dhttp.proxyPassword=SECRET -Xmx1g\"\nexport A=b\n",
                "MAVEN_OPTS=\" -Xmx1g\"\nexport A=b\n",
            ),
            ("MAVEN_OPTS=\"-Xmx1g -Dpassword=SECRET\"\n", "MAVEN_OPTS=\"-Xmx1g \"\n"),
            ("-Dpassword=\"SECRET SECRET\" -Xmx1g\n", "-Dpassword=\" \" -Xmx1g\n"),
            (
                "build --remote_header=x-api-key=SECRET --jobs=4\ntest --cache_test_results\n",
                "build  --jobs=4\ntest --cache_test_results\n",
            ),
            (
                "build \"--remote_header=Authorization=Bearer SECRET\" --jobs=4\n",
                "build   --jobs=4\n",
            ),
            ("# build --remote_header=x-api-key=SECRET\n", "# build \n"),
            (
                "# don't build --jobs=4\nbuild --jobs=2\n",
                "# don't build --jobs=4\nbuild --jobs=2\n",
            ),
            ("test --test_env=DB_PASSWORD=SECRET --test_env=A=b\n", "test  --test_env=A=b\n"),
        ] {
            let expected = (clean.to_owned(), clean != text);
            assert_eq!(without_secrets(text), expected, "{text}");
        }
    }
}
