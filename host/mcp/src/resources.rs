//! Files of the workspace as resources: what the tool `read_file` may read, and nothing else.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use cofferdam::Host;
use cofferdam::conversation::ResultStatus;
use cofferdam::host::CallOutcome;
use cofferdam::sandbox::ReadableFile;
use cofferdam::tools::CatalogTool;
use rmcp::ErrorData;
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use crate::page_cursor;
use crate::tool_list::is_offered;

/// The tool that decides what can be read.
pub(crate) const READ_TOOL: &str = "read_file";

/// The largest file that is sent, in bytes.
const MAX_FILE_LEN: usize = 1 << 20;
/// The number of files on one page of the list.
const PAGE_SIZE: usize = 200;
/// The number of files in the whole list. Others can be read by their URIs.
const MAX_LISTED_FILES: usize = 10_000;
/// The name of the list in its cursors.
const LIST_NAME: &str = "resources";

/// Returns whether files can be read at all: the policy leaves the tool that reads them.
pub(crate) fn can_read(host: &Host) -> bool {
    host.catalog().find(READ_TOOL).is_some_and(|tool: &CatalogTool| is_offered(tool))
}

/// Lists one page of the files that can be read. Walks the workspace, so it can take a while.
///
/// # Errors
///
/// Returns an error for a cursor that this server has not made.
pub(crate) fn list_page(
    host: &Host,
    cursor: Option<&str>,
) -> Result<(Vec<Resource>, Option<String>), ErrorData> {
    let (listed, after) = match cursor {
        None => (0, None),
        Some(cursor) => {
            let position = page_cursor::decode(LIST_NAME, cursor)?;
            let invalid = || ErrorData::invalid_params("the cursor is not valid", None);
            let (listed, after) = position.split_once('\n').ok_or_else(invalid)?;
            (listed.parse::<usize>().map_err(|_| invalid())?, Some(after.to_owned()))
        }
    };
    if !can_read(host) {
        return Ok((Vec::new(), None));
    }
    let left = MAX_LISTED_FILES.saturating_sub(listed);
    let mut files = host.workspace().list_readable_files(after.as_deref(), PAGE_SIZE.min(left) + 1);
    let has_more = files.len() > PAGE_SIZE && left > PAGE_SIZE;
    files.truncate(PAGE_SIZE.min(left));
    let next = files.last().filter(|_| has_more).map(|last| {
        page_cursor::encode(LIST_NAME, &format!("{}\n{}", listed + files.len(), last.path))
    });
    let root = host.workspace().root();
    Ok((files.iter().map(|file| to_resource(root, file)).collect(), next))
}

fn to_resource(root: &Path, file: &ReadableFile) -> Resource {
    let name = file.path.rsplit('/').next().unwrap_or(&file.path);
    Resource::new(uri_of(root, &file.path), name)
        .with_title(file.path.clone())
        .with_size(file.size)
        .with_mime_type(media_type(&file.path))
}

/// Returns the template of all files of the workspace.
pub(crate) fn template(host: &Host) -> ResourceTemplate {
    let root = uri_of(host.workspace().root(), "");
    ResourceTemplate::new(format!("{}/{{+path}}", root.trim_end_matches('/')), "file")
        .with_title("File of the workspace")
        .with_description("A text file of the workspace, by its path relative to the workspace.")
}

/// Returns the path of a resource, relative to the workspace.
///
/// # Errors
///
/// Returns an error if the URI is not that of a file of the workspace.
pub(crate) fn workspace_path(host: &Host, uri: &str) -> Result<String, ErrorData> {
    let not_found = || not_found(uri, "it is not a file of the workspace");
    let path = path_of_uri(uri).ok_or_else(not_found)?;
    let inside = path.strip_prefix(host.workspace().root()).map_err(|_| not_found())?;
    let inside = inside.to_str().filter(|path| !path.is_empty()).ok_or_else(not_found)?;
    host.workspace().parse(inside).map_err(|_| not_found())?;
    Ok(inside.to_owned())
}

/// Returns the error for a resource that cannot be read.
pub(crate) fn not_found(uri: &str, reason: &str) -> ErrorData {
    ErrorData::resource_not_found(
        format!("cannot read the resource: {reason}"),
        Some(json!({"uri": uri})),
    )
}

/// Reads a file after the call of [`READ_TOOL`] for it has ended. The tool has decided whether it
/// may be read; its output has line numbers, so the content comes from the file itself, by the same
/// checks.
///
/// # Errors
///
/// Returns an error if the tool could not read the file, or if the file is too large.
pub(crate) fn read_contents(
    host: &Host,
    uri: &str,
    path: &str,
    outcome: &CallOutcome,
) -> Result<ResourceContents, ErrorData> {
    if outcome.status() != ResultStatus::Ok {
        return Err(not_found(uri, &outcome.text()));
    }
    let workspace = Arc::clone(host.workspace());
    let bytes = workspace
        .read_bytes(path, MAX_FILE_LEN)
        .map_err(|denial| not_found(uri, &denial.to_string()))?
        .ok_or_else(|| not_found(uri, "the file does not exist, or it cannot be read"))?;
    if bytes.len() > MAX_FILE_LEN {
        let reason = format!(
            "the file is larger than {} KiB; call the tool `{READ_TOOL}` with `offset` and \
                `limit` to read a part of it",
            MAX_FILE_LEN >> 10
        );
        return Err(not_found(uri, &reason));
    }
    let contents = match String::from_utf8(bytes) {
        Ok(text) => ResourceContents::text(text, uri),
        Err(error) => {
            let blob = base64::engine::general_purpose::STANDARD.encode(error.as_bytes());
            ResourceContents::blob(blob, uri)
        }
    };
    Ok(contents.with_mime_type(media_type(path)))
}

/// Returns the URI of a file.
pub(crate) fn uri_of(root: &Path, path: &str) -> String {
    let whole = root.join(path);
    let mut uri = "file://".to_owned();
    for byte in whole.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                uri.push(char::from(*byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// Returns the absolute path that a `file:` URI names on this machine. Only the plain form is
/// known: no other host, no query, no fragment, and no `.` or `..`.
pub(crate) fn path_of_uri(uri: &str) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') || path.contains(['?', '#', '\\']) {
        return None;
    }
    let (mut bytes, mut rest) = (Vec::with_capacity(path.len()), path.as_bytes());
    while let [byte, after @ ..] = rest {
        rest = after;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let digits = std::str::from_utf8(after.get(..2)?).ok()?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &after[2..];
    }
    if bytes.contains(&0) {
        return None;
    }
    let has_dots = bytes.split(|byte| *byte == b'/').any(|name| name == b"." || name == b"..");
    (!has_dots).then(|| PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

/// Returns the media type of a text file by its name.
fn media_type(path: &str) -> &'static str {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending.to_ascii_lowercase().as_str() {
        "css" => "text/css",
        "csv" => "text/csv",
        "htm" | "html" => "text/html",
        "js" | "mjs" => "text/javascript",
        "json" => "application/json",
        "md" | "markdown" => "text/markdown",
        "svg" => "image/svg+xml",
        "toml" => "application/toml",
        "xml" => "application/xml",
        "yaml" | "yml" => "application/yaml",
        _ => "text/plain",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_plain_local_file_uris_are_paths() {
        for (uri, path) in [
            ("file:///a/b.txt", "/a/b.txt"),
            ("file://localhost/a", "/a"),
            ("file:///a%20b/%C3%A4", "/a b/ä"),
            ("file:///a/..b/.c", "/a/..b/.c"),
        ] {
            assert_eq!(path_of_uri(uri), Some(PathBuf::from(path)), "{uri}");
        }
        for uri in [
            "file:///a/../etc/passwd",
            "file:///a/%2e%2e/etc/passwd",
            "file:///a/%2E./b",
            "file:///a/./b",
            "file:///a%00b",
            "file:///a%2",
            "file:///a%zz",
            "file:///a%+1",
            "file://host/a",
            "file://localhost.evil/a",
            "file:/a",
            "file:///a?b",
            "file:///a#b",
            "file:///a\\b",
            "http:///a",
            "/a",
            "",
        ] {
            assert_eq!(path_of_uri(uri), None, "{uri}");
        }
    }

    proptest! {
        #[test]
        fn every_path_survives_its_uri(path in "[^\0]{1,40}") {
            let root = Path::new("/w");
            prop_assume!(!path.starts_with('/') && !path.split('/').any(|n| n == "." || n == ".."));
            prop_assert_eq!(path_of_uri(&uri_of(root, &path)), Some(root.join(&path)));
        }
    }
}
