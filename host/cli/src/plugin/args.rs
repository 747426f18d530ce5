//! Arguments of `cofferdam plugin`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use crate::authoring::{PluginLanguage, PluginName};
use cofferdam::sandbox::ComponentDigest;

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    cofferdam plugin new line_count --lang python    a folder with a tool that works\n  \
    cd line_count && cofferdam plugin build          line_count.wasm\n  \
    cofferdam plugin test                            your cases.json, and what every tool has to \
    stand\n  \
    cofferdam plugin inspect line_count.wasm         what it asks for, what it would be granted, \
    and why\n  \
    cofferdam run --plugin line_count.wasm \"…\"      an agent that has it\n  \
    cofferdam plugin add line_count.wasm             every agent has it from now on")]
pub(crate) struct PluginArgs {
    #[command(subcommand)]
    pub(crate) command: PluginCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Begin a plugin from a template
    #[command(after_help = "Examples:\n  \
        cofferdam plugin new line_count --lang python     a folder line_count with a tool that \
        works, and its cases\n  \
        cofferdam plugin new line_count --lang rust")]
    New {
        /// Its name, and that of its first tool
        name: PluginName,
        /// rust, python, javascript, c or go
        #[arg(long = "lang", value_name = "LANGUAGE")]
        language: PluginLanguage,
    },
    /// Build the component of a plugin with the toolchain of its language
    #[command(after_help = "Examples:\n  \
        cofferdam plugin build                  the plugin of this folder\n  \
        cofferdam plugin build line_count\n\n\
        What a build needs and the machine lacks comes from the language's own registry, once.")]
    Build {
        /// The folder of the plugin
        #[arg(default_value = ".")]
        folder: PathBuf,
    },
    /// Run a plugin's cases, and the checks that every component has to pass
    #[command(after_help = "Examples:\n  \
        cofferdam plugin test                   the plugin of this folder, with its cases.json\n  \
        cofferdam plugin test other.wasm --cases cases.json\n\n\
        Without a case that works only a part of the checks can run. Exit code: 0 if all passed, \
        1 if not. The format of cases.json is in the file that `plugin new` writes.")]
    Test {
        /// The folder of the plugin, or a component
        #[arg(default_value = ".")]
        subject: PathBuf,
        /// The cases, if not `cases.json` in the folder
        #[arg(long, value_name = "FILE.json")]
        cases: Option<PathBuf>,
    },
    /// Show what a component is and could do, as the basis of a decision
    #[command(after_help = "Examples:\n  \
        cofferdam plugin inspect line_count.wasm\n  \
        cofferdam plugin inspect line_count.wasm --json | jq .tools")]
    Inspect {
        /// The component
        file: PathBuf,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Add a plugin: shows what it is and asks for, and keeps it if you agree
    #[command(after_help = "Examples:\n  \
        cofferdam plugin add line_count.wasm\n  \
        cofferdam plugin add https://example.org/line_count.wasm --digest sha256:…\n  \
        cofferdam plugin add line_count-1.2.wasm --name line_count --yes\n\n\
        The component is kept beside the configuration and pinned in cofferdam.lock, with its \
        content, \
        what it imports, its input and what it asks for. Before you have agreed nothing of it \
        runs but \
        the list of its tools, in an enclosure with nothing in it. With --config FILE it is added \
        to \
        that configuration.")]
    Add(PluginAddArgs),
    /// List the plugins that are not part of the program, and whether each is what was accepted
    #[command(after_help = "Examples:\n  cofferdam plugin list\n  cofferdam plugin list --json")]
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Fetch plugins again from where they came; asks if one asks for more than before
    #[command(after_help = "Examples:\n  \
        cofferdam plugin update                 all that were added\n  \
        cofferdam plugin update line_count --yes --digest sha256:…\n\n\
        Exit code: 0 if each is up to date now, 1 if one stays as it was.")]
    Update(PluginUpdateArgs),
    /// Take a plugin away, and what it was accepted as
    #[command(after_help = "Example:\n  cofferdam plugin remove line_count")]
    Remove {
        /// Under which it was added
        name: String,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PluginAddArgs {
    /// The component: a file, or an address that begins with https://
    #[arg(value_name = "FILE|URL")]
    pub(super) source: String,
    /// What to call it, if not after its file
    #[arg(long)]
    pub(super) name: Option<PluginName>,
    /// Do nothing with it unless this is its SHA-256
    #[arg(long, value_name = "sha256:…", value_parser = parse_digest)]
    pub(super) digest: Option<ComponentDigest>,
    /// Do not ask
    #[arg(long, short)]
    pub(super) yes: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PluginUpdateArgs {
    /// Which; all that were added, if none is named
    pub(super) name: Option<String>,
    /// Do nothing with it unless this is the SHA-256 of the new one
    #[arg(long, value_name = "sha256:…", value_parser = parse_digest, requires = "name")]
    pub(super) digest: Option<ComponentDigest>,
    /// Do not ask, whatever it asks for
    #[arg(long, short)]
    pub(super) yes: bool,
}

fn parse_digest(text: &str) -> Result<ComponentDigest, &'static str> {
    ComponentDigest::parse(text.strip_prefix("sha256:").unwrap_or(text))
        .ok_or("a digest is sha256: and 64 of 0-9 and a-f")
}
