//! A parser for git settings that follows git's own rules.

use std::iter::Peekable;
use std::str::Chars;

/// A single setting as written in the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GitSetting {
    /// The name of the section, in lowercase.
    pub(crate) section: String,
    pub(crate) subsection: Option<String>,
    /// The key in lowercase. A section without settings has one entry without a key.
    pub(crate) key: String,
    /// The value, or `None` for a key alone, which means true.
    pub(crate) value: Option<String>,
}

/// The maximum memory for all settings of a file, in bytes. A long subsection counts for each of
/// its settings.
const MOST_BYTES: usize = 256 << 20;

/// Parses the settings in file order.
///
/// Returns `None` if git rejects the text, or if the settings need more than 256 MiB.
pub(crate) fn parse_settings(text: &str) -> Option<Vec<GitSetting>> {
    parse_within(text, MOST_BYTES).ok().flatten()
}

/// An error for settings that need more memory than allowed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SettingsTooLong;

/// Parses the settings in file order if they need at most `most` bytes.
///
/// Returns `None` if git rejects the text.
pub(super) fn parse_within(
    text: &str,
    most: usize,
) -> Result<Option<Vec<GitSetting>>, SettingsTooLong> {
    let mut left = Some(most);
    let settings = parse(text, &mut left);
    if left.is_none() { Err(SettingsTooLong) } else { Ok(settings) }
}

/// Parses the settings, and stops with `left` at `None` if they need more bytes.
fn parse(text: &str, left: &mut Option<usize>) -> Option<Vec<GitSetting>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let mut chars = text.chars().peekable();
    let mut settings = Vec::new();
    let mut section: Option<(String, Option<String>)> = None;
    while let Some(c) = chars.next() {
        match c {
            '#' | ';' => skip_line(&mut chars),
            '[' => section = Some(parse_header(&mut chars)?),
            c if c.is_whitespace() => {}
            c if c.is_ascii_alphabetic() => {
                let length = section
                    .as_ref()
                    .map_or(0, |(name, inner)| name.len() + inner.as_ref().map_or(0, String::len));
                *left = left.and_then(|left| left.checked_sub(length + size_of::<GitSetting>()));
                (*left)?;
                let (section, subsection) = section.clone()?;
                let mut key = String::from(c.to_ascii_lowercase());
                while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '-') {
                    key.push(c.to_ascii_lowercase());
                }
                while chars.next_if(|c| *c == ' ' || *c == '\t').is_some() {}
                let value = match chars.peek() {
                    Some('=') => {
                        chars.next();
                        Some(parse_value(&mut chars)?)
                    }
                    Some('\n') | None => None,
                    Some('#' | ';') => {
                        skip_line(&mut chars);
                        None
                    }
                    Some(_) => return None,
                };
                settings.push(GitSetting { section, subsection, key, value });
            }
            _ => return None,
        }
    }
    Some(settings)
}

fn skip_line(chars: &mut Peekable<Chars<'_>>) {
    while chars.next().is_some_and(|c| c != '\n') {}
}

/// Parses the rest of a section header after `[`.
fn parse_header(chars: &mut Peekable<Chars<'_>>) -> Option<(String, Option<String>)> {
    let mut name = String::new();
    loop {
        match chars.next()? {
            ']' => {
                // The deprecated syntax of a subsection, which is case-insensitive.
                let (name, subsection) = name
                    .split_once('.')
                    .map_or((name.as_str(), None), |(name, inner)| (name, Some(inner)));
                return Some((name.to_owned(), subsection.map(str::to_owned)));
            }
            ' ' | '\t' => break,
            c if c.is_ascii_alphanumeric() || c == '-' || c == '.' => {
                name.push(c.to_ascii_lowercase())
            }
            _ => return None,
        }
    }
    while chars.next_if(|c| *c == ' ' || *c == '\t').is_some() {}
    if chars.next()? != '"' {
        return None;
    }
    let mut subsection = String::new();
    loop {
        match chars.next()? {
            '"' => break,
            '\\' => subsection.push(chars.next().filter(|c| *c != '\n')?),
            '\n' => return None,
            c => subsection.push(c),
        }
    }
    (chars.next()? == ']').then_some((name, Some(subsection)))
}

/// Parses the rest of a setting after `=`.
fn parse_value(chars: &mut Peekable<Chars<'_>>) -> Option<String> {
    let mut value = String::new();
    // Blanks count only if another character follows them.
    let mut blanks = String::new();
    let mut is_quoted = false;
    loop {
        let c = match chars.next() {
            None | Some('\n') => return (!is_quoted).then_some(value),
            Some('#' | ';') if !is_quoted => {
                skip_line(chars);
                return Some(value);
            }
            Some('"') => {
                is_quoted = !is_quoted;
                value.push_str(&std::mem::take(&mut blanks));
                continue;
            }
            Some('\\') => match chars.next() {
                // git treats the end of the file as a newline.
                None | Some('\n') => continue,
                Some('n') => '\n',
                Some('t') => '\t',
                Some('b') => '\u{8}',
                Some(c @ ('"' | '\\')) => c,
                Some(_) => return None,
            },
            // git treats no other character as a blank.
            Some(c @ (' ' | '\t' | '\r')) if !is_quoted => {
                if !value.is_empty() {
                    blanks.push(c);
                }
                continue;
            }
            Some(c) => c,
        };
        value.push_str(&std::mem::take(&mut blanks));
        value.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_subsection_counts_for_each_of_its_settings() {
        let text = format!("[a \"{}\"]\n{}", "x".repeat(10_000), "k\n".repeat(10_000));
        assert_eq!(parse_within(&text, 1 << 20), Err(SettingsTooLong));
        assert_eq!(parse_settings(&text).map(|settings| settings.len()), Some(10_000));
        assert_eq!(parse_within("[a", 1 << 20), Ok(None));
    }
}
