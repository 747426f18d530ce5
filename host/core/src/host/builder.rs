//! The description of a host, from which it is built.

use std::path::PathBuf;
use std::sync::Arc;

use super::prepared::{PreparedHost, PreparedParts};
use super::sandbox_setup::create_sandbox;
use super::{
    AuditOptions, HelperProcesses, Host, HostError, IgnoreEvents, RequestSettings, policy_bounds,
};
use crate::agent::events::{AgentEvent, Observer};
use crate::config::{OwnPaths, UserDirectories, allow_host_always};
use crate::model::ApiKey;
use crate::plugins::{AcceptAll, PluginReview};
use crate::policy::{ApprovalMode, ChosenCaps, CommandNetwork, CommandRules, Policy};
use crate::sandbox::{
    CommandSandbox, ComponentBytes, HostCredential, HostEnvironment, InstanceAllocation,
    WasmSandbox, Workspace,
};
use crate::tools::{
    Approver, InstructionRecord, PluginProvenance, ToolCatalog, ToolSource, UserRuleFile,
    builtin_components,
};

/// A function that shows a warning or a notice to the user.
pub type NoticeHandler = Arc<dyn Fn(&str) + Send + Sync>;

/// The description of a [`Host`].
///
/// By default a host has the built-in tools and no other plugin, the default policy, the mode `ask`
/// without an approver (so everything that needs approval is denied), and no directory of its own:
/// it stores nothing, and `undo` is not available.
///
/// ```no_run
/// use cofferdam::host::Host;
/// use cofferdam::policy::ApprovalMode;
///
/// # fn main() -> Result<(), cofferdam::host::HostError> {
/// let host = Host::builder("path/to/project").mode(ApprovalMode::Plan).build()?;
/// for tool in host.catalog().tools() {
///     println!("{}: {}", tool.declaration.name, tool.tier.name());
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct HostBuilder {
    workspace: PathBuf,
    environment: HostEnvironment,
    policy: Policy,
    caps: ChosenCaps,
    mode: ApprovalMode,
    has_built_in_tools: bool,
    plugins: Vec<PathBuf>,
    sources: Vec<Arc<dyn ToolSource>>,
    refused_sources: Vec<(String, String, Vec<String>)>,
    helpers: Option<HelperProcesses>,
    allocation: InstanceAllocation,
    commands: CommandRules,
    directories: Option<UserDirectories>,
    own_paths: Option<OwnPaths>,
    credentials: Vec<HostCredential>,
    secrets: Vec<ApiKey>,
    settings: RequestSettings,
    audit: Option<AuditOptions>,
    approver: Option<Arc<dyn Approver>>,
    rule_file: Option<PathBuf>,
    observer: Arc<dyn Observer>,
    on_warning: Option<NoticeHandler>,
    today: Arc<dyn Fn() -> String + Send + Sync>,
}

impl HostBuilder {
    pub(super) fn new(workspace: PathBuf) -> Self {
        Self {
            workspace,
            environment: HostEnvironment::default(),
            policy: Policy::default(),
            caps: ChosenCaps::default(),
            mode: ApprovalMode::Ask,
            has_built_in_tools: true,
            plugins: Vec::new(),
            sources: Vec::new(),
            refused_sources: Vec::new(),
            helpers: None,
            allocation: InstanceAllocation::Pooled,
            commands: CommandRules::default(),
            directories: None,
            own_paths: None,
            credentials: Vec::new(),
            secrets: Vec::new(),
            settings: RequestSettings::default(),
            audit: None,
            approver: None,
            rule_file: None,
            observer: Arc::new(IgnoreEvents),
            on_warning: None,
            today: Arc::new(|| jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()),
        }
    }

    /// Sets the environment of the user: the home directory, the directory for temporary files and
    /// the variables that commands and git settings depend on. The audit log takes the user name
    /// from the variables. The default has no home and no variables, so commands do not even have
    /// a `PATH`.
    pub fn environment(self, environment: HostEnvironment) -> Self {
        Self { environment, ..self }
    }

    /// Sets the policy, which decides what each tool may do.
    ///
    /// It also bounds the mode, the model, the rules for commands, the record of sessions and the
    /// audit log, whatever the other methods set.
    pub fn policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// Sets the limits of calls that the user configured. The policy can lower them.
    pub fn caps(self, caps: ChosenCaps) -> Self {
        Self { caps, ..self }
    }

    /// Sets the approval mode, which decides what is asked about where no rule does.
    pub fn mode(self, mode: ApprovalMode) -> Self {
        Self { mode, ..self }
    }

    /// Adds a plugin: a component file. [`build`](Self::build) fails if it cannot be loaded.
    pub fn plugin(mut self, path: impl Into<PathBuf>) -> Self {
        self.plugins.push(path.into());
        self
    }

    /// Adds plugins, as [`plugin`](Self::plugin) does.
    pub fn plugins(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.plugins.extend(paths);
        self
    }

    /// Adds a source of tools, such as an MCP server. Its tools come after all others, and never
    /// take the name of another tool.
    pub fn tool_source(mut self, source: Arc<dyn ToolSource>) -> Self {
        self.sources.push(source);
        self
    }

    /// Records a source of tools that is not used, for a reason, with the names of its tools.
    pub fn refused_source(
        mut self,
        name: impl Into<String>,
        reason: impl Into<String>,
        tools: Vec<String>,
    ) -> Self {
        self.refused_sources.push((name.into(), reason.into(), tools));
        self
    }

    /// Removes the built-in tools.
    pub fn without_built_in_tools(self) -> Self {
        Self { has_built_in_tools: false, ..self }
    }

    /// Permits helper processes, which compile untrusted components and supervise commands.
    pub fn helper_processes(self, helpers: HelperProcesses) -> Self {
        Self { helpers: Some(helpers), ..self }
    }

    /// Sets where the memory of instances comes from. The default is a pool, which suits a process
    /// with many calls.
    pub fn allocation(self, allocation: InstanceAllocation) -> Self {
        Self { allocation, ..self }
    }

    /// Sets the rules for commands: the sandbox levels, the network, paths and limits.
    pub fn command_rules(self, commands: CommandRules) -> Self {
        Self { commands, ..self }
    }

    /// Sets the directories for sessions, undo, the audit log and compiled components.
    pub fn directories(self, directories: UserDirectories) -> Self {
        Self { directories: Some(directories), ..self }
    }

    /// Sets the files and directories of the program itself, which no tool may change.
    pub fn own_paths(self, own_paths: OwnPaths) -> Self {
        Self { own_paths: Some(own_paths), ..self }
    }

    /// Adds credentials that the host adds to requests of tools, which never see them.
    pub fn credentials(mut self, credentials: impl IntoIterator<Item = HostCredential>) -> Self {
        self.credentials.extend(credentials);
        self
    }

    /// Adds secrets, which are redacted from everything that is stored.
    pub fn secrets(mut self, secrets: impl IntoIterator<Item = ApiKey>) -> Self {
        self.secrets.extend(secrets);
        self
    }

    /// Sets the limits of requests and calls.
    pub fn request_settings(self, settings: RequestSettings) -> Self {
        Self { settings, ..self }
    }

    /// Sets the audit log. The default is none.
    pub fn audit(self, audit: AuditOptions) -> Self {
        Self { audit: Some(audit), ..self }
    }

    /// Sets who approves effects. Without an approver, everything that needs approval is denied.
    pub fn approver(self, approver: Arc<dyn Approver>) -> Self {
        Self { approver: Some(approver), ..self }
    }

    /// Sets the user's policy file, to which the answer
    /// [`YesAlways`](crate::tools::ApprovalAnswer::YesAlways) adds rules. Without it, that answer
    /// is not offered.
    pub fn rule_file(self, file: impl Into<PathBuf>) -> Self {
        Self { rule_file: Some(file.into()), ..self }
    }

    /// Sets who sees the events of calls and requests.
    pub fn observer(self, observer: Arc<dyn Observer>) -> Self {
        Self { observer, ..self }
    }

    /// Sets who sees warnings. The default is the observer, as notices.
    pub fn on_warning(self, show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { on_warning: Some(Arc::new(show)), ..self }
    }

    /// Sets the source of the date in system prompts, such as `2026-01-31`. The default is the date
    /// in UTC.
    pub fn today(self, today: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { today: Arc::new(today), ..self }
    }

    /// Builds the host. Compiles components that are not in the cache, which can take seconds.
    ///
    /// # Errors
    ///
    /// Returns an error if the workspace, a plugin or a directory cannot be used.
    pub fn build(self) -> Result<Host, HostError> {
        let prepared = self.prepare(&mut AcceptAll)?;
        prepared.check_plugins()?;
        prepared.open()
    }

    /// Loads the policy and the plugins, but does not open the workspace for tools. Plugins that
    /// cannot be loaded or that `review` refuses are listed in
    /// [`ToolCatalog::refused_plugins`].
    ///
    /// # Errors
    ///
    /// Returns an error if the workspace or the cache cannot be used.
    pub fn prepare(self, review: &mut dyn PluginReview) -> Result<PreparedHost, HostError> {
        let observer = self.observer;
        let warn = self.on_warning.unwrap_or_else(|| {
            let observer = Arc::clone(&observer);
            Arc::new(move |text: &str| observer.observe(&AgentEvent::Notice(text)))
        });
        let mut policy = self.policy;
        policy_bounds::check_mode(&policy, self.mode)?;
        let home = self.environment.home.as_deref();
        let command_rules = policy_bounds::bound_commands(self.commands, &policy, home);
        if let CommandNetwork::Listed(rules) = &command_rules.network
            && !rules.is_empty()
        {
            policy.add_layer(rules.to_layer());
        }
        let audit = policy_bounds::bound_audit(self.audit, &policy, self.directories.as_ref());
        let workspace = Workspace::open(&self.workspace, &self.environment)?;
        let workspace = Arc::new(workspace.with_protected_paths(policy.protected_paths()));
        let listed_files = workspace.scan_listed_files();
        listed_files.aliases().for_each(|(real, link)| policy.add_alias(real, link));
        let directories = self.directories.as_ref();
        let sandbox = Arc::new(create_sandbox(self.allocation, self.helpers, directories, &warn)?);
        let program = self.helpers.map(HelperProcesses::program).transpose()?;
        let mut catalog = ToolCatalog::with_policy(policy, self.caps);
        if self.has_built_in_tools {
            for (name, component) in builtin_components() {
                let on_compile = || review.compilation_started(name);
                catalog.add(&sandbox, PluginProvenance::BuiltIn(name), component, &on_compile);
            }
        }
        for path in &self.plugins {
            add_plugin(&mut catalog, &sandbox, path, review);
        }
        self.sources.iter().for_each(|source| catalog.add_source(source));
        for (name, reason, tools) in self.refused_sources {
            catalog.add_refused_source(&name, reason, tools);
        }
        let set_aside = directories.map(UserDirectories::set_aside_dir).unwrap_or_default();
        let own_paths = self.own_paths.or_else(|| {
            let directories = directories?;
            Some(OwnPaths::new(directories, &directories.config_file()))
        });
        let own: Vec<PathBuf> = own_paths.iter().flat_map(OwnPaths::iter).cloned().collect();
        let program = program.unwrap_or_default();
        let commands =
            CommandSandbox::new(program, command_rules, set_aside, self.environment.clone())
                .with_own(own.clone())
                .with_layers(directories.map(UserDirectories::command_layers));
        let instruction_record = directories.map(|directories| {
            InstructionRecord::new(&directories.instructions(), workspace.root())
        });
        let rule_file = self.rule_file.map(|file| open_rule_file(file, &warn));
        Ok(PreparedHost::new(PreparedParts {
            workspace: self.workspace,
            environment: self.environment,
            mode: self.mode,
            plugins: self.plugins,
            sandbox,
            catalog: Arc::new(catalog),
            commands: Arc::new(commands),
            credentials: self.credentials.into(),
            secrets: self.secrets,
            call_slots: self.settings.max_parallel.into(),
            settings: self.settings,
            directories: self.directories,
            own,
            listed_files,
            instruction_record,
            audit,
            approver: self.approver,
            rule_file,
            observer,
            warn,
            today: self.today,
        }))
    }
}

/// Returns the policy file to which rules are added. A failure is a warning.
fn open_rule_file(file: PathBuf, warn: &NoticeHandler) -> UserRuleFile {
    let warn = Arc::clone(warn);
    UserRuleFile::new(file.display().to_string(), move |rule| {
        if let Err(error) = allow_host_always(&file, &rule.host) {
            warn(&format!(
                "the rule was not added, so the approval ends with this session: {error}\nhint: \
                    add {rule}"
            ));
        }
    })
}

/// Adds a plugin to the catalog, or the reason why it is refused.
fn add_plugin(
    catalog: &mut ToolCatalog,
    sandbox: &WasmSandbox,
    path: &std::path::Path,
    review: &mut dyn PluginReview,
) {
    let origin = PluginProvenance::File(path.to_owned());
    let component = match ComponentBytes::read(path) {
        Ok(component) => component,
        Err(error) => return catalog.add_broken(origin, &error),
    };
    // A plugin that the policy denies is neither compiled nor asked for its tools.
    let denied =
        catalog.policy().plugin_refusal(component.digest().as_str(), &review.origins(path));
    if let Some(refusal) = denied {
        let reason = format!("{}: {}. {}", refusal.location, refusal.problem, refusal.hint);
        return catalog.add_denied(origin, reason);
    }
    let name = path.display().to_string();
    let plugin = match sandbox.load(component, &|| review.compilation_started(&name)) {
        Ok(plugin) => plugin,
        Err(error) => return catalog.add_broken(origin, &error),
    };
    let refusal = review.review(path, &plugin).err();
    catalog.add_reviewed(origin, plugin, refusal);
}
