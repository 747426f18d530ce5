//! The owner, group and mode of files and directories.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};

use serde::{Deserialize, Serialize};

/// The owner, group and mode that a file or directory keeps when its content moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sandbox) struct FileRights {
    pub(super) mode: u32,
    /// The user and the group, if they are known.
    pub(super) owner: Option<(u32, u32)>,
}

impl FileRights {
    /// Sets the mode and owner of an open file or directory.
    ///
    /// Only root may change the owner. For other users a replaced file becomes their own, as in an
    /// editor. The group stays the same if the user is a member of it. Otherwise the new group gets
    /// no more than everybody.
    pub(super) fn apply_to(self, file: &File) -> io::Result<()> {
        let mode =
            if self.apply_owner(file)? { self.mode } else { without_group_rights(self.mode) };
        file.set_permissions(Permissions::from_mode(mode))
    }

    /// Those that a record may give back. Nobody gets a file that was not theirs: the owner is this
    /// user, the one that the file has now (`present`), or the one of the workspace. No bit lets a
    /// file run as its owner or its group, and root gives that of a directory only to the group
    /// that it has now.
    pub(super) fn limited(self, workspace: Option<u32>, present: Option<(u32, u32)>) -> Self {
        let me = rustix::process::geteuid();
        let is_known = |user: u32| {
            user == me.as_raw()
                || Some(user) == workspace
                || present.is_some_and(|(now, _)| now == user)
        };
        let owner = self
            .owner
            .map(|(user, group)| (if is_known(user) { user } else { me.as_raw() }, group));
        let is_same_group = |(_, now): (u32, u32)| {
            !me.is_root() || self.owner.is_none_or(|(_, group)| group == now)
        };
        let bits = if present.is_some_and(is_same_group) { 0o3777 } else { 0o1777 };
        Self { mode: self.mode & bits, owner }
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

/// Removes the permissions that only the original group had.
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
    fn a_record_gives_neither_files_away_nor_other_rights() {
        let me = rustix::process::geteuid().as_raw();
        let other = me + 7;
        let rights = |mode, user| FileRights { mode, owner: Some((user, 5)) };
        let limited = |workspace, present| rights(0o6755, other).limited(workspace, present);
        assert_eq!(limited(None, None), rights(0o755, me));
        assert_eq!(limited(Some(me), None), rights(0o755, me));
        assert_eq!(limited(Some(other), None), rights(0o755, other));
        assert_eq!(limited(None, Some((other, 5))), rights(0o2755, other), "a directory");
        let another_group = if me == 0 { 0o755 } else { 0o2755 };
        assert_eq!(limited(None, Some((me, 6))), rights(another_group, me));
    }

    #[test]
    fn the_group_stays_where_the_user_cannot() {
        let file = tempfile::tempfile().expect("create a temporary file");
        let now = file.metadata().expect("read the metadata");
        FileRights { mode: 0o640, owner: Some((now.uid(), now.gid())) }
            .apply_to(&file)
            .expect("they are its own");
        assert_eq!(file.metadata().expect("read the metadata").mode() & 0o777, 0o640);
        // Only root can set this owner. Without root, the group's permissions are removed.
        FileRights { mode: 0o664, owner: Some((now.uid() + 1, now.gid() + 1)) }
            .apply_to(&file)
            .expect("as far as it can");
        let then = file.metadata().expect("read the metadata");
        let expected = if then.gid() == now.gid() + 1 { 0o664 } else { 0o644 };
        assert_eq!(then.mode() & 0o777, expected);
    }
}
