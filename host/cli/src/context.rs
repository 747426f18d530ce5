//! Assembles the parts of the program for a command.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::args::CommonArgs;
use super::audit;
use super::credentials;
use super::error::CliError;
use super::plugin_gate::{PluginGate, UnacceptedPolicy};
use super::print::eprint_line;
use super::sandbox_setup::create_sandbox;
use cofferdam::agent::ports::{LanguageModel, ToolRunner};
use cofferdam::agent::{SUB_AGENT_TURN_LIMIT, SubAgentMaker, TurnLimit};
use cofferdam::audit::AuditWriter;
use cofferdam::config::{
    OwnPaths, PluginLockFile, PolicyPaths, RawApi, RawConfig, RunSettings, SettingsFlags,
    UserDirectories,
};
use cofferdam::model::{self, ApiKey};
use cofferdam::policy::{ApprovalMode, CapName, Policy, ProtectedPaths, WorkspacePath};
use cofferdam::sandbox::{
    CommandSandbox, ComponentBytes, HostCredential, HostEnvironment, InstanceAllocation,
    ListedFiles, UndoHistory, WasmSandbox, Workspace,
};
use cofferdam::tools::{
    Approver, AuditSink, AuthorityChange, Dispatcher, DispatcherSettings, InstructionRecord,
    OutputFiles, ParallelCallSlots, PluginProvenance, RefusedPlugin, SessionApprovals,
    SubAgentRunner, ToolCatalog, builtin_components,
};

/// Number of consecutive rejections after which a request returns to the user.
const MAX_REJECTIONS: u32 = 3;

/// The parts that every command with tools needs.
pub(super) struct AppContext {
    pub(super) settings: RunSettings,
    pub(super) user_dirs: UserDirectories,
    pub(super) sandbox: Arc<WasmSandbox>,
    pub(super) catalog: Arc<ToolCatalog>,
    pub(super) commands: Arc<CommandSandbox>,
    environment: HostEnvironment,
    credentials: Arc<[HostCredential]>,
    /// Keys of providers and hosts, which are redacted from everything that is written.
    pub(super) secrets: Vec<ApiKey>,
    /// Shared by the request and its sub-agents, so that the limit holds for all together.
    call_slots: ParallelCallSlots,
    /// The plugins of the configuration and of the command line.
    named_plugins: Vec<PathBuf>,
    own_paths: OwnPaths,
    /// The instruction files and the files that run code, as found at startup.
    pub(super) listed_files: ListedFiles,
    /// The record of changes to the instruction files.
    pub(super) instruction_record: InstructionRecord,
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
    let paths = PolicyPaths {
        project: None,
        ..PolicyPaths::for_current_user(&user_dirs, &common.workspace)
    };
    let loaded = paths.load(settings.profile)?;
    Ok((settings.with_policy(&loaded.policy).0, user_dirs))
}

/// Reads the configuration and the flags without applying any policy.
pub(super) fn load_chosen_settings(
    common: &CommonArgs,
    flags: SettingsFlags,
) -> Result<(RunSettings, UserDirectories), CliError> {
    // Checked first, so that an invalid directory is not reported as an unreadable policy.
    Workspace::open(&common.workspace, &common.environment)?;
    let user_dirs = UserDirectories::for_current_user()?;
    Ok((read_settings(common, flags, &user_dirs)?, user_dirs))
}

fn read_settings(
    common: &CommonArgs,
    flags: SettingsFlags,
    user_dirs: &UserDirectories,
) -> Result<RunSettings, CliError> {
    let raw = match &common.config {
        Some(path) => RawConfig::read_required(path)?,
        None => RawConfig::read(&user_dirs.config_file())?,
    };
    raw.check_own_paths(&own_paths(common, user_dirs))?;
    Ok(RunSettings::resolve(flags, |name| std::env::var(name).ok(), raw)?)
}

/// Returns the files and directories of this program itself.
fn own_paths(common: &CommonArgs, user_dirs: &UserDirectories) -> OwnPaths {
    OwnPaths::new(user_dirs, common.config.as_deref().unwrap_or(&user_dirs.config_file()))
}

/// Prints a warning to standard error.
pub(super) fn warn(problem: &str) {
    eprint_line(&cofferdam::terminal_escape::escape_line(&format!("warning: {problem}"), 1000));
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
    load_context_with(
        if common.locked { UnacceptedPolicy::Locked } else { UnacceptedPolicy::Ask },
        common,
        flags,
        allocation,
    )
}

/// Like [`load_context`], but loads all plugins without asking. For commands that call none of
/// them.
pub(super) fn load_context_for_inspection(
    common: &CommonArgs,
    flags: SettingsFlags,
    allocation: InstanceAllocation,
) -> Result<AppContext, CliError> {
    load_context_with(
        if common.locked { UnacceptedPolicy::Locked } else { UnacceptedPolicy::Allow },
        common,
        flags,
        allocation,
    )
}

fn load_context_with(
    unaccepted: UnacceptedPolicy,
    common: &CommonArgs,
    flags: SettingsFlags,
    allocation: InstanceAllocation,
) -> Result<AppContext, CliError> {
    let mode_flag = flags.mode;
    // Checked first, so that an invalid directory is not reported as an unreadable policy.
    let workspace = Workspace::open(&common.workspace, &common.environment)?;
    let mut warnings = Vec::new();
    let user_dirs = UserDirectories::for_run(&mut warnings)?;
    warnings.iter().for_each(|warning| warn(warning));
    let settings = read_settings(common, flags, &user_dirs)?;
    let mut policy =
        PolicyPaths::for_current_user(&user_dirs, &common.workspace).load(settings.profile)?;
    let workspace = Arc::new(workspace.with_protected_paths(policy.policy.protected_paths()));
    let listed = workspace.scan_listed_files();
    listed.aliases().for_each(|(real, link)| policy.policy.add_alias(real, link));
    let instructions = InstructionRecord::new(&user_dirs.instructions(), workspace.root());
    let (mut settings, _) = settings.with_policy(&policy.policy);
    settings.mode = effective_mode(&policy.policy, mode_flag, settings.mode)?;
    let commands = CommandSandbox::new(
        cofferdam::sandbox::current_program()?,
        settings.commands.clone(),
        user_dirs.set_aside_dir(),
        common.environment.clone(),
    );
    let commands =
        Arc::new(commands.with_own(own_paths(common, &user_dirs).iter().cloned().collect()));
    let sandbox = Arc::new(create_sandbox(allocation, &user_dirs)?);
    let mut catalog = ToolCatalog::with_policy(policy.policy, settings.caps.clone());
    for (name, component) in builtin_components() {
        catalog.add(&sandbox, PluginProvenance::BuiltIn(name), component, &|| {
            report_compilation(name)
        });
    }
    let record = |change: &AuthorityChange<'_>| {
        audit::record_change(&settings, &user_dirs, &common.workspace, change)
    };
    let mut plugin_gate =
        PluginGate::new(unaccepted, lock_file(common, &user_dirs), &record, common)?;
    let added = plugin_gate.added_paths();
    let policy_in_force = Arc::clone(catalog.policy());
    for path in settings.plugins.iter().chain(&added) {
        let origin = PluginProvenance::File(path.clone());
        match ComponentBytes::read(path) {
            Ok(component) => {
                // A plugin that the policy refuses is neither compiled nor queried.
                if let Some(refusal) = policy_in_force
                    .plugin_refusal(component.digest().as_str(), &plugin_gate.plugin_origins(path))
                {
                    catalog.add_denied(
                        origin,
                        format!("{}: {}. {}", refusal.location, refusal.problem, refusal.hint),
                    );
                    continue;
                }
                let on_compile = || report_compilation(&path.display().to_string());
                catalog.add_if(&sandbox, origin, component, &on_compile, &mut |plugin| {
                    plugin_gate.check_plugin(path, plugin)
                });
            }
            Err(error) => catalog.add_broken(origin, &error),
        }
    }
    plugin_gate.check_locked(catalog.refused_plugins())?;
    settings.plugins.extend(added);
    let (credentials, host_keys) = credentials::load(&settings)?;
    let credentials = credentials.into();
    let secrets = model_settings(&settings).secrets().into_iter().chain(host_keys).collect();
    let call_slots = settings.max_parallel.into();
    let named_plugins = settings.plugins.clone();
    let own_paths = own_paths(common, &user_dirs);
    let catalog = Arc::new(catalog);
    Ok(AppContext {
        settings,
        user_dirs,
        sandbox,
        catalog,
        commands,
        environment: common.environment.clone(),
        credentials,
        secrets,
        call_slots,
        named_plugins,
        own_paths,
        listed_files: listed,
        instruction_record: instructions,
    })
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
            "{place}: the policy does not leave mode `{mode}`; it leaves {allowed}"
        )));
    }
    policy.nearest_mode(chosen).ok_or_else(|| {
        let place = policy
            .mode_denied_by(ApprovalMode::Plan)
            .map(|place| format!("{place}: "))
            .unwrap_or_default();
        CliError::configuration(format!(
            "{place}the policy leaves no mode as strict as `{chosen}`, so nothing runs"
        ))
    })
}

impl AppContext {
    /// Opens the workspace for tools, with the protected paths of the policy and of this program.
    /// Every dispatcher's workspace comes from here.
    ///
    /// # Errors
    ///
    /// If the directory contains files of this program, or files that other programs run or obey.
    pub(super) fn open_workspace(&self, path: &Path) -> Result<Arc<Workspace>, CliError> {
        let workspace = Workspace::open(path, &self.environment)?;
        let root = workspace.root().to_owned();
        if let Some(own) = self.own_paths.iter().find(|own| root.starts_with(own)) {
            return Err(CliError::configuration(format!(
                "{} cannot be a workspace: this program keeps its own files in {}, and no tool \
                    may change those",
                root.display(),
                own.display()
            )));
        }
        if let Some(protected) = workspace.protected_directory() {
            return Err(CliError::configuration(format!(
                "{} cannot be a workspace: other programs run or obey the files in {}, and no \
                    tool may change those. `-C DIR` names \
                 the directory of a project",
                root.display(),
                protected.display()
            )));
        }
        self.commands.recover_unfinished(&root).iter().for_each(|remark| warn(remark));
        if let Some(problem) = broad_workspace_warning(&root) {
            warn(&format!("{problem}. `-C DIR` names the directory of one project"));
        }
        Ok(Arc::new(workspace.with_protected_paths(self.protected_paths(&root))))
    }

    /// Returns the protected paths of a workspace with this root.
    pub(super) fn protected_paths(&self, root: &Path) -> ProtectedPaths {
        let inside = self.own_paths.iter().filter_map(|own| {
            WorkspacePath::parse(own.strip_prefix(root).ok()?.to_str()?, None).ok()
        });
        let paths = inside
            .fold(self.catalog.policy().protected_paths(), |paths, own| paths.with_own_path(&own));
        let paths = self
            .listed_files
            .protected_targets()
            .fold(paths, |paths, (path, how)| paths.with_path(path, how));
        self.listed_files.on_the_way().fold(paths, |paths, path| paths.and_on_the_way(path))
    }

    /// Creates approvals under the policy, in the mode of the settings. They report decisions to
    /// the audit log.
    pub(super) fn new_approvals(
        &self,
        approver: Option<Arc<dyn Approver>>,
        audit: Option<&Arc<AuditWriter>>,
    ) -> SessionApprovals {
        let approvals = SessionApprovals::new(self.settings.mode, approver)
            .with_policy(Arc::clone(self.catalog.policy()));
        match audit {
            Some(audit) => approvals.with_audit_sink(Arc::clone(audit) as Arc<dyn AuditSink>),
            None => approvals,
        }
    }

    /// Creates a dispatcher for a workspace. `approvals` may outlive it.
    pub(super) fn new_dispatcher(
        &self,
        workspace: &Arc<Workspace>,
        approvals: Arc<SessionApprovals>,
        outputs: Option<OutputFiles>,
    ) -> Dispatcher {
        let (sandbox, catalog, settings) = (
            Arc::clone(&self.sandbox),
            Arc::clone(&self.catalog),
            self.dispatcher_settings(outputs),
        );
        Dispatcher::new(sandbox, catalog, Arc::clone(workspace), approvals, settings)
            .with_history(self.open_history(workspace))
    }

    /// Creates the runner of sub-agents, which work on tasks that tools delegate.
    ///
    /// Sub-agents use the same model and only read-only tools, so they never need an approval.
    pub(super) fn new_sub_agents(
        &self,
        workspace: &Arc<Workspace>,
        approvals: &Arc<SessionApprovals>,
        model: &Arc<dyn LanguageModel>,
        system: String,
        outputs: Option<OutputFiles>,
    ) -> SubAgentRunner {
        let (sandbox, catalog) = (Arc::clone(&self.sandbox), Arc::new(self.catalog.read_only()));
        let (workspace, approvals, settings) =
            (Arc::clone(workspace), Arc::clone(approvals), self.dispatcher_settings(outputs));
        let tools = move || -> Box<dyn ToolRunner> {
            let (sandbox, catalog, workspace) =
                (Arc::clone(&sandbox), Arc::clone(&catalog), Arc::clone(&workspace));
            let dispatcher = Dispatcher::new(
                sandbox,
                catalog,
                workspace,
                Arc::clone(&approvals),
                settings.clone(),
            );
            Box::new(dispatcher.with_sub_agents(SubAgentRunner::NotNested))
        };
        let turn_limit = TurnLimit::new(SUB_AGENT_TURN_LIMIT).unwrap_or_default();
        SubAgentRunner::Available(Arc::new(SubAgentMaker {
            model: Arc::clone(model),
            tools: Box::new(tools),
            system,
            turn_limit,
        }))
    }

    fn dispatcher_settings(&self, outputs: Option<OutputFiles>) -> DispatcherSettings {
        DispatcherSettings {
            call_slots: self.call_slots.clone(),
            reorder: self.settings.reorder,
            output_limit: usize::try_from(CapName::ShownBytes.default_value())
                .unwrap_or(usize::MAX),
            output_files: outputs,
            limits: cofferdam::sandbox::CallLimits::default(),
            commands: Arc::clone(&self.commands),
            max_rejections: MAX_REJECTIONS,
            credentials: Arc::clone(&self.credentials),
            detect_repetition: self.settings.repetition_notice,
            instruction_record: Some(self.instruction_record.clone()),
        }
    }

    /// Opens the undo history of a workspace, and rolls back changes that a crash interrupted.
    fn open_history(&self, workspace: &Workspace) -> Arc<UndoHistory> {
        let history = UndoHistory::for_workspace(&self.user_dirs.undo(), workspace);
        let recovered = history.recover(workspace).unwrap_or_else(|error| vec![error.to_string()]);
        for line in recovered {
            warn(&line);
        }
        Arc::new(history)
    }

    /// Checks that all plugins of the configuration and the command line were loaded.
    ///
    /// # Errors
    ///
    /// If one of them is broken.
    pub(super) fn check_named_plugins(&self) -> Result<(), CliError> {
        let is_named = |origin: &PluginProvenance| match origin {
            PluginProvenance::File(path) => self.named_plugins.contains(path),
            PluginProvenance::BuiltIn(_) => false,
        };
        match self
            .catalog
            .refused_plugins()
            .iter()
            .find(|refused| refused.is_broken && is_named(&refused.origin))
        {
            Some(RefusedPlugin { origin, reason, .. }) => {
                let problem = format!("the plugin {origin} cannot be loaded: {reason}");
                Err(CliError::configuration(cofferdam::terminal_escape::escape_line(&problem, 600)))
            }
            None => Ok(()),
        }
    }

    /// Warns about refused plugins, and about tools that the user's configuration mentions but that
    /// do not exist.
    pub(super) fn warn_refused_plugins(&self) {
        for unknown in self.catalog.unknown_tools().iter().filter(|unknown| unknown.is_from_user) {
            eprint_line(&cofferdam::terminal_escape::escape_line(
                &format!("warning: {unknown}"),
                600,
            ));
        }
        for refused in self.catalog.refused_plugins() {
            eprint_line(&cofferdam::terminal_escape::escape_line(
                &format!("warning: plugin {} is not offered: {}", refused.origin, refused.reason),
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
    let home = std::env::home_dir()
        .filter(|home| home.is_absolute())
        .and_then(|home| home.canonicalize().ok());
    let what = match home {
        _ if root == Path::new("/") => "the whole machine",
        Some(home) if home == root => "your home directory",
        Some(home) if home.starts_with(root) => "your home directory and more",
        Some(_) | None => return None,
    };
    Some(format!(
        "the workspace {} is {what}: tools can read all of it, and commands can change it",
        root.display()
    ))
}

fn report_compilation(name: &str) {
    eprint_line(&cofferdam::terminal_escape::escape_line(
        &format!("preparing the tool {name} for this machine (once) …"),
        200,
    ));
}
