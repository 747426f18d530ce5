//! Putting the parts together for a command.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use super::admission::{Admission, Door};
use super::args::Common;
use super::audit;
use super::credentials;
use super::error::CliError;
use super::print::stderr_line;
use crate::agent::ports::{Model, Tools};
use crate::agent::{SUB_AGENT_TURNS, SubAgentMaker, TurnLimit};
use crate::audit::Audit;
use crate::config::{Api, Flags, Folders, LockFile, OwnPlaces, PolicyPlaces, Raw, Settings};
use crate::model::{self, Secret};
use crate::policy::{Cap, Mode, Policy, ProtectedPaths, WorkspacePath};
use crate::sandbox::{
    Allocation, Cache, CacheKey, CacheProblem, Commands, Compiler, ComponentBytes, Credential, History, ListedFiles, Sandbox,
    SandboxOptions, Workspace,
};
use crate::tools::{
    Approvals, Approver, Catalog, Change, Dispatcher, DispatcherSettings, InstructionRecord, Ledger, Origin, Outputs, Refused, Slots,
    SubAgents, builtin_components,
};

/// Rejections in a row after which a request goes back to the user.
const REJECTIONS: u32 = 3;

/// What every command that has to do with tools needs.
pub(super) struct Parts {
    pub(super) settings: Settings,
    pub(super) folders: Folders,
    pub(super) sandbox: Arc<Sandbox>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) commands: Arc<Commands>,
    credentials: Arc<[Credential]>,
    /// Keys of providers and of hosts: what is taken out of everything that is written.
    pub(super) secrets: Vec<Secret>,
    /// One for all who call tools, or each sub-agent would have as many as the request.
    slots: Slots,
    /// The plugins of the configuration and of the command line.
    named: Vec<PathBuf>,
    own: OwnPlaces,
    /// The instruction files and the files that run code, as they are when the program starts.
    pub(super) listed: ListedFiles,
    /// Where their changes are noted.
    pub(super) instructions: InstructionRecord,
}

/// Reads the configuration and the flags, and what the policies of the system and of the user leave of them: for a command
/// that calls no tool, and may be there to deal with the policy of the project.
pub(super) fn settings(common: &Common, flags: Flags) -> Result<(Settings, Folders), CliError> {
    let (settings, folders) = chosen_settings(common, flags)?;
    let places = PolicyPlaces { project: None, ..PolicyPlaces::of_this_user(&folders, &common.workspace) };
    let loaded = places.load(settings.profile)?;
    Ok((settings.under(&loaded.policy).0, folders))
}

/// Reads the configuration and the flags, whatever the policy says.
pub(super) fn chosen_settings(common: &Common, flags: Flags) -> Result<(Settings, Folders), CliError> {
    // Before anything is looked for in it: a folder that is none is no fault of the policy that cannot be read there.
    Workspace::open(&common.workspace)?;
    let folders = Folders::of_this_user()?;
    Ok((settings_with(common, flags, &folders)?, folders))
}

fn settings_with(common: &Common, flags: Flags, folders: &Folders) -> Result<Settings, CliError> {
    let raw = match &common.config {
        Some(path) => Raw::read_named(path)?,
        None => Raw::read(&folders.config_file())?,
    };
    raw.check(&own_places(common, folders))?;
    Ok(Settings::resolve(flags, |name| std::env::var(name).ok(), raw)?)
}

/// What this program keeps, and what it believes.
fn own_places(common: &Common, folders: &Folders) -> OwnPlaces {
    OwnPlaces::of(folders, common.config.as_deref().unwrap_or(&folders.config_file()))
}

/// Sets up the sandbox, with the cache of this user. Where there cannot be one, every start compiles; one that somebody else could
/// have put code into is an error.
pub(super) fn sandbox(allocation: Allocation, folders: &Folders) -> Result<Sandbox, CliError> {
    let cache = match CacheKey::of(&folders.keys()) {
        Ok(key) => match Cache::open(folders.cache(), key) {
            Ok(cache) => Some(cache.reporting(warn_of_mismatch)),
            Err(problem @ CacheProblem::Io(..)) => {
                warn_uncached(&problem);
                None
            }
            Err(problem @ CacheProblem::NotPrivate(..)) => return Err(problem.into()),
        },
        Err(problem) => {
            warn_uncached(&problem);
            None
        }
    };
    let compiler = Compiler::Process(crate::sandbox::this_program()?);
    Ok(Sandbox::new(SandboxOptions { allocation, compiler, cache })?)
}

fn warn_uncached(problem: &dyn std::fmt::Display) {
    warn(&format!("{problem}. Tools are compiled at each start, which takes some seconds"));
}

/// Says once that a cached file cannot be trusted: with another key, none of them can.
fn warn_of_mismatch(file: &Path) {
    static SAID: Once = Once::new();
    SAID.call_once(|| warn(&mismatch(file)));
}

fn mismatch(file: &Path) -> String {
    format!(
        "cached code is not used: the file {} was changed, or the key that cached code is sealed with was replaced since. What was compiled \
         before is compiled again",
        file.display()
    )
}

fn warn(problem: &str) {
    stderr_line(&crate::shown::line(&format!("warning: {problem}"), 1000));
}

/// Where it is written down which plugins were accepted.
pub(super) fn lock_file(common: &Common, folders: &Folders) -> LockFile {
    LockFile::beside(common.config.as_deref().unwrap_or(&folders.config_file()))
}

/// Sets up the sandbox and loads all plugins that were accepted, or that somebody accepts now.
pub(super) fn parts(common: &Common, flags: Flags, allocation: Allocation) -> Result<Parts, CliError> {
    parts_through(if common.locked { Door::Locked } else { Door::Asks }, common, flags, allocation)
}

/// The same with all plugins, for a command that calls none of them.
pub(super) fn parts_to_look_at(common: &Common, flags: Flags, allocation: Allocation) -> Result<Parts, CliError> {
    parts_through(if common.locked { Door::Locked } else { Door::Open }, common, flags, allocation)
}

fn parts_through(door: Door, common: &Common, flags: Flags, allocation: Allocation) -> Result<Parts, CliError> {
    let mode_flag = flags.mode;
    // Before anything is looked for in it: a folder that is none is no fault of the policy that cannot be read there.
    let workspace = Workspace::open(&common.workspace)?;
    let mut warnings = Vec::new();
    let folders = Folders::of_a_run(&mut warnings)?;
    warnings.iter().for_each(|warning| warn(warning));
    let settings = settings_with(common, flags, &folders)?;
    let mut policy = PolicyPlaces::of_this_user(&folders, &common.workspace).load(settings.profile)?;
    let workspace = Arc::new(workspace.protecting(policy.policy.protected()));
    let listed = workspace.listed_files();
    listed.aliases().for_each(|(real, link)| policy.policy.add_alias(real, link));
    let instructions = InstructionRecord::new(&folders.instructions(), workspace.root());
    let (mut settings, _) = settings.under(&policy.policy);
    settings.mode = mode_under(&policy.policy, mode_flag, settings.mode)?;
    let commands = Commands::new(crate::sandbox::this_program()?, settings.commands.clone(), folders.set_aside());
    let commands = Arc::new(commands.with_own(own_places(common, &folders).iter().cloned().collect()));
    let sandbox = Arc::new(sandbox(allocation, &folders)?);
    let mut catalog = Catalog::under(policy.policy, settings.caps.clone());
    for (name, component) in builtin_components() {
        catalog.add(&sandbox, Origin::BuiltIn(name), component, &|| preparing(name));
    }
    let record = |change: &Change<'_>| audit::record(&settings, &folders, &common.workspace, change);
    let mut admission = Admission::new(door, lock_file(common, &folders), &record, common)?;
    let added = admission.added();
    let in_force = Arc::clone(catalog.policy());
    for path in settings.plugins.iter().chain(&added) {
        let origin = Origin::File(path.clone());
        match ComponentBytes::read(path) {
            Ok(component) => {
                // Nothing of what the policy does not allow is compiled or asked.
                if let Some(refusal) = in_force.forbids_plugin(component.digest().as_str(), &admission.origins(path)) {
                    catalog.deny(origin, format!("{}: {}. {}", refusal.place, refusal.problem, refusal.hint));
                    continue;
                }
                let on_compile = || preparing(&path.display().to_string());
                catalog.add_if(&sandbox, origin, component, &on_compile, &mut |plugin| admission.admits(path, plugin));
            }
            Err(error) => catalog.refuse(origin, &error),
        }
    }
    admission.check_refused(catalog.refused())?;
    settings.plugins.extend(added);
    let (credentials, of_hosts) = credentials::of(&settings)?;
    let credentials = credentials.into();
    let secrets = model_settings(&settings).secrets().into_iter().chain(of_hosts).collect();
    let slots = settings.parallel.into();
    let named = settings.plugins.clone();
    let own = own_places(common, &folders);
    let catalog = Arc::new(catalog);
    Ok(Parts { settings, folders, sandbox, catalog, commands, credentials, secrets, slots, named, own, listed, instructions })
}

/// The mode that comes into force: the chosen one, or the nearest stricter one that the policy leaves. One that was asked
/// for on the command line and is not to be had is an error.
pub(super) fn mode_under(policy: &Policy, flag: Option<Mode>, chosen: Mode) -> Result<Mode, CliError> {
    let left: Vec<&str> = Mode::FROM_STRICT.into_iter().filter(|mode| policy.forbids(*mode).is_none()).map(Mode::name).collect();
    if let Some((mode, place)) = flag.and_then(|mode| policy.forbids(mode).map(|place| (mode, place))) {
        let left = if left.is_empty() { "none".to_owned() } else { left.join(", ") };
        return Err(CliError::configuration(format!("{place}: the policy does not leave mode `{mode}`; it leaves {left}")));
    }
    policy.nearest(chosen).ok_or_else(|| {
        let place = policy.forbids(Mode::Plan).map(|place| format!("{place}: ")).unwrap_or_default();
        CliError::configuration(format!("{place}the policy leaves no mode as strict as `{chosen}`, so nothing runs"))
    })
}

impl Parts {
    /// The workspace that tools work on, with all protected that the policy protects, and what this program keeps. There is
    /// no other way from a command to a dispatcher's workspace.
    pub(super) fn workspace(&self, path: &Path) -> Result<Arc<Workspace>, CliError> {
        let workspace = Workspace::open(path)?;
        let root = workspace.root().to_owned();
        if let Some(own) = self.own.iter().find(|own| root.starts_with(own)) {
            return Err(CliError::configuration(format!(
                "{} cannot be a workspace: this program keeps its own files in {}, and no tool may change those",
                root.display(),
                own.display()
            )));
        }
        if let Some(protected) = workspace.protected_directory() {
            return Err(CliError::configuration(format!(
                "{} cannot be a workspace: other programs run or obey the files in {}, and no tool may change those. `-C DIR` names \
                 the directory of a project",
                root.display(),
                protected.display()
            )));
        }
        self.commands.recover_unfinished(&root).iter().for_each(|remark| warn(remark));
        if let Some(problem) = too_wide(&root) {
            warn(&format!("{problem}. `-C DIR` names the directory of one project"));
        }
        Ok(Arc::new(workspace.protecting(self.protected_in(&root))))
    }

    /// What is protected in a workspace with this root.
    pub(super) fn protected_in(&self, root: &Path) -> ProtectedPaths {
        let inside = self.own.iter().filter_map(|own| WorkspacePath::parse(own.strip_prefix(root).ok()?.to_str()?, None).ok());
        let paths = inside.fold(self.catalog.policy().protected(), |paths, own| paths.and_own(&own));
        let paths = self.listed.behind_protected().fold(paths, |paths, (path, how)| paths.and_place(path, how));
        self.listed.on_the_way().fold(paths, |paths, path| paths.and_on_the_way(path))
    }

    /// Approvals under the policy, in the mode of the settings, which tell the audit log what is decided and done.
    pub(super) fn approvals(&self, approver: Option<Arc<dyn Approver>>, audit: Option<&Arc<Audit>>) -> Approvals {
        let approvals = Approvals::new(self.settings.mode, approver).under(Arc::clone(self.catalog.policy()));
        match audit {
            Some(audit) => approvals.recorded_by(Arc::clone(audit) as Arc<dyn Ledger>),
            None => approvals,
        }
    }

    /// A dispatcher for a workspace, with approvals that may outlive it.
    pub(super) fn dispatcher(&self, workspace: &Arc<Workspace>, approvals: Arc<Approvals>, outputs: Option<Outputs>) -> Dispatcher {
        let (sandbox, catalog, settings) = (Arc::clone(&self.sandbox), Arc::clone(&self.catalog), self.dispatcher_settings(outputs));
        Dispatcher::new(sandbox, catalog, Arc::clone(workspace), approvals, settings).keeping(self.history(workspace))
    }

    /// Who works on tasks that tools hand over: sub-agents of this model, which have the tools that can only read, and the
    /// approvals of whoever they work for, though there is nothing to approve.
    pub(super) fn sub_agents(
        &self,
        workspace: &Arc<Workspace>,
        approvals: &Arc<Approvals>,
        model: &Arc<dyn Model>,
        system: String,
        outputs: Option<Outputs>,
    ) -> SubAgents {
        let (sandbox, catalog) = (Arc::clone(&self.sandbox), Arc::new(self.catalog.reading()));
        let (workspace, approvals, settings) = (Arc::clone(workspace), Arc::clone(approvals), self.dispatcher_settings(outputs));
        let tools = move || -> Box<dyn Tools> {
            let (sandbox, catalog, workspace) = (Arc::clone(&sandbox), Arc::clone(&catalog), Arc::clone(&workspace));
            let dispatcher = Dispatcher::new(sandbox, catalog, workspace, Arc::clone(&approvals), settings.clone());
            Box::new(dispatcher.with_sub_agents(SubAgents::TooDeep))
        };
        let turn_limit = TurnLimit::new(SUB_AGENT_TURNS).unwrap_or_default();
        SubAgents::By(Arc::new(SubAgentMaker { model: Arc::clone(model), tools: Box::new(tools), system, turn_limit }))
    }

    fn dispatcher_settings(&self, outputs: Option<Outputs>) -> DispatcherSettings {
        DispatcherSettings {
            parallel: self.slots.clone(),
            reorder: self.settings.reorder,
            output_cap: usize::try_from(Cap::ShownBytes.default_value()).unwrap_or(usize::MAX),
            outputs,
            limits: crate::sandbox::Limits::default(),
            commands: Arc::clone(&self.commands),
            rejections: REJECTIONS,
            credentials: Arc::clone(&self.credentials),
            repetition: self.settings.repetition,
            instructions: Some(self.instructions.clone()),
        }
    }

    /// What was there before tools changed it. What a crash has left half done is taken back now.
    fn history(&self, workspace: &Workspace) -> Arc<History> {
        let history = History::of(&self.folders.undo(), workspace);
        let recovered = history.recover(workspace).unwrap_or_else(|error| vec![error.to_string()]);
        for line in recovered {
            warn(&line);
        }
        Arc::new(history)
    }

    /// Whoever names a plugin counts on it: without one that cannot be loaded nothing runs.
    pub(super) fn stop_for_broken(&self) -> Result<(), CliError> {
        let named = |origin: &Origin| matches!(origin, Origin::File(path) if self.named.contains(path));
        match self.catalog.refused().iter().find(|refused| refused.is_broken && named(&refused.origin)) {
            Some(Refused { origin, reason, .. }) => {
                let problem = format!("the plugin {origin} cannot be loaded: {reason}");
                Err(CliError::configuration(crate::shown::line(&problem, 600)))
            }
            None => Ok(()),
        }
    }

    /// Tells of plugins that were not let in, and of tools that the user says something about and that are not there; a run
    /// goes on without them.
    pub(super) fn warn_of_refused(&self) {
        for unknown in self.catalog.unknown_subjects().iter().filter(|unknown| unknown.of_user) {
            stderr_line(&crate::shown::line(&format!("warning: {unknown}"), 600));
        }
        for refused in self.catalog.refused() {
            stderr_line(&crate::shown::line(&format!("warning: plugin {} is not offered: {}", refused.origin, refused.reason), 600));
        }
    }
}

/// What the model room needs to know.
pub(super) fn model_settings(settings: &Settings) -> model::Settings {
    let provider = &settings.provider;
    let mut all = model::Settings::from_env(|name| std::env::var(name).ok());
    all.base_url = provider.base_url.clone();
    all.context_window = provider.context_window;
    all.max_output = provider.max_output;
    all.reasoning_effort = provider.reasoning_effort.clone();
    all.api = provider.api.map(|api| match api {
        Api::ChatCompletions => model::Api::ChatCompletions,
        Api::Responses => model::Api::Responses,
    });
    all.allow_plain_http = provider.allow_plain_http;
    all.timing.first_event = provider.first_event_timeout;
    if let Some(idle) = provider.idle_timeout {
        all.timing.idle = idle;
    }
    all
}

/// What is wrong with a workspace that holds more than a project, if it does.
pub(super) fn too_wide(root: &Path) -> Option<String> {
    let home = std::env::home_dir().filter(|home| home.is_absolute()).and_then(|home| home.canonicalize().ok());
    let what = match home {
        _ if root == Path::new("/") => "the whole machine",
        Some(home) if home == root => "your home directory",
        Some(home) if home.starts_with(root) => "your home directory and more",
        Some(_) | None => return None,
    };
    Some(format!("the workspace {} is {what}: tools can read all of it, and commands can change it", root.display()))
}

fn preparing(name: &str) {
    stderr_line(&crate::shown::line(&format!("preparing the tool {name} for this machine (once) …"), 200));
}
