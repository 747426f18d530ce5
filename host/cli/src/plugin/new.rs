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
        "Created {name}/ with a working tool in {language}; its code is in {source}. Next:\n\n  \
         cd {name}\n  \
         cofferdam plugin build                 # installs the toolchain once, and writes \
         {name}.wasm\n  \
         cofferdam plugin test                  # runs cases.json and the conformance checks\n  \
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
