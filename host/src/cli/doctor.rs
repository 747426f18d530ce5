//! `cofferdam doctor`: what this machine can enforce, which model answers, and where things are kept.

use std::process::ExitCode;

use super::args::{CallArgs, Common, ModelArgs};
use super::assemble::{self, Parts, model_settings};
use super::error::Done;
use super::print::stdout_line;
use crate::config::Folders;
use crate::model;
use crate::policy::{Cap, CommandLimits, SandboxLevel};
use crate::sandbox::{Allocation, Cache, Commands, Sandbox, Workspace, outer_repository};
use crate::shown;

pub(super) fn run(common: &Common) -> Done {
    let flags = common.flags(ModelArgs::default(), CallArgs::default(), None);
    let parts = assemble::parts_to_look_at(common, flags, Allocation::Pooled)?;
    section("Enforced here");
    fact("tools", "each call in a fresh WebAssembly instance: files, commands and network only as granted");
    fact("limits", &limits(&parts));
    fact("memory of instances", Sandbox::pool_in_words());
    commands(&parts.commands);
    section("Tools");
    fact("offered", &parts.catalog.tools().iter().map(|tool| tool.declared.name.as_str()).collect::<Vec<_>>().join(", "));
    for unknown in parts.catalog.unknown_subjects() {
        fact("warning", &unknown.to_string());
    }
    for refused in parts.catalog.refused() {
        fact(refused.word(), &format!("{}: {}", refused.origin, refused.reason));
    }
    section("Model");
    model(&parts.settings)?;
    section("Places");
    let workspace = Workspace::open(&common.workspace)?;
    fact("workspace", &workspace.root().display().to_string());
    if let Some(problem) = assemble::too_wide(workspace.root()) {
        fact("warning", &problem);
    }
    if let Some(repository) = outer_repository(workspace.root()) {
        let what = "lies outside of the workspace: commands can read it, and not commit to it";
        fact("its repository", &format!("{} {what}", repository.display()));
    }
    places(&parts.folders);
    Ok(ExitCode::SUCCESS)
}

/// As measured a moment ago, on this machine.
fn commands(commands: &Commands) {
    fact("commands", &format!("decided line by line, run outside of WebAssembly {}", commands.in_words()));
    for (level, problem) in &commands.measured().lacking {
        fact("", &format!("not `{level}`: {problem}"));
    }
    match commands.admitted() {
        Ok(level) if level > SandboxLevel::None => {
            let tcp = if commands.rules().network { "" } else { ", TCP" };
            fact("", &format!("tried and refused: reading outside, writing outside{tcp}, a hook in .git, a process that stays"));
        }
        Ok(_) => {}
        Err(denial) => fact("", &denial.to_string()),
    }
    fact("", &format!("open: {}", commands.open().join("; ")));
    let rules = commands.rules();
    for (words, paths) in [("may read besides", &rules.read), ("may write besides", &rules.write)] {
        for path in paths {
            let missing = if path.exists() { "" } else { " (NOT THERE, so it is left out)" };
            fact("", &format!("{words}: {}{missing}", path.display()));
        }
    }
    let CommandLimits { processes, descriptors, file_size, memory } = rules.limits;
    let memory = memory.map_or("all the memory there is".to_owned(), |bytes| format!("{} MiB of memory", bytes >> 20));
    fact("", &format!("at most {processes} processes, {descriptors} open files, files of {} MiB, {memory}", file_size >> 20));
}

/// Those in force for tools of which nothing special is said; `tools show` has those of each.
fn limits(parts: &Parts) -> String {
    let caps = parts.catalog.policy().caps("*", &parts.settings.caps.every);
    let told = |cap: Cap| format!("{cap} {}", caps.value(cap));
    let special: Vec<&str> =
        parts.catalog.tools().iter().filter(|tool| tool.caps != caps).map(|tool| tool.declared.name.as_str()).collect();
    let special = if special.is_empty() { String::new() } else { format!("; others for {} (`tools show`)", special.join(", ")) };
    format!("of each call: {}{special}", [Cap::Seconds, Cap::MemoryMib, Cap::OutputKib, Cap::Handles, Cap::ShownBytes].map(told).join(", "))
}

fn model(settings: &crate::config::Settings) -> Result<(), super::error::CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let model_settings = model_settings(settings);
    match runtime.block_on(model::choose(settings.model.as_deref(), &model_settings)) {
        Ok(choice) => {
            fact("taken", &choice.spec.to_string());
            if let Some(remark) = &choice.remark {
                fact("why", remark);
            }
            match model::connect(&choice.spec, &model_settings) {
                Ok(model) => fact("window", &format!("{} tokens", model.info().context_window)),
                Err(error) => fact("problem", &error.to_string()),
            }
        }
        Err(error) => {
            stdout_line(&format!("  {}", error.to_string().replace('\n', "\n  ")));
        }
    }
    Ok(())
}

fn places(folders: &Folders) {
    if !folders.has_home() {
        return fact("warning", "there is no home folder, so nothing is kept: set HOME to the absolute path of a folder");
    }
    let config = folders.config_file();
    fact("configuration", &format!("{}{}", config.display(), if config.exists() { "" } else { " (not there; defaults)" }));
    match Cache::open(folders.cache()) {
        Ok(cache) => {
            let (files, bytes) = cache.size();
            fact("compiled tools", &format!("{} ({files} files, {} MiB)", cache.folder().display(), bytes >> 20));
        }
        Err(error) => fact("compiled tools", &error.to_string()),
    }
    fact("sessions", &folders.sessions().display().to_string());
    fact("typed lines", &format!("{} (for the arrow keys; each goes with its session)", folders.prompt_history().display()));
    fact("undo", &folders.undo().display().to_string());
    fact("audit log", &folders.audit().display().to_string());
}

fn section(title: &str) {
    stdout_line(&console::style(title).bold().to_string());
}

fn fact(name: &str, value: &str) {
    stdout_line(&format!("  {name:20} {}", shown::line(value, 400)));
}
