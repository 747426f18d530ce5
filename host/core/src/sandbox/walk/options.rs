//! The options of a walk, checked and converted.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ignore::overrides::{Override, OverrideBuilder};
use regex::bytes::{Regex, RegexBuilder};

use super::{WalkError, WalkOptions};
use crate::sandbox::files::{FileRefusal, WorkspaceFilesView};
use crate::sandbox::workspace::{Workspace, path_denied};

/// The number of globs, 256 by the WIT contract.
const MAX_GLOBS: usize = 256;
/// The number and the total bytes of required strings: 64 and 4 KiB by the WIT contract.
const MAX_REQUIRED: usize = 64;
const MAX_REQUIRED_BYTES: usize = 4 << 10;

/// The longest glob, as `PATH_MAX` on Linux.
const MAX_GLOB_LEN: usize = 4096;
/// The number of braces in a glob. Each may open a nested group, and the parser recurses into each
/// of them.
const MAX_BRACES: usize = 64;

/// Returns whether an untrusted glob can be passed to the glob parser.
pub(super) fn is_safe_glob(glob: &str) -> bool {
    glob.len() <= MAX_GLOB_LEN && glob.bytes().filter(|byte| *byte == b'{').count() <= MAX_BRACES
}

/// The directory that walks never visit, by the WIT contract.
pub(super) const GIT_DIR: &str = ".git";

/// The checked options of a walk.
pub(super) struct WalkPlan {
    pub(super) workspace: Arc<Workspace>,
    /// The resolved path of the root.
    pub(super) root: String,
    /// The largest depth.
    pub(super) max_depth: usize,
    /// Whether the walk visits names that begin with a dot.
    pub(super) include_hidden: bool,
    pub(super) respect_ignore: bool,
    pub(super) globs: Override,
    pub(super) required: Option<Regex>,
    pub(super) stop: WalkStop,
}

/// Tells the threads of a walk to stop.
#[derive(Clone, Debug, Default)]
pub(super) struct WalkStop(Arc<AtomicBool>);

impl WalkStop {
    pub(super) fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl WalkPlan {
    pub(super) fn new(workspace: &Arc<Workspace>, options: WalkOptions) -> Result<Self, WalkError> {
        let root = workspace
            .parse(&options.root)
            .map_err(|problem| WalkError::Denied(path_denied(&problem)))?;
        // Resolves the root, because hidden and protected paths are determined by the target. A
        // link that leads out of the workspace is an error here.
        let place = match WorkspaceFilesView::new(Arc::clone(workspace), None)
            .resolve_existing(root.as_fs_path())
        {
            Ok(Some(place)) => place,
            Ok(None) => return Err(WalkError::NotFound(format!("`{root}` does not exist"))),
            Err(FileRefusal::Denied(_, denial)) => return Err(WalkError::Denied(denial)),
            Err(FileRefusal::Io(error)) => {
                return Err(WalkError::NotFound(format!("{root}: {error}")));
            }
            Err(FileRefusal::Code(code)) => {
                return Err(WalkError::NotFound(format!("{root}: {code}")));
            }
        };
        if [root.as_str(), &place].iter().any(|path| path.split('/').any(|part| part == GIT_DIR)) {
            return Err(WalkError::Failed(format!(
                "`{root}` cannot be walked: walks skip {GIT_DIR}"
            )));
        }
        Ok(Self {
            workspace: Arc::clone(workspace),
            root: place,
            max_depth: options
                .max_depth
                .and_then(|depth| usize::try_from(depth).ok())
                .unwrap_or(usize::MAX),
            include_hidden: options.hidden,
            respect_ignore: options.respect_ignore,
            globs: build_overrides(workspace.root(), &options.globs)?,
            required: build_required(&options.required, options.required_ignore_case)?,
            stop: WalkStop::default(),
        })
    }
}

/// Returns the absolute path that globs and ignore rules match.
pub(super) fn absolute_path(workspace: &Workspace, place: &str) -> PathBuf {
    if place.is_empty() { workspace.root().to_owned() } else { workspace.root().join(place) }
}

fn build_overrides(root: &Path, globs: &[String]) -> Result<Override, WalkError> {
    if globs.len() > MAX_GLOBS {
        return Err(WalkError::InvalidGlob(format!(
            "{} globs were given; the limit is {MAX_GLOBS}",
            globs.len()
        )));
    }
    let mut builder = OverrideBuilder::new(root);
    for glob in globs {
        if glob.strip_prefix('!').unwrap_or(glob).trim().is_empty() {
            return Err(WalkError::InvalidGlob(format!("`{glob}` is empty")));
        }
        if !is_safe_glob(glob) {
            let limits = format!("the limit is {MAX_GLOB_LEN} bytes and {MAX_BRACES} braces");
            return Err(WalkError::InvalidGlob(format!(
                "`{}…`: {limits}",
                glob.chars().take(40).collect::<String>()
            )));
        }
        // In an ignore file this would be a comment; as the only glob it would match every file.
        let escape = if glob.starts_with('#') { "\\" } else { "" };
        builder
            .add(&format!("{escape}{glob}"))
            .map_err(|error| WalkError::InvalidGlob(format!("`{glob}`: {error}")))?;
    }
    builder.build().map_err(|error| WalkError::InvalidGlob(error.to_string()))
}

/// Builds one expression for all required strings, so that the regex engine can choose the fastest
/// search.
fn build_required(strings: &[Vec<u8>], ignore_case: bool) -> Result<Option<Regex>, WalkError> {
    let bytes: usize = strings.iter().map(Vec::len).sum();
    if strings.len() > MAX_REQUIRED || bytes > MAX_REQUIRED_BYTES {
        return Err(WalkError::InvalidOption(format!(
            "`required` is too large: the limit is {MAX_REQUIRED} strings with \
                {MAX_REQUIRED_BYTES} bytes in total"
        )));
    }
    if strings.is_empty() || strings.iter().any(Vec::is_empty) {
        return Ok(None);
    }
    let pattern = strings.iter().map(|string| escape_bytes(string)).collect::<Vec<_>>().join("|");
    RegexBuilder::new(&pattern)
        .unicode(false)
        .case_insensitive(ignore_case)
        .build()
        .map(Some)
        .map_err(|error| WalkError::InvalidOption(format!("cannot search for `required`: {error}")))
}

/// Escapes each byte by its number, which has no special meaning anywhere.
fn escape_bytes(bytes: &[u8]) -> String {
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
    fn a_glob_is_never_a_comment_and_never_empty() {
        let names = |globs: &[&str]| {
            let globs: Vec<String> = globs.iter().map(|glob| (*glob).to_owned()).collect();
            let overrides = build_overrides(Path::new("/w"), &globs).ok()?;
            let visited =
                |name: &&str| !overrides.matched(Path::new("/w").join(name), false).is_ignore();
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
    fn r098_a_deeply_nested_glob_is_refused_before_it_is_parsed() {
        let deep = |braces: usize| {
            build_overrides(
                Path::new("/w"),
                &[format!("{}a{}", "{".repeat(braces), "}".repeat(braces))],
            )
        };
        assert!(deep(MAX_BRACES).is_ok());
        for braces in [MAX_BRACES + 1, 20_000, 1_000_000] {
            let Err(WalkError::InvalidGlob(problem)) = deep(braces) else {
                panic!("{braces} braces are let through")
            };
            assert!(
                problem.ends_with("…`: the limit is 4096 bytes and 64 braces")
                    && problem.len() < 100,
                "{problem}"
            );
        }
        assert!(build_overrides(Path::new("/w"), &["x".repeat(MAX_GLOB_LEN + 1)]).is_err());
    }

    #[test]
    fn required_strings_match_literally() {
        let regex = build_required(&[b"a.b".to_vec(), b"\xff(".to_vec()], false)
            .ok()
            .flatten()
            .expect("two strings");
        assert!(regex.is_match(b"xa.bx"));
        assert!(regex.is_match(b"\xff("));
        assert!(!regex.is_match(b"aXb"));
        let regex = build_required(&[b"Main".to_vec()], true).ok().flatten().expect("one string");
        assert!(regex.is_match(b"fn mAIN"));
    }

    #[test]
    fn an_empty_required_string_excludes_nothing() {
        assert!(build_required(&[Vec::new(), b"a".to_vec()], false).ok().flatten().is_none());
    }

    #[test]
    fn required_strings_are_limited() {
        assert!(build_required(&vec![b"a".to_vec(); 65], false).is_err());
        assert!(build_required(&[vec![b'a'; 5000]], false).is_err());
    }
}
