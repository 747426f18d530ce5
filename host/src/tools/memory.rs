//! What outlives a call for as long as its session: what tools keep for themselves, and which version of files the model knows.
//!
//! A file that changed on disk since the model last read it is not overwritten, nor removed: the model would decide on
//! what is no longer there. What counts as reading is a call that ended well, has read files and has written none; a tool that
//! writes looks at a file in order to change it, and its look tells the model nothing; nor does a walk through many. After a change that was made the model
//! knows the new version, since it is its own. A file that was never read in the session is no concern of this: there is
//! nothing to have changed since.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::approval::lock;
use crate::agent::events::Remembered;
use crate::sandbox::{CallReport, Digest, Made, Notebook, Notebooks, Staged, Touched, Version};

/// Files that are remembered; the one that was read longest ago makes room.
const MOST_FILES: usize = 4096;

/// The memory of a session.
#[derive(Debug, Default)]
pub struct Memory {
    notebooks: Notebooks,
    known: Mutex<Known>,
}

/// Which version of files the model knows.
#[derive(Debug, Default)]
struct Known {
    by_place: BTreeMap<String, (u64, Version)>,
    next: u64,
}

/// A version, or that there is no file any more, by place.
type News = Vec<(String, Option<Version>)>;

impl Memory {
    /// That of a session that goes on.
    pub fn restored(remembered: &[Remembered]) -> Self {
        let memory = Self::default();
        for Remembered { component, tool, notes, files } in remembered {
            if let Some(component) = Digest::parse(component) {
                memory.notebook(&component, tool).restore(notes);
            }
            let files = files.iter().map(|(place, version)| (place.clone(), version.clone().map(Version::from))).collect();
            lock(&memory.known).learn(files);
        }
        memory
    }

    /// What a tool keeps.
    pub(super) fn notebook(&self, component: &Digest, tool: &str) -> Notebook {
        self.notebooks.of(component, tool)
    }

    /// The first file that would be changed and is not as the model knows it.
    pub(super) fn outdated(&self, staged: &Staged) -> Option<String> {
        let known = lock(&self.known);
        staged.replaced().find(|(place, version)| !known.is_current(place, version)).map(|(place, _)| place.to_owned())
    }

    /// Takes in what a call has left, however it ended.
    pub(super) fn remember_call(&self, by: (&Digest, &str), report: &CallReport, made: Option<&[Made]>) -> Option<Remembered> {
        match &report.result {
            Ok(_) => self.remember(by, &report.touched, made),
            Err(_) => self.remember_failed(by),
        }
    }

    /// Takes in what a call has left that ended well and made these changes, and tells what it was; `None` if it was nothing.
    fn remember(&self, (component, tool): (&Digest, &str), touched: &Touched, made: Option<&[Made]>) -> Option<Remembered> {
        let news: News = match made {
            Some(made) => made.iter().map(|made| (made.place.clone(), made.version.clone())).collect(),
            None if touched.written.is_empty() => touched.read.iter().map(|(place, read)| (place.clone(), Some(read.clone()))).collect(),
            None => Vec::new(),
        };
        self.leave((component, tool), news)
    }

    /// The same of one that ended otherwise: what it has kept is kept, and what it has read nobody has seen.
    fn remember_failed(&self, by: (&Digest, &str)) -> Option<Remembered> {
        self.leave(by, News::new())
    }

    fn leave(&self, (component, tool): (&Digest, &str), mut news: News) -> Option<Remembered> {
        let notes = self.notebook(component, tool).take_changes();
        let mut known = lock(&self.known);
        news.retain(|(place, version)| known.by_place.get(place).map(|(_, known)| known) != version.as_ref());
        known.learn(news.clone());
        let files: Vec<_> = news.into_iter().map(|(place, version)| (place, version.map(|version| version.as_str().to_owned()))).collect();
        let remembered = Remembered { component: component.as_str().to_owned(), tool: tool.to_owned(), notes, files };
        (!remembered.notes.is_empty() || !remembered.files.is_empty()).then_some(remembered)
    }
}

impl Known {
    fn is_current(&self, place: &str, version: &Version) -> bool {
        self.by_place.get(place).is_none_or(|(_, known)| known == version)
    }

    fn learn(&mut self, news: News) {
        for (place, version) in news {
            match version {
                Some(version) => {
                    self.by_place.insert(place, (self.next, version));
                    self.next += 1;
                }
                None => drop(self.by_place.remove(&place)),
            }
        }
        while self.by_place.len() > MOST_FILES {
            let oldest = self.by_place.iter().min_by_key(|(_, (read, _))| *read).map(|(place, _)| place.clone());
            oldest.and_then(|place| self.by_place.remove(&place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::from(text.to_owned())
    }

    fn read(place: &str, text: &str) -> Touched {
        Touched { read: BTreeMap::from([(place.to_owned(), version(text))]), ..Touched::default() }
    }

    #[test]
    fn r119_what_was_read_or_made_is_what_is_known() {
        let (memory, digest) = (Memory::default(), Digest::of(b"x"));
        let by = (&digest, "t");
        let is_current = |memory: &Memory, place: &str, text: &str| lock(&memory.known).is_current(place, &version(text));
        assert!(is_current(&memory, "a", "1"), "what nobody has read has not changed since");
        let first = memory.remember(by, &read("a", "1"), None).expect("there is news");
        assert!(memory.remember(by, &read("a", "1"), None).is_none(), "the same again is none");
        assert_eq!([is_current(&memory, "a", "1"), is_current(&memory, "a", "2")], [true, false]);
        let wrote = Touched { written: ["b".to_owned()].into(), ..read("a", "2") };
        assert!(memory.remember(by, &wrote, None).is_none(), "a tool that writes looks for itself");
        assert!(memory.remember_failed(by).is_none());
        assert!(!is_current(&memory, "a", "2"));
        let made = |place: &str, text: Option<&str>| Made { place: place.to_owned(), version: text.map(version) };
        let second = memory.remember(by, &wrote, Some(&[made("a", Some("3")), made("c", None)])).expect("there is news");
        assert_eq!([is_current(&memory, "a", "3"), is_current(&memory, "a", "1")], [true, false]);

        let again = Memory::restored(&[first, second]);
        assert_eq!([is_current(&again, "a", "3"), is_current(&again, "a", "1"), is_current(&again, "c", "1")], [true, false, true]);
    }

    #[test]
    fn what_was_read_longest_ago_makes_room() {
        let mut known = Known::default();
        known.learn((0..=MOST_FILES).map(|n| (n.to_string(), Some(version("1")))).collect());
        assert_eq!(known.by_place.len(), MOST_FILES);
        assert!(known.is_current("0", &version("2")) && !known.is_current("1", &version("2")));
    }
}
