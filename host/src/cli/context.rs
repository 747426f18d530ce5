//! Putting the parts together for a command.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use super::args::CommonArgs;
use super::audit;
use super::credentials;
use super::error::CliError;
use super::plugin_gate::{PluginGate, UnacceptedPolicy};
use super::print::eprint_line;
use crate::agent::ports::{LanguageModel, ToolRunner};
use crate::agent::{SUB_AGENT_TURN_LIMIT, SubAgentMaker, TurnLimit};
use crate::audit::AuditWriter;
use crate::config::{
    OwnPaths, PluginLockFile, PolicyPaths, RawApi, RawConfig, RunSettings, SettingsFlags,
    UserDirectories,
};
use crate::model::{self, ApiKey};
use crate::policy::{ApprovalMode, CapName, Policy, ProtectedPaths, WorkspacePath};
use crate::sandbox::{
    ArtifactCache, CacheError, CacheKey, CommandSandbox, CompilerKind, ComponentBytes,
    HostCredential, InstanceAllocation, ListedFiles, SandboxOptions, UndoHistory, WasmSandbox,
    Workspace,
};
use crate::tools::{
    Approver, AuditSink, AuthorityChange, Dispatcher, DispatcherSettings, InstructionRecord,
    OutputFiles, ParallelCallSlots, PluginProvenance, RefusedPlugin, SessionApprovals,
    SubAgentRunner, ToolCatalog, builtin_components,
};

/// Rejections in a row after which a request goes back to the user.
const MAX_REJECTIONS: u32 = 3;

/// What every command that has to do with tools needs.
pub(super) struct AppContext {
    pub(super) settings: RunSettings,
    pub(super) user_dirs: UserDirectories,
    pub(super) sandbox: Arc<WasmSandbox>,
    pub(super) catalog: Arc<ToolCatalog>,
    pub(super) commands: Arc<CommandSandbox>,
    credentials: Arc<[HostCredential]>,
    /// Keys of providers and of hosts: what is taken out of everything that is written.
    pub(super) secrets: Vec<ApiKey>,
    /// One for all who call tools, or each sub-agent would have as many as the request.
    call_slots: ParallelCallSlots,
    /// The plugins of the configuration and of the command line.
    named_plugins: Vec<PathBuf>,
    own_paths: OwnPaths,
    /// The instruction files and the files that run code, as they are when the program starts.
    pub(super) listed_files: ListedFiles,
    /// Where their changes are noted.
    pub(super) instruction_record: InstructionRecord,
}

/// Reads the configuration and the flags, and what the policies of the system and of the user leave
/// of them: for a command that calls no tool, and may be there to deal with the policy of the
/// project.
pub(super) fn load_settings(
    common: &CommonArgs,
    flags: SettingsFlags,
) -> Result<(RunSettings, UserDirectories), CliError> {
    let (settings, folders) = load_chosen_settings(common, flags)?;
    let places =
        PolicyPaths { project: None, ..PolicyPaths::for_current_user(&folders, &common.workspace) };
    let loaded = places.load(settings.profile)?;
    Ok((settings.with_policy(&loaded.policy).0, folders))
}

/// Reads the configuration and the flags, whatever the policy says.
pub(super) fn load_chosen_settings(
    common: &CommonArgs,
    flags: SettingsFlags,
) -> Result<(RunSettings, UserDirectories), CliError> {
    // Before anything is looked for in it: a folder that is none is no fault of the policy that
    // cannot be read there.
    Workspace::open(&common.workspace)?;
    let folders = UserDirectories::for_current_user()?;
    Ok((read_settings(common, flags, &folders)?, folders))
}

fn read_settings(
    common: &CommonArgs,
    flags: SettingsFlags,
    folders: &UserDirectories,
) -> Result<RunSettings, CliError> {
    let raw = match &common.config {
        Some(path) => RawConfig::read_required(path)?,
        None => RawConfig::read(&folders.config_file())?,
    };
    raw.check_own_paths(&own_paths(common, folders))?;
    Ok(RunSettings::resolve(flags, |name| std::env::var(name).ok(), raw)?)
}

/// What this program keeps, and what it believes.
fn own_paths(common: &CommonArgs, folders: &UserDirectories) -> OwnPaths {
    OwnPaths::new(folders, common.config.as_deref().unwrap_or(&folders.config_file()))
}

/// Sets up the sandbox, with the cache of this user. Where there cannot be one, every start
/// compiles; one that somebody else could have put code into is an error.
pub(super) fn create_sandbox(
    allocation: InstanceAllocation,
    folders: &UserDirectories,
) -> Result<WasmSandbox, CliError> {
    let cache = match CacheKey::load_or_create(&folders.keys()) {
        Ok(key) => match ArtifactCache::open(folders.cache(), key) {
            Ok(cache) => Some(cache.with_mismatch_handler(warn_cache_mismatch)),
            Err(problem @ CacheError::Io(..)) => {
                warn_uncached(&problem);
                None
            }
            Err(problem @ CacheError::NotPrivate(..)) => return Err(problem.into()),
        },
        Err(problem) => {
            warn_uncached(&problem);
            None
        }
    };
    let compiler = CompilerKind::ChildProcess(crate::sandbox::current_program()?);
    Ok(WasmSandbox::new(SandboxOptions { allocation, compiler, cache })?)
}

fn warn_uncached(problem: &dyn std::fmt::Display) {
    warn(&format!("{problem}. Tools are compiled at each start, which takes some seconds"));
}

/// Says once that a cached file cannot be trusted: with another key, none of them can.
fn warn_cache_mismatch(file: &Path) {
    static SAID: Once = Once::new();
    SAID.call_once(|| warn(&mismatch(file)));
}

fn mismatch(file: &Path) -> String {
    format!(
        "cached code is not used: the file {} was changed, or the key that cached code is sealed \
            with was replaced since. What was compiled \
         before is compiled again",
        file.display()
    )
}

fn warn(problem: &str) {
    eprint_line(&crate::terminal_escape::escape_line(&format!("warning: {problem}"), 1000));
}

/// Where it is written down which plugins were accepted.
pub(super) fn lock_file(common: &CommonArgs, folders: &UserDirectories) -> PluginLockFile {
    PluginLockFile::next_to(common.config.as_deref().unwrap_or(&folders.config_file()))
}

/// Sets up the sandbox and loads all plugins that were accepted, or that somebody accepts now.
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

/// The same with all plugins, for a command that calls none of them.
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
    door: UnacceptedPolicy,
    common: &CommonArgs,
    flags: SettingsFlags,
    allocation: InstanceAllocation,
) -> Result<AppContext, CliError> {
    let mode_flag = flags.mode;
    // Before anything is looked for in it: a folder that is none is no fault of the policy that
    // cannot be read there.
    let workspace = Workspace::open(&common.workspace)?;
    let mut warnings = Vec::new();
    let folders = UserDirectories::for_run(&mut warnings)?;
    warnings.iter().for_each(|warning| warn(warning));
    let settings = read_settings(common, flags, &folders)?;
    let mut policy =
        PolicyPaths::for_current_user(&folders, &common.workspace).load(settings.profile)?;
    let workspace = Arc::new(workspace.with_protected_paths(policy.policy.protected_paths()));
    let listed = workspace.scan_listed_files();
    listed.aliases().for_each(|(real, link)| policy.policy.add_alias(real, link));
    let instructions = InstructionRecord::new(&folders.instructions(), workspace.root());
    let (mut settings, _) = settings.with_policy(&policy.policy);
    settings.mode = effective_mode(&policy.policy, mode_flag, settings.mode)?;
    let commands = CommandSandbox::new(
        crate::sandbox::current_program()?,
        settings.commands.clone(),
        folders.set_aside_dir(),
    );
    let commands =
        Arc::new(commands.with_own(own_paths(common, &folders).iter().cloned().collect()));
    let sandbox = Arc::new(create_sandbox(allocation, &folders)?);
    let mut catalog = ToolCatalog::with_policy(policy.policy, settings.caps.clone());
    for (name, component) in builtin_components() {
        catalog.add(&sandbox, PluginProvenance::BuiltIn(name), component, &|| {
            report_compilation(name)
        });
    }
    let record = |change: &AuthorityChange<'_>| {
        audit::record_change(&settings, &folders, &common.workspace, change)
    };
    let mut admission = PluginGate::new(door, lock_file(common, &folders), &record, common)?;
    let added = admission.added_paths();
    let in_force = Arc::clone(catalog.policy());
    for path in settings.plugins.iter().chain(&added) {
        let origin = PluginProvenance::File(path.clone());
        match ComponentBytes::read(path) {
            Ok(component) => {
                // Nothing of what the policy does not allow is compiled or asked.
                if let Some(refusal) = in_force
                    .plugin_refusal(component.digest().as_str(), &admission.plugin_origins(path))
                {
                    catalog.add_denied(
                        origin,
                        format!("{}: {}. {}", refusal.location, refusal.problem, refusal.hint),
                    );
                    continue;
                }
                let on_compile = || report_compilation(&path.display().to_string());
                catalog.add_if(&sandbox, origin, component, &on_compile, &mut |plugin| {
                    admission.check_plugin(path, plugin)
                });
            }
            Err(error) => catalog.add_broken(origin, &error),
        }
    }
    admission.check_locked(catalog.refused_plugins())?;
    settings.plugins.extend(added);
    let (credentials, of_hosts) = credentials::load(&settings)?;
    let credentials = credentials.into();
    let secrets = model_settings(&settings).secrets().into_iter().chain(of_hosts).collect();
    let slots = settings.max_parallel.into();
    let named = settings.plugins.clone();
    let own = own_paths(common, &folders);
    let catalog = Arc::new(catalog);
    Ok(AppContext {
        settings,
        user_dirs: folders,
        sandbox,
        catalog,
        commands,
        credentials,
        secrets,
        call_slots: slots,
        named_plugins: named,
        own_paths: own,
        listed_files: listed,
        instruction_record: instructions,
    })
}

/// The mode that comes into force: the chosen one, or the nearest stricter one that the policy
/// leaves. One that was asked for on the command line and is not to be had is an error.
pub(super) fn effective_mode(
    policy: &Policy,
    flag: Option<ApprovalMode>,
    chosen: ApprovalMode,
) -> Result<ApprovalMode, CliError> {
    let left: Vec<&str> = ApprovalMode::STRICTEST_FIRST
        .into_iter()
        .filter(|mode| policy.mode_denied_by(*mode).is_none())
        .map(ApprovalMode::name)
        .collect();
    if let Some((mode, place)) =
        flag.and_then(|mode| policy.mode_denied_by(mode).map(|place| (mode, place)))
    {
        let left = if left.is_empty() { "none".to_owned() } else { left.join(", ") };
        return Err(CliError::configuration(format!(
            "{place}: the policy does not leave mode `{mode}`; it leaves {left}"
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
    /// The workspace that tools work on, with all protected that the policy protects, and what this
    /// program keeps. There is no other way from a command to a dispatcher's workspace.
    pub(super) fn open_workspace(&self, path: &Path) -> Result<Arc<Workspace>, CliError> {
        let workspace = Workspace::open(path)?;
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

    /// What is protected in a workspace with this root.
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

    /// Approvals under the policy, in the mode of the settings, which tell the audit log what is
    /// decided and done.
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

    /// A dispatcher for a workspace, with approvals that may outlive it.
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

    /// Who works on tasks that tools hand over: sub-agents of this model, which have the tools that
    /// can only read, and the approvals of whoever they work for, though there is nothing to
    /// approve.
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
            limits: crate::sandbox::CallLimits::default(),
            commands: Arc::clone(&self.commands),
            max_rejections: MAX_REJECTIONS,
            credentials: Arc::clone(&self.credentials),
            detect_repetition: self.settings.repetition_notice,
            instruction_record: Some(self.instruction_record.clone()),
        }
    }

    /// What was there before tools changed it. What a crash has left half done is taken back now.
    fn open_history(&self, workspace: &Workspace) -> Arc<UndoHistory> {
        let history = UndoHistory::for_workspace(&self.user_dirs.undo(), workspace);
        let recovered = history.recover(workspace).unwrap_or_else(|error| vec![error.to_string()]);
        for line in recovered {
            warn(&line);
        }
        Arc::new(history)
    }

    /// Whoever names a plugin counts on it: without one that cannot be loaded nothing runs.
    pub(super) fn check_named_plugins(&self) -> Result<(), CliError> {
        let named = |origin: &PluginProvenance| matches!(origin, PluginProvenance::File(path) if self.named_plugins.contains(path));
        match self
            .catalog
            .refused_plugins()
            .iter()
            .find(|refused| refused.is_broken && named(&refused.origin))
        {
            Some(RefusedPlugin { origin, reason, .. }) => {
                let problem = format!("the plugin {origin} cannot be loaded: {reason}");
                Err(CliError::configuration(crate::terminal_escape::escape_line(&problem, 600)))
            }
            None => Ok(()),
        }
    }

    /// Tells of plugins that were not let in, and of tools that the user says something about and
    /// that are not there; a run goes on without them.
    pub(super) fn warn_refused_plugins(&self) {
        for unknown in self.catalog.unknown_tools().iter().filter(|unknown| unknown.is_from_user) {
            eprint_line(&crate::terminal_escape::escape_line(&format!("warning: {unknown}"), 600));
        }
        for refused in self.catalog.refused_plugins() {
            eprint_line(&crate::terminal_escape::escape_line(
                &format!("warning: plugin {} is not offered: {}", refused.origin, refused.reason),
                600,
            ));
        }
    }
}

/// What the model room needs to know.
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

/// What is wrong with a workspace that holds more than a project, if it does.
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
    eprint_line(&crate::terminal_escape::escape_line(
        &format!("preparing the tool {name} for this machine (once) …"),
        200,
    ));
}
