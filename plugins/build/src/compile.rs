//! Compiling a plugin, the same way on every machine, and keeping the component and its record.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::{Entry, Plugin, Record, Toolchain, record, sources};

pub(crate) const TARGET: &str = "wasm32-wasip2";

const PROFILE: &str = "plugin";

/// What every component is compiled with. SIMD is what makes a search in WebAssembly as fast as one
/// outside.
pub(crate) const FLAGS: [&str; 1] = ["-Ctarget-feature=+simd128"];

/// The variables that cargo and rustc may see. Everything else of theirs is for something else, and
/// much of it would change the component.
const KEPT: [&str; 7] = [
    "CARGO_HOME",
    "CARGO_HTTP_",
    "CARGO_NET_",
    "CARGO_REGISTRIES_",
    "CARGO_REGISTRY_",
    "CARGO_TERM_",
    "CARGO_SOURCE_",
];

/// A component that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// What is in the record.
    pub entry: Entry,
    /// Whether the embedded component is another one than before.
    pub changed: bool,
}

/// Builds a plugin, and renews the embedded component and its record.
///
/// With `again` it is built a second time, in that directory, and the record says whether that gave
/// the same bytes.
pub fn build(
    root: &Path,
    toolchain: &Toolchain,
    plugin: &Plugin,
    again: Option<&Path>,
) -> Result<Built, String> {
    // Before compiling, so that what changes in the meantime counts as changed.
    let sources = sources::hash(root, plugin)?;
    let component = compile(root, toolchain, plugin, &target(root).join("plugins"))?;
    let sha256 = sources::hex(&Sha256::digest(&component));

    let mut record = Record::read(root)?;
    let before = record.plugins.get(&plugin.name).filter(|before| before.sha256 == sha256);
    let changed = before.is_none();
    let reproduced = match again {
        Some(directory) => compile(root, toolchain, plugin, directory)? == component,
        None => before.is_some_and(|before| before.reproduced),
    };

    let size = component.len() as u64;
    let entry = Entry { sha256, size, sources, toolchain: toolchain.description(), reproduced };
    let path = record::component(root, &plugin.name);
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(record::directory(root)).map_err(failed)?;
    fs::write(&path, component).map_err(failed)?;
    record.plugins.insert(plugin.name.clone(), entry.clone());
    record.plugins.retain(|name, _| root.join("plugins").join(name).is_dir());
    record.write(root)?;
    Ok(Built { entry, changed })
}

/// An empty directory to build in from scratch.
pub fn scratch(root: &Path) -> Result<PathBuf, String> {
    let directory = target(root).join("plugins-again");
    match fs::remove_dir_all(&directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", directory.display()))
        }
        _ => Ok(directory),
    }
}

fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |target| root.join(target))
}

/// Runs cargo for one plugin. Several in one run would share the features of their dependencies,
/// and a component would depend on what it was built beside.
fn compile(
    root: &Path,
    toolchain: &Toolchain,
    plugin: &Plugin,
    target: &Path,
) -> Result<Vec<u8>, String> {
    let mut flags: Vec<String> = FLAGS.map(str::to_owned).into();
    flags.extend(remap(root, toolchain));
    let mut cargo = toolchain.build(root, target, flags)?;
    cargo.args(["--locked", "--profile", PROFILE, "--package", &plugin.package]);
    let status =
        cargo.status().map_err(|error| format!("{}: {error}", toolchain.cargo.display()))?;
    if !status.success() {
        return Err(format!("{}: cargo failed; see its output above", plugin.name));
    }
    let component = target
        .join(TARGET)
        .join(PROFILE)
        .join(format!("{}.wasm", plugin.package.replace('-', "_")));
    fs::read(&component).map_err(|error| format!("{}: {error}", component.display()))
}

impl Toolchain {
    /// `cargo build` for a component in a folder: for the target, with these flags for rustc, and
    /// with nothing of the environment that is meant for other builds.
    pub fn build(
        &self,
        folder: &Path,
        target: &Path,
        mut flags: Vec<String>,
    ) -> Result<Command, String> {
        let mut cargo = Command::new(&self.cargo);
        cargo.current_dir(folder).env("RUSTC", &self.rustc);
        for (name, _) in env::vars_os().filter(|(name, _)| is_foreign(name, self)) {
            cargo.env_remove(name);
        }
        cargo.args(["build", "--target", TARGET, "--target-dir"]).arg(target);
        if let Some(debian) = &self.debian {
            let (sysroot, programs) =
                debian.lay_out(target).map_err(|error| format!("{}: {error}", target.display()))?;
            flags.push(format!("--sysroot={}", sysroot.display()));
            cargo.arg("-Zbuild-std=std,panic_abort").env("RUSTC_BOOTSTRAP", "1");
            let path = env::var_os("PATH").unwrap_or_default();
            let path = env::join_paths([programs].into_iter().chain(env::split_paths(&path)));
            cargo.env("PATH", path.map_err(|error| error.to_string())?);
        }
        cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
        Ok(cargo)
    }
}

/// Takes this machine's directories out of what a component says, as in the messages of a panic.
fn remap(root: &Path, toolchain: &Toolchain) -> Vec<String> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    let std = toolchain.sysroot.join("lib/rustlib/src/rust");
    // The last one that fits counts.
    let mut pairs = vec![(root.to_owned(), "/cofferdam")];
    pairs.extend(home.map(|home| (home, "/cargo")));
    pairs.extend(fs::canonicalize(&std).map(|std| (std, "/rust")));
    pairs.push((std, "/rust"));
    pairs
        .into_iter()
        .map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()))
        .collect()
}

fn is_foreign(name: &OsStr, toolchain: &Toolchain) -> bool {
    let name = name.to_string_lossy();
    // `cargo run` and rustup set these for the toolchain that this program was built with.
    let of_another =
        toolchain.debian.is_some() && (name.starts_with("RUSTUP_") || name == "LD_LIBRARY_PATH");
    let cargo = name.starts_with("CARGO") && !KEPT.iter().any(|kept| name.starts_with(kept));
    cargo
        || of_another
        || name.starts_with("RUSTC") && name != "RUSTC"
        || name.starts_with("RUSTFLAGS")
}
