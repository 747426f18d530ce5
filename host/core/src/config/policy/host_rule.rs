//! Adds a host that the user always allows to their policy file.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use toml::Spanned;

use super::super::trusted_file::{MAX_BYTES, TrustedFileError, read_own_file};
use super::open::POLICY;
use crate::policy::{ActionKind, HostAddress, PolicyError, PolicyLayer, PolicyLevel, Verdict};

/// The header of the section.
const HEADER: &str = "[commands.network]";

/// The reason why a host could not be added to the policy file of the user.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostRuleError {
    /// The file cannot be read or cannot be trusted.
    #[error(transparent)]
    File(#[from] TrustedFileError),
    /// The file is invalid.
    #[error(transparent)]
    Invalid(#[from] PolicyError),
    /// The section has a form that the program does not change.
    #[error("{0}: the section [commands.network] has a form that the program does not change")]
    Form(String),
    /// The file would be too large to be read again.
    #[error("{0}: the policy would have more than {MAX_BYTES} bytes")]
    TooLarge(String),
    /// The file cannot be written.
    #[error("cannot write {0}: {1}")]
    Write(String, #[source] io::Error),
}

/// The parts of a policy file that matter here. Other keys are ignored.
#[derive(serde::Deserialize)]
struct PolicyOutline {
    #[serde(default)]
    commands: CommandsOutline,
}

#[derive(Default, serde::Deserialize)]
struct CommandsOutline {
    network: Option<toml::Value>,
}

#[derive(serde::Deserialize)]
struct SpannedPolicy {
    commands: SpannedCommands,
}

#[derive(serde::Deserialize)]
struct SpannedCommands {
    network: SpannedNetwork,
}

#[derive(serde::Deserialize)]
struct SpannedNetwork {
    allow: Spanned<Vec<toml::Value>>,
}

/// Adds a host to `allow` under `[commands.network]` of the user's policy file, which is created if
/// it does not exist. Comments and everything else in the file stay as they are.
///
/// # Errors
/// The file cannot be trusted, read or written, is invalid, or has the section in another form.
/// The file is then unchanged.
pub fn allow_host_always(file: &Path, host: &HostAddress) -> Result<(), HostRuleError> {
    let name = file.display().to_string();
    let failed = |error| HostRuleError::Write(name.clone(), error);
    // A link to the file stays a link.
    let target = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let directory = target.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(directory).map_err(failed)?;
    // Programs that add hosts at the same time wait for each other. The lock ends with the file.
    let locked = File::open(directory).map_err(failed)?;
    locked.lock().map_err(failed)?;
    let text = read_own_file(file, POLICY)?.unwrap_or_default();
    let old = PolicyLayer::parse(PolicyLevel::User, &name, &text)?;
    let entry = host.to_string();
    if allowed(&old).contains(&entry.as_str()) {
        return Ok(());
    }
    let changed = insert_host(&text, &entry).ok_or_else(|| HostRuleError::Form(name.clone()))?;
    if changed.len() as u64 > MAX_BYTES {
        return Err(HostRuleError::TooLarge(name));
    }
    // Whatever the form of the file, exactly this rule is new.
    let new = PolicyLayer::parse(PolicyLevel::User, &name, &changed)
        .map_err(|_| HostRuleError::Form(name.clone()))?;
    let mut expected = allowed(&old);
    expected.push(&entry);
    expected.sort_unstable();
    let mut found = allowed(&new);
    found.sort_unstable();
    if found != expected || new.rules.len() != old.rules.len() + 1 {
        return Err(HostRuleError::Form(name));
    }
    replace_file(&target, directory, &changed).map_err(failed)
}

/// Returns the hosts that a layer allows.
fn allowed(layer: &PolicyLayer) -> Vec<&str> {
    let rules = layer.rules.iter().map(|rule| &rule.source_rule);
    rules
        .filter(|rule| (rule.kind, rule.verdict) == (ActionKind::Connect, Verdict::Allow))
        .map(|rule| rule.text.as_str())
        .collect()
}

/// Inserts a host into the list of the section: into the list itself, below the header of the
/// section, or with a new section at the end. Returns `None` if the section has another form.
fn insert_host(text: &str, host: &str) -> Option<String> {
    let insert = |at: usize, new: &str| {
        let (before, after) = (text.get(..at)?, text.get(at..)?);
        Some(format!("{before}{new}{after}"))
    };
    if let Ok(spanned) = toml::from_str::<SpannedPolicy>(text) {
        let list = spanned.commands.network.allow;
        let comma = if list.get_ref().is_empty() { "" } else { ", " };
        return insert(list.span().start + 1, &format!("\"{host}\"{comma}"));
    }
    let outline: PolicyOutline = toml::from_str(text).ok()?;
    match outline.commands.network {
        None => {
            let gap = match text {
                "" => "",
                _ if text.ends_with('\n') => "\n",
                _ => "\n\n",
            };
            Some(format!("{text}{gap}{HEADER}\nallow = [\"{host}\"]\n"))
        }
        Some(_) => {
            let mut start = 0;
            let header = text.split_inclusive('\n').find_map(|line| {
                start += line.len();
                let code = line.split('#').next().unwrap_or_default().trim();
                (code == HEADER).then_some((start, line.ends_with('\n')))
            });
            let (end, is_complete) = header?;
            let gap = if is_complete { "" } else { "\n" };
            insert(end, &format!("{gap}allow = [\"{host}\"]\n"))
        }
    }
}

/// Replaces the content of a file at once, with the permissions of the old one.
pub(in crate::config) fn replace_file(file: &Path, directory: &Path, text: &str) -> io::Result<()> {
    let mut new = tempfile::NamedTempFile::new_in(directory)?;
    new.write_all(text.as_bytes())?;
    let mode = fs::metadata(file).map_or(0o600, |old| old.permissions().mode() & 0o755);
    new.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    new.as_file().sync_all()?;
    new.persist(file).map_err(|error| error.error)?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(before: &str, host: &str) -> Result<String, String> {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("policy.toml");
        if !before.is_empty() {
            fs::write(&file, before).expect("it is written");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("they are set");
        }
        let host = HostAddress::parse(host).expect(host);
        let added = allow_host_always(&file, &host).map_err(|error| error.to_string());
        let after = fs::read_to_string(&file).unwrap_or_default();
        let left = fs::read_dir(directory.path()).expect("it is there").count();
        assert!(left <= 1, "a temporary file is left");
        if !before.is_empty() {
            let mode = fs::metadata(&file).expect("it is there").permissions().mode();
            assert_eq!(mode & 0o777, 0o640);
        }
        match added {
            Ok(()) => Ok(after),
            Err(error) => {
                assert_eq!(after, before, "a failure changes nothing");
                Err(error)
            }
        }
    }

    #[test]
    fn an_allowed_host_is_added_and_all_else_stays() {
        let table = [
            ("", "[commands.network]\nallow = [\"a.org:22\"]\n"),
            (
                "modes = [\"ask\"] # mine",
                "modes = [\"ask\"] # mine\n\n[commands.network]\nallow = [\"a.org:22\"]\n",
            ),
            (
                "# one\n[commands.network] # two\nunlisted = \"ask\"\n\n[read]\n",
                "# one\n[commands.network] # two\nallow = [\"a.org:22\"]\nunlisted = \
                    \"ask\"\n\n[read]\n",
            ),
            (
                "[commands.network]\nallow = [ # first\n  \"b.org\", # second\n]\n",
                "[commands.network]\nallow = [\"a.org:22\",  # first\n  \"b.org\", # second\n]\n",
            ),
            ("[commands.network]\nallow = []\n", "[commands.network]\nallow = [\"a.org:22\"]\n"),
            (
                "[commands]\nnetwork = { allow = [\"b.org\"] }\n",
                "[commands]\nnetwork = { allow = [\"a.org:22\", \"b.org\"] }\n",
            ),
            (
                "[commands]\nnetwork.allow = [\"b.org\"]\n",
                "[commands]\nnetwork.allow = [\"a.org:22\", \"b.org\"]\n",
            ),
            ("[commands.network]", "[commands.network]\nallow = [\"a.org:22\"]\n"),
        ];
        for (before, expected) in table {
            assert_eq!(add(before, "a.org:22").as_deref(), Ok(expected), "{before}");
            assert_eq!(add(expected, "a.org:22").as_deref(), Ok(expected), "again: {before}");
        }
    }

    #[test]
    fn a_file_in_another_form_is_not_changed() {
        for before in [
            "[commands]\nnetwork = true\n",
            "[commands]\nnetwork = false\n",
            "[commands]\nnetwork = { unlisted = \"ask\" }\n",
            "[commands]\nnetwork.unlisted = \"ask\"\n",
            "# [commands.network]\n[commands]\nnetwork.deny = []\n",
        ] {
            let error = add(before, "a.org").expect_err(before);
            assert!(error.contains("has a form that the program does not change"), "{error}");
        }
        assert!(add("unknown = 1\n", "a.org").is_err());
    }

    #[test]
    fn a_link_to_the_file_stays_a_link() {
        let directory = tempfile::tempdir().expect("a directory");
        let (real, link) = (directory.path().join("real.toml"), directory.path().join("link.toml"));
        fs::write(&real, "# kept\n").expect("it is written");
        std::os::unix::fs::symlink(&real, &link).expect("it is made");
        allow_host_always(&link, &HostAddress::parse("a.org").expect("a host")).expect("added");
        assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
        let text = fs::read_to_string(&real).expect("it is there");
        assert_eq!(text, "# kept\n\n[commands.network]\nallow = [\"a.org\"]\n");
    }
}
