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
    #[error("{program} is not installed, and building in {language} needs it. {remedy}")]
    Missing {
        /// Which.
        program: &'static str,
        /// For what.
        language: &'static str,
        /// How to get it.
        remedy: &'static str,
    },
    /// A program failed.
    #[error("`{line}` failed ({status}):\n{output}")]
    Failed {
        /// As it can be typed.
        line: String,
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
    Component(String),
}

/// What every build has.
pub(super) struct Steps<'a> {
    pub(super) toolchains: &'a Path,
    pub(super) say: &'a dyn Fn(&str),
}

/// How much of a failed program's output is kept.
const OUTPUT: usize = 8 << 10;

impl Steps<'_> {
    /// Runs a program to its end.
    pub(super) fn run(&self, command: &mut Command) -> Result<(), BuildError> {
        let line = line(command);
        (self.say)(&line);
        let output = command.stdin(Stdio::null()).output().map_err(|error| BuildError::Failed {
            line: line.clone(),
            status: error.to_string(),
            output: String::new(),
        })?;
        if output.status.success() {
            return Ok(());
        }
        let text = [output.stdout, output.stderr].map(|stream| String::from_utf8_lossy(&stream).into_owned()).concat();
        let mut from = text.len().saturating_sub(OUTPUT);
        while !text.is_char_boundary(from) {
            from += 1;
        }
        Err(BuildError::Failed { line, status: output.status.to_string(), output: text[from..].trim().to_owned() })
    }

    /// A folder of the cache that `install` fills, once, whoever builds at the same time. One that was left half filled is
    /// filled anew.
    pub(super) fn installed(&self, name: &str, install: impl FnOnce(&Path) -> Result<(), BuildError>) -> Result<PathBuf, BuildError> {
        let folder = self.toolchains.join(name);
        let complete = folder.join(".complete");
        if complete.exists() {
            return Ok(folder);
        }
        let _installing = self.alone(name)?;
        // By whoever was at it before.
        if complete.exists() {
            return Ok(folder);
        }
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|error| BuildError::Io(folder.clone(), error))?;
        }
        fs::create_dir_all(&folder).map_err(|error| BuildError::Io(folder.clone(), error))?;
        (self.say)(&format!("installing {name} (once) …"));
        install(&folder)?;
        fs::write(&complete, "").map_err(|error| BuildError::Io(complete, error))?;
        Ok(folder)
    }

    /// Waits until no other process installs this. The lock goes with the file, also when this process is killed.
    fn alone(&self, name: &str) -> Result<File, BuildError> {
        let path = self.toolchains.join(format!("{name}.lock"));
        let lock = || {
            fs::create_dir_all(self.toolchains)?;
            let file = File::options().write(true).create(true).truncate(false).open(&path)?;
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => (self.say)(&format!("another build installs {name}; waiting for it …")),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            file.lock()?;
            Ok(file)
        };
        lock().map_err(|error| BuildError::Io(path.clone(), error))
    }

    /// A Python environment with packages of PyPI, each with its version; its interpreter.
    pub(super) fn python(&self, language: &'static str, package: &str) -> Result<PathBuf, BuildError> {
        let folder = self.installed(package, |folder| {
            let missing = BuildError::Missing {
                program: "python3",
                language,
                remedy: "Install Python 3.9 or newer with its venv module (Debian: `apt install python3-venv`).",
            };
            require("python3", missing)?;
            self.run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
            let pip = folder.join("bin/python");
            self.run(Command::new(pip).args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]))
        })?;
        Ok(folder.join("bin/python"))
    }
}

/// Whether a program can be started; if not, `otherwise`.
pub(super) fn require(program: &str, otherwise: BuildError) -> Result<(), BuildError> {
    let found = Command::new(program).arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_ok() { Ok(()) } else { Err(otherwise) }
}

/// The command as it can be typed.
fn line(command: &Command) -> String {
    let quoted = |part: &OsStr| {
        let part = part.to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,+@%=".contains(c);
        if !part.is_empty() && part.chars().all(plain) { part.into_owned() } else { format!("'{}'", part.replace('\'', "'\\''")) }
    };
    let set = command.get_envs().filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), quoted(value?))));
    set.chain(std::iter::once(command.get_program()).chain(command.get_args()).map(quoted)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_program_is_told_with_its_line_and_what_it_said() {
        let said = std::cell::RefCell::new(Vec::new());
        let steps = Steps { toolchains: Path::new("/nowhere"), say: &|line| said.borrow_mut().push(line.to_owned()) };
        let error = steps.run(Command::new("sh").args(["-c", "echo no luck >&2; exit 3"]).env("A", "b c")).unwrap_err().to_string();
        assert_eq!(said.take(), ["A='b c' sh -c 'echo no luck >&2; exit 3'"]);
        assert!(error.contains("exit status: 3") && error.ends_with("no luck"), "{error}");
    }

    #[test]
    fn what_was_left_half_installed_is_installed_anew() {
        let folder = tempfile::tempdir().unwrap();
        let steps = Steps { toolchains: folder.path(), say: &|_| {} };
        let broken = || BuildError::Component("no network".into());
        let half = steps.installed("tool-1", |folder| {
            fs::write(folder.join("half"), "").unwrap();
            Err(broken())
        });
        assert!(half.is_err());
        let whole = steps.installed("tool-1", |folder| {
            assert!(!folder.join("half").exists());
            Ok(())
        });
        assert!(whole.is_ok());
        assert!(steps.installed("tool-1", |_| Err(broken())).is_ok());
    }

    #[test]
    fn builds_at_the_same_time_install_once() {
        use std::sync::atomic::{AtomicUsize, Ordering};

        let folder = tempfile::tempdir().unwrap();
        let (installs, builds) = (AtomicUsize::new(0), std::sync::Barrier::new(4));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let steps = Steps { toolchains: folder.path(), say: &|_| {} };
                    builds.wait();
                    let installed = steps.installed("tool-1", |folder| {
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
