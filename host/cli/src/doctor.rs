//! `cofferdam doctor`: prints which sandbox this machine supports, which model is used, and where
//! files are stored.

use std::process::ExitCode;

use super::args::CommonArgs;
use super::context::{self, AppContext, model_settings};
use super::error::CommandResult;
use super::policy_checks::open_model;
use super::print::print_line;
use cofferdam::config::UserDirectories;
use cofferdam::model;
use cofferdam::policy::{
    ApprovalMode, CapName, CommandLimits, CommandNetwork, SandboxLevel, ToolId,
};
use cofferdam::sandbox::{
    ArtifactCache, CacheKey, CommandSandbox, InstanceAllocation, WasmSandbox, Workspace,
    outer_repository,
};
use cofferdam::terminal_escape;

pub(super) fn run(common: &CommonArgs) -> CommandResult {
    let flags = common.common_flags();
    let context = context::load_context_for_inspection(common, flags, InstanceAllocation::Pooled)?;
    print_section("Enforcement");
    print_fact(
        "tools",
        "each call runs in a new WebAssembly instance, with only the permissions of its tool",
    );
    print_fact("limits", &describe_limits(&context));
    print_fact("instance memory", WasmSandbox::describe_pool());
    let workspace = Workspace::open(&common.workspace, &common.environment)?;
    print_commands(context.commands(), &workspace);
    print_presets(&context);
    print_section("Modes");
    print_modes(&context);
    print_section("Tools");
    print_fact(
        "available",
        &context
            .catalog()
            .tools()
            .iter()
            .map(|tool| tool.declaration.name.as_str())
            .collect::<Vec<_>>()
            .join(", "),
    );
    for unknown in context.catalog().unknown_tools() {
        print_fact("warning", &unknown.to_string());
    }
    for refused in context.catalog().refused_plugins() {
        print_fact(refused.status_label(), &format!("{}: {}", refused.origin, refused.reason));
    }
    print_section("Model");
    print_model(&context)?;
    print_section("Paths");
    print_fact("workspace", &workspace.root().display().to_string());
    if let Some(problem) = context::broad_workspace_warning(workspace.root()) {
        print_fact("warning", &problem);
    }
    if let Some(repository) = outer_repository(workspace.root(), &common.environment) {
        let what = "is outside the workspace: commands can read it, but cannot commit";
        print_fact("repository", &format!("{} {what}", repository.display()));
    }
    print_paths(&context.user_dirs);
    Ok(ExitCode::SUCCESS)
}

/// Prints the hosts of each preset, and where they come from.
fn print_presets(context: &AppContext) {
    for found in &context.settings.preset_hosts {
        let name = format!("preset {}", found.preset);
        if found.hosts.is_empty() {
            print_fact(&name, &format!("NO HOST found: {}", found.preset.hint()));
        }
        for (host, file) in &found.hosts {
            print_fact(&name, &format!("{host} ({file})"));
        }
    }
}

/// Prints what each mode allows if no rule decides, and marks the current mode.
fn print_modes(context: &AppContext) {
    for mode in ApprovalMode::ALL {
        let in_force = if context.settings.mode == mode { " (current)" } else { "" };
        let forbidden = context
            .policy()
            .mode_denied_by(mode)
            .map_or(String::new(), |place| format!(" (not allowed by {place})"));
        print_fact(&format!("{mode}{in_force}"), &format!("{}{forbidden}", mode.describe()));
    }
    let reach = context.commands().describe_access();
    print_fact("", &format!("reading is allowed in every mode; commands run {reach}"));
}

/// Prints the directories that commands write without a private view of them.
fn print_direct_directories(commands: &CommandSandbox, workspace: &Workspace) {
    for directory in &commands.rules().direct {
        let path = workspace.root().join(directory.as_str());
        let problem = match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => "",
            Ok(_) => " (NOT a directory, ignored)",
            Err(_) => " (created when needed)",
        };
        let name = terminal_escape::escape_name(directory.as_str(), 400);
        print_fact(
            "",
            &format!(
                "written directly: {name}{problem}; `cofferdam undo` does not revert these changes"
            ),
        );
    }
}

/// Prints the command sandbox as just probed on this machine.
fn print_commands(commands: &CommandSandbox, workspace: &Workspace) {
    print_fact(
        "commands",
        &format!(
            "each command line is checked; commands run outside WebAssembly, {}",
            commands.describe()
        ),
    );
    for (level, problem) in &commands.measured().unavailable {
        print_fact("", &format!("sandbox `{level}` is unavailable: {problem}"));
    }
    match commands.private_view(workspace.root()) {
        Ok(()) => print_fact(
            "",
            "commands change a private view of the workspace; when a command ends, its accepted \
                changes are committed, and `cofferdam undo` can revert them",
        ),
        Err(reason) => print_fact(
            "",
            &format!(
                "commands write the workspace directly, and `cofferdam undo` cannot revert their \
                    changes, because there is no private view of this workspace: {reason}"
            ),
        ),
    }
    if commands.private_view(workspace.root()).is_ok() {
        print_direct_directories(commands, workspace);
    }
    if commands.rules().review_changes {
        print_fact(
            "",
            "you review all changes of a command before they are committed, except in \
            mode auto",
        );
    }
    match commands.allowed_level() {
        Ok(level) if level > SandboxLevel::None => {
            let has_network = commands.rules().network == CommandNetwork::All;
            let tcp = if has_network { "" } else { ", TCP" };
            print_fact(
                "",
                &format!(
                    "tested and blocked: reading and writing outside the workspace{tcp}, writing a \
                        git hook, leaving a process behind"
                ),
            );
        }
        Ok(_) => {}
        Err(denial) => print_fact("", &denial.to_string()),
    }
    print_fact("", &format!("not blocked: {}", commands.known_gaps().join("; ")));
    let rules = commands.rules();
    for (words, paths) in [("also readable", &rules.read), ("also writable", &rules.write)] {
        for path in paths {
            let missing = if path.exists() { "" } else { " (MISSING, ignored)" };
            print_fact("", &format!("{words}: {}{missing}", path.display()));
        }
    }
    let CommandLimits { processes, descriptors, file_size, memory, seconds } = rules.limits;
    let memory = memory
        .map_or("unlimited memory".to_owned(), |bytes| format!("{} MiB of memory", bytes >> 20));
    let seconds = seconds.map_or_else(String::new, |seconds| format!(", {seconds} s"));
    print_fact(
        "",
        &format!(
            "limits: {processes} processes, {descriptors} open files, {} MiB per file, \
                {memory}{seconds}",
            file_size >> 20
        ),
    );
}

/// Describes the default limits of calls. `tools show` has the limits of each tool.
fn describe_limits(context: &AppContext) -> String {
    let caps =
        context.policy().effective_caps(ToolId::new("*", ""), &context.settings.caps.defaults);
    let format_cap = |cap: CapName| format!("{cap} {}", caps.value(cap));
    let special: Vec<&str> = context
        .catalog()
        .tools()
        .iter()
        .filter(|tool| tool.caps != caps)
        .map(|tool| tool.declaration.name.as_str())
        .collect();
    let special = if special.is_empty() {
        String::new()
    } else {
        format!("; different for {} (see `tools show`)", special.join(", "))
    };
    format!(
        "per call: {}{special}",
        [
            CapName::Seconds,
            CapName::MemoryMib,
            CapName::OutputKib,
            CapName::Handles,
            CapName::ShownBytes
        ]
        .map(format_cap)
        .join(", ")
    )
}

fn print_model(context: &AppContext) -> Result<(), super::error::CliError> {
    let settings = &context.settings;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let model_settings = model_settings(settings);
    match runtime.block_on(model::choose(settings.model.as_deref(), &model_settings)) {
        Ok(choice) => {
            print_fact("selected", &choice.spec.to_string());
            if let Some(remark) = &choice.notice {
                print_fact("reason", remark);
            }
            match open_model(context.policy(), &choice.spec, &model_settings) {
                Ok(model) => {
                    print_fact("context window", &format!("{} tokens", model.info().context_window))
                }
                Err(error) => error.message().lines().for_each(|line| print_fact("problem", line)),
            }
        }
        Err(error) => {
            let text = terminal_escape::escape_text(&error.to_string());
            print_line(&format!("  {}", text.replace('\n', "\n  ")));
        }
    }
    Ok(())
}

fn print_paths(user_dirs: &UserDirectories) {
    if !user_dirs.has_home() {
        return print_fact(
            "warning",
            "nothing is stored, because there is no home directory; set HOME to an absolute path",
        );
    }
    let config = user_dirs.config_file();
    print_fact(
        "configuration",
        &format!(
            "{}{}",
            config.display(),
            if config.exists() { "" } else { " (missing; defaults apply)" }
        ),
    );
    let cache = CacheKey::load_or_create(&user_dirs.keys()).map_err(|error| error.to_string());
    match cache.and_then(|key| {
        ArtifactCache::open(user_dirs.cache(), key).map_err(|error| error.to_string())
    }) {
        Ok(cache) => {
            let (files, bytes) = cache.size();
            print_fact(
                "compiled tools",
                &format!("{} ({files} files, {} MiB)", cache.directory().display(), bytes >> 20),
            );
        }
        Err(error) => print_fact("compiled tools", &error),
    }
    print_fact("sessions", &user_dirs.sessions().display().to_string());
    print_fact(
        "prompt history",
        &format!(
            "{} (prompts are deleted with their session)",
            user_dirs.prompt_history().display()
        ),
    );
    print_fact("undo", &user_dirs.undo().display().to_string());
    print_fact("audit log", &user_dirs.audit().display().to_string());
}

fn print_section(title: &str) {
    print_line(&console::style(title).bold().to_string());
}

fn print_fact(name: &str, value: &str) {
    print_line(&format!("  {name:20} {}", terminal_escape::escape_line(value, 400)));
}
