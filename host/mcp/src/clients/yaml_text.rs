//! Edits the servers in a YAML file of the usual form: block style, with spaces, one document.
//! Anything else is refused.

use serde_json::Value;

use super::{ClientFileError, ServerEntry};

/// The key of all servers.
const SECTION: &str = "extensions";

/// The lines of the file, with the position of the servers.
struct YamlLines<'a> {
    lines: Vec<&'a str>,
    /// The line of the key of all servers.
    section: Option<usize>,
    /// The line after the last server.
    end: usize,
    /// The indentation of the servers.
    indent: usize,
}

/// Sets a server.
pub(super) fn set(text: &str, entry: &ServerEntry) -> Result<String, ClientFileError> {
    let without = remove(text, &entry.name)?.unwrap_or_else(|| text.to_owned());
    let found = YamlLines::scan(&without)?;
    let quote = |text: &str| Value::from(text).to_string();
    let args: Vec<String> = entry.args.iter().map(|arg| quote(arg)).collect();
    let (outer, inner) = (" ".repeat(found.indent), " ".repeat(found.indent * 2));
    let server = format!(
        "{outer}{}:\n{inner}name: {}\n{inner}type: stdio\n{inner}enabled: true\n{inner}cmd: {}\n\
            {inner}args: [{}]\n{inner}envs: {{}}\n{inner}timeout: 300\n",
        key(&entry.name),
        quote(&entry.name),
        quote(&entry.command),
        args.join(", ")
    );
    let mut changed = String::new();
    match found.section {
        Some(section) => {
            for (n, line) in found.lines.iter().enumerate() {
                if n == section {
                    changed.push_str(&format!("{SECTION}:{}\n", trailing_comment(line)));
                    changed.push_str(&server);
                } else {
                    changed.push_str(line);
                }
            }
        }
        None => {
            changed.push_str(&without);
            if !changed.is_empty() && !changed.ends_with('\n') {
                changed.push('\n');
            }
            changed.push_str(&format!("{SECTION}:\n{server}"));
        }
    }
    YamlLines::scan(&changed)?;
    Ok(changed)
}

/// Removes a server.
pub(super) fn remove(text: &str, name: &str) -> Result<Option<String>, ClientFileError> {
    let found = YamlLines::scan(text)?;
    let Some(section) = found.section else { return Ok(None) };
    let keys = [key(name), name.to_owned()].map(|key| format!("{key}:"));
    let is_own = |line: &str| {
        indent_of(line) == found.indent
            && keys.iter().any(|key| {
                let line = line.trim();
                line.strip_prefix(key.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            })
    };
    let Some(start) = (section + 1..found.end).find(|n| is_own(found.lines[*n])) else {
        return Ok(None);
    };
    let is_inside = |line: &str| line.trim().is_empty() || indent_of(line) > found.indent;
    let mut end = start + 1;
    while end < found.end && is_inside(found.lines[end]) {
        end += 1;
    }
    // Blank lines after it stay.
    while end > start + 1 && found.lines[end - 1].trim().is_empty() {
        end -= 1;
    }
    let mut kept: Vec<&str> = found.lines.clone();
    kept.drain(start..end);
    let has_others = kept[section + 1..found.end - (end - start)]
        .iter()
        .any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    let emptied = format!("{SECTION}: {{}}{}\n", trailing_comment(found.lines[section]));
    if !has_others {
        kept[section] = &emptied;
    }
    Ok(Some(kept.concat()))
}

impl<'a> YamlLines<'a> {
    fn scan(text: &'a str) -> Result<Self, ClientFileError> {
        let unknown = |problem: &str| Err(ClientFileError::Unknown(problem.to_owned()));
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let is_content =
            |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
        let mut section = None;
        for (n, line) in lines.iter().enumerate().filter(|(_, line)| is_content(line)) {
            if line.trim_start_matches(' ').starts_with('\t') {
                return unknown("a line is indented with tabs");
            }
            if indent_of(line) > 0 {
                continue;
            }
            let is_key = line.split_once(':').is_some_and(|(name, rest)| {
                let is_plain =
                    |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.';
                !name.is_empty()
                    && name.chars().all(is_plain)
                    && rest.starts_with([' ', '\n', '\r'])
                    || rest.is_empty()
            });
            if !is_key {
                return unknown(&format!("line {} is not a key of a block mapping", n + 1));
            }
            if line.starts_with(&format!("{SECTION}:")) {
                let rest = line[SECTION.len() + 1..].trim();
                if section.is_some() || !(rest.is_empty() || rest == "{}" || rest.starts_with('#'))
                {
                    return unknown(&format!("`{SECTION}` is not a block mapping of servers"));
                }
                section = Some(n);
            }
        }
        let start = section.map_or(lines.len(), |section| section + 1);
        let end = (start..lines.len())
            .find(|n| is_content(lines[*n]) && indent_of(lines[*n]) == 0)
            .unwrap_or(lines.len());
        let first = (start..end).map(|n| lines[n]).find(|line| is_content(line));
        if first.is_some_and(|line| line.trim_start().starts_with('-')) {
            return unknown(&format!("`{SECTION}` is a list"));
        }
        Ok(Self { section, end, indent: first.map_or(2, indent_of), lines })
    }
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Returns the comment at the end of the line of the section, with the space before it.
fn trailing_comment(line: &str) -> String {
    line.find('#').map(|at| format!(" {}", line[at..].trim_end())).unwrap_or_default()
}

/// Returns a name as a key.
fn key(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let starts_plain = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if starts_plain && name.chars().all(is_plain) {
        name.to_owned()
    } else {
        Value::from(name).to_string()
    }
}
