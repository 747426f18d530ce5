//! `cofferdam plugin new`: a folder with a tool that works.

use std::path::Path;
use std::process::ExitCode;

use crate::authoring::{Language, PluginName, Project};
use crate::cli::error::{CliError, Done};
use crate::cli::print::stdout_line;

pub(super) fn run(name: PluginName, language: Language) -> Done {
    let project = Project::create(Path::new("."), name, language).map_err(|error| CliError::new(error.to_string()))?;
    let name = project.name();
    let source = source(language);
    stdout_line(&format!(
        "{name}/ has a tool in {language} that works; {source} is where to begin. Next:\n\n  \
         cd {name}\n  \
         cofferdam plugin build                 # installs what it needs, once, and writes {name}.wasm\n  \
         cofferdam plugin test                  # cases.json, and what every tool has to stand\n  \
         cofferdam plugin inspect {name}.wasm\n  \
         cofferdam tools call {name} '{{\"path\":\"cases.json\"}}' --plugin {name}.wasm"
    ));
    Ok(ExitCode::SUCCESS)
}

fn source(language: Language) -> &'static str {
    match language {
        Language::Rust => "src/lib.rs",
        Language::Python => "plugin.py",
        Language::JavaScript => "plugin.js",
        Language::C => "plugin.c",
        Language::Go => "plugin.go",
    }
}
