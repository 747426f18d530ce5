//! git's settings, read as git reads them.

use std::iter::Peekable;
use std::str::Chars;

/// A setting as it stands.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::sandbox) struct GitSetting {
    /// In small letters.
    pub(in crate::sandbox) section: String,
    pub(in crate::sandbox) subsection: Option<String>,
    /// In small letters. Of a section without settings there is one without a key.
    pub(in crate::sandbox) key: String,
    /// `None`: the key alone, which means yes.
    pub(in crate::sandbox) value: Option<String>,
}

/// Bytes of all settings of a file. A long subsection counts for each of its settings.
const MOST_BYTES: usize = 256 << 20;

/// The settings in the order of the file; `None` for what git cannot read either, and for settings
/// of more than 256 MiB.
pub(in crate::sandbox) fn parse_settings(text: &str) -> Option<Vec<GitSetting>> {
    parse_within(text, MOST_BYTES).ok().flatten()
}

/// The settings need more bytes than allowed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SettingsTooLong;

/// The settings in the order of the file, if they need at most `most` bytes; `None` for what git
/// cannot read either.
pub(super) fn parse_within(
    text: &str,
    most: usize,
) -> Result<Option<Vec<GitSetting>>, SettingsTooLong> {
    let mut left = Some(most);
    let settings = parse(text, &mut left);
    if left.is_none() { Err(SettingsTooLong) } else { Ok(settings) }
}

/// Stops with `left` at `None` when the settings need more bytes.
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

/// What comes after a `[`.
fn parse_header(chars: &mut Peekable<Chars<'_>>) -> Option<(String, Option<String>)> {
    let mut name = String::new();
    loop {
        match chars.next()? {
            ']' => {
                // The old way to write a subsection, which knows no case.
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

/// What comes after a `=`.
fn parse_value(chars: &mut Peekable<Chars<'_>>) -> Option<String> {
    let mut value = String::new();
    // Blanks count if something comes after them.
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
                // To git a file ends in a new line.
                None | Some('\n') => continue,
                Some('n') => '\n',
                Some('t') => '\t',
                Some('b') => '\u{8}',
                Some(c @ ('"' | '\\')) => c,
                Some(_) => return None,
            },
            // No other character is a blank to git.
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
