//! The command line of `cofferdam plugin`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use crate::authoring::{Language, PluginName};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    cofferdam plugin new word_count --lang python    a folder with a tool that works\n  \
    cd word_count && cofferdam plugin build          word_count.wasm\n  \
    cofferdam plugin test                            your cases.json, and what every tool has to stand\n  \
    cofferdam plugin inspect word_count.wasm         what it asks for, what it would be granted, and why\n  \
    cofferdam run --plugin word_count.wasm \"…\"      an agent that has it")]
pub(in crate::cli) struct PluginArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: PluginCommand,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum PluginCommand {
    /// Begin a plugin from a template
    New {
        /// Its name, and that of its first tool
        name: PluginName,
        /// rust, python, javascript, c or go
        #[arg(long = "lang", value_name = "LANGUAGE")]
        language: Language,
    },
    /// Build the component of a plugin with the toolchain of its language
    Build {
        /// The folder of the plugin
        #[arg(default_value = ".")]
        folder: PathBuf,
    },
    /// Run a plugin's cases, and the checks that every component has to pass
    #[command(after_help = "Exit code: 0 if all passed, 1 if not. The format of cases.json is in the file that `plugin new` writes.")]
    Test {
        /// The folder of the plugin, or a component
        #[arg(default_value = ".")]
        subject: PathBuf,
        /// The cases, if not `cases.json` in the folder
        #[arg(long, value_name = "FILE.json")]
        cases: Option<PathBuf>,
    },
    /// Show what a component is and could do, as the basis of a decision
    Inspect {
        /// The component
        file: PathBuf,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}
