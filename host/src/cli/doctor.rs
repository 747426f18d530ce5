//! `cofferdam doctor`: what this machine can enforce, which model answers, and where things are kept.

use std::process::ExitCode;

use super::args::{CallArgs, Common, ModelArgs};
use super::assemble::{self, Parts, model_settings};
use super::bounds::open_model;
use super::error::Done;
use super::print::stdout_line;
use crate::config::Folders;
use crate::model;
use crate::policy::{Cap, CommandLimits, Mode, SandboxLevel, ToolId};
use crate::sandbox::{Allocation, Cache, CacheKey, Commands, Sandbox, Workspace, outer_repository};
use crate::shown;

pub(super) fn run(common: &Common) -> Done {
    let flags = common.flags(ModelArgs::default(), CallArgs::default(), None);
    let parts = assemble::parts_to_look_at(common, flags, Allocation::Pooled)?;
    section("Enforced here");
    fact("tools", "each call in a fresh WebAssembly instance: files, commands and network only as granted");
    fact("limits", &limits(&parts));
    fact("memory of instances", Sandbox::pool_in_words());
    commands(&parts.commands);
    section("Modes");
    modes(&parts);
    section("Tools");
    fact("offered", &parts.catalog.tools().iter().map(|tool| tool.declared.name.as_str()).collect::<Vec<_>>().join(", "));
    for unknown in parts.catalog.unknown_subjects() {
        fact("warning", &unknown.to_string());
    }
    for refused in parts.catalog.refused() {
        fact(refused.word(), &format!("{}: {}", refused.origin, refused.reason));
    }
    section("Model");
    model(&parts)?;
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

/// What each mode allows where no rule decides, the one in force marked.
fn modes(parts: &Parts) {
    for mode in Mode::ALL {
        let in_force = if parts.settings.mode == mode { " (in force)" } else { "" };
        let forbidden = parts.catalog.policy().forbids(mode).map_or(String::new(), |place| format!(" ({place} does not allow this mode)"));
        fact(&format!("{mode}{in_force}"), &format!("{}{forbidden}", mode.in_words()));
    }
    let reach = parts.commands.what_they_reach();
    fact("", &format!("reading is allowed in each mode; commands, once allowed, run {reach}"));
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
    let CommandLimits { processes, descriptors, file_size, memory, seconds } = rules.limits;
    let memory = memory.map_or("all the memory there is".to_owned(), |bytes| format!("{} MiB of memory", bytes >> 20));
    let seconds = seconds.map_or_else(String::new, |seconds| format!(", {seconds} s"));
    fact("", &format!("at most {processes} processes, {descriptors} open files, files of {} MiB, {memory}{seconds}", file_size >> 20));
}

/// Those in force for tools of which nothing special is said; `tools show` has those of each.
fn limits(parts: &Parts) -> String {
    let caps = parts.catalog.policy().caps(ToolId::new("*", ""), &parts.settings.caps.every);
    let told = |cap: Cap| format!("{cap} {}", caps.value(cap));
    let special: Vec<&str> =
        parts.catalog.tools().iter().filter(|tool| tool.caps != caps).map(|tool| tool.declared.name.as_str()).collect();
    let special = if special.is_empty() { String::new() } else { format!("; others for {} (`tools show`)", special.join(", ")) };
    format!("of each call: {}{special}", [Cap::Seconds, Cap::MemoryMib, Cap::OutputKib, Cap::Handles, Cap::ShownBytes].map(told).join(", "))
}

fn model(parts: &Parts) -> Result<(), super::error::CliError> {
    let settings = &parts.settings;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let model_settings = model_settings(settings);
    match runtime.block_on(model::choose(settings.model.as_deref(), &model_settings)) {
        Ok(choice) => {
            fact("taken", &choice.spec.to_string());
            if let Some(remark) = &choice.remark {
                fact("why", remark);
            }
            match open_model(parts.catalog.policy(), &choice.spec, &model_settings) {
                Ok(model) => fact("window", &format!("{} tokens", model.info().context_window)),
                Err(error) => error.message().lines().for_each(|line| fact("problem", line)),
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
    let cache = CacheKey::of(&folders.keys()).map_err(|error| error.to_string());
    match cache.and_then(|key| Cache::open(folders.cache(), key).map_err(|error| error.to_string())) {
        Ok(cache) => {
            let (files, bytes) = cache.size();
            fact("compiled tools", &format!("{} ({files} files, {} MiB)", cache.folder().display(), bytes >> 20));
        }
        Err(error) => fact("compiled tools", &error),
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
