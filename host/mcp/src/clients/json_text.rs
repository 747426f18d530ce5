//! Edits JSON with comments and trailing commas, as the clients read it, without changing anything
//! else.

use serde_json::Value;

use super::ClientFileError;

/// The deepest nesting. The files of clients have a few levels.
const MAX_DEPTH: usize = 64;

/// A member of an object, by its positions in the text.
#[derive(Clone, Debug)]
struct MemberSpan {
    name: String,
    start: usize,
    value: usize,
    end: usize,
    /// The comma after it.
    comma: Option<usize>,
}

/// An object, by the positions of its braces and its members.
#[derive(Clone, Debug)]
struct ObjectSpan {
    open: usize,
    members: Vec<MemberSpan>,
}

/// Sets a member of the object `section` of the root.
pub(super) fn set(
    text: &str,
    section: &str,
    name: &str,
    value: &Value,
) -> Result<String, ClientFileError> {
    if text.trim().is_empty() {
        let whole = serde_json::json!({section: {name: value}});
        return Ok(format!("{whole:#}\n"));
    }
    let mut expected = parse(text)?;
    let root = scan_object(text, text.len() - skip(text, 0).len())?;
    let changed = match find(&root, section)? {
        None => insert(text, &root, section, &serde_json::json!({name: value})),
        Some(member) => {
            let servers = object_of(text, member)?;
            match find(&servers, name)? {
                Some(old) => {
                    let shown = indent(value, &indent_of(text, old.start));
                    format!("{}{shown}{}", &text[..old.value], &text[old.end..])
                }
                None => insert(text, &servers, name, value),
            }
        }
    };
    expected[section][name] = value.clone();
    check(changed, &expected)
}

/// Removes a member of the object `section` of the root.
pub(super) fn remove(
    text: &str,
    section: &str,
    name: &str,
) -> Result<Option<String>, ClientFileError> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let mut expected = parse(text)?;
    let root = scan_object(text, text.len() - skip(text, 0).len())?;
    let Some(member) = find(&root, section)? else { return Ok(None) };
    let servers = object_of(text, member)?;
    let Some(old) = find(&servers, name)? else { return Ok(None) };
    let is_last = servers.members.last().is_some_and(|last| last.start == old.start);
    let before = servers.members.iter().take_while(|member| member.start < old.start).last();
    let mut end = old.comma.map_or(old.end, |comma| comma + 1);
    // Its line break and its indentation go too, and so does the rest of the line if it is blank.
    let line = text[..old.start].rfind('\n').map_or(0, |newline| newline + 1);
    let is_alone = text[line..old.start].trim().is_empty();
    let rest = text[end..].find('\n').map_or(text.len(), |newline| end + newline);
    if is_alone && text[end..rest].trim().is_empty() {
        end = rest;
    }
    let start = if is_alone { line.saturating_sub(1) } else { old.start };
    let mut changed = format!("{}{}", &text[..start], &text[end..]);
    if let Some(comma) =
        before.and_then(|before| before.comma).filter(|_| is_last && old.comma.is_none())
    {
        changed.remove(comma);
    }
    if let Some(servers) = expected[section].as_object_mut() {
        servers.shift_remove(name);
    }
    check(changed, &expected).map(Some)
}

/// Returns the text if it means what it should.
fn check(text: String, expected: &Value) -> Result<String, ClientFileError> {
    if parse(&text)? == *expected {
        return Ok(text);
    }
    Err(ClientFileError::Unknown("the servers could not be told from the rest".into()))
}

/// Inserts a member at the end of an object.
fn insert(text: &str, object: &ObjectSpan, name: &str, value: &Value) -> String {
    let name = Value::from(name);
    let outer = indent_of(text, object.open);
    match object.members.last() {
        None => {
            let inner = format!("{outer}  ");
            let member = format!("\n{inner}{name}: {}\n{outer}", indent(value, &inner));
            format!("{}{member}{}", &text[..=object.open], text[object.open + 1..].trim_start())
        }
        Some(last) => {
            let own = indent_of(text, last.start);
            let inner = if own == outer { format!("{outer}  ") } else { own };
            let member = format!("\n{inner}{name}: {}", indent(value, &inner));
            match last.comma {
                Some(comma) => format!("{}{member}{}", &text[..=comma], &text[comma + 1..]),
                None => format!("{},{member}{}", &text[..last.end], &text[last.end..]),
            }
        }
    }
}

/// Returns the indentation of the line of a position.
fn indent_of(text: &str, at: usize) -> String {
    let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    text[line..at].chars().take_while(|c| matches!(c, ' ' | '\t')).collect()
}

/// Formats a value whose first line is already indented.
fn indent(value: &Value, indentation: &str) -> String {
    format!("{value:#}").replace('\n', &format!("\n{indentation}"))
}

fn find<'a>(object: &'a ObjectSpan, name: &str) -> Result<Option<&'a MemberSpan>, ClientFileError> {
    let mut found = object.members.iter().filter(|member| member.name == name);
    let first = found.next();
    if found.next().is_some() {
        return Err(ClientFileError::Unknown(format!("`{name}` occurs twice")));
    }
    Ok(first)
}

fn object_of(text: &str, member: &MemberSpan) -> Result<ObjectSpan, ClientFileError> {
    if text.as_bytes().get(member.value) != Some(&b'{') {
        return Err(ClientFileError::Unknown(format!("`{}` is not an object", member.name)));
    }
    scan_object(text, member.value)
}

/// Parses the text without its comments and trailing commas.
fn parse(text: &str) -> Result<Value, ClientFileError> {
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(c) = rest.chars().next() {
        let after = skip(rest, 0);
        if after.len() < rest.len() {
            plain.push(' ');
            rest = after;
            continue;
        }
        let length = if c == '"' { string_length(rest)? } else { c.len_utf8() };
        let next = skip(rest, length);
        if !(c == ',' && next.starts_with(['}', ']'])) {
            plain.push_str(&rest[..length]);
        }
        rest = &rest[length..];
    }
    let value: Value = serde_json::from_str(&plain)
        .map_err(|error| ClientFileError::Invalid(format!("{error} (without comments)")))?;
    match value {
        Value::Object(_) => Ok(value),
        _ => Err(ClientFileError::Invalid("it is not a JSON object".into())),
    }
}

/// Returns the rest after the blanks and comments at a position.
fn skip(text: &str, at: usize) -> &str {
    let mut rest = &text[at..];
    loop {
        let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{feff}']);
        rest = if let Some(comment) = trimmed.strip_prefix("//") {
            comment.find('\n').map_or("", |end| &comment[end..])
        } else if let Some(comment) = trimmed.strip_prefix("/*") {
            comment.find("*/").map_or("", |end| &comment[end + 2..])
        } else {
            return trimmed;
        };
    }
}

/// Returns the length of the string at the beginning, with its quotes.
fn string_length(text: &str) -> Result<usize, ClientFileError> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return Ok(at + 1),
            _ => {}
        }
    }
    Err(ClientFileError::Invalid("a string has no end".into()))
}

/// Finds the members of the object at a position. The text is valid.
fn scan_object(text: &str, open: usize) -> Result<ObjectSpan, ClientFileError> {
    let position = |rest: &str| text.len() - rest.len();
    let broken = || ClientFileError::Invalid("an object is not complete".into());
    let mut members = Vec::new();
    let mut rest = skip(text, open + 1);
    while rest.starts_with('"') {
        let start = position(rest);
        let length = string_length(rest)?;
        let name = serde_json::from_str(&rest[..length])
            .map_err(|error| ClientFileError::Invalid(error.to_string()))?;
        let colon = skip(text, start + length);
        let value = position(skip(text, position(colon.strip_prefix(':').ok_or_else(broken)?)));
        let end = scan_value(text, value, 0)?;
        rest = skip(text, end);
        let comma = rest.starts_with(',').then(|| position(rest));
        if let Some(comma) = comma {
            rest = skip(text, comma + 1);
        }
        members.push(MemberSpan { name, start, value, end, comma });
    }
    if rest.starts_with('}') { Ok(ObjectSpan { open, members }) } else { Err(broken()) }
}

/// Returns the end of the value at a position. The text is valid.
fn scan_value(text: &str, at: usize, depth: usize) -> Result<usize, ClientFileError> {
    if depth > MAX_DEPTH {
        return Err(ClientFileError::Invalid("it is nested too deeply".into()));
    }
    let rest = &text[at..];
    if rest.starts_with('"') {
        return Ok(at + string_length(rest)?);
    }
    if !rest.starts_with(['{', '[']) {
        let is_end = |c: char| matches!(c, ',' | '}' | ']' | '/') || c.is_whitespace();
        return Ok(at + rest.find(is_end).unwrap_or(rest.len()));
    }
    let mut at = at + 1;
    loop {
        let rest = skip(text, at);
        at = text.len() - rest.len();
        match rest.as_bytes().first() {
            None => return Err(ClientFileError::Invalid("a value is not complete".into())),
            Some(b'}' | b']') => return Ok(at + 1),
            Some(b',' | b':') => at += 1,
            Some(_) => {
                let end = scan_value(text, at, depth + 1)?;
                if end == at {
                    return Err(ClientFileError::Invalid("a value is empty".into()));
                }
                at = end;
            }
        }
    }
}
