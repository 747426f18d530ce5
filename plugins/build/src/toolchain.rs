//! Finding what can compile Rust to a component on this machine.
//!
//! Either some `rustc` has the standard library of the target, as after `rustup target add`. Or Debian's packages
//! are there, which have its sources and a C library for it: then cargo builds the standard library too. Debian's files
//! are used where they lie; what rustc wants to find elsewhere is linked into a folder of our own.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compile::TARGET;

const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_STD: &str = "/usr/lib/rustlib/src/rust/library";
const DEBIAN_LIBC: &str = "/usr/lib/wasm32-wasi";
/// What Debian calls the linker, best first; rust-lld is a link that leads nowhere without the `lld` it was built with.
const DEBIAN_LINKERS: [&str; 2] = ["/usr/bin/rust-lld", "/usr/bin/wasm-ld"];
/// The C library and how a program starts with it; rustc looks for them in its `self-contained` folder.
const LIBC_FILES: [&str; 3] = ["crt1-command.o", "crt1-reactor.o", "libc.a"];

const NOTHING_FOUND: &str = "\
nothing here can build for wasm32-wasip2. Install one of these:
  with rustup:  rustup target add wasm32-wasip2
  on Debian:    apt install rustc-web cargo-web rust-web-src rust-web-llvm wasi-libc
                and a linker: `lld-22`, or any rustup toolchain, which brings its own";

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
        Self::with_std(root, rustc, cargo)
            .or_else(|| Self::with_std(root, DEBIAN_RUSTC.into(), DEBIAN_CARGO.into()))
            .or_else(|| Self::debian(root))
            .ok_or_else(|| NOTHING_FOUND.to_owned())
    }

    /// For people, and for the record.
    pub fn description(&self) -> String {
        let std = if self.debian.is_some() { "std built from source with Debian's wasi-libc" } else { "its own std" };
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
    /// Lays out what rustc and its linker look for, as links, and returns the folder that is to be the sysroot and
    /// the one that is to be on the `PATH`.
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

/// rustup's toolchains bring a linker for WebAssembly along, whether they have its standard library or not.
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
