//! Reading the file that is to be changed.

use std::fs::{self, OpenOptions};
use std::io::Read;

use cofferdam_sdk::{ToolError, WorkspacePath};

/// Of a file, before and after: a call has 256 MiB, and needs several times the file.
pub(crate) const MAX_BYTES: usize = 10_000_000;

/// The text of a file that may be changed.
pub(crate) fn read(path: &WorkspacePath) -> Result<String, ToolError> {
    // The host shows the path without them, and by way of a link they lead elsewhere than it seems.
    if path.as_str().split('/').any(|part| part == "..") {
        return Err(ToolError::invalid_input(
            "/path",
            format!("`{path}` contains `..`; give a path without it"),
        ));
    }
    let metadata = fs::symlink_metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            ToolError::not_found(format!("`{path}` does not exist. Use write_file to create it."))
        }
        _ => ToolError::io("update", path)(error),
    })?;
    if metadata.is_symlink() {
        // What takes the file's place would take the link's.
        let target = fs::read_link(path)
            .map(|target| format!(" to `{}`", target.display()))
            .unwrap_or_default();
        return Err(ToolError::failed(format!(
            "`{path}` is a symbolic link{target}. Update the target of the link."
        )));
    }
    if metadata.is_dir() {
        return Err(ToolError::failed(format!(
            "`{path}` is a directory, and this tool changes files only."
        )));
    }
    if !metadata.is_file() {
        return Err(ToolError::failed(format!(
            "`{path}` is neither a file nor a directory, and this tool changes files only."
        )));
    }
    if metadata.len() > MAX_BYTES as u64 {
        return Err(too_large(path.as_str()));
    }
    // Taking a file's place needs no right to write to it, so ask for that first.
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(ToolError::io("update", path))?;
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(MAX_BYTES) + 1);
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(ToolError::io("read", path))?;
    if bytes.len() > MAX_BYTES {
        return Err(too_large(path.as_str()));
    }
    text(path.as_str(), bytes)
}

pub(crate) fn too_large(path: &str) -> ToolError {
    ToolError::failed(format!(
        "`{path}` is, or would become, larger than 10 MB, which is more than this tool changes."
    ))
}

fn text(path: &str, bytes: Vec<u8>) -> Result<String, ToolError> {
    if bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF") {
        return Err(ToolError::failed(format!(
            "`{path}` is UTF-16 text, and this tool changes UTF-8 only."
        )));
    }
    if bytes.contains(&0) {
        return Err(ToolError::failed(format!(
            "`{path}` is a binary file, and this tool changes text only."
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        ToolError::failed(format!(
            "`{path}` is not UTF-8 (at byte {place}), and this tool changes UTF-8 text only."
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;

    use super::*;

    type Outcome = Result<(), Box<dyn std::error::Error>>;

    #[test]
    fn r118_only_text_files_of_some_size_are_read() -> Outcome {
        let directory = tempfile::tempdir()?;
        let below = |name: &str| {
            WorkspacePath::from(format!("{}/{name}", directory.path().display()).as_str())
        };
        let refusal = |name: &str| match read(&below(name)) {
            Err(ToolError::Failed(message) | ToolError::NotFound(message)) => message,
            other => panic!("{name}: {other:?}"),
        };
        for (name, bytes, why) in [
            ("nul", &b"a\0b"[..], "binary"),
            ("utf16", b"\xFF\xFEa\0", "UTF-16"),
            ("latin1", b"abc\xE9", "not UTF-8 (at byte 3)"),
        ] {
            fs::write(below(name), bytes)?;
            assert!(refusal(name).contains(why), "{name}");
        }
        File::create(below("large"))?.set_len(MAX_BYTES as u64 + 1)?;
        assert!(refusal("large").contains("10 MB"));
        fs::create_dir(below("dir"))?;
        assert!(refusal("dir").contains("is a directory"));
        fs::write(below("file"), "text")?;
        symlink("file", below("link"))?;
        assert!(refusal("link").contains("symbolic link to `file`"));
        assert!(refusal("none").contains("write_file"));
        assert!(matches!(read(&below("dir/../file")), Err(ToolError::InvalidInput(_))));
        assert_eq!(read(&below("file")).as_deref(), Ok("text"));
        Ok(())
    }
}
