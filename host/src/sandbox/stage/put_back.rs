//! Putting back what a record holds: as much of it as there is, place by place, whatever becomes of one of them.

use std::collections::BTreeSet;
use std::io;

use cap_std::fs::Dir;

use super::commit::{self, Fault, New};
use super::record::{Held, Place, Record};
use super::was::Was;
use crate::sandbox::below;

/// Which places are put back.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which<'a> {
    /// Those that a change has come to before it failed, by their numbers.
    Reached(&'a BTreeSet<usize>),
    /// Those that hold what the change left there, or nothing. Anything else is somebody else's.
    Ours,
    /// All, and with them the directories that have gone.
    All,
}

/// What became of it. Every other place holds again what it held.
#[derive(Debug, Default)]
pub(super) struct PutBack {
    /// Directories that the change made and that somebody else uses by now.
    pub(super) stays: Vec<String>,
    pub(super) failed: Vec<Failed>,
}

/// A place that is not as it was.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) place: String,
    why: String,
}

impl PutBack {
    /// What failed, in words.
    pub(super) fn failures(&self) -> String {
        self.failed.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "'{}' {}", self.place, self.why)
    }
}

/// A place that has to be put back, and what it holds.
struct Step<'a> {
    number: usize,
    place: &'a Place,
    now: Was,
}

impl Record {
    /// Puts the places back and forgets the record, unless something fails: then what has not been put back stays in it.
    pub(super) fn put_back(&mut self, root: &Dir, which: Which<'_>) -> io::Result<PutBack> {
        let mut back = PutBack::default();
        let mut steps = self.survey(root, which, &mut back);
        // What is in a directory goes before it, and comes back after it.
        steps.reverse();
        steps.retain(|step| step.take_away(root, &mut back));
        for step in &in_order_of_return(steps) {
            if matches!(which, Which::All) && step.place.before != Held::Nothing {
                make_parents(root, &step.place.place);
            }
            if let Err(fault) = self.restore(root, step) {
                back.fail(&step.place.place, &fault.to_string());
            }
        }
        self.give_rights(root, which);
        // It is there for whoever looks, and would only be lost with the machine.
        let _ = commit::sync_all(root, self.written.places.iter().map(|place| place.place.as_str()));
        if back.failed.is_empty() {
            self.forget()?;
        } else {
            self.written.places.retain(|place| back.failed.iter().any(|failed| failed.place == place.place));
        }
        Ok(back)
    }

    /// Sets the rights of the directories that have come back, when they are full: also of those that came back before
    /// whoever put them back ended over it.
    fn give_rights(&self, root: &Dir, which: Which<'_>) {
        for (number, place) in self.written.places.iter().enumerate().rev() {
            let has_gone = !matches!(which, Which::Reached(reached) if !reached.contains(&number));
            if has_gone && let Some(rights) = place.before.rights_of_directory() {
                // It is there or it has failed already; what it holds counts for more than who may look into it.
                let _ = commit::set_rights(root, &place.place, rights);
            }
        }
    }

    /// What stands in the way, so that it is known before anything is touched.
    pub(super) fn obstacles(&self, root: &Dir, force: bool) -> Vec<String> {
        let mut back = PutBack::default();
        let steps = self.survey(root, if force { Which::All } else { Which::Ours }, &mut back);
        let comes_back = |place: &str| self.written.places.iter().any(|other| other.place == place && other.before.is_directory());
        for Step { place, now, .. } in &steps {
            let parent = below::split(&place.place).0;
            match Was::look(root, parent) {
                _ if comes_back(parent) => {}
                Ok(Was::Directory(..)) => {
                    if let Err(error) = below::may_write(root, parent) {
                        back.fail(&place.place, &format!("cannot be put back ({error})"));
                    }
                }
                Ok(Was::Nothing) if force => {}
                Ok(Was::Nothing | Was::File(_) | Was::Link(_) | Was::Special) | Err(_) => {
                    back.fail(&place.place, &format!("cannot be put back, since '{parent}' is no directory any more"));
                }
            }
            if let Err(error) = self.kept(&place.before) {
                back.fail(&place.place, &format!("cannot be put back, since what was there is lost ({error})"));
            }
            let gives_way = place.before != Held::Nothing && !place.before.is_directory() && matches!(now, Was::Directory(..));
            if gives_way && let Some(name) = self.foreign_in(root, &place.place) {
                back.fail(&place.place, &format!("cannot be put back, since there is a directory with '{name}' in it"));
            }
        }
        back.failed.iter().map(ToString::to_string).collect()
    }

    /// A name in a directory that is none of this record's.
    fn foreign_in(&self, root: &Dir, place: &str) -> Option<String> {
        let names = below::list(root, place).ok()?;
        let foreign = |name: &String| self.written.places.iter().all(|ours| ours.place != below::join(place, name));
        names.into_iter().map(|entry| entry.map_or_else(|_| "a name that is no text".to_owned(), |(name, _)| name)).find(foreign)
    }

    /// The places that do not hold what they held.
    fn survey(&self, root: &Dir, which: Which<'_>, back: &mut PutBack) -> Vec<Step<'_>> {
        let mut steps = Vec::new();
        for (number, place) in self.written.places.iter().enumerate() {
            self.tidy(root, &place.place, number);
            if matches!(which, Which::Reached(reached) if !reached.contains(&number)) {
                continue;
            }
            let now = match Was::look(root, &place.place) {
                Ok(now) => now,
                Err(error) => {
                    back.fail(&place.place, &format!("cannot be looked at ({error})"));
                    continue;
                }
            };
            match (Held::of(root, &place.place, &now), which) {
                (Ok(held), _) if held.is_same(&place.before) => continue,
                (Ok(held), Which::Reached(_) | Which::Ours) if held != Held::Nothing && !held.is_same(&place.after) => {
                    back.fail(&place.place, "was changed by somebody else");
                    continue;
                }
                (Err(error), Which::Reached(_) | Which::Ours) => {
                    back.fail(&place.place, &format!("cannot be read ({error})"));
                    continue;
                }
                (Ok(_) | Err(_), _) => {}
            }
            steps.push(Step { number, place, now });
        }
        steps
    }

    fn restore(&self, root: &Dir, step: &Step<'_>) -> Result<(), Fault> {
        let (place, name) = (step.place.place.as_str(), self.temporary_name(step.number));
        let there = if step.place.gives_way_to_its_like(&step.now) { &step.now } else { &Was::Nothing };
        match &step.place.before {
            Held::Nothing | Held::Special => Ok(()),
            Held::Directory { mode, .. } => commit::make_directory(root, place, mode.is_some()),
            Held::Link { to } => commit::link(root, place, to, &name, there),
            Held::File { digest, kept: Some(kept) } => {
                let data = self.folder().join(&kept.name);
                // A change leaves them as they are, so that others are somebody else's doing.
                let rights = if let Was::File(stamp) = there { stamp.rights } else { kept.rights };
                let file = New { data: &data, digest, rights: Some(rights) };
                commit::write(root, place, &file, &name, there).map(drop)
            }
            Held::File { kept: None, .. } => Err(io::Error::other("the record does not hold the old content").into()),
        }
    }

    /// Removes what a crash has left beside a place.
    fn tidy(&self, root: &Dir, place: &str, number: usize) {
        if let Ok(parent) = below::directory(root, below::split(place).0) {
            // Mostly there is none.
            let _ = rustix::fs::unlinkat(&parent, self.temporary_name(number), rustix::fs::AtFlags::empty());
        }
    }
}

impl Step<'_> {
    /// Makes room; tells whether the place is still to be filled.
    fn take_away(&self, root: &Dir, back: &mut PutBack) -> bool {
        if self.now == Was::Nothing || self.place.gives_way_to_its_like(&self.now) {
            return true;
        }
        match commit::remove(root, &self.place.place, &self.now) {
            Ok(()) => true,
            Err(Fault::NotEmpty) if self.place.before == Held::Nothing => {
                back.stays.push(self.place.place.clone());
                false
            }
            Err(fault) => {
                back.fail(&self.place.place, &fault.to_string());
                false
            }
        }
    }
}

impl Place {
    /// A file and a link are replaced in one step by what was there, if that was a file or a link.
    fn gives_way_to_its_like(&self, now: &Was) -> bool {
        let is_file = |held: &Held| matches!(held, Held::File { .. } | Held::Link { .. });
        is_file(&self.before) && matches!(now, Was::File(_) | Was::Link(_))
    }
}

/// What was replaced comes back from the last place to the first: at no moment does that take more room on the disk than the
/// change took, and a full disk may be why it is taken back. What has gone comes back after that, from the first place to the last.
fn in_order_of_return(backwards: Vec<Step<'_>>) -> Vec<Step<'_>> {
    let (mut steps, mut gone): (Vec<_>, Vec<_>) = backwards.into_iter().partition(|step| step.place.gives_way_to_its_like(&step.now));
    gone.reverse();
    steps.append(&mut gone);
    steps
}

impl PutBack {
    fn fail(&mut self, place: &str, why: &str) {
        self.failed.push(Failed { place: place.to_owned(), why: why.to_owned() });
    }
}

/// Makes the directories above a place that have gone. What is in the way is told by whatever needs them.
fn make_parents(root: &Dir, place: &str) {
    for (end, _) in place.match_indices('/') {
        let _ = commit::make_directory(root, &place[..end], false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_replaced_comes_back_in_the_order_in_which_there_was_room_for_it() {
        let link = || Held::Link { to: "old".into() };
        let directory = || Held::Directory { mode: None, owner: None };
        let held = [("a", link()), ("b", link()), ("d", directory()), ("d/x", link())];
        let places = held.map(|(place, before)| Place { place: place.into(), before, after: Held::Nothing });
        let is_there = |place: &Place| matches!(place.place.as_str(), "a" | "b");
        let now = |place: &Place| if is_there(place) { Was::Link("new".into()) } else { Was::Nothing };
        let steps = places.iter().enumerate().rev().map(|(number, place)| Step { number, place, now: now(place) });
        let order: Vec<&str> = in_order_of_return(steps.collect()).iter().map(|step| step.place.place.as_str()).collect();
        assert_eq!(order, ["b", "a", "d", "d/x"]);
    }
}
