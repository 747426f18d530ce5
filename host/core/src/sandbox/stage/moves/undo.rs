//! Makes the moves of a record backwards.

use std::io;

use cap_std::fs::Dir;

use super::conflict::is_missing;
use super::entry::{EntryLocation, EntryStatus};
use super::record::{CommittedEntry, MoveRecord, RecordedMove};
use super::tree::visit_tree;
use crate::sandbox::rooted_fs;
use crate::sandbox::stage::commit;
use crate::sandbox::stage::restore::RestoreReport;

impl MoveRecord {
    /// Makes the moves backwards and deletes the record. Moves that were not made are skipped, so
    /// this also completes an interrupted rollback.
    ///
    /// An entry of somebody else at a path stays, and the move fails; with `force` it is discarded.
    pub(in crate::sandbox::stage) fn roll_back(
        &mut self,
        root: &Dir,
        force: bool,
    ) -> io::Result<RestoreReport> {
        let mut report = RestoreReport::default();
        let slots = self.open_slots()?;
        let mut failed = Vec::new();
        // Permissions were set last, so that they are restored first.
        for planned in self.manifest.moves.iter().filter(|planned| planned.is_mode()) {
            if let Err(error) = restore_mode(root, planned, force) {
                report.add_failure(&planned.path, &error.to_string());
            }
        }
        for (number, planned) in self.manifest.moves.iter().enumerate().take(self.tried).rev() {
            if planned.is_mode() {
                continue;
            }
            let backwards = MoveBackwards { record: self, root, slots: &slots, number, force };
            if let Err(error) = backwards.restore(planned) {
                report.add_failure(&planned.path, &error.to_string());
                failed.push(number);
            }
            #[cfg(test)]
            super::tests::interrupt_here();
        }
        if report.failed.is_empty() {
            self.delete()?;
        }
        Ok(report)
    }

    /// Returns the paths whose state differs from the one that the commit left.
    pub(in crate::sandbox::stage) fn changed_since(&self, root: &Dir) -> Vec<String> {
        let mut changed = Vec::new();
        for planned in &self.manifest.moves {
            match self.find_change(root, planned) {
                Ok(None) => {}
                Ok(Some(below)) if below.is_empty() => changed.push(planned.path.clone()),
                Ok(Some(below)) => changed.push(format!("{}/{below}", planned.path)),
                Err(_) => changed.push(planned.path.clone()),
            }
        }
        changed
    }

    /// Returns the changed path below a move, empty for the path itself; `None` if nothing changed.
    fn find_change(&self, root: &Dir, planned: &RecordedMove) -> io::Result<Option<String>> {
        let yes = Ok(Some(String::new()));
        let location = match EntryLocation::open(root, &planned.path) {
            Ok(location) => location,
            Err(error) if is_missing(&error) && planned.new.is_none() && !planned.is_mode() => {
                return yes;
            }
            Err(error) => return Err(error),
        };
        let now = location.status()?;
        if let Some((_, after)) = planned.modes() {
            let is_same = now.is_some_and(|now| now.has_mode() && now.mode == after);
            return if is_same { Ok(None) } else { yes };
        }
        let (now, after) = match (now, &planned.after) {
            (None, None) => return Ok(None),
            (Some(now), Some(after)) => (now, after),
            (None, Some(_)) | (Some(_), None) => return yes,
        };
        if !self.is_committed(&location, &now, planned, after) {
            return yes;
        }
        if !now.is_directory() {
            return Ok(None);
        }
        let mut changed = None;
        visit_tree(location.list()?, |entry| {
            let is_known = || {
                let path = format!("{}/{}", planned.path, entry.path);
                self.manifest.restored.get(&path) == Some(&entry.status.ctime)
            };
            if changed.is_none() && entry.status.ctime > after.status.ctime && !is_known() {
                changed = Some(entry.path.to_owned());
            }
            Ok(())
        })?;
        Ok(changed)
    }

    /// Returns whether the entry at a path is the one that the commit left there.
    fn is_committed(
        &self,
        location: &EntryLocation,
        now: &EntryStatus,
        planned: &RecordedMove,
        after: &CommittedEntry,
    ) -> bool {
        let is_same = now.identity == after.status.identity;
        let is_untouched = now.ctime == after.status.ctime
            || self.manifest.restored.get(&planned.path) == Some(&now.ctime);
        if is_same && is_untouched {
            return true;
        }
        // An undo of a later change can have written the same content again. The time of a
        // directory changes with its entries, which are compared one by one.
        let has_same_content = || {
            after.digest.is_some()
                && now.mode == after.status.mode
                && CommittedEntry::read(location)
                    .is_ok_and(|read| read.is_some_and(|read| read.digest == after.digest))
        };
        if now.is_directory() {
            is_same && now.mode == after.status.mode
        } else {
            has_same_content()
        }
    }

    /// Returns what prevents an undo, so that it is known before anything is touched.
    pub(in crate::sandbox::stage) fn obstacles(&self, root: &Dir, force: bool) -> Vec<String> {
        let mut obstacles = Vec::new();
        for planned in &self.manifest.moves {
            let parent = rooted_fs::split(&planned.path).0;
            let problem = match rooted_fs::open_dir(root, parent) {
                Ok(_) => rooted_fs::check_writable(root, parent).err(),
                Err(error) if force && is_missing(&error) => None,
                Err(error) => Some(error),
            };
            obstacles.extend(
                problem.map(|error| format!("`{}` cannot be restored ({error})", planned.path)),
            );
        }
        obstacles
    }

    /// Remembers the current times of restored paths that this commit created, so that they do not
    /// count as changes of somebody else.
    pub(in crate::sandbox::stage) fn remember_restored(
        &mut self,
        root: &Dir,
        paths: &[String],
    ) -> io::Result<()> {
        let mut known = Vec::new();
        for planned in self.manifest.moves.iter().filter(|planned| planned.new.is_some()) {
            for path in paths {
                let below = path.strip_prefix(&*planned.path);
                if !below.is_some_and(|below| below.is_empty() || below.starts_with('/')) {
                    continue;
                }
                // The directories above a renamed entry change, too.
                let mut at = path.as_str();
                loop {
                    let found = EntryLocation::open(root, at).and_then(|place| place.status());
                    if let Ok(Some(status)) = found {
                        known.push((at.to_owned(), status.ctime));
                    }
                    if at.len() <= planned.path.len() {
                        break;
                    }
                    at = rooted_fs::split(at).0;
                }
            }
        }
        if known.is_empty() {
            return Ok(());
        }
        self.manifest.restored.extend(known);
        self.save()
    }
}

/// One move that is made backwards.
struct MoveBackwards<'a> {
    record: &'a MoveRecord,
    root: &'a Dir,
    slots: &'a Dir,
    number: usize,
    force: bool,
}

impl MoveBackwards<'_> {
    fn restore(&self, planned: &RecordedMove) -> io::Result<()> {
        if self.force && planned.old.is_some() {
            create_parents(self.root, &planned.path);
        }
        let slot = EntryLocation::in_directory(self.slots, self.number.to_string())?;
        let in_slot = slot.status()?.map(|status| status.identity);
        let path = match EntryLocation::open(self.root, &planned.path) {
            Ok(path) => path,
            // Without the directory, there is nothing to remove.
            Err(error) if is_missing(&error) && planned.old.is_none() => return Ok(()),
            Err(error) => return Err(error),
        };
        let at_path = path.status()?;
        let has_old = planned.old.is_some() && in_slot == planned.old;
        if !has_old && planned.old.is_some() {
            // Not made, or made backwards already.
            let back = at_path.filter(|now| Some(&now.identity) == planned.old.as_ref());
            let now = back.ok_or_else(lost_entry)?;
            return match planned.old_mode {
                Some(before) if now.mode != before => path.set_mode(before),
                Some(_) | None => Ok(()),
            };
        }
        if !has_old && in_slot.is_some() {
            // The new entry is still in its slot, or is there again.
            return Ok(());
        }
        match at_path {
            None if has_old => slot.move_to(&path),
            None => Ok(()),
            Some(now) if !self.may_take(&path, &now, planned) => Err(foreign_entry()),
            Some(_) if has_old => path.exchange(&slot),
            Some(_) => path.move_to(&slot),
        }
    }

    /// Returns whether the entry at a path may be moved away.
    fn may_take(&self, path: &EntryLocation, now: &EntryStatus, planned: &RecordedMove) -> bool {
        self.force
            || Some(&now.identity) == planned.new.as_ref()
            || planned
                .after
                .as_ref()
                .is_some_and(|after| self.record.is_committed(path, now, planned, after))
    }
}

fn restore_mode(root: &Dir, planned: &RecordedMove, force: bool) -> io::Result<()> {
    let Some((before, after)) = planned.modes() else { return Ok(()) };
    let location = match EntryLocation::open(root, &planned.path) {
        Err(error) if is_missing(&error) && force => return Ok(()),
        location => location?,
    };
    match location.status()? {
        Some(now) if now.has_mode() && now.mode == before => Ok(()),
        Some(now) if now.has_mode() && (now.mode == after || force) => location.set_mode(before),
        // Somebody else has set other permissions, or removed it.
        Some(_) | None => Ok(()),
    }
}

/// Creates the missing parent directories of a path. Errors are reported by the step that needs
/// them.
fn create_parents(root: &Dir, path: &str) {
    for (end, _) in path.match_indices('/') {
        let _ = commit::create_directory(root, &path[..end], false);
    }
}

fn foreign_entry() -> io::Error {
    io::Error::other("was replaced by another process")
}

fn lost_entry() -> io::Error {
    io::Error::other("cannot be restored, because its old content is gone")
}
