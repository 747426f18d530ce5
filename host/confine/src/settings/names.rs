//! The names of settings files of package managers and build tools, which are searched for in every
//! directory of a workspace. Those of git and npm are protected paths, and are found as such.

use std::path::Path;

use super::format::SettingsFormat::Words;
use super::format::SettingsFormat::{self, Code, Credentials, Git, JsonCredentials, Lines, Markup};

/// The files that count in every directory, in lowercase.
const ANYWHERE: &[(&str, SettingsFormat)] = &[
    (".bunfig.toml", Lines),
    (".condarc", Lines),
    (".curlrc", Lines),
    (".gemrc", Lines),
    (".hgrc", Lines),
    (".jvmopts", Words),
    (".lfsconfig", Git),
    (".mavenrc", Words),
    (".mill-jvm-opts", Words),
    (".mise.toml", Lines),
    (".pdm.toml", Lines),
    (".rtx.toml", Lines),
    (".sbtopts", Words),
    (".terraformrc", Lines),
    (".tofurc", Lines),
    (".wgetrc", Lines),
    (".yarnrc", Lines),
    (".yarnrc.yml", Lines),
    ("auth.json", JsonCredentials),
    ("bunfig.toml", Lines),
    ("gemrc", Lines),
    ("gradle.properties", Lines),
    // `.hg/hgrc` of Mercurial.
    ("hgrc", Lines),
    ("hgrc-not-shared", Lines),
    ("mise.toml", Lines),
    ("nuget.config", Markup),
    ("pdm.toml", Lines),
    ("pip.conf", Lines),
    ("pip.ini", Lines),
    ("pnpm-workspace.yaml", Lines),
    ("poetry.toml", Lines),
    ("settings.xml", Markup),
    ("terraform.rc", Lines),
    ("tofu.rc", Lines),
    ("uv.toml", Lines),
];

/// The files that count in a directory whose path ends like this, in lowercase.
const IN_FOLDER: &[(&str, &str, SettingsFormat)] = &[
    (".bundle", "config", Lines),
    (".cabal", "config", Lines),
    ("cabal", "config", Lines),
    ("go", "env", Lines),
    ("mise", "config.toml", Lines),
    (".mise", "config.toml", Lines),
    (".mvn", "jvm.config", Words),
    (".mvn", "maven.config", Words),
    ("pnpm", "rc", Lines),
    ("pypoetry", "auth.toml", Credentials),
    ("pypoetry", "config.toml", Lines),
    ("pdm", "config.toml", Lines),
];

/// Returns the format of a file by its name and its directory, or `None` if it is not listed.
pub(super) fn listed_format(folder: &str, name: &str) -> Option<SettingsFormat> {
    if let Some((_, format)) = ANYWHERE.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)) {
        return Some(*format);
    }
    let in_folder = IN_FOLDER
        .iter()
        .find(|(end, known, _)| name.eq_ignore_ascii_case(known) && ends_with_folder(folder, end));
    if let Some((.., format)) = in_folder {
        return Some(*format);
    }
    if is_bazel(name) {
        return Some(Words);
    }
    let is_mise = is_between(name, "mise.", ".toml") || is_between(name, ".mise.", ".toml");
    if is_mise || is_between(name, "config.", ".toml") && ends_with_folder(folder, "mise") {
        return Some(Lines);
    }
    let is_gradle = has_end(name, ".gradle") || has_end(name, ".gradle.kts");
    let is_of_user =
        || [".gradle", ".gradle/init.d"].iter().any(|end| ends_with_folder(folder, end));
    (is_gradle && is_of_user()).then_some(Code)
}

/// Returns whether a workspace file with this name is listed.
pub(super) fn is_listed(folder: &Path, name: &str) -> bool {
    folder.to_str().is_some_and(|folder| listed_format(folder, name).is_some())
}

/// Returns whether a path ends with these components. Ignores case, because the file system may.
pub(super) fn ends_with_folder(folder: &str, end: &str) -> bool {
    has_end(folder, end) && {
        let at = folder.len() - end.len();
        at == 0 || folder.as_bytes()[at - 1] == b'/'
    }
}

/// Returns whether Bazel may read options from a file with this name: `.bazelrc`, `ci.bazelrc` or
/// `.bazelrc.user`.
fn is_bazel(name: &str) -> bool {
    has_end(name, "bazelrc")
        || name.get(..9).is_some_and(|start| start.eq_ignore_ascii_case(".bazelrc."))
        || name.get(..9).is_some_and(|start| start.eq_ignore_ascii_case(".bazelrc-"))
}

fn has_end(text: &str, end: &str) -> bool {
    let at = text.len().checked_sub(end.len());
    at.and_then(|at| text.get(at..)).is_some_and(|rest| rest.eq_ignore_ascii_case(end))
}

fn is_between(name: &str, start: &str, end: &str) -> bool {
    name.len() > start.len() + end.len()
        && name.get(..start.len()).is_some_and(|part| part.eq_ignore_ascii_case(start))
        && has_end(name, end)
}
