//! What the tests need of the machine besides a Rust toolchain. What is missing is installed where
//! that is possible, and otherwise every test that needs it fails with one line that says what to
//! install. No test passes because something is missing.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Programs, and the packages of Debian that have them.
const PROGRAMS: &[(&str, &str)] = &[("git", "git"), ("rg", "ripgrep"), ("python3", "python3")];

/// What the sandboxes of commands are tested with, which only Linux has.
const PROGRAMS_ON_LINUX: &[(&str, &str)] = &[
    ("bwrap", "bubblewrap"),
    ("cc", "gcc"),
    ("ionice", "util-linux"),
    ("ipcmk", "util-linux"),
    ("make", "make"),
    ("curl", "curl"),
    ("mkfifo", "coreutils"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("openssl", "openssl"),
    ("pip3", "python3-pip"),
    ("ps", "procps"),
    ("setpriv", "util-linux"),
    ("sshd", "openssh-server"),
    ("tar", "tar"),
];

/// Finds everything, or installs it if this is root on a Debian system.
///
/// # Panics
///
/// If something is missing, with the names of the packages.
pub fn require() {
    static FOUND: OnceLock<Result<(), String>> = OnceLock::new();
    if let Err(problem) = FOUND.get_or_init(find_or_install) {
        panic!("{problem}");
    }
}

fn find_or_install() -> Result<(), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // An ordinary user's `PATH` may lack the programs of the administrator.
    let folders: Vec<_> =
        std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]).collect();
    let folders: Vec<&Path> = folders.iter().map(AsRef::as_ref).collect();
    if missing_packages(&folders).is_empty() {
        return Ok(());
    }
    // Test programs may run at the same time; the package manager waits for its own lock.
    if rustix::process::geteuid().is_root() && Path::new("/usr/bin/apt-get").exists() {
        let apt = |arguments: &[&str]| {
            let mut command = Command::new("apt-get");
            command
                .args(["-qq", "-o", "DPkg::Lock::Timeout=300"])
                .args(arguments)
                .env("DEBIAN_FRONTEND", "noninteractive");
            command.stdin(Stdio::null()).stdout(Stdio::null()).status()
        };
        // The lists may be older than the packages, or not there yet. If this fails, so does what
        // follows.
        let _ = apt(&["update"]);
        let _ = apt(&[
            &["install", "-y", "--no-install-recommends"],
            missing_packages(&folders).as_slice(),
        ]
        .concat());
    }
    match missing_packages(&folders).as_slice() {
        [] => Ok(()),
        missing => Err(format!(
            "the tests need packages that are not installed: {0}\nhint: `apt-get install {0}`, as \
                root",
            missing.join(" ")
        )),
    }
}

/// The packages of all programs that are in none of these directories.
fn missing_packages(folders: &[&Path]) -> Vec<&'static str> {
    let on_linux = if cfg!(target_os = "linux") { PROGRAMS_ON_LINUX } else { &[] };
    let missing = |program: &str| !folders.iter().any(|folder| folder.join(program).exists());
    let mut packages: Vec<_> = PROGRAMS
        .iter()
        .chain(on_linux)
        .filter(|(program, _)| missing(program))
        .map(|(_, package)| *package)
        .collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_with_nothing_lacks_every_package_once() {
        let empty = tempfile::tempdir().expect("a directory can be made");
        let missing = missing_packages(&[empty.path()]);
        assert!(
            ["git", "python3", "ripgrep"].iter().all(|package| missing.contains(package)),
            "{missing:?}"
        );
        assert_eq!(missing.contains(&"bubblewrap"), cfg!(target_os = "linux"));
        assert_eq!(
            missing.iter().filter(|package| **package == "util-linux").count(),
            usize::from(cfg!(target_os = "linux"))
        );
        std::fs::write(empty.path().join("rg"), "").expect("it can be written");
        assert!(!missing_packages(&[empty.path()]).contains(&"ripgrep"));
    }

    #[test]
    fn the_continuous_integration_installs_what_the_tests_need() {
        let script = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("it is in the workspace")
            .join(".ci/run");
        let script = std::fs::read_to_string(script).expect("it can be read");
        let listed = script
            .lines()
            .find_map(|line| line.trim().strip_prefix("for package in "))
            .expect("packages are listed");
        // Every Debian system has these, or the compiler that builds this program brings them
        // along.
        let essential = ["coreutils", "tar", "util-linux", "gcc", "procps"];
        for (_, package) in PROGRAMS
            .iter()
            .chain(PROGRAMS_ON_LINUX)
            .filter(|(_, package)| !essential.contains(package))
        {
            assert!(
                listed.split(' ').any(|word| word.trim_end_matches(';') == *package),
                "{package} is not in: {listed}"
            );
        }
    }
}
