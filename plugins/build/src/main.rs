//! `cargo plugins`: builds the components that the host embeds, and tells whether they are up to
//! date.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command for the terminal")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use cofferdam_build_plugins::{Toolchain, build, check, plugins, scratch, select};

/// Build the components that the host embeds from `plugins/`.
#[derive(Debug, Parser)]
#[command(name = "cargo plugins", bin_name = "cargo plugins", after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compile plugins to components and renew what the host embeds.
    ///
    /// Needs a Rust toolchain for wasm32-wasip2; without one it says which to install.
    Build {
        /// Names of plugins, as their directories are called; all without any.
        names: Vec<String>,
        /// Build everything a second time from scratch and record whether the bytes are the same.
        /// Slow.
        #[arg(long)]
        verify: bool,
    },
    /// Tell whether the embedded components were built from the sources as they are now.
    ///
    /// Needs no toolchain. Exits with 1 if something does not agree, and says what to run.
    Check,
}

const EXAMPLES: &str = "\
Examples:
  cargo plugins build               all plugins
  cargo plugins build grep bash     two plugins
  cargo plugins build --verify      all, and checks that builds are reproducible
  cargo plugins check               checks whether a component is out of date";

fn main() -> ExitCode {
    let root = root();
    let result = match Arguments::parse().command {
        Command::Build { names, verify } => run_build(&root, &names, verify),
        Command::Check => run_check(&root),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_build(root: &Path, names: &[String], verify: bool) -> Result<(), String> {
    let selected = select(plugins(root)?, names)?;
    let toolchain = Toolchain::find(root)?;
    println!("building {} with {}", selected.len(), toolchain.description());
    let again = if verify { Some(scratch(root)?) } else { None };
    for plugin in selected {
        let built = build(root, &toolchain, &plugin, again.as_deref())?;
        let kib = built.entry.size.div_ceil(1024);
        let news = if built.changed { "changed" } else { "unchanged" };
        let reproduced = match (verify, built.entry.reproduced) {
            (false, _) => "",
            (true, true) => ", reproduced",
            (true, false) => ", NOT reproduced",
        };
        println!("{:<16} {kib:>6} KiB  {news}{reproduced}", plugin.name);
    }
    // The second build is of no further use, and large.
    if verify { scratch(root).map(drop) } else { Ok(()) }
}

fn run_check(root: &Path) -> Result<(), String> {
    match check(root) {
        Ok(()) => {
            println!("the embedded components are up to date");
            Ok(())
        }
        Err(mismatches) => {
            for mismatch in &mismatches {
                eprintln!("{mismatch}");
            }
            Err("the embedded components are out of date".to_owned())
        }
    }
}

/// The workspace that this program was built in, two directories above its package.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package).to_owned()
}
