//! Finding what can compile Rust to a component on this machine.
//!
//! Either some `rustc` has the standard library of the target, as after `rustup target add`. Or
//! Debian's packages are there, which have its sources and a C library for it: then cargo builds
//! the standard library too. Debian's files are used where they lie; what rustc wants to find
//! elsewhere is linked into a folder of our own.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compile::TARGET;

const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_STD: &str = "/usr/lib/rustlib/src/rust/library";
const DEBIAN_LIBC: &str = "/usr/lib/wasm32-wasi";
/// What Debian calls the linker, best first; rust-lld is a link that leads nowhere without the
/// `lld` it was built with.
const DEBIAN_LINKERS: [&str; 2] = ["/usr/bin/rust-lld", "/usr/bin/wasm-ld"];
/// The C library and how a program starts with it; rustc looks for them in its `self-contained`
/// folder.
const LIBC_FILES: [&str; 3] = ["crt1-command.o", "crt1-reactor.o", "libc.a"];

/// The oldest compiler that the SDK and the plugins are written for.
const OLDEST: &str = env!("CARGO_PKG_RUST_VERSION");

/// The lists come first: those of an installation medium have older packages than the archive of
/// security updates.
const INSTALL: &str = "\
  with rustup:  rustup update && rustup target add wasm32-wasip2
  on Debian:    apt-get update && apt-get install rustc-web cargo-web rust-web-src rust-web-llvm \
  wasi-libc
                and a linker: `lld-22`, or any rustup toolchain, which includes one";

/// A way to compile to the target.
#[derive(Clone, Debug)]
pub struct Toolchain {
    pub(crate) cargo: PathBuf,
    pub(crate) rustc: PathBuf,
    /// Where this rustc keeps its files.
    pub(crate) sysroot: PathBuf,
    /// As it calls itself: `rustc 1.96.0 (…)`.
    pub(crate) version: String,
    /// Set if cargo is to build the standard library.
    pub(crate) debian: Option<Debian>,
}

/// What Debian's packages need besides.
#[derive(Clone, Debug)]
pub(crate) struct Debian {
    pub(crate) linker: PathBuf,
}

impl Toolchain {
    /// The first that is complete.
    pub fn find(root: &Path) -> Result<Self, String> {
        let rustc = env::var_os("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from);
        let cargo = env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
        let debian = || Self::with_std(root, DEBIAN_RUSTC.into(), DEBIAN_CARGO.into());
        let candidates: [&dyn Fn() -> Option<Self>; 3] =
            [&|| Self::with_std(root, rustc.clone(), cargo.clone()), &debian, &|| {
                Self::debian(root)
            }];
        Self::choose(candidates.into_iter().filter_map(|candidate| candidate()))
    }

    /// The first that is new enough.
    fn choose(candidates: impl Iterator<Item = Self>) -> Result<Self, String> {
        let mut old: Vec<String> = Vec::new();
        for candidate in candidates {
            if numbers(&candidate.version) >= numbers(OLDEST) {
                return Ok(candidate);
            }
            old.push(format!("{} ({})", candidate.version, candidate.rustc.display()));
        }
        old.dedup();
        Err(match old.as_slice() {
            [] => format!(
                "no Rust toolchain on this machine can build for {TARGET}\nhint: install \
                    one:\n{INSTALL}"
            ),
            old => {
                format!(
                    "too old to build for {TARGET}, which needs Rust {OLDEST}: {}\nhint: get a \
                        newer one:\n{INSTALL}",
                    old.join(", ")
                )
            }
        })
    }

    /// For people, and for the record.
    pub fn description(&self) -> String {
        let std = if self.debian.is_some() {
            "std built from source with Debian's wasi-libc"
        } else {
            "its own std"
        };
        format!("{}, {std}", self.version)
    }

    fn with_std(root: &Path, rustc: PathBuf, cargo: PathBuf) -> Option<Self> {
        let libraries = ask(root, &rustc, &["--print", "target-libdir", "--target", TARGET])?;
        let mut files = fs::read_dir(libraries).ok()?.flatten();
        files.any(|file| file.file_name().to_string_lossy().starts_with("libstd-")).then_some(())?;
        Self::new(root, rustc, cargo, None)
    }

    fn debian(root: &Path) -> Option<Self> {
        let needed = [DEBIAN_CARGO, DEBIAN_STD].map(PathBuf::from);
        let libc = LIBC_FILES.map(|file| Path::new(DEBIAN_LIBC).join(file));
        needed.iter().chain(&libc).all(|path| path.exists()).then_some(())?;
        let linker = DEBIAN_LINKERS.map(PathBuf::from).into_iter().find(|path| path.exists());
        let linker = linker.or_else(|| linker_of_rustup(root))?;
        Self::new(root, DEBIAN_RUSTC.into(), DEBIAN_CARGO.into(), Some(Debian { linker }))
    }

    fn new(root: &Path, rustc: PathBuf, cargo: PathBuf, debian: Option<Debian>) -> Option<Self> {
        let sysroot = ask(root, &rustc, &["--print", "sysroot"])?.into();
        let version = ask(root, &rustc, &["--version"])?;
        Some(Self { cargo, rustc, sysroot, version, debian })
    }
}

impl Debian {
    /// Lays out what rustc and its linker look for, as links, and returns the folder that is to be
    /// the sysroot and the one that is to be on the `PATH`.
    pub(crate) fn lay_out(&self, within: &Path) -> std::io::Result<(PathBuf, PathBuf)> {
        let sysroot = within.join("sysroot");
        let libraries = sysroot.join("lib/rustlib").join(TARGET).join("lib/self-contained");
        let programs = within.join("bin");
        fs::create_dir_all(&libraries)?;
        fs::create_dir_all(&programs)?;
        for file in LIBC_FILES {
            link(&Path::new(DEBIAN_LIBC).join(file), &libraries.join(file))?;
        }
        // lld takes its name for what it is to be.
        link(&self.linker, &programs.join("wasm-ld"))?;
        Ok((sysroot, programs))
    }
}

/// rustup's toolchains bring a linker for WebAssembly along, whether they have its standard library
/// or not.
fn linker_of_rustup(root: &Path) -> Option<PathBuf> {
    let rustc = Path::new("rustc");
    let sysroot = PathBuf::from(ask(root, rustc, &["--print", "sysroot"])?);
    let verbose = ask(root, rustc, &["-vV"])?;
    let host = verbose.lines().find_map(|line| line.strip_prefix("host: "))?;
    let linker = sysroot.join("lib/rustlib").join(host).join("bin/gcc-ld/wasm-ld");
    linker.exists().then_some(linker)
}

fn ask(root: &Path, program: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).current_dir(root).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// The numbers of the first version in a text; empty if there is none.
fn numbers(text: &str) -> Vec<u32> {
    let version =
        text.split(|c: char| !c.is_ascii_digit() && c != '.').find(|part| part.contains('.'));
    version.unwrap_or_default().split('.').map_while(|part| part.parse().ok()).collect()
}

#[cfg(unix)]
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    if fs::read_link(to).is_ok_and(|target| target == from) {
        return Ok(());
    }
    if to.symlink_metadata().is_ok() {
        fs::remove_file(to)?;
    }
    std::os::unix::fs::symlink(from, to)
}

#[cfg(not(unix))]
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::copy(from, to).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toolchain(version: &str) -> Toolchain {
        let path = PathBuf::from(format!("/{version}/rustc"));
        Toolchain {
            cargo: path.clone(),
            rustc: path,
            sysroot: PathBuf::new(),
            version: version.to_owned(),
            debian: None,
        }
    }

    #[test]
    fn a_compiler_that_is_too_old_is_passed_over_and_named() -> Result<(), String> {
        let (old, new) =
            (toolchain("rustc 1.85.0 (4d91de4e4 2025-02-17)"), toolchain("rustc 1.100.2 (x)"));
        let chosen = Toolchain::choose([old.clone(), new.clone()].into_iter())?;
        assert_eq!(chosen.version, new.version);
        let problem = Toolchain::choose([old].into_iter()).err().unwrap_or_default();
        assert!(
            problem.contains("rustc 1.85.0")
                && problem.contains(OLDEST)
                && problem.contains("apt-get update &&"),
            "{problem}"
        );
        let problem = Toolchain::choose(std::iter::empty()).err().unwrap_or_default();
        assert!(
            problem.starts_with("no Rust toolchain") && problem.contains("rustup target add"),
            "{problem}"
        );
        Ok(())
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(numbers("rustc 1.96.0 (abc 2026-05-01)"), [1, 96, 0]);
        assert_eq!(numbers("rustc 1.97.0-nightly (abc)"), [1, 97, 0]);
        assert!(numbers("1.100") > numbers("1.95") && numbers("1.95.0") >= numbers("1.95"));
        assert!(numbers("no version").is_empty());
    }
}
