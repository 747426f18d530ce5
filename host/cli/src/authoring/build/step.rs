//! Running and installing the programs of a toolchain.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An error of a plugin build.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BuildError {
    /// A required program is not installed.
    #[error(
        "{} is not installed, but a build in {} needs it\nhint: {}",
        .0.program, .0.language, .0.hint
    )]
    Missing(BuildPrerequisite),
    /// A required program is older than its minimum version.
    #[error("{} {found} is too old: a build in {} needs {}.{} or newer\nhint: {}",
        required.program, required.language, required.min_version.0, required.min_version.1,
        required.hint)]
    TooOld {
        /// The version that is installed.
        found: String,
        /// The program and its minimum version.
        required: BuildPrerequisite,
    },
    /// A program could not be started or failed.
    #[error("`{command_line}` failed ({status}):\n{output}")]
    Failed {
        /// The command line, quoted for a shell.
        command_line: String,
        /// The exit status, or why it did not start.
        status: String,
        /// The end of its output, at most 8 KiB.
        output: String,
    },
    /// A file cannot be read or written.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    /// The code does not match the contract, or the module cannot become a component.
    #[error("{0}")]
    InvalidComponent(String),
}

/// A program that a build needs, with its minimum version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BuildPrerequisite {
    /// The program's name on the `PATH`.
    pub program: &'static str,
    /// The minimum version: major and minor number.
    pub min_version: (u32, u32),
    /// The plugin language that needs the program.
    pub language: &'static str,
    /// Instructions for installing the program.
    pub hint: &'static str,
}

/// Helpers shared by all builds: running programs and installing toolchains in the cache.
pub(super) struct PluginBuildSteps<'a> {
    pub(super) toolchains: &'a Path,
    pub(super) report: &'a dyn Fn(&str),
}

/// Maximum number of bytes of a failed program's output in an error.
const MAX_OUTPUT_BYTES: usize = 8 << 10;

impl PluginBuildSteps<'_> {
    /// Runs a program and waits until it exits.
    pub(super) fn run(&self, command: &mut Command) -> Result<(), BuildError> {
        let line = format_command(command);
        (self.report)(&line);
        let output = command.stdin(Stdio::null()).output().map_err(|error| BuildError::Failed {
            command_line: line.clone(),
            status: error.to_string(),
            output: String::new(),
        })?;
        if output.status.success() {
            return Ok(());
        }
        let text = [output.stdout, output.stderr]
            .map(|stream| String::from_utf8_lossy(&stream).into_owned())
            .concat();
        let mut from = text.len().saturating_sub(MAX_OUTPUT_BYTES);
        while !text.is_char_boundary(from) {
            from += 1;
        }
        Err(BuildError::Failed {
            command_line: line,
            status: output.status.to_string(),
            output: text[from..].trim().to_owned(),
        })
    }

    /// Returns a cache directory that `install` fills once, even if several builds need it at the
    /// same time. A partial installation is removed and repeated.
    pub(super) fn ensure_installed(
        &self,
        name: &str,
        install: impl FnOnce(&Path) -> Result<(), BuildError>,
    ) -> Result<PathBuf, BuildError> {
        let directory = self.toolchains.join(name);
        let complete = directory.join(".complete");
        if complete.exists() {
            return Ok(directory);
        }
        let _installing = self.lock_install(name)?;
        // Another build may have completed it meanwhile.
        if complete.exists() {
            return Ok(directory);
        }
        if directory.exists() {
            fs::remove_dir_all(&directory)
                .map_err(|error| BuildError::Io(directory.clone(), error))?;
        }
        fs::create_dir_all(&directory).map_err(|error| BuildError::Io(directory.clone(), error))?;
        (self.report)(&format!("installing {name} (once) …"));
        install(&directory)?;
        fs::write(&complete, "").map_err(|error| BuildError::Io(complete, error))?;
        Ok(directory)
    }

    /// Waits until no other process installs `name`. Dropping the file releases the lock, as does
    /// the end of this process.
    fn lock_install(&self, name: &str) -> Result<File, BuildError> {
        let path = self.toolchains.join(format!("{name}.lock"));
        let lock = || {
            fs::create_dir_all(self.toolchains)?;
            let file = File::options().write(true).create(true).truncate(false).open(&path)?;
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => {
                    (self.report)(&format!("another build installs {name}; waiting for it …"))
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
            file.lock()?;
            Ok(file)
        };
        lock().map_err(|error| BuildError::Io(path.clone(), error))
    }

    /// Returns the interpreter of a Python environment in which `package` is installed.
    pub(super) fn python_environment(
        &self,
        language: &'static str,
        package: &str,
    ) -> Result<PathBuf, BuildError> {
        let directory = self.ensure_installed(package, |directory| {
            let python = BuildPrerequisite {
                program: "python3",
                min_version: (3, 9),
                language,
                hint: "install Python 3.9 or newer with its venv module (Debian: `apt-get update \
                    && apt-get install python3-venv`)",
            };
            python.check_version(&["--version"])?;
            // Debian packages Python without these modules.
            python.check_version(&[
                "-c",
                "import ensurepip, platform, venv; \
                print(platform.python_version())",
            ])?;
            self.run(Command::new("python3").args(["-m", "venv"]).arg(directory))?;
            let pip = directory.join("bin/python");
            self.run(Command::new(pip).args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                package,
            ]))
        })?;
        Ok(directory.join("bin/python"))
    }
}

impl BuildPrerequisite {
    /// Checks that the program is installed and new enough. `arguments` make it print its version.
    pub(super) fn check_version(self, arguments: &[&str]) -> Result<(), BuildError> {
        let output = Command::new(self.program)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|_| BuildError::Missing(self))?;
        if !output.status.success() {
            return Err(BuildError::Missing(self));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        match parse_version(&text) {
            Some((found, numbers)) if numbers < self.min_version => {
                Err(BuildError::TooOld { found, required: self })
            }
            // A program that prints no version is assumed to work.
            Some(_) | None => Ok(()),
        }
    }
}

/// Finds the first version number in a text. Returns it with its first two numbers.
fn parse_version(text: &str) -> Option<(String, (u32, u32))> {
    text.split(|c: char| !c.is_ascii_digit() && c != '.').find_map(|word| {
        let mut numbers = word.split('.').map(str::parse);
        Some((word.to_owned(), (numbers.next()?.ok()?, numbers.next()?.ok()?)))
    })
}

/// Formats a command for a shell, with the environment variables that were set.
fn format_command(command: &Command) -> String {
    let quoted = |part: &OsStr| {
        let part = part.to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,+@%=".contains(c);
        if !part.is_empty() && part.chars().all(plain) {
            part.into_owned()
        } else {
            format!("'{}'", part.replace('\'', "'\\''"))
        }
    };
    let set = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), quoted(value?))));
    set.chain(std::iter::once(command.get_program()).chain(command.get_args()).map(quoted))
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_contains_the_command_line_and_the_output() {
        let reported = std::cell::RefCell::new(Vec::new());
        let steps = PluginBuildSteps {
            toolchains: Path::new("/nowhere"),
            report: &|line| reported.borrow_mut().push(line.to_owned()),
        };
        let error = steps
            .run(Command::new("sh").args(["-c", "echo no luck >&2; exit 3"]).env("A", "b c"))
            .unwrap_err()
            .to_string();
        assert_eq!(reported.take(), ["A='b c' sh -c 'echo no luck >&2; exit 3'"]);
        assert!(error.contains("exit status: 3") && error.ends_with("no luck"), "{error}");
    }

    #[test]
    fn a_missing_or_old_program_is_reported_with_a_hint() {
        let prerequisite = |program, min_version| BuildPrerequisite {
            program,
            min_version,
            language: "Go",
            hint: "get a newer one",
        };
        let error = prerequisite("no-such-program", (1, 0))
            .check_version(&["--version"])
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "no-such-program is not installed, but a build in Go needs it\nhint: get a newer one"
        );
        let check = |text: &'static str| prerequisite("echo", (1, 27)).check_version(&[text]);
        let error = check("go version go1.24.9 linux/amd64").unwrap_err().to_string();
        assert_eq!(
            error,
            "echo 1.24.9 is too old: a build in Go needs 1.27 or newer\nhint: get a newer one"
        );
        assert!(
            check("go version go1.27.3 linux/amd64").is_ok()
                && check("v1.100.0").is_ok()
                && check("v2.0.0").is_ok()
        );
        assert!(prerequisite("false", (1, 0)).check_version(&[]).is_err());
    }

    #[test]
    fn a_partial_installation_is_repeated() {
        let directory = tempfile::tempdir().unwrap();
        let steps = PluginBuildSteps { toolchains: directory.path(), report: &|_| {} };
        let broken = || BuildError::InvalidComponent("no network".into());
        let half = steps.ensure_installed("tool-1", |directory| {
            fs::write(directory.join("half"), "").unwrap();
            Err(broken())
        });
        assert!(half.is_err());
        let whole = steps.ensure_installed("tool-1", |directory| {
            assert!(!directory.join("half").exists());
            Ok(())
        });
        assert!(whole.is_ok());
        assert!(steps.ensure_installed("tool-1", |_| Err(broken())).is_ok());
    }

    #[test]
    fn concurrent_builds_install_once() {
        use std::sync::atomic::{AtomicUsize, Ordering};

        let directory = tempfile::tempdir().unwrap();
        let (installs, builds) = (AtomicUsize::new(0), std::sync::Barrier::new(4));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let steps = PluginBuildSteps { toolchains: directory.path(), report: &|_| {} };
                    builds.wait();
                    let installed = steps.ensure_installed("tool-1", |directory| {
                        installs.fetch_add(1, Ordering::SeqCst);
                        fs::write(directory.join("tool"), "").unwrap();
                        // Long enough for the other threads to arrive.
                        std::thread::sleep(std::time::Duration::from_millis(50));
                        Ok(())
                    });
                    assert!(installed.unwrap().join("tool").exists());
                });
            }
        });
        assert_eq!(installs.into_inner(), 1);
    }
}
