//! Edits the tables of servers in a TOML file, line by line, without changing anything else.

use toml::Table;

use super::{ClientFileError, ServerEntry};

/// The table of all servers.
const SECTION: &str = "mcp_servers";

/// Sets the table of a server.
pub(super) fn set(text: &str, entry: &ServerEntry) -> Result<String, ClientFileError> {
    let mut expected = parse(text)?;
    let mut changed = remove(text, &entry.name)?.unwrap_or_else(|| text.to_owned());
    if !changed.is_empty() && !changed.ends_with('\n') {
        changed.push('\n');
    }
    if !changed.is_empty() && !changed.ends_with("\n\n") {
        changed.push('\n');
    }
    let args: toml::Value = entry.args.clone().into();
    let command = toml::Value::from(entry.command.as_str());
    let header = header(&entry.name);
    changed.push_str(&format!("{header}\ncommand = {command}\nargs = {args}\n"));
    let server: Table =
        [("command".to_owned(), command), ("args".to_owned(), args)].into_iter().collect();
    let servers = expected.entry(SECTION).or_insert_with(|| Table::new().into());
    let Some(servers) = servers.as_table_mut() else {
        return Err(ClientFileError::Unknown(format!("`{SECTION}` is not a table")));
    };
    servers.insert(entry.name.clone(), server.into());
    check(changed, &expected)
}

/// Removes the table of a server.
pub(super) fn remove(text: &str, name: &str) -> Result<Option<String>, ClientFileError> {
    let mut expected = parse(text)?;
    let servers = expected.get_mut(SECTION).and_then(toml::Value::as_table_mut);
    let Some(servers) = servers.filter(|servers| servers.contains_key(name)) else {
        return Ok(None);
    };
    servers.remove(name);
    let is_last = servers.is_empty();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let own = [header(name), format!("[{SECTION}.{name}]")];
    let is_own = |line: &str| {
        let line = line.trim();
        own.iter()
            .any(|own| line == own || line.starts_with(&format!("{}.", own.trim_end_matches(']'))))
    };
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        if !is_own(lines[at]) {
            kept.push(lines[at]);
            at += 1;
            continue;
        }
        let next =
            (at + 1..lines.len()).find(|n| lines[*n].starts_with('[')).unwrap_or(lines.len());
        // Comments above the next table belong to it.
        let is_comment = |line: &str| line.trim_start().starts_with('#');
        let mut end = next;
        while end > at + 1 && next < lines.len() && is_comment(lines[end - 1]) {
            end -= 1;
        }
        at = end;
    }
    let mut changed = kept.concat();
    if at >= lines.len() && changed.ends_with("\n\n") {
        changed.pop();
    }
    // Without tables below it, the table of all servers is gone if nothing else names it.
    if is_last && parse(&changed).is_ok_and(|changed| !changed.contains_key(SECTION)) {
        expected.remove(SECTION);
    }
    check(changed, &expected).map(Some)
}

fn header(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(is_bare) {
        format!("[{SECTION}.{name}]")
    } else {
        format!("[{SECTION}.{}]", serde_json::Value::from(name))
    }
}

fn parse(text: &str) -> Result<Table, ClientFileError> {
    text.parse()
        .map_err(|error: toml::de::Error| ClientFileError::Invalid(error.message().to_owned()))
}

fn check(text: String, expected: &Table) -> Result<String, ClientFileError> {
    if parse(&text).is_ok_and(|changed| changed == *expected) {
        return Ok(text);
    }
    Err(ClientFileError::Unknown(format!(
        "the servers are not in tables of their own, such as `[{SECTION}.name]`"
    )))
}
