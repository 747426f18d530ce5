//! The environment of a command. It is built from a list instead of inherited, so that it contains
//! no key of the user.

use std::ffi::OsString;

/// The variables that pass from the user's environment to commands: search paths of programs and
/// tools, and the language.
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

/// The locale categories of POSIX and glibc. Other names that start with `LC_` may hold a secret.
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

/// Selects the variables to pass on, and adds variables that make programs behave without a
/// terminal. `named` are the names of further variables that the user chose to pass on.
pub(crate) fn command_environment(
    own: &[(OsString, OsString)],
    named: &[String],
) -> Vec<(OsString, OsString)> {
    let passes = |name: &OsString| {
        name.to_str().is_some_and(|name| {
            PASSED_VARIABLES.contains(&name)
                || LOCALE.contains(&name)
                || named.iter().any(|chosen| chosen == name)
        })
    };
    let mut all: Vec<_> = own.iter().filter(|(name, _)| passes(name)).cloned().collect();
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
        let own = own.map(|(name, value)| (name.into(), value.into()));
        let given = command_environment(&own, &[]);
        let names: Vec<_> = given.iter().filter_map(|(name, _)| name.to_str()).collect();
        assert_eq!(
            names,
            ["PATH", "LC_ALL", "TERM", "PAGER", "GIT_PAGER", "GIT_TERMINAL_PROMPT", "NO_COLOR"]
        );
        let named = command_environment(&own, &["OPENAI_API_KEY".to_owned()]);
        let has = |name: &str| named.iter().any(|(given, _)| given == name);
        assert!(has("OPENAI_API_KEY") && !has("AWS_SECRET_ACCESS_KEY") && !has("LC_TOKEN"));
    }
}
