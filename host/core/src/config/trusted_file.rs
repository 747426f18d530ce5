//! Reading of files that decide what this program does and may do.
//!
//! Such a file is read once, and only if no other user can write or replace it.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The largest file that is read, in bytes.
///
/// Files written by people are smaller, and so is a lock file with a hundred plugins.
pub(crate) const MAX_BYTES: u64 = 1 << 20;
const STICKY_BIT: u32 = 0o1000;

/// The reason why a file cannot be read or cannot be trusted.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
#[non_exhaustive]
pub struct TrustedFileError {
    /// The path of the file or of its directory.
    pub path: PathBuf,
    /// The problem and how to solve it.
    pub problem: String,
}

/// Reads a file that only the user or root can write or replace, following links.
///
/// Returns `None` if the file does not exist. `what` is the kind of the file in error messages,
/// such as `policy`.
pub(crate) fn read_own_file(path: &Path, what: &str) -> Result<Option<String>, TrustedFileError> {
    // With this flag, opening a FIFO does not block.
    let nonblock = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let Some(file) =
        existing_file(path, what, File::options().read(true).custom_flags(nonblock).open(path))?
    else {
        return Ok(None);
    };
    let metadata = file.metadata().map_err(read_error(path, what))?;
    check_owner(path, what, metadata.uid())?;
    if metadata.mode() & 0o022 != 0 {
        return Err(file_error(
            path,
            format!(
                "other users can write this {what}; run `chmod go-w` \
            on it"
            ),
        ));
    }
    for directory in containing_dirs(path) {
        let metadata = std::fs::metadata(&directory).map_err(read_error(&directory, what))?;
        check_owner(&directory, &format!("directory of the {what}"), metadata.uid())?;
        // In a sticky directory such as `/tmp`, other users cannot replace the file.
        if metadata.mode() & 0o022 != 0 && metadata.mode() & STICKY_BIT == 0 {
            return Err(file_error(
                &directory,
                format!(
                    "other users can replace the {what} in this directory; run `chmod go-w` \
                    on it"
                ),
            ));
        }
    }
    read_text(path, what, file).map(Some)
}

fn check_owner(path: &Path, what: &str, owner: u32) -> Result<(), TrustedFileError> {
    let user = rustix::process::geteuid().as_raw();
    if owner == user || owner == 0 {
        return Ok(());
    }
    Err(file_error(
        path,
        format!("this {what} belongs to user {owner}; change its owner to you, or remove it"),
    ))
}

/// Returns the directory of a path and, if the path is a link, that of its target.
fn containing_dirs(path: &Path) -> Vec<PathBuf> {
    let real = path.canonicalize().ok();
    let mut directories: Vec<PathBuf> =
        [Some(path), real.as_deref()].into_iter().flatten().filter_map(parent_dir).collect();
    directories.dedup();
    directories
}

fn parent_dir(path: &Path) -> Option<PathBuf> {
    // The parent of a bare file name is empty and means the current directory.
    std::path::absolute(path).ok()?.parent().map(Path::to_owned)
}

pub(super) fn file_error(path: &Path, problem: impl ToString) -> TrustedFileError {
    TrustedFileError { path: path.to_owned(), problem: problem.to_string() }
}

pub(super) fn read_error(path: &Path, what: &str) -> impl Fn(io::Error) -> TrustedFileError {
    move |error| file_error(path, format!("cannot read this {what}, so nothing runs: {error}"))
}

/// Returns an opened file, or `None` if the file does not exist.
pub(super) fn existing_file<F: Into<File>, E: Into<io::Error>>(
    path: &Path,
    what: &str,
    opened: Result<F, E>,
) -> Result<Option<File>, TrustedFileError> {
    match opened.map_err(Into::into) {
        Ok(file) => Ok(Some(file.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match broken_link(path) {
            None => Ok(None),
            // A broken link shows that the user wanted a file, whose content is unknown.
            Some(link) if link == path => Err(file_error(
                path,
                format!(
                    "this {what} is a link to a missing file, so nothing runs; repair or remove \
                        the link"
                ),
            )),
            Some(link) => Err(file_error(
                path,
                format!(
                    "cannot find the {what}, so nothing runs: {} is a link to a missing \
                        directory; repair or remove the link",
                    link.display()
                ),
            )),
        },
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            Err(file_error(
                path,
                format!(
                    "the path of this {what} contains a symbolic link; replace the link with \
                    the file or directory itself"
                ),
            ))
        }
        Err(error) => Err(read_error(path, what)(error)),
    }
}

/// Returns the link that makes a path unusable.
///
/// The link is the path itself, or its ancestor nearest to the root.
fn broken_link(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    let is_broken = |path: &&Path| path.is_symlink() && std::fs::metadata(path).is_err();
    let link = absolute.ancestors().filter(is_broken).last()?;
    Some(if link == absolute { path } else { link }.to_owned())
}

/// Reads the whole content of an open file.
pub(super) fn read_text(path: &Path, what: &str, file: File) -> Result<String, TrustedFileError> {
    let metadata = file.metadata().map_err(read_error(path, what))?;
    if !metadata.is_file() {
        return Err(file_error(path, format!("this {what} is not a file")));
    }
    if metadata.len() > MAX_BYTES {
        return Err(file_error(
            path,
            format!("this {what} has {} bytes; the maximum is {MAX_BYTES}", metadata.len()),
        ));
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(read_error(path, what))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn read_or_error(path: &Path) -> String {
        match read_own_file(path, "configuration") {
            Ok(text) => text.unwrap_or_else(|| "not there".into()),
            Err(error) => error.to_string(),
        }
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    }

    #[test]
    fn files_that_others_can_write_or_replace_are_refused() {
        let temp = tempfile::tempdir().expect("a directory");
        let directory = temp.path().join("directory");
        fs::create_dir(&directory).expect("it can be made");
        set_mode(&directory, 0o755);
        let path = directory.join("config.toml");
        assert_eq!(read_or_error(&path), "not there");
        fs::write(&path, "x").expect("writable");
        for (file_mode, directory_mode, expected) in [
            (0o644, 0o755, "x"),
            (
                0o664,
                0o755,
                "config.toml: other users can write this configuration; run `chmod \
                go-w` on it",
            ),
            (
                0o646,
                0o755,
                "config.toml: other users can write this configuration; run `chmod \
                go-w` on it",
            ),
            (
                0o600,
                0o775,
                "directory: other users can replace the configuration in this directory; run \
                    `chmod go-w` on it",
            ),
            (0o600, 0o1777, "x"),
        ] {
            set_mode(&path, file_mode);
            set_mode(&directory, directory_mode);
            let text = read_or_error(&path);
            assert!(text.ends_with(expected), "{file_mode:o} in {directory_mode:o}: {text}");
        }
        // A link is followed, and the directory of its target is checked too.
        let link = temp.path().join("link.toml");
        symlink(&path, &link).expect("a link");
        assert_eq!(read_or_error(&link), "x");
        set_mode(&directory, 0o777);
        assert!(
            read_or_error(&link).contains("other users can replace the configuration"),
            "{}",
            read_or_error(&link)
        );
    }

    #[test]
    fn files_of_another_user_are_refused() {
        let temp = tempfile::tempdir().expect("a directory");
        let path = temp.path().join("config.toml");
        fs::write(&path, "x").expect("writable");
        let user = rustix::process::geteuid().as_raw();
        let other = if user == 65_534 { 65_533 } else { 65_534 };
        let expected = format!(
            "this configuration belongs to user {other}; change its owner to you, or \
                remove it"
        );
        assert!(
            check_owner(&path, "configuration", other)
                .unwrap_err()
                .to_string()
                .ends_with(&expected)
        );
        assert!(
            check_owner(&path, "configuration", user).is_ok()
                && check_owner(&path, "configuration", 0).is_ok()
        );
        // Only root can change the owner of a file.
        let changed = std::os::unix::fs::chown(&path, Some(other), None);
        assert_eq!(changed.is_ok(), user == 0, "{changed:?}");
        assert!(
            read_or_error(&path).ends_with(if user == 0 { expected.as_str() } else { "x" }),
            "{}",
            read_or_error(&path)
        );
    }

    #[test]
    fn special_and_large_files_are_refused() {
        let temp = tempfile::tempdir().expect("a directory");
        let fifo = temp.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .expect("a FIFO");
        assert!(read_or_error(&fifo).ends_with("is not a file"), "{}", read_or_error(&fifo));
        let zero = temp.path().join("zero");
        symlink("/dev/zero", &zero).expect("a link");
        assert!(
            read_or_error(&zero).contains("/dev")
                || read_or_error(&zero)
                    .ends_with("other users can write this configuration; run `chmod go-w` on it"),
            "{}",
            read_or_error(&zero)
        );
        let large = temp.path().join("large");
        fs::write(&large, vec![b' '; 1_048_577]).expect("writable");
        assert!(
            read_or_error(&large).contains("the maximum is 1048576"),
            "{}",
            read_or_error(&large)
        );
    }
}
