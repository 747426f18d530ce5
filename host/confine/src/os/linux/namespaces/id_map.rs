//! The user and group IDs of a user namespace, each of which stands for the same ID outside.

use std::fs;

use rustix::process::{Pid, getegid, geteuid};

/// The IDs that exist in a new user namespace.
#[derive(Debug)]
pub(super) struct IdMap {
    users: String,
    groups: String,
    writer: IdMapWriter,
}

/// The process that may set the IDs of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdMapWriter {
    /// The process in the namespace, because the map has only the user's own IDs.
    Inner,
    /// A privileged process outside.
    Outer,
}

impl IdMap {
    /// Returns the map for a namespace that this process creates.
    ///
    /// For root it has all IDs that this process knows, otherwise only the user's own: files of
    /// others then appear to belong to nobody.
    ///
    /// # Errors
    /// The IDs of this process cannot be read.
    pub(super) fn for_child() -> std::io::Result<Self> {
        let (user, group) = (geteuid(), getegid());
        if user.is_root() {
            let users = same_ids(&fs::read_to_string("/proc/self/uid_map")?);
            let groups = same_ids(&fs::read_to_string("/proc/self/gid_map")?);
            return Ok(Self { users, groups, writer: IdMapWriter::Outer });
        }
        let own = |id: u32| format!("{id} {id} 1\n");
        let (users, groups) = (own(user.as_raw()), own(group.as_raw()));
        Ok(Self { users, groups, writer: IdMapWriter::Inner })
    }

    /// Sets the IDs, called by the parent of the process in the namespace.
    ///
    /// # Errors
    /// The system does not allow it.
    pub(super) fn write_from_outside(&self, process: Pid) -> std::io::Result<()> {
        match self.writer {
            IdMapWriter::Outer => self.write(&process.as_raw_nonzero().to_string()),
            IdMapWriter::Inner => Ok(()),
        }
    }

    /// Sets the IDs, called by the process in the namespace.
    ///
    /// # Errors
    /// The system does not allow it, for example because it restricts user namespaces.
    pub(super) fn write_from_inside(&self) -> std::io::Result<()> {
        match self.writer {
            IdMapWriter::Outer => Ok(()),
            IdMapWriter::Inner => {
                // The kernel demands it: giving up a group could give up a denial for that group.
                fs::write("/proc/self/setgroups", "deny")?;
                self.write("self")
            }
        }
    }

    fn write(&self, process: &str) -> std::io::Result<()> {
        fs::write(format!("/proc/{process}/uid_map"), &self.users)?;
        fs::write(format!("/proc/{process}/gid_map"), &self.groups)
    }
}

/// Returns a map in which each ID of this process's namespace stands for itself.
///
/// Each line of `known` is: first ID here, first ID in the parent namespace, count; see
/// user_namespaces(7).
fn same_ids(known: &str) -> String {
    let lines = known.lines().filter_map(|line| {
        let mut numbers = line.split_ascii_whitespace();
        let (first, _, count) = (numbers.next()?, numbers.next()?, numbers.next()?);
        Some(format!("{first} {first} {count}\n"))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_of_a_nested_namespace_stand_for_themselves() {
        let known = "         0       1000          1\n         1     100000      65536\n";
        assert_eq!(same_ids(known), "0 0 1\n1 1 65536\n");
    }
}
