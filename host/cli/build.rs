//! Copies the Go runtime of the generated bindings to `OUT_DIR`, where the templates embed it. Go
//! plugins then build without a module proxy. The runtime is part of the crate that generates the
//! bindings, so both always have the same version.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The crate with the runtime, and its path there.
const GENERATOR: &str = "wit-bindgen-go";
const RUNTIME: &str = "src/pkg";
/// The parts of the runtime that a build needs.
const PARTS: &[&str] = &["go.mod", "LICENSE", "wit"];

fn main() -> Result<(), Box<dyn Error>> {
    announce("rerun-if-changed=build.rs");
    announce("rerun-if-changed=../../Cargo.lock");
    let from = directory_of_generator()?.join(RUNTIME);
    let to = PathBuf::from(env::var("OUT_DIR")?).join("go-runtime");
    if to.exists() {
        fs::remove_dir_all(&to)?;
    }
    fs::create_dir(&to)?;
    for part in PARTS {
        copy(&from.join(part), &to.join(part))
            .map_err(|error| format!("cannot copy {part} of {}: {error}", from.display()))?;
    }
    Ok(())
}

/// Prints an instruction for cargo, which reads the output of a build script.
fn announce(instruction: &str) {
    println!("cargo::{instruction}");
}

/// Returns the source directory of the crate, as reported by `cargo metadata`, since sources can be
/// vendored or replaced.
fn directory_of_generator() -> Result<PathBuf, Box<dyn Error>> {
    let target = env::var("TARGET")?;
    let ask = |more: &[&str]| {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .args(["metadata", "--format-version", "1", "--filter-platform", &target])
            .args(more)
            .output()
    };
    // Offline first: `cargo install` leaves out the dependencies of tests, and then the network is
    // necessary.
    let mut output = ask(&["--offline"])?;
    if !output.status.success() {
        output = ask(&[])?;
    }
    if !output.status.success() {
        return Err(
            format!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr)).into()
        );
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let generator = packages
        .filter(|package| package["name"] == GENERATOR)
        .find_map(|package| package["manifest_path"].as_str());
    let manifest = generator.ok_or_else(|| format!("cargo metadata does not name {GENERATOR}"))?;
    Ok(Path::new(manifest).parent().ok_or("a manifest without a directory")?.to_owned())
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.is_dir() {
        return fs::copy(from, to).map(drop);
    }
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        copy(&from.join(&name), &to.join(&name))?;
    }
    Ok(())
}
