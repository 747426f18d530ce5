//! Putting the parts together for a command.

use std::sync::Arc;

use super::args::Common;
use super::error::CliError;
use super::print::stderr_line;
use crate::audit::Audit;
use crate::config::{Flags, Folders, PolicyPlaces, Raw, RawCredential, Settings};
use crate::model::{self, Secret};
use crate::policy::{HostPattern, Mode, Policy};
use crate::sandbox::{Allocation, Cache, Compiler, ComponentBytes, Credential, Sandbox, SandboxOptions, Workspace};
use crate::tools::{Approvals, Approver, Catalog, Dispatcher, DispatcherSettings, Ledger, Origin, builtin_components};

/// Rejections in a row after which a request goes back to the user.
const REJECTIONS: u32 = 3;

/// What every command that has to do with tools needs.
pub(super) struct Parts {
    pub(super) settings: Settings,
    pub(super) folders: Folders,
    pub(super) sandbox: Arc<Sandbox>,
    pub(super) catalog: Arc<Catalog>,
    credentials: Arc<[Credential]>,
    /// Keys of providers and of hosts: what is taken out of everything that is written.
    pub(super) secrets: Vec<Secret>,
}

/// Reads the configuration and the flags.
pub(super) fn settings(common: &Common, flags: Flags) -> Result<(Settings, Folders), CliError> {
    let folders = Folders::of_this_user()?;
    let raw = match &common.config {
        // A file that was named has to be there.
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| CliError::new(format!("cannot read {}: {error}", path.display())))?;
            Raw::parse(&text, path)?
        }
        None => Raw::read(&folders.config_file())?,
    };
    let settings = Settings::resolve(flags, |name| std::env::var(name).ok(), raw)?;
    Ok((settings, folders))
}

/// Sets up the sandbox and loads all plugins.
pub(super) fn parts(common: &Common, flags: Flags, allocation: Allocation) -> Result<Parts, CliError> {
    let mode_flag = flags.mode;
    let (mut settings, folders) = settings(common, flags)?;
    let policy = PolicyPlaces::of_this_user(&folders, &common.workspace).load(settings.profile)?;
    settings.mode = mode_under(&policy.policy, mode_flag, settings.mode)?;
    let cache = Cache::open(folders.cache())?;
    let compiler = Compiler::Process(std::env::current_exe()?);
    let sandbox = Arc::new(Sandbox::new(SandboxOptions { allocation, compiler, cache: Some(cache) })?);
    let mut catalog = Catalog::under(policy.policy, settings.caps.clone());
    for (name, component) in builtin_components() {
        catalog.add(&sandbox, Origin::BuiltIn(name), component, &|| preparing(name));
    }
    for path in &settings.plugins {
        let origin = Origin::File(path.clone());
        match ComponentBytes::read(path) {
            Ok(component) => catalog.add(&sandbox, origin, component, &|| preparing(&path.display().to_string())),
            Err(error) => catalog.refuse(origin, &error),
        }
    }
    let (credentials, of_hosts) = credentials(&settings)?;
    let secrets = model_settings(&settings).secrets().into_iter().chain(of_hosts).collect();
    Ok(Parts { settings, folders, sandbox, catalog: Arc::new(catalog), credentials: credentials.into(), secrets })
}

/// What the configuration lends to hosts, and the secrets in it. One whose variable is not set is left out, and said.
fn credentials(settings: &Settings) -> Result<(Vec<Credential>, Vec<Secret>), CliError> {
    let mut all = (Vec::new(), Vec::new());
    for (host, RawCredential { header, env, prefix }) in &settings.credentials {
        let bad = |problem: String| CliError::configuration(format!("[credentials.\"{host}\"] in the configuration: {problem}"));
        let pattern = HostPattern::parse(host).map_err(|problem| bad(problem.to_string()))?;
        let Some(secret) = std::env::var(env).ok().and_then(|value| Secret::new(&value)) else {
            stderr_line(&crate::shown::line(&format!("warning: requests to {host} go without {header}: {env} is not set"), 400));
            continue;
        };
        let credential = Credential::new(pattern, header, &secret.header(prefix)).map_err(|problem| bad(problem.to_string()))?;
        all.0.push(credential);
        all.1.push(secret);
    }
    Ok(all)
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
    /// A dispatcher for a workspace, with approvals of its own.
    pub(super) fn dispatcher(&self, workspace: &Arc<Workspace>, approvals: Approvals) -> Dispatcher {
        self.dispatcher_with(workspace, Arc::new(approvals))
    }

    /// Approvals under the policy, in the mode of the settings, which tell the audit log what is decided and done.
    pub(super) fn approvals(&self, approver: Option<Arc<dyn Approver>>, audit: Option<&Arc<Audit>>) -> Approvals {
        let approvals = Approvals::new(self.settings.mode, approver).under(Arc::clone(self.catalog.policy()));
        match audit {
            Some(audit) => approvals.recorded_by(Arc::clone(audit) as Arc<dyn Ledger>),
            None => approvals,
        }
    }

    /// A dispatcher for a workspace, with approvals that outlive it.
    pub(super) fn dispatcher_with(&self, workspace: &Arc<Workspace>, approvals: Arc<Approvals>) -> Dispatcher {
        let settings = DispatcherSettings {
            parallel: self.settings.parallel,
            reorder: self.settings.reorder,
            output_cap: self.settings.output_cap,
            outputs: Some(self.folders.outputs()),
            limits: crate::sandbox::Limits::default(),
            rejections: REJECTIONS,
            credentials: Arc::clone(&self.credentials),
            repetition: self.settings.repetition,
        };
        Dispatcher::new(Arc::clone(&self.sandbox), Arc::clone(&self.catalog), Arc::clone(workspace), approvals, settings)
    }

    /// Tells of plugins that were not let in; a run goes on without them.
    pub(super) fn warn_of_refused(&self) {
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
    all.allow_plain_http = provider.allow_plain_http;
    if let Some(first_event) = provider.first_event_timeout {
        all.timing.first_event = first_event;
    }
    if let Some(idle) = provider.idle_timeout {
        all.timing.idle = idle;
    }
    all
}

fn preparing(name: &str) {
    stderr_line(&crate::shown::line(&format!("preparing the tool {name} for this machine (once) …"), 200));
}
