//! Assembles the parts of the program for a command.

use std::path::Path;
use std::sync::Arc;

use super::args::CommonArgs;
use super::audit;
use super::credentials;
use super::environment::home_directory;
use super::error::CliError;
use super::mcp;
use super::plugin_dialog::TerminalAcceptance;
use super::print::eprint_line;
use super::user_dirs;
use cofferdam::config::{
    OwnPaths, PolicyPaths, PresetSearch, RawApi, RawConfig, RunSettings, SettingsFlags,
    UserDirectories,
};
use cofferdam::host::RequestSettings;
use cofferdam::model::{self, ApiKey};
use cofferdam::plugins::{PluginGate, PluginLockFile, UnacceptedPolicy};
use cofferdam::policy::{ApprovalMode, Policy};
use cofferdam::sandbox::{CommandSandbox, InstanceAllocation, WasmSandbox, Workspace};
use cofferdam::tools::{AuthorityChange, ToolCatalog};
use cofferdam::{HelperProcesses, Host, PreparedHost};

/// The parts that every command with tools needs.
pub(super) struct AppContext {
    pub(super) settings: RunSettings,
    pub(super) user_dirs: UserDirectories,
    pub(super) prepared: PreparedHost,
    /// Keys of providers and hosts, which are redacted from everything that is written.
    pub(super) secrets: Vec<ApiKey>,
}

/// Reads the configuration and the flags, limited by the policies of the system and of the user.
///
/// For commands that call no tool. The project's policy does not apply, since such a command may
/// inspect or trust it.
pub(super) fn load_settings(
    common: &CommonArgs,
    flags: SettingsFlags,
) -> Result<(RunSettings, UserDirectories), CliError> {
    let (settings, user_dirs) = load_chosen_settings(common, flags)?;
    let policy = load_policy_outside_projects(common, &settings, &user_dirs)?;
    let home = common.environment.home.as_deref();
    Ok((settings.with_policy(&policy, home).0, user_dirs))
}

/// Reads the policy of the system and of the user.
pub(super) fn load_policy_outside_projects(
    common: &CommonArgs,
    settings: &RunSettings,
    user_dirs: &UserDirectories,
) -> Result<Policy, CliError> {
    let paths = PolicyPaths {
        project: None,
        ..PolicyPaths::for_current_user(user_dirs, &common.workspace)
    };
    Ok(paths.load(settings.profile)?.policy)
}

/// Reads the configuration and the flags without applying any policy.
pub(super) fn load_chosen_settings(
    common: &CommonArgs,
    flags: SettingsFlags,
) -> Result<(RunSettings, UserDirectories), CliError> {
    // Checked first, so that an invalid directory is not reported as an unreadable policy.
    Workspace::open(&common.workspace, &common.environment)?;
    let user_dirs = user_dirs::for_current_user(&common.environment)?;
    Ok((read_settings(common, flags, &user_dirs)?, user_dirs))
}

fn read_settings(
    common: &CommonArgs,
    flags: SettingsFlags,
    user_dirs: &UserDirectories,
) -> Result<RunSettings, CliError> {
    let home = common.environment.home.as_deref();
    let raw = match &common.config {
        Some(path) => RawConfig::read_required(path, home)?,
        None => RawConfig::read(&user_dirs.config_file(), home)?,
    };
    raw.check_own_paths(&own_paths(common, user_dirs))?;
    let settings = RunSettings::resolve(flags, |name| std::env::var(name).ok(), raw)?;
    if settings.network_presets.is_empty() {
        return Ok(settings);
    }
    let untrusted = [&common.workspace].into_iter().chain(&settings.commands.write);
    let search = PresetSearch {
        root: "/".into(),
        home: common.environment.home.clone(),
        variables: common.environment.variables.iter().cloned().collect(),
        untrusted: untrusted.cloned().collect(),
    };
    Ok(settings.with_presets(&search))
}

/// Returns the files and directories of this program itself.
pub(super) fn own_paths(common: &CommonArgs, user_dirs: &UserDirectories) -> OwnPaths {
    OwnPaths::new(user_dirs, common.config.as_deref().unwrap_or(&user_dirs.config_file()))
}

/// Prints a warning to standard error.
pub(super) fn warn(problem: &str) {
    // A hint has a line of its own.
    for line in format!("warning: {problem}").lines().take(4) {
        eprint_line(&cofferdam::terminal_escape::escape_line(line, 1000));
    }
}

/// Returns the lock file, which records the accepted plugins.
pub(super) fn lock_file(common: &CommonArgs, user_dirs: &UserDirectories) -> PluginLockFile {
    PluginLockFile::next_to(common.config.as_deref().unwrap_or(&user_dirs.config_file()))
}

/// Loads the configuration, the policies and all accepted plugins. Asks about plugins that are not
/// accepted, unless `--locked` is given.
pub(super) fn load_context(
    common: &CommonArgs,
    flags: SettingsFlags,
    allocation: InstanceAllocation,
) -> Result<AppContext, CliError> {
    let unaccepted = if common.locked { UnacceptedPolicy::Locked } else { UnacceptedPolicy::Ask };
    load_context_with((unaccepted, true), common, flags, allocation)
}

/// Like [`load_context`], but never asks at the terminal: plugins that are not accepted are
/// refused. For servers of other programs.
pub(super) fn load_context_unattended(
    common: &CommonArgs,
    flags: SettingsFlags,
    allocation: InstanceAllocation,
) -> Result<AppContext, CliError> {
    let unaccepted = if common.locked { UnacceptedPolicy::Locked } else { UnacceptedPolicy::Ask };
    load_context_with((unaccepted, false), common, flags, allocation)
}

/// Like [`load_context`], but loads all plugins without asking. For commands that call none of
/// them.
pub(super) fn load_context_for_inspection(
    common: &CommonArgs,
    flags: SettingsFlags,
    allocation: InstanceAllocation,
) -> Result<AppContext, CliError> {
    let unaccepted = if common.locked { UnacceptedPolicy::Locked } else { UnacceptedPolicy::Allow };
    load_context_with((unaccepted, true), common, flags, allocation)
}

/// `may_ask` says whether the user of the terminal may be asked about plugins.
fn load_context_with(
    (unaccepted, may_ask): (UnacceptedPolicy, bool),
    common: &CommonArgs,
    flags: SettingsFlags,
    allocation: InstanceAllocation,
) -> Result<AppContext, CliError> {
    let mode_flag = flags.mode;
    // Checked first, so that an invalid directory is not reported as an unreadable policy.
    Workspace::open(&common.workspace, &common.environment)?;
    let mut warnings = Vec::new();
    let user_dirs = user_dirs::for_run(&common.environment, &mut warnings)?;
    warnings.iter().for_each(|warning| warn(warning));
    let settings = read_settings(common, flags, &user_dirs)?;
    let policy =
        PolicyPaths::for_current_user(&user_dirs, &common.workspace).load(settings.profile)?;
    let (mut settings, _) =
        settings.with_policy(&policy.policy, common.environment.home.as_deref());
    settings.mode = effective_mode(&policy.policy, mode_flag, settings.mode)?;
    let (credentials, host_keys) = credentials::load(&settings)?;
    let secrets: Vec<ApiKey> =
        model_settings(&settings).secrets().into_iter().chain(host_keys).collect();
    let record =
        |change: &AuthorityChange<'_>| audit::record_change(&settings, &user_dirs, common, change);
    let dialog = TerminalAcceptance { common, may_ask, record: &record };
    let mut plugin_gate = PluginGate::new(unaccepted, lock_file(common, &user_dirs), &dialog)?;
    let builder = Host::builder(&common.workspace)
        .policy(policy.policy)
        .rule_file(user_dirs.policy_file())
        .caps(settings.caps.clone())
        .mode(settings.mode)
        .plugins(settings.plugins.iter().cloned().chain(plugin_gate.added_paths()))
        .environment(common.environment.clone())
        .helper_processes(HelperProcesses::init())
        .allocation(allocation)
        .command_rules(settings.commands.clone())
        .directories(user_dirs.clone())
        .own_paths(own_paths(common, &user_dirs))
        .credentials(credentials)
        .secrets(secrets.clone())
        .request_settings(request_settings(&settings))
        .on_warning(warn)
        .today(|| jiff::Zoned::now().date().to_string());
    // A lock file that cannot be read is reported by the gate. Without it, no server is accepted.
    let accepted = lock_file(common, &user_dirs).read().unwrap_or_default();
    let builder = mcp::add_sources(builder, (common, &user_dirs), &settings.servers, &accepted);
    let builder = match audit::audit_options(&settings, &user_dirs) {
        Some(options) => builder.audit(options),
        None => builder,
    };
    let prepared = builder.prepare(&mut plugin_gate)?;
    plugin_gate.check_locked(prepared.catalog().refused_plugins())?;
    Ok(AppContext { settings, user_dirs, prepared, secrets })
}

/// Converts the settings to those of the library.
fn request_settings(settings: &RunSettings) -> RequestSettings {
    let mut request = RequestSettings::default();
    request.turn_limit = settings.turn_limit;
    request.time_limit = settings.time_limit;
    request.interventions = settings.interventions;
    request.repetition_notice = settings.repetition_notice;
    request.max_parallel = settings.max_parallel;
    request.reorder = settings.reorder;
    request
}

/// Returns the chosen mode, or the nearest stricter one that the policy allows.
///
/// # Errors
///
/// If the policy denies the mode of the command line, or every mode as strict as the chosen one.
pub(super) fn effective_mode(
    policy: &Policy,
    flag: Option<ApprovalMode>,
    chosen: ApprovalMode,
) -> Result<ApprovalMode, CliError> {
    let allowed: Vec<&str> = ApprovalMode::STRICTEST_FIRST
        .into_iter()
        .filter(|mode| policy.mode_denied_by(*mode).is_none())
        .map(ApprovalMode::name)
        .collect();
    if let Some((mode, place)) =
        flag.and_then(|mode| policy.mode_denied_by(mode).map(|place| (mode, place)))
    {
        let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
        return Err(CliError::configuration(format!(
            "{place}: mode `{mode}` is not allowed by this policy (allowed: {allowed})"
        )));
    }
    policy.nearest_mode(chosen).ok_or_else(|| {
        let place = policy
            .mode_denied_by(ApprovalMode::Plan)
            .map(|place| format!("{place}: "))
            .unwrap_or_default();
        CliError::configuration(format!(
            "{place}this policy allows no mode that is as strict as `{chosen}`"
        ))
    })
}

impl AppContext {
    /// Returns the tools by name, and the refused plugins.
    pub(super) fn catalog(&self) -> &ToolCatalog {
        self.prepared.catalog()
    }

    /// Returns the policy, which decides what tools may do.
    pub(super) fn policy(&self) -> &Arc<Policy> {
        self.prepared.policy()
    }

    /// Returns the sandbox that loads plugins.
    pub(super) fn sandbox(&self) -> &WasmSandbox {
        self.prepared.sandbox()
    }

    /// Returns the sandbox of commands.
    pub(super) fn commands(&self) -> &Arc<CommandSandbox> {
        self.prepared.commands()
    }

    /// Opens the workspace for tools.
    ///
    /// # Errors
    ///
    /// If the directory contains files of this program, or files that other programs run or obey.
    pub(super) fn open_host(&self) -> Result<Host, CliError> {
        let host = self.prepared.open()?;
        if let Some(problem) = broad_workspace_warning(host.workspace().root()) {
            warn(&format!("{problem}, or choose one with `-C DIR`"));
        }
        Ok(host)
    }

    /// Checks that all plugins of the configuration and the command line were loaded.
    ///
    /// # Errors
    ///
    /// If one of them is broken.
    pub(super) fn check_named_plugins(&self) -> Result<(), CliError> {
        Ok(self.prepared.check_plugins()?)
    }

    /// Warns about refused plugins, and about tools that the user's configuration mentions but that
    /// do not exist.
    pub(super) fn warn_refused_plugins(&self) {
        for unknown in self.catalog().unknown_tools().iter().filter(|unknown| unknown.is_from_user)
        {
            eprint_line(&cofferdam::terminal_escape::escape_line(
                &format!("warning: {unknown}"),
                600,
            ));
        }
        for refused in self.catalog().refused_plugins() {
            eprint_line(&cofferdam::terminal_escape::escape_line(
                &format!("warning: cannot use plugin `{}`: {}", refused.origin, refused.reason),
                600,
            ));
        }
    }
}

/// Converts the settings to those of the model module, with API keys from the environment.
pub(super) fn model_settings(settings: &RunSettings) -> model::ModelSettings {
    let provider = &settings.provider;
    let mut all = model::ModelSettings::from_env(|name| std::env::var(name).ok());
    all.base_url = provider.base_url.clone();
    all.context_window = provider.context_window;
    all.max_output = provider.max_output;
    all.reasoning_effort = provider.reasoning_effort.clone();
    all.api = provider.api.map(|api| match api {
        RawApi::ChatCompletions => model::OpenAiApi::ChatCompletions,
        RawApi::Responses => model::OpenAiApi::Responses,
    });
    all.allow_plain_http = provider.allow_plain_http;
    all.timing.first_event_timeout = provider.first_event_timeout;
    if let Some(idle) = provider.idle_timeout {
        all.timing.idle_timeout = idle;
    }
    all
}

/// Returns a warning if a workspace is larger than a project, such as the home directory.
pub(super) fn broad_workspace_warning(root: &Path) -> Option<String> {
    let home = home_directory()
        .filter(|home| home.is_absolute())
        .and_then(|home| home.canonicalize().ok());
    let what = match home {
        _ if root == Path::new("/") => "the root of the file system",
        Some(home) if home == root => "your home directory",
        Some(home) if home.starts_with(root) => "a parent of your home directory",
        Some(_) | None => return None,
    };
    Some(format!(
        "the workspace {} is {what}: tools and commands can access most files in it\nhint: start \
            Cofferdam in the directory of a project",
        root.display()
    ))
}
