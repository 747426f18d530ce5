//! Running the programs of a toolchain.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A component could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A program that has to be there is not.
    #[error("{} is not installed, and building in {} needs it\nhint: {}", .0.program, .0.language, .0.hint)]
    Missing(BuildPrerequisite),
    /// A program that has to be newer.
    #[error("{} {found} is too old: building in {} needs {}.{} or newer\nhint: {}",
        required.program, required.language, required.min_version.0, required.min_version.1, required.hint)]
    TooOld {
        /// Its version.
        found: String,
        /// What is needed.
        required: BuildPrerequisite,
    },
    /// A program failed.
    #[error("`{command_line}` failed ({status}):\n{output}")]
    Failed {
        /// As it can be typed.
        command_line: String,
        /// How it ended.
        status: String,
        /// What it printed, the last part of it.
        output: String,
    },
    /// A file cannot be read or written.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    /// The contract and the code do not fit together.
    #[error("{0}")]
    InvalidComponent(String),
}

/// A program that a build needs.
#[derive(Clone, Copy, Debug)]
pub struct BuildPrerequisite {
    /// Its name on the `PATH`.
    pub program: &'static str,
    /// The oldest version that works.
    pub min_version: (u32, u32),
    /// The language that needs it.
    pub language: &'static str,
    /// How to get it.
    pub hint: &'static str,
}

/// What every build has.
pub(super) struct PluginBuildSteps<'a> {
    pub(super) toolchains: &'a Path,
    pub(super) report: &'a dyn Fn(&str),
}

/// How much of a failed program's output is kept.
const MAX_OUTPUT_BYTES: usize = 8 << 10;

impl PluginBuildSteps<'_> {
    /// Runs a program to its end.
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

    /// A folder of the cache that `install` fills, once, whoever builds at the same time. One that
    /// was left half filled is filled anew.
    pub(super) fn ensure_installed(
        &self,
        name: &str,
        install: impl FnOnce(&Path) -> Result<(), BuildError>,
    ) -> Result<PathBuf, BuildError> {
        let folder = self.toolchains.join(name);
        let complete = folder.join(".complete");
        if complete.exists() {
            return Ok(folder);
        }
        let _installing = self.lock_install(name)?;
        // By whoever was at it before.
        if complete.exists() {
            return Ok(folder);
        }
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|error| BuildError::Io(folder.clone(), error))?;
        }
        fs::create_dir_all(&folder).map_err(|error| BuildError::Io(folder.clone(), error))?;
        (self.report)(&format!("installing {name} (once) …"));
        install(&folder)?;
        fs::write(&complete, "").map_err(|error| BuildError::Io(complete, error))?;
        Ok(folder)
    }

    /// Waits until no other process installs this. The lock goes with the file, also when this
    /// process is killed.
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

    /// A Python environment with a package of the language's registry, at its version; its
    /// interpreter.
    pub(super) fn python_environment(
        &self,
        language: &'static str,
        package: &str,
    ) -> Result<PathBuf, BuildError> {
        let folder = self.ensure_installed(package, |folder| {
            let python = BuildPrerequisite {
                program: "python3",
                min_version: (3, 9),
                language,
                hint: "install Python 3.9 or newer with its venv module (Debian: `apt-get update \
                    && apt-get install python3-venv`)",
            };
            python.check_version(&["--version"])?;
            // Debian has the program without these modules.
            python.check_version(&[
                "-c",
                "import ensurepip, platform, venv; \
                print(platform.python_version())",
            ])?;
            self.run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
            let pip = folder.join("bin/python");
            self.run(Command::new(pip).args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                package,
            ]))
        })?;
        Ok(folder.join("bin/python"))
    }
}

impl BuildPrerequisite {
    /// Finds that the program is there and new enough. The arguments make it print its version.
    pub(super) fn check_version(self, arguments: &[&str]) -> Result<(), BuildError> {
        let output = Command::new(self.program)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|_| BuildError::Missing(self))?;
        if !output.status.success() {
            return Err(BuildError::Missing(self));
        }
        let said = String::from_utf8_lossy(&output.stdout);
        match parse_version(&said) {
            Some((found, numbers)) if numbers < self.min_version => {
                Err(BuildError::TooOld { found, required: self })
            }
            // One that says nothing of its version has to show what it can do.
            Some(_) | None => Ok(()),
        }
    }
}

/// The first version in a text, and its first two numbers.
fn parse_version(said: &str) -> Option<(String, (u32, u32))> {
    said.split(|c: char| !c.is_ascii_digit() && c != '.').find_map(|text| {
        let mut numbers = text.split('.').map(str::parse);
        Some((text.to_owned(), (numbers.next()?.ok()?, numbers.next()?.ok()?)))
    })
}

/// The command as it can be typed.
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
    fn a_failed_program_is_told_with_its_line_and_what_it_said() {
        let said = std::cell::RefCell::new(Vec::new());
        let steps = PluginBuildSteps {
            toolchains: Path::new("/nowhere"),
            report: &|line| said.borrow_mut().push(line.to_owned()),
        };
        let error = steps
            .run(Command::new("sh").args(["-c", "echo no luck >&2; exit 3"]).env("A", "b c"))
            .unwrap_err()
            .to_string();
        assert_eq!(said.take(), ["A='b c' sh -c 'echo no luck >&2; exit 3'"]);
        assert!(error.contains("exit status: 3") && error.ends_with("no luck"), "{error}");
    }

    #[test]
    fn a_program_that_is_missing_or_too_old_is_named_with_what_helps() {
        let needed = |program, oldest| BuildPrerequisite {
            program,
            min_version: oldest,
            language: "Go",
            hint: "get a newer one",
        };
        let error = needed("no-such-program", (1, 0))
            .check_version(&["--version"])
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "no-such-program is not installed, and building in Go needs it\nhint: get a newer one"
        );
        let said = |text: &'static str| needed("echo", (1, 27)).check_version(&[text]);
        let error = said("go version go1.24.9 linux/amd64").unwrap_err().to_string();
        assert_eq!(
            error,
            "echo 1.24.9 is too old: building in Go needs 1.27 or newer\nhint: get a newer one"
        );
        assert!(
            said("go version go1.27.3 linux/amd64").is_ok()
                && said("v1.100.0").is_ok()
                && said("v2.0.0").is_ok()
        );
        assert!(needed("false", (1, 0)).check_version(&[]).is_err());
    }

    #[test]
    fn what_was_left_half_installed_is_installed_anew() {
        let folder = tempfile::tempdir().unwrap();
        let steps = PluginBuildSteps { toolchains: folder.path(), report: &|_| {} };
        let broken = || BuildError::InvalidComponent("no network".into());
        let half = steps.ensure_installed("tool-1", |folder| {
            fs::write(folder.join("half"), "").unwrap();
            Err(broken())
        });
        assert!(half.is_err());
        let whole = steps.ensure_installed("tool-1", |folder| {
            assert!(!folder.join("half").exists());
            Ok(())
        });
        assert!(whole.is_ok());
        assert!(steps.ensure_installed("tool-1", |_| Err(broken())).is_ok());
    }

    #[test]
    fn builds_at_the_same_time_install_once() {
        use std::sync::atomic::{AtomicUsize, Ordering};

        let folder = tempfile::tempdir().unwrap();
        let (installs, builds) = (AtomicUsize::new(0), std::sync::Barrier::new(4));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let steps = PluginBuildSteps { toolchains: folder.path(), report: &|_| {} };
                    builds.wait();
                    let installed = steps.ensure_installed("tool-1", |folder| {
                        installs.fetch_add(1, Ordering::SeqCst);
                        fs::write(folder.join("tool"), "").unwrap();
                        // Long enough for the others to come by.
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
