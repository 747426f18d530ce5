//! Settings files as one command finds them. Each is read once, although several searches need it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::format::LARGEST;
use crate::path_resolver::PathResolver;

/// The size up to which a text is kept, in bytes. Most settings are a few lines.
const MAX_KEPT_LEN: usize = 64 << 10;
/// The number of texts that are kept. Further files are read each time.
const MAX_KEPT: usize = 256;

/// Reads settings files for one command.
///
/// It must not live longer than the preparation of the command. What is copied without secrets is
/// then what was searched, and no other text.
#[derive(Debug, Default)]
pub(super) struct SettingsFileReader {
    pub(super) resolver: PathResolver,
    texts: RefCell<HashMap<PathBuf, SettingsText>>,
}

/// The content of a settings file.
#[derive(Clone, Debug)]
pub(super) enum SettingsText {
    /// There is no file.
    Missing,
    /// The file cannot be read, is too large, or is not text.
    Unreadable,
    Text(Rc<str>),
}

impl SettingsFileReader {
    /// Returns the content of a file.
    pub(super) fn read(&self, path: &Path) -> SettingsText {
        if let Some(known) = self.texts.borrow().get(path) {
            return known.clone();
        }
        let found = read_settings(path);
        let is_small = match &found {
            SettingsText::Missing | SettingsText::Unreadable => true,
            SettingsText::Text(text) => text.len() <= MAX_KEPT_LEN,
        };
        let mut texts = self.texts.borrow_mut();
        if is_small && texts.len() < MAX_KEPT {
            texts.insert(path.to_owned(), found.clone());
        }
        found
    }
}

fn read_settings(path: &Path) -> SettingsText {
    if !path.is_file() {
        return SettingsText::Missing;
    }
    let mut text = String::new();
    let read = fs::File::open(path)
        .and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text))
        .is_ok();
    match read && text.len() as u64 <= LARGEST {
        true => SettingsText::Text(text.into()),
        false => SettingsText::Unreadable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changes_meanwhile_keeps_its_first_text() {
        let directory = tempfile::tempdir().expect("a directory");
        let [file, missing] = ["file", "missing"].map(|name| directory.path().join(name));
        fs::write(&file, "one").expect("it is written");
        let reader = SettingsFileReader::default();
        for _ in 0..2 {
            assert!(matches!(reader.read(&file), SettingsText::Text(text) if &*text == "one"));
            assert!(matches!(reader.read(&missing), SettingsText::Missing));
            assert!(matches!(reader.read(directory.path()), SettingsText::Missing));
            fs::write(&file, "two").expect("it is written");
        }
        fs::write(&file, [0xff]).expect("it is written");
        assert!(matches!(SettingsFileReader::default().read(&file), SettingsText::Unreadable));
    }
}
