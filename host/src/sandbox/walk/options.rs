//! A walk as it was asked for, checked and turned into what it means.

use std::path::Path;
use std::sync::Arc;

use ignore::WalkBuilder;
use ignore::overrides::{Override, OverrideBuilder};
use regex::bytes::{Regex, RegexBuilder};

use super::Problems;
use crate::sandbox::bindings::cofferdam::plugin::workspace::{WalkOptions, WorkspaceError};
use crate::sandbox::files::{Problem, View};
use crate::sandbox::workspace::{Workspace, denied, path_denied};

/// The contract's 256 globs.
const MOST_GLOBS: usize = 256;
/// The contract's 64 strings of 4 KiB in all.
const MOST_REQUIRED: usize = 64;
const REQUIRED_BYTES: usize = 4 << 10;

/// Never visited, by the contract.
const GIT: &str = ".git";

/// What a walk will visit.
pub(super) struct Plan {
    pub(super) workspace: Arc<Workspace>,
    /// Where it begins.
    pub(super) place: String,
    pub(super) required: Option<Regex>,
    builder: WalkBuilder,
}

/// Something that a walk came across.
pub(super) struct Found {
    pub(super) entry: ignore::DirEntry,
    /// Below the workspace.
    pub(super) path: String,
}

impl Plan {
    pub(super) fn new(workspace: &Arc<Workspace>, options: WalkOptions) -> Result<Self, WorkspaceError> {
        let root = workspace.parse(&options.root).map_err(|problem| denied(path_denied(&problem)))?;
        // To where it really is: what is hidden and protected is so by its place, and a link that leads out is an error here.
        let place = match View::new(Arc::clone(workspace), None).place(root.for_open()) {
            Ok(Some(place)) => place,
            Ok(None) => return Err(WorkspaceError::NotFound(format!("{root}: there is nothing"))),
            Err(Problem::Denied(_, denial)) => return Err(denied(denial)),
            Err(Problem::Io(error)) => return Err(WorkspaceError::NotFound(format!("{root}: {error}"))),
            Err(Problem::Code(code)) => return Err(WorkspaceError::NotFound(format!("{root}: {code}"))),
        };
        if [root.as_str(), &place].iter().any(|path| path.split('/').any(|part| part == GIT)) {
            return Err(WorkspaceError::Failed(format!("{root}: walks never visit {GIT}")));
        }
        let mut builder = WalkBuilder::new(join(workspace.root(), &place));
        let ignore = options.respect_ignore;
        builder
            .hidden(!options.hidden)
            .ignore(ignore)
            .git_ignore(ignore)
            .git_exclude(ignore)
            .git_global(ignore)
            .parents(ignore)
            .follow_links(false)
            .max_depth(options.max_depth.and_then(|depth| usize::try_from(depth).ok()))
            .overrides(overrides(workspace.root(), &options.globs)?)
            .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != GIT)
            .sort_by_file_name(std::ffi::OsStr::cmp);
        let required = required(&options.required, options.required_ignore_case)?;
        Ok(Self { workspace: Arc::clone(workspace), place, required, builder })
    }

    /// Everything below the root, in order. What cannot be read is noted.
    pub(super) fn walk<'a>(&'a self, problems: &'a Problems) -> impl Iterator<Item = Found> + 'a {
        self.builder.build().filter_map(move |step| match step {
            Ok(entry) => {
                if let Some(error) = entry.error() {
                    problems.add(|| error.to_string());
                }
                let path = below(self.workspace.root(), entry.path());
                let is_start = entry.depth() == 0 && entry.file_type().is_some_and(|kind| kind.is_dir());
                (!is_start).then_some(Found { entry, path })
            }
            Err(error) => {
                problems.add(|| error.to_string());
                None
            }
        })
    }
}

fn join(root: &Path, place: &str) -> std::path::PathBuf {
    if place.is_empty() { root.to_owned() } else { root.join(place) }
}

fn below(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

fn overrides(root: &Path, globs: &[String]) -> Result<Override, WorkspaceError> {
    if globs.len() > MOST_GLOBS {
        return Err(WorkspaceError::InvalidGlob(format!("{} globs; at most {MOST_GLOBS}", globs.len())));
    }
    let mut builder = OverrideBuilder::new(root);
    for glob in globs {
        if glob.strip_prefix('!').unwrap_or(glob).trim().is_empty() {
            return Err(WorkspaceError::InvalidGlob(format!("'{glob}': it is empty")));
        }
        // In a file of ignore rules this would be a comment; as the only glob it would let every file through.
        let escape = if glob.starts_with('#') { "\\" } else { "" };
        builder.add(&format!("{escape}{glob}")).map_err(|error| WorkspaceError::InvalidGlob(format!("'{glob}': {error}")))?;
    }
    builder.build().map_err(|error| WorkspaceError::InvalidGlob(error.to_string()))
}

/// One expression for all required strings: the regex engine picks the fastest native search for them.
fn required(strings: &[Vec<u8>], ignore_case: bool) -> Result<Option<Regex>, WorkspaceError> {
    let bytes: usize = strings.iter().map(Vec::len).sum();
    if strings.len() > MOST_REQUIRED || bytes > REQUIRED_BYTES {
        return Err(WorkspaceError::Failed(format!("'required' takes {MOST_REQUIRED} strings of {REQUIRED_BYTES} bytes in all")));
    }
    if strings.is_empty() || strings.iter().any(Vec::is_empty) {
        return Ok(None);
    }
    let pattern = strings.iter().map(|string| escape(string)).collect::<Vec<_>>().join("|");
    RegexBuilder::new(&pattern)
        .unicode(false)
        .case_insensitive(ignore_case)
        .build()
        .map(Some)
        .map_err(|error| WorkspaceError::Failed(format!("'required' cannot be searched for: {error}")))
}

/// Each byte by its number, which has no special meaning in any place.
fn escape(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "\\x{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_is_never_a_comment_and_never_nothing() {
        let names = |globs: &[&str]| {
            let globs: Vec<String> = globs.iter().map(|glob| (*glob).to_owned()).collect();
            let overrides = overrides(Path::new("/w"), &globs).ok()?;
            let visited = |name: &&str| !overrides.matched(Path::new("/w").join(name), false).is_ignore();
            Some(["#a#", "b", "\\#a#"].into_iter().filter(visited).collect::<Vec<_>>())
        };
        assert_eq!(names(&["#a#"]), Some(vec!["#a#"]));
        assert_eq!(names(&["#*"]), Some(vec!["#a#"]));
        assert_eq!(names(&["!#a#"]), Some(vec!["b", "\\#a#"]));
        for nothing in ["", " ", "!", "! "] {
            assert_eq!(names(&["b", nothing]), None, "{nothing:?}");
        }
    }

    #[test]
    fn required_strings_are_taken_literally() {
        let regex = required(&[b"a.b".to_vec(), b"\xff(".to_vec()], false).ok().flatten().expect("two strings");
        assert!(regex.is_match(b"xa.bx"));
        assert!(regex.is_match(b"\xff("));
        assert!(!regex.is_match(b"aXb"));
        let regex = required(&[b"Main".to_vec()], true).ok().flatten().expect("one string");
        assert!(regex.is_match(b"fn mAIN"));
    }

    #[test]
    fn an_empty_required_string_excludes_nothing() {
        assert!(required(&[Vec::new(), b"a".to_vec()], false).ok().flatten().is_none());
    }

    #[test]
    fn the_caps_on_required_strings_hold() {
        assert!(required(&vec![b"a".to_vec(); 65], false).is_err());
        assert!(required(&[vec![b'a'; 5000]], false).is_err());
    }
}
