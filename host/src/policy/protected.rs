//! What nobody changes or reads below the workspace, whatever was granted: files that programs of the user's run by
//! themselves, and files that hold keys.
//!
//! This is the one list, for tools (at their files) and for commands (in the sandbox of the operating system) alike.
//! Patterns hold at any depth, part by part: `*` and `?` stay within a part, `**` is any number of whole parts.
//! Letters are compared without case, and without the characters that some file systems ignore, so that `.GIT/Hooks`
//! is `.git/hooks`. What lies below a match is protected like the match itself.

use super::layer::{Placed, Protecting};
use super::{PathPattern, WorkspacePath};

/// How a path is protected, the strictest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protected {
    /// A directory that has protected paths right below: it may be made and used, and is neither renamed, nor removed, nor
    /// anything but a directory. `mv .git away; mkdir -p .git/hooks` would else come by a new one.
    Pinned,
    /// It can be read, and is neither made, changed nor removed.
    ReadOnly,
    /// It is not there for anyone: neither read, nor made, changed or removed.
    Hidden,
}

/// Directories that are [`Protected::Pinned`]. As a file or as a link, `.git` says where hooks are, so it is no less dangerous.
const PINNED: &[&str] = &[".git", ".git/modules", ".git/modules/*", ".git/worktrees", ".git/worktrees/*"];

/// Paths that are [`Protected::ReadOnly`].
const READ_ONLY: &[&str] = &[
    // git runs what these name.
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/commondir",
    ".git/info/attributes",
    ".git/modules/**/hooks",
    ".git/modules/**/config",
    ".git/modules/**/config.worktree",
    ".git/modules/**/commondir",
    ".git/worktrees/*/config.worktree",
    ".git/worktrees/*/commondir",
    ".git/worktrees/*/gitdir",
    ".gitmodules",
    ".gitconfig",
    // This program's own.
    ".cofferdam",
    // Editors and agents run what is in these when a folder is opened.
    ".vscode",
    "*.code-workspace",
    ".idea",
    ".zed",
    ".devcontainer",
    ".devcontainer.json",
    ".mcp.json",
    ".claude",
    ".codex",
    ".cursor",
    ".exrc",
    ".vimrc",
    ".nvimrc",
    ".nvim.lua",
    ".dir-locals.el",
    ".gdbinit",
    ".lldbinit",
    // It says what npm runs scripts with, and from where it takes packages. npm needs to read it.
    ".npmrc",
    // Shells run these when they start.
    ".profile",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".inputrc",
    ".config/fish",
];

/// Paths that are [`Protected::Hidden`].
const HIDDEN: &[&str] = &[
    // What programs are told in secret.
    ".env",
    ".env.*",
    ".env-*",
    ".env_*",
    ".envrc",
    ".envrc.*",
    // Private keys.
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.ppk",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    ".ssh",
    ".gnupg",
    // Where tools keep passwords and tokens.
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".pypirc",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh/hosts.yml",
    ".config/gcloud",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings-security.xml",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".htpasswd",
    ".docker/config.json",
    ".kube/config",
    ".aws",
    ".azure",
];

/// What would be hidden by its name and is there to be read.
const SHOWN: &[&str] =
    &[".env*.example", ".env*.sample", ".env*.template", ".env*.tmpl", ".env*.dist", ".env*.defaults", "*.pub.pem", "*.pub.key"];

/// Says of each path whether it is protected. The default is the list of this module.
#[derive(Clone, Debug)]
pub struct ProtectedPaths {
    pinned: Vec<Pattern>,
    read_only: Vec<Pattern>,
    hidden: Vec<Pattern>,
    shown: Vec<Pattern>,
    /// What `[read]` of a policy denies, from the workspace on.
    unread: Vec<PathPattern>,
}

/// A text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{pattern}' is no pattern of workspace paths: {problem}")]
pub struct BadPattern {
    pattern: String,
    problem: &'static str,
}

impl Default for ProtectedPaths {
    fn default() -> Self {
        // The patterns of this file all parse, as a test shows.
        let known = |texts: &[&str]| texts.iter().filter_map(|text| Pattern::parse(text).ok()).collect();
        Self { pinned: known(PINNED), read_only: known(READ_ONLY), hidden: known(HIDDEN), shown: known(SHOWN), unread: Vec::new() }
    }
}

impl ProtectedPaths {
    /// With more that cannot be changed.
    pub fn and_read_only(mut self, patterns: &[String]) -> Result<Self, BadPattern> {
        self.read_only.extend(all(patterns)?);
        Ok(self)
    }

    /// With more that cannot be read.
    pub fn and_hidden(mut self, patterns: &[String]) -> Result<Self, BadPattern> {
        self.hidden.extend(all(patterns)?);
        Ok(self)
    }

    /// With more that can be read although its name is that of a secret: a test's certificate.
    pub fn and_shown(mut self, patterns: &[String]) -> Result<Self, BadPattern> {
        self.shown.extend(all(patterns)?);
        Ok(self)
    }

    /// One name of each pattern, with its `*` and `?`: a path of which no part is like one of these is not protected.
    /// `None` if names do not tell.
    pub fn names(&self) -> Option<Vec<String>> {
        let all = self.pinned.iter().chain(&self.read_only).chain(&self.hidden);
        let names = all.filter_map(|pattern| {
            pattern.0.iter().rev().find_map(|part| match part {
                Part::AnyParts => None,
                Part::Name(name) => Some(name.iter().collect()),
            })
        });
        self.unread.is_empty().then(|| names.collect())
    }

    /// With what a policy file says. Only one that may loosen shows anything, or takes anything off the built-in list. Its
    /// patterns were understood when it was read.
    #[must_use]
    pub(super) fn and_under(mut self, protecting: &Protecting, may_loosen: bool) -> Self {
        let parsed = |placed: &[Placed]| placed.iter().filter_map(|placed| Pattern::parse(&placed.text).ok()).collect::<Vec<_>>();
        self.read_only.extend(parsed(&protecting.read_only));
        self.hidden.extend(parsed(&protecting.hidden));
        if may_loosen {
            self.shown.extend(parsed(&protecting.shown));
            let writable = parsed(&protecting.writable);
            self.read_only.retain(|pattern| !writable.contains(pattern));
        }
        self
    }

    /// With paths that nobody reads.
    #[must_use]
    pub(super) fn and_unread(mut self, patterns: impl Iterator<Item = PathPattern>) -> Self {
        self.unread.extend(patterns);
        self
    }

    /// Whether one pattern covers a path, or something above it.
    pub(super) fn covered_by(pattern: &Placed, path: &WorkspacePath) -> bool {
        let alone = Self { pinned: vec![], read_only: vec![], hidden: vec![], shown: vec![], unread: vec![] };
        alone.and_hidden(std::slice::from_ref(&pattern.text)).is_ok_and(|alone| alone.of(path).is_some())
    }

    /// Whether a text is a pattern of what cannot be changed.
    pub(super) fn names_read_only(&self, text: &str) -> bool {
        Pattern::parse(text).is_ok_and(|pattern| self.read_only.contains(&pattern))
    }

    /// The built-in patterns of what cannot be changed and of what cannot be read, for people.
    pub fn built_in() -> (&'static [&'static str], &'static [&'static str]) {
        (READ_ONLY, HIDDEN)
    }

    /// Whether and how a path is protected; the strictest of all that applies.
    pub fn of(&self, path: &WorkspacePath) -> Option<Protected> {
        self.of_parts(path.as_str().split('/'))
    }

    /// The same for a path in parts, which need be no path that a model could write.
    pub fn of_parts<'a>(&self, parts: impl Iterator<Item = &'a str>) -> Option<Protected> {
        let parts: Vec<String> = parts.filter(|part| !part.is_empty()).map(folded).collect();
        if self.unread.iter().any(|pattern| pattern.covers_folded(&parts)) {
            return Some(Protected::Hidden);
        }
        let at_any_depth = |patterns: &[Pattern], below: bool| {
            (0..parts.len()).any(|from| {
                let ends = if below { from + 1..parts.len() + 1 } else { parts.len()..parts.len() + 1 };
                ends.into_iter().any(|to| patterns.iter().any(|pattern| pattern.matches(&parts[from..to])))
            })
        };
        if at_any_depth(&self.hidden, true) && !at_any_depth(&self.shown, false) {
            Some(Protected::Hidden)
        } else if at_any_depth(&self.read_only, true) {
            Some(Protected::ReadOnly)
        } else if at_any_depth(&self.pinned, false) {
            Some(Protected::Pinned)
        } else {
            None
        }
    }
}

fn all(patterns: &[String]) -> Result<Vec<Pattern>, BadPattern> {
    patterns.iter().map(|text| Pattern::parse(text)).collect()
}

/// A pattern in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// `**`
    AnyParts,
    /// With `*` and `?`.
    Name(Vec<char>),
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, BadPattern> {
        let bad = |problem| BadPattern { pattern: text.to_owned(), problem };
        if text.starts_with('/') {
            return Err(bad("it begins with '/'; patterns hold at any depth of the workspace"));
        }
        let parts = text.strip_suffix('/').unwrap_or(text).split('/').map(|part| match part {
            "" => Err(bad("it has an empty part")),
            "." | ".." => Err(bad("it has '.' or '..' in it")),
            "**" => Ok(Part::AnyParts),
            name if name.contains("**") => Err(bad("'**' stands for whole parts only")),
            name if name.contains(['[', ']', '{', '}', '!', '\\']) => Err(bad("only '*', '?' and '**' are understood")),
            name => Ok(Part::Name(folded(name).chars().collect())),
        });
        let parts: Vec<Part> = parts.collect::<Result<_, _>>()?;
        if !parts.iter().any(|part| matches!(part, Part::Name(_))) {
            return Err(bad("it would be everything"));
        }
        Ok(Self(parts))
    }

    fn matches(&self, parts: &[String]) -> bool {
        matches_parts(&self.0, parts)
    }
}

fn matches_parts(pattern: &[Part], parts: &[String]) -> bool {
    match (pattern, parts) {
        ([], parts) => parts.is_empty(),
        ([Part::AnyParts, rest @ ..], _) => (0..=parts.len()).any(|skipped| matches_parts(rest, &parts[skipped..])),
        ([Part::Name(_), ..], []) => false,
        ([Part::Name(name), rest @ ..], [first, others @ ..]) => matches_name(name, first) && matches_parts(rest, others),
    }
}

/// `*` and `?` within one part, in time that is bounded by the product of both lengths.
fn matches_name(pattern: &[char], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    // Where the last star stands, and how much of the name it has taken.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            Some(_) | None => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                p = at + 1;
                n = taken + 1;
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// As the most forgiving file systems compare names: without case, and without the characters that HFS+ ignores.
pub(super) fn folded(name: &str) -> String {
    let ignored =
        |c: char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{200b}');
    // 'ſ' and the Kelvin sign fold to letters that `to_lowercase` alone does not give.
    name.chars().filter(|c| !ignored(*c)).flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Option<Protected> {
        ProtectedPaths::default().of(&WorkspacePath::parse(path, None).expect("a path"))
    }

    #[test]
    fn all_patterns_of_this_file_parse() {
        for text in [PINNED, READ_ONLY, HIDDEN, SHOWN].concat() {
            assert!(Pattern::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_programs_run_by_themselves_is_read_only_at_any_depth() {
        let paths = [
            ".git/hooks",
            ".git/hooks/pre-commit",
            ".git/config",
            "vendor/lib/.git/hooks/post-checkout",
            ".git/modules/sub/hooks/x",
            ".git/modules/a/b/config",
            ".git/worktrees/w/config.worktree",
            ".git/commondir",
            ".gitmodules",
            ".vscode/tasks.json",
            "packages/a/.idea/workspace.xml",
            ".mcp.json",
            ".claude/settings.json",
            ".bashrc",
            ".cofferdam/policy.toml",
            "team.code-workspace",
        ];
        for path in paths {
            assert_eq!(of(path), Some(Protected::ReadOnly), "{path}");
        }
    }

    #[test]
    fn what_holds_keys_is_hidden_at_any_depth() {
        for path in
            [".env", ".env.local", "a/b/.env.production", ".envrc", "deploy/id_ed25519", "tls/server.key", ".ssh/config", ".aws/x/y"]
        {
            assert_eq!(of(path), Some(Protected::Hidden), "{path}");
        }
        for path in [".env.example", ".env.local.sample", "environment.rs", ".environment", "id_rsa.pub", "key.rs", "tls/server.pub.pem"] {
            assert_eq!(of(path), None, "{path}");
        }
    }

    #[test]
    fn case_and_characters_that_do_not_count_make_no_difference() {
        for path in [".GIT/hooks", ".git/HOOKS/x", ".Git/Config", ".g\u{200c}it/hooks", ".VSCODE/tasks.json", ".ba\u{17f}hrc"] {
            assert_eq!(of(path), Some(Protected::ReadOnly), "{path}");
        }
        assert_eq!(of(".ENV"), Some(Protected::Hidden));
    }

    #[test]
    fn what_is_beside_is_not_protected() {
        for path in ["", "git/hooks", ".github/workflows/ci.yml", ".gitignore", ".git/index", ".git/refs/heads/main", "src/config", "a.git"]
        {
            assert_eq!(of(path), None, "{path}");
        }
    }

    #[test]
    fn directories_around_protected_paths_are_pinned() {
        for path in [".git", "sub/.git", ".git/modules", ".git/modules/sub", ".GIT"] {
            assert_eq!(of(path), Some(Protected::Pinned), "{path}");
        }
    }

    #[test]
    fn the_user_can_add_and_show() {
        let list = |text: &str| vec![text.to_owned()];
        let paths = ProtectedPaths::default()
            .and_read_only(&list("infra/**/*.tf"))
            .and_then(|paths| paths.and_hidden(&list("secrets")))
            .and_then(|paths| paths.and_shown(&list("tests/**/*.pem")))
            .expect("they parse");
        let of = |path| paths.of(&WorkspacePath::parse(path, None).expect("a path"));
        assert_eq!(of("infra/eu/main.tf"), Some(Protected::ReadOnly));
        assert_eq!(of("infra/main.tf"), Some(Protected::ReadOnly));
        assert_eq!(of("a/secrets/b"), Some(Protected::Hidden));
        assert_eq!(of("tests/tls/ca.pem"), None);
        assert_eq!(of("ca.pem"), Some(Protected::Hidden));
    }

    #[test]
    fn a_bad_pattern_says_what_is_the_matter() {
        for text in ["/etc", "a//b", "../x", "a**", "[ab]", "**", ""] {
            let error = ProtectedPaths::default().and_hidden(&[text.to_owned()]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{text}' is no pattern")), "{error}");
        }
    }

    #[test]
    fn a_pattern_of_many_stars_takes_no_long_time() {
        let paths = ProtectedPaths::default().and_hidden(&["*a*a*a*a*a*a*a*a*a*b".to_owned()]).expect("it parses");
        assert_eq!(paths.of(&WorkspacePath::parse(&"a".repeat(4000), None).expect("a path")), None);
    }
}
