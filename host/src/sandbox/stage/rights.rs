//! Whose a file or a directory is, and who may do what with it.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};

use serde::{Deserialize, Serialize};

/// What goes with a file or a directory wherever its content goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sandbox) struct FileRights {
    pub(super) mode: u32,
    /// The user and the group, where they are known.
    pub(super) owner: Option<(u32, u32)>,
}

impl FileRights {
    /// Gives them to an open file or directory. Only root may give files away: for anyone else what
    /// is replaced becomes their own, as in an editor, but its group stays as it was, if they are
    /// in it; and if not, no other group gets more from it than everybody.
    pub(super) fn apply_to(self, file: &File) -> io::Result<()> {
        let mode =
            if self.apply_owner(file)? { self.mode } else { without_group_rights(self.mode) };
        file.set_permissions(Permissions::from_mode(mode))
    }

    /// Sets the owner as far as this user can; whether the group is the right one now.
    fn apply_owner(self, file: &File) -> io::Result<bool> {
        let Some((user, group)) = self.owner else { return Ok(true) };
        let now = file.metadata()?;
        let is_right = (now.uid(), now.gid()) == (user, group)
            || fchown(file, Some(user), Some(group)).is_ok();
        Ok(is_right || now.gid() == group || fchown(file, None, Some(group)).is_ok())
    }
}

/// Permissions without those that only this one group had.
fn without_group_rights(mode: u32) -> u32 {
    let of_everybody = (mode & 0o007) << 3;
    (mode & !0o2070) | (mode & of_everybody)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_group_gets_no_more_than_everybody() {
        for (mode, there) in [
            (0o664, 0o644),
            (0o660, 0o600),
            (0o640, 0o600),
            (0o2775, 0o755),
            (0o606, 0o606),
            (0o644, 0o644),
        ] {
            assert_eq!(without_group_rights(mode), there, "{mode:o}");
        }
    }

    #[test]
    fn the_group_stays_where_the_user_cannot() {
        let file = tempfile::tempfile().expect("a file");
        let now = file.metadata().expect("it is there");
        FileRights { mode: 0o640, owner: Some((now.uid(), now.gid())) }
            .apply_to(&file)
            .expect("they are its own");
        assert_eq!(file.metadata().expect("it is there").mode() & 0o777, 0o640);
        // Root alone can do that, and whoever is not gets the mode without the group's part.
        FileRights { mode: 0o664, owner: Some((now.uid() + 1, now.gid() + 1)) }
            .apply_to(&file)
            .expect("as far as it can");
        let then = file.metadata().expect("it is there");
        let expected = if then.gid() == now.gid() + 1 { 0o664 } else { 0o644 };
        assert_eq!(then.mode() & 0o777, expected);
    }
}
