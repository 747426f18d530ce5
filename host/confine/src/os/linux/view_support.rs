//! The mounts of a workspace and of the directory for the changes of commands.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use crate::view::ViewUnavailable;

/// Checks that both directories are on one mount, and that nothing is mounted in the workspace.
pub(crate) fn check_private_view(workspace: &Path, layers: &Path) -> Result<(), ViewUnavailable> {
    let failed = |error: std::io::Error| ViewUnavailable::Io(error.to_string());
    // A rename works only within one mount, even if two show the same file system.
    if mount_id(workspace).map_err(failed)? != mount_id(layers).map_err(failed)? {
        return Err(ViewUnavailable::OtherFileSystem { directory: layers.to_owned() });
    }
    let mounts = fs::read("/proc/self/mountinfo").map_err(failed)?;
    match mount_points(&mounts).find(|point| point != workspace && point.starts_with(workspace)) {
        Some(point) => Err(ViewUnavailable::MountBelow(point)),
        None => Ok(()),
    }
}

fn mount_id(path: &Path) -> std::io::Result<u64> {
    Ok(statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID)?.stx_mnt_id)
}

/// Returns the mount points in a `mountinfo` file: the fifth field, in which some characters are
/// three octal digits behind a backslash; see proc_pid_mountinfo(5).
fn mount_points(mounts: &[u8]) -> impl Iterator<Item = PathBuf> {
    mounts.split(|byte| *byte == b'\n').filter_map(|line| {
        let field = line.split(|byte| *byte == b' ').nth(4)?;
        let mut path = Vec::with_capacity(field.len());
        let mut rest = field;
        while let Some((first, after)) = rest.split_first() {
            let octal = after.get(..3).filter(|_| *first == b'\\');
            let code = octal
                .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
            path.push(code.unwrap_or(*first));
            rest = if code.is_some() { &after[3..] } else { after };
        }
        Some(PathBuf::from(OsStr::from_bytes(&path)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_decoded() {
        let text =
            b"22 1 8:1 / / rw - ext4 /dev/sda rw\n23 22 0:5 / /a\\040b\\134 rw - tmpfs t rw\n";
        let found: Vec<_> = mount_points(text).collect();
        assert_eq!(found, ["/", "/a b\\"].map(PathBuf::from));
    }

    #[test]
    fn a_workspace_with_mounts_or_elsewhere_has_no_private_view() {
        let [one, other] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
        assert_eq!(check_private_view(one.path(), other.path()), Ok(()));
        let problem = check_private_view(Path::new("/proc"), other.path());
        assert!(matches!(problem, Err(ViewUnavailable::OtherFileSystem { .. })), "{problem:?}");
        let problem = check_private_view(Path::new("/"), Path::new("/"));
        assert!(matches!(problem, Err(ViewUnavailable::MountBelow(_))), "{problem:?}");
    }
}
