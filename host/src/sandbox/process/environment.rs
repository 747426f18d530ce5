//! The environment of a command: built from a list, not inherited, so that no key of the user's
//! gets into it.

use std::ffi::OsString;

/// What commands are given of the user's environment: what finds programs and tools their files,
/// and the language.
const PASSED_VARIABLES: &[&str] = &[
    "CARGO_HOME",
    "GOPATH",
    "GOROOT",
    "HOME",
    "JAVA_HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "NVM_DIR",
    "PATH",
    "PYENV_ROOT",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SHELL",
    "TMPDIR",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
];

/// The locale categories of POSIX and glibc. Other names that begin with `LC_` may hold a secret.
const LOCALE: &[&str] = &[
    "LC_ADDRESS",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NAME",
    "LC_NUMERIC",
    "LC_PAPER",
    "LC_TELEPHONE",
    "LC_TIME",
];

/// Picks what is passed on, and adds what makes programs behave without a terminal.
pub(in crate::sandbox) fn command_environment(
    own: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let passes = |name: &OsString| {
        name.to_str().is_some_and(|name| PASSED_VARIABLES.contains(&name) || LOCALE.contains(&name))
    };
    let mut all: Vec<_> = own.filter(|(name, _)| passes(name)).collect();
    for (name, value) in [
        ("TERM", "dumb"),
        ("PAGER", "cat"),
        ("GIT_PAGER", "cat"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("NO_COLOR", "1"),
    ] {
        all.push((name.into(), value.into()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r114_keys_do_not_reach_a_command() {
        let own = [
            ("PATH", "/bin"),
            ("OPENAI_API_KEY", "sk-1"),
            ("LC_ALL", "C"),
            ("LC_TOKEN", "x"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("LD_PRELOAD", "y"),
        ];
        let given =
            command_environment(own.iter().map(|(name, value)| (name.into(), value.into())));
        let names: Vec<_> = given.iter().filter_map(|(name, _)| name.to_str()).collect();
        assert_eq!(
            names,
            ["PATH", "LC_ALL", "TERM", "PAGER", "GIT_PAGER", "GIT_TERMINAL_PROMPT", "NO_COLOR"]
        );
    }
}
