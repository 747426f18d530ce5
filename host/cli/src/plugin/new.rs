//! `cofferdam plugin new`: creates a project with a working tool.

use std::path::Path;
use std::process::ExitCode;

use crate::authoring::{PluginLanguage, PluginName, PluginProject};
use crate::error::{CliError, CommandResult};
use crate::print::print_line;

pub(super) fn run(name: PluginName, language: PluginLanguage) -> CommandResult {
    let project = PluginProject::create(Path::new("."), name, language)
        .map_err(|error| CliError::new(error.to_string()))?;
    let name = project.name();
    let source = source_file(language);
    print_line(&format!(
        "{name}/ has a tool in {language} that works; {source} is where to begin. Next:\n\n  \
         cd {name}\n  \
         cofferdam plugin build                 # installs what it needs, once, and writes \
         {name}.wasm\n  \
         cofferdam plugin test                  # cases.json, and what every tool has to stand\n  \
         cofferdam plugin inspect {name}.wasm\n  \
         cofferdam tools call {name} '{{\"path\":\"cases.json\"}}' --plugin {name}.wasm"
    ));
    Ok(ExitCode::SUCCESS)
}

fn source_file(language: PluginLanguage) -> &'static str {
    match language {
        PluginLanguage::Rust => "src/lib.rs",
        PluginLanguage::Python => "plugin.py",
        PluginLanguage::JavaScript => "plugin.js",
        PluginLanguage::C => "plugin.c",
        PluginLanguage::Go => "plugin.go",
    }
}
