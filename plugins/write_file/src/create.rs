//! Creating a file where there is none.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use cofferdam_sdk::{ToolError, WorkspacePath};

/// The host takes at most 4 MiB at once.
const CHUNK: usize = 1 << 20;

/// Creates a file with its parents. Nothing that exists is changed, and a file that cannot be
/// written to its end is removed again.
pub(crate) fn create(path: &WorkspacePath, content: &[u8]) -> Result<(), ToolError> {
    let name = path.as_str().rsplit('/').next().unwrap_or_default();
    if matches!(name, "" | "." | "..") {
        return Err(ToolError::invalid_input(
            "/path",
            format!("`{path}` is the path of a directory; give the path of the new file"),
        ));
    }
    // The host shows the path without them, and by way of a link they lead elsewhere than it seems.
    if path.as_str().split('/').any(|part| part == "..") {
        return Err(ToolError::invalid_input(
            "/path",
            format!("`{path}` contains `..`; give a path without it"),
        ));
    }
    let mut file = open_new(path)?;
    let written = content.chunks(CHUNK).try_for_each(|chunk| file.write_all(chunk));
    drop(file);
    written.map_err(|error| {
        // It is this call's own file, so half of it helps nobody. If it cannot be removed there is
        // nothing else to try.
        let _ = fs::remove_file(path);
        ToolError::io("write", path)(error)
    })
}

fn open_new(path: &WorkspacePath) -> Result<File, ToolError> {
    let open = || OpenOptions::new().write(true).create_new(true).open(path);
    let opened = match (open(), path.as_ref().parent()) {
        (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
            make_parents(path, parent)?;
            open()
        }
        (opened, _) => opened,
    };
    opened.map_err(|error| explain(path, error))
}

fn make_parents(path: &WorkspacePath, parent: &Path) -> Result<(), ToolError> {
    fs::create_dir_all(parent).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => in_a_file(path),
        _ => ToolError::io("create the directory of", path)(error),
    })
}

fn explain(path: &WorkspacePath, error: io::Error) -> ToolError {
    match error.kind() {
        io::ErrorKind::NotADirectory => in_a_file(path),
        io::ErrorKind::AlreadyExists | io::ErrorKind::IsADirectory => {
            ToolError::failed(match fs::symlink_metadata(path) {
                Ok(metadata) if metadata.is_dir() => {
                    format!("`{path}` is a directory; give the path of a new file")
                }
                Ok(metadata) if metadata.is_symlink() => {
                    format!("`{path}` is already a symbolic link; nothing was written")
                }
                Ok(metadata) if metadata.is_file() && metadata.len() == 0 => {
                    format!(
                        "`{path}` already exists, and is empty. Use update_file with an empty \
                            `old_text` to fill it."
                    )
                }
                _ => format!(
                    "`{path}` already exists, and nothing was written. Use update_file to change \
                        it."
                ),
            })
        }
        _ => ToolError::io("create", path)(error),
    }
}

fn in_a_file(path: &WorkspacePath) -> ToolError {
    ToolError::failed(format!(
        "cannot create `{path}`: a parent in the path is a file, not a directory"
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    type Outcome = Result<(), Box<dyn std::error::Error>>;

    fn below(directory: &tempfile::TempDir, path: &str) -> WorkspacePath {
        WorkspacePath::from(format!("{}/{path}", directory.path().display()).as_str())
    }

    fn refusal(path: &WorkspacePath) -> String {
        match create(path, b"new") {
            Err(ToolError::Failed(message)) => message,
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn r117_a_file_is_created_with_its_parents() -> Outcome {
        let directory = tempfile::tempdir()?;
        let path = below(&directory, "a/b/c.txt");
        assert_eq!(create(&path, b"new"), Ok(()));
        assert_eq!(fs::read(&path)?, b"new");
        let large = below(&directory, "a/large");
        let content = vec![b'x'; CHUNK * 2 + 1];
        assert_eq!(create(&large, &content), Ok(()));
        assert_eq!(fs::read(&large)?, content);
        Ok(())
    }

    #[test]
    fn r117_what_exists_is_never_changed() -> Outcome {
        let directory = tempfile::tempdir()?;
        let file = below(&directory, "file");
        fs::write(&file, "old")?;
        assert!(refusal(&file).contains("Use update_file"));
        assert_eq!(fs::read(&file)?, b"old");
        fs::write(below(&directory, "empty"), "")?;
        assert!(
            refusal(&below(&directory, "empty")).contains("update_file with an empty `old_text`")
        );
        assert!(refusal(&below(&directory, "file/x")).contains("a parent in the path is a file"));
        assert!(refusal(&below(&directory, "file/x/y")).contains("a parent in the path is a file"));

        fs::create_dir(below(&directory, "dir"))?;
        assert!(refusal(&below(&directory, "dir")).contains("is a directory"));

        symlink("nowhere", below(&directory, "dangling"))?;
        assert!(refusal(&below(&directory, "dangling")).contains("symbolic link"));
        assert!(!fs::exists(below(&directory, "nowhere"))?);
        Ok(())
    }

    #[test]
    fn a_path_that_is_not_plainly_a_file_is_refused() {
        for path in ["", ".", "a/", "a/..", "./", "a/../b"] {
            assert!(matches!(create(&path.into(), b""), Err(ToolError::InvalidInput(_))), "{path}");
        }
    }
}
