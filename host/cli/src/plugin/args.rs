//! Arguments of `cofferdam plugin`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use crate::authoring::{PluginLanguage, PluginName};
use cofferdam::sandbox::ComponentDigest;

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    cofferdam plugin new line_count --lang python    creates a plugin with a working tool\n  \
    cd line_count && cofferdam plugin build          writes line_count.wasm\n  \
    cofferdam plugin test                            runs cases.json and the conformance \
    checks\n  \
    cofferdam plugin inspect line_count.wasm         shows its imports, tools and \
    permissions\n  \
    cofferdam run --plugin line_count.wasm \"…\"      loads the plugin for one run\n  \
    cofferdam plugin add line_count.wasm             adds the plugin to every run")]
pub(crate) struct PluginArgs {
    #[command(subcommand)]
    pub(crate) command: PluginCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Create a plugin from a template
    #[command(after_help = "Examples:\n  \
        cofferdam plugin new line_count --lang python     creates a directory with a working tool \
        and test cases\n  \
        cofferdam plugin new line_count --lang rust")]
    New {
        /// Name of the plugin and of its first tool
        name: PluginName,
        /// Language: rust, python, javascript, c or go
        #[arg(long = "lang", value_name = "LANGUAGE")]
        language: PluginLanguage,
    },
    /// Build a plugin with the toolchain of its language
    #[command(after_help = "Examples:\n  \
        cofferdam plugin build                  builds the plugin in this directory\n  \
        cofferdam plugin build line_count\n\n\
        Missing build tools are installed once, from the package registry of the language.")]
    Build {
        /// Directory of the plugin
        #[arg(default_value = ".")]
        directory: PathBuf,
    },
    /// Run the cases of a plugin and the conformance checks
    #[command(after_help = "Examples:\n  \
        cofferdam plugin test                   tests the plugin in this directory with \
        cases.json\n  \
        cofferdam plugin test other.wasm --cases cases.json\n\n\
        Some checks need a test case that succeeds. Exit codes: 0 all checks passed, 1 a check \
        failed. \
        For the format of cases.json, see the file that `plugin new` creates.")]
    Test {
        /// Directory of the plugin, or a component
        #[arg(default_value = ".")]
        subject: PathBuf,
        /// File with the cases [default: cases.json of the plugin]
        #[arg(long, value_name = "FILE.json")]
        cases: Option<PathBuf>,
    },
    /// Show the imports, tools and permissions of a component
    #[command(after_help = "Examples:\n  \
        cofferdam plugin inspect line_count.wasm\n  \
        cofferdam plugin inspect line_count.wasm --json | jq .tools")]
    Inspect {
        /// Component file
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Add a plugin after showing its permissions and asking for confirmation
    #[command(after_help = "Examples:\n  \
        cofferdam plugin add line_count.wasm\n  \
        cofferdam plugin add https://example.org/line_count.wasm --digest sha256:…\n  \
        cofferdam plugin add line_count-1.2.wasm --name line_count --yes\n\n\
        The component is saved next to the configuration file. cofferdam.lock records its digest, \
        imports, input schemas and permissions. Before you confirm, only the declaration of its \
        tools runs, in a sandbox without permissions. With --config FILE, the plugin is added to \
        that configuration.")]
    Add(PluginAddArgs),
    /// List the plugins that are not built in, with their acceptance status
    #[command(after_help = "Examples:\n  cofferdam plugin list\n  cofferdam plugin list --json")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Fetch added plugins again from their sources
    ///
    /// Asks for confirmation if a plugin requests new permissions.
    #[command(after_help = "Examples:\n  \
        cofferdam plugin update                 updates all added plugins\n  \
        cofferdam plugin update line_count --yes --digest sha256:…\n\n\
        Exit codes: 0 all plugins are up to date, 1 a plugin could not be updated.")]
    Update(PluginUpdateArgs),
    /// Remove an added plugin and its acceptance
    #[command(after_help = "Example:\n  cofferdam plugin remove line_count")]
    Remove {
        /// Name of the plugin
        name: String,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PluginAddArgs {
    /// Component: a file, or an https:// URL
    #[arg(value_name = "FILE|URL")]
    pub(super) source: String,
    /// Name of the plugin [default: the file name]
    #[arg(long)]
    pub(super) name: Option<PluginName>,
    /// Fail unless the component has this SHA-256 digest
    #[arg(long, value_name = "sha256:…", value_parser = parse_digest)]
    pub(super) digest: Option<ComponentDigest>,
    /// Add without asking for confirmation
    #[arg(long, short)]
    pub(super) yes: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PluginUpdateArgs {
    /// Name of the plugin [default: all added plugins]
    pub(super) name: Option<String>,
    /// Fail unless the new component has this SHA-256 digest
    #[arg(long, value_name = "sha256:…", value_parser = parse_digest, requires = "name")]
    pub(super) digest: Option<ComponentDigest>,
    /// Update without asking for confirmation, even if it requests new permissions
    #[arg(long, short)]
    pub(super) yes: bool,
}

fn parse_digest(text: &str) -> Result<ComponentDigest, &'static str> {
    ComponentDigest::parse(text.strip_prefix("sha256:").unwrap_or(text))
        .ok_or("a digest is `sha256:` and 64 lower-case hexadecimal digits")
}
