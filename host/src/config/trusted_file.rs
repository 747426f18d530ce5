//! Reading a file once, and only one that may be believed: what stands in it decides what this
//! program does and may do, so nobody else may be able to write it, nor to put another one in its
//! place.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// No file that a person wrote is longer, and no lock of a hundred plugins.
const MAX_BYTES: u64 = 1 << 20;
const STICKY_BIT: u32 = 0o1000;

/// A file cannot be read, or must not be believed.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct TrustedFileError {
    /// Which.
    pub path: PathBuf,
    /// What is the matter, and what to do about it.
    pub problem: String,
}

/// A file of the user's, wherever a link leads, that nobody else but root can write or replace;
/// `None` if there is none. `what` it is, such as `policy`, is for the words of an error.
pub(super) fn read_own_file(path: &Path, what: &str) -> Result<Option<String>, TrustedFileError> {
    // A FIFO is not waited for.
    let nonblock = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let Some(file) =
        existing_file(path, what, File::options().read(true).custom_flags(nonblock).open(path))?
    else {
        return Ok(None);
    };
    let metadata = file.metadata().map_err(read_error(path, what))?;
    check_owner(path, what, metadata.uid())?;
    if metadata.mode() & 0o022 != 0 {
        return Err(file_error(path, format!("others can write this {what}: `chmod go-w` it")));
    }
    for folder in containing_dirs(path) {
        let metadata = std::fs::metadata(&folder).map_err(read_error(&folder, what))?;
        check_owner(&folder, &format!("folder of the {what}"), metadata.uid())?;
        // Where only the owner of a file may take it away, as in `/tmp`, nobody can put another one
        // in its place.
        if metadata.mode() & 0o022 != 0 && metadata.mode() & STICKY_BIT == 0 {
            return Err(file_error(
                &folder,
                format!("others can put another {what} into this folder: `chmod go-w` it"),
            ));
        }
    }
    read_text(path, what, file).map(Some)
}

fn check_owner(path: &Path, what: &str, owner: u32) -> Result<(), TrustedFileError> {
    let me = rustix::process::geteuid().as_raw();
    if owner == me || owner == 0 {
        return Ok(());
    }
    Err(file_error(
        path,
        format!("this {what} belongs to user {owner}: make it yours, or remove it"),
    ))
}

/// The folder that it is in, and where it is a link, the one that it leads to.
fn containing_dirs(path: &Path) -> Vec<PathBuf> {
    let real = path.canonicalize().ok();
    let mut folders: Vec<PathBuf> =
        [Some(path), real.as_deref()].into_iter().flatten().filter_map(parent_dir).collect();
    folders.dedup();
    folders
}

fn parent_dir(path: &Path) -> Option<PathBuf> {
    // That of a bare file name is empty, and means the current one.
    std::path::absolute(path).ok()?.parent().map(Path::to_owned)
}

pub(super) fn file_error(path: &Path, problem: impl ToString) -> TrustedFileError {
    TrustedFileError { path: path.to_owned(), problem: problem.to_string() }
}

pub(super) fn read_error(path: &Path, what: &str) -> impl Fn(io::Error) -> TrustedFileError {
    move |error| file_error(path, format!("this {what} cannot be read, so nothing runs: {error}"))
}

/// An open file, or that there is none.
pub(super) fn existing_file<F: Into<File>, E: Into<io::Error>>(
    path: &Path,
    what: &str,
    opened: Result<F, E>,
) -> Result<Option<File>, TrustedFileError> {
    match opened.map_err(Into::into) {
        Ok(file) => Ok(Some(file.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match broken_link(path) {
            None => Ok(None),
            // Somebody wanted a file to be there: what it says is not known.
            Some(link) if link == path => Err(file_error(
                path,
                format!(
                    "this {what} is a link to a file that does not exist, so nothing runs: repair \
                        or remove the link"
                ),
            )),
            Some(link) => Err(file_error(
                path,
                format!(
                    "the {what} cannot be found, so nothing runs: {} is a link to a directory \
                        that does not exist; repair or remove the link",
                    link.display()
                ),
            )),
        },
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            Err(file_error(
                path,
                format!("this {what} is a link, or below one; put the file itself there"),
            ))
        }
        Err(error) => Err(read_error(path, what)(error)),
    }
}

/// The link that leads nowhere: the path itself, or the directory nearest to the root that it lies
/// in.
fn broken_link(path: &Path) -> Option<PathBuf> {
    let whole = std::path::absolute(path).ok()?;
    let is_broken = |path: &&Path| path.is_symlink() && std::fs::metadata(path).is_err();
    let link = whole.ancestors().filter(is_broken).last()?;
    Some(if link == whole { path } else { link }.to_owned())
}

/// All that is in an open file.
pub(super) fn read_text(path: &Path, what: &str, file: File) -> Result<String, TrustedFileError> {
    let metadata = file.metadata().map_err(read_error(path, what))?;
    if !metadata.is_file() {
        return Err(file_error(path, format!("this {what} is not a file")));
    }
    if metadata.len() > MAX_BYTES {
        return Err(file_error(
            path,
            format!("this {what} has {} bytes; at most {MAX_BYTES} are read", metadata.len()),
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

    fn said(path: &Path) -> String {
        match read_own_file(path, "configuration") {
            Ok(text) => text.unwrap_or_else(|| "not there".into()),
            Err(problem) => problem.to_string(),
        }
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    }

    #[test]
    fn what_others_can_write_or_replace_is_not_believed() {
        let temp = tempfile::tempdir().expect("a folder");
        let folder = temp.path().join("folder");
        fs::create_dir(&folder).expect("it can be made");
        set_mode(&folder, 0o755);
        let path = folder.join("config.toml");
        assert_eq!(said(&path), "not there");
        fs::write(&path, "x").expect("writable");
        for (file, of_folder, expected) in [
            (0o644, 0o755, "x"),
            (0o664, 0o755, "config.toml: others can write this configuration: `chmod go-w` it"),
            (0o646, 0o755, "config.toml: others can write this configuration: `chmod go-w` it"),
            (
                0o600,
                0o775,
                "folder: others can put another configuration into this folder: `chmod go-w` it",
            ),
            (0o600, 0o1777, "x"),
        ] {
            set_mode(&path, file);
            set_mode(&folder, of_folder);
            assert!(said(&path).ends_with(expected), "{file:o} in {of_folder:o}: {}", said(&path));
        }
        // A link is followed, and the folder that it leads to is looked at too.
        let link = temp.path().join("link.toml");
        symlink(&path, &link).expect("a link");
        assert_eq!(said(&link), "x");
        set_mode(&folder, 0o777);
        assert!(said(&link).contains("others can put another configuration"), "{}", said(&link));
    }

    #[test]
    fn what_belongs_to_somebody_else_is_not_believed() {
        let temp = tempfile::tempdir().expect("a folder");
        let path = temp.path().join("config.toml");
        fs::write(&path, "x").expect("writable");
        let me = rustix::process::geteuid().as_raw();
        let other = if me == 65_534 { 65_533 } else { 65_534 };
        let expected =
            format!("this configuration belongs to user {other}: make it yours, or remove it");
        assert!(
            check_owner(&path, "configuration", other)
                .unwrap_err()
                .to_string()
                .ends_with(&expected)
        );
        assert!(
            check_owner(&path, "configuration", me).is_ok()
                && check_owner(&path, "configuration", 0).is_ok()
        );
        // Only root can give a file away.
        let given = std::os::unix::fs::chown(&path, Some(other), None);
        assert_eq!(given.is_ok(), me == 0, "{given:?}");
        assert!(
            said(&path).ends_with(if me == 0 { expected.as_str() } else { "x" }),
            "{}",
            said(&path)
        );
    }

    #[test]
    fn what_is_no_file_or_has_no_end_is_not_read() {
        let temp = tempfile::tempdir().expect("a folder");
        let fifo = temp.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .expect("a FIFO");
        assert!(said(&fifo).ends_with("is not a file"), "{}", said(&fifo));
        let zero = temp.path().join("zero");
        symlink("/dev/zero", &zero).expect("a link");
        assert!(
            said(&zero).contains("/dev")
                || said(&zero).ends_with("others can write this configuration: `chmod go-w` it"),
            "{}",
            said(&zero)
        );
        let large = temp.path().join("large");
        fs::write(&large, vec![b' '; 1_048_577]).expect("writable");
        assert!(said(&large).contains("at most 1048576 are read"), "{}", said(&large));
    }
}
