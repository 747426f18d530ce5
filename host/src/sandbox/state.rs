//! What the host keeps for one call: the guest's whole world.

use std::sync::Arc;

use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use super::agents::Agents;
use super::bindings::cofferdam::plugin::types as wit;
use super::call::Call;
use super::capture::Capture;
use super::clock::Clock;
use super::commands::Lent;
use super::files::Files;
use super::gate::{PlanGate, ProgressSink};
use super::http::Http;
use super::limits::{Limits, Meter};
use super::notebook::Notebook;
use super::progress::Throttle;
use super::walk::Walks;
use super::workspace::Workspace;
use crate::policy::{Code, Denial, FileGrant, RequestPattern};

/// The data of a store. It is made for one call and dropped with it.
pub(super) struct State {
    pub(super) wasi: WasiCtx,
    pub(super) table: ResourceTable,
    pub(super) meter: Meter,
    pub(super) clock: Arc<Clock>,
    pub(super) stdout: Capture,
    pub(super) stderr: Capture,
    /// `None` without a grant to read.
    pub(super) workspace: Option<Arc<Workspace>>,
    pub(super) files: Files,
    pub(super) walks: Walks,
    /// `None` without a grant to run commands.
    pub(super) commands: Option<Lent>,
    /// `None` without a grant to present plans.
    pub(super) plans: Option<PlanGate>,
    /// `None` without a grant to delegate.
    pub(super) agents: Option<Agents>,
    /// `None` without a grant to keep state.
    pub(super) notebook: Option<Notebook>,
    pub(super) progress: Option<(ProgressSink, Throttle)>,
    pub(super) http: Http,
}

impl State {
    /// A world with nothing in it: for `list-tools`.
    pub(super) fn empty(limits: &Limits, clock: Arc<Clock>) -> Self {
        let stdout = Capture::new(limits.log);
        let stderr = Capture::new(limits.log);
        let wasi = WasiCtx::builder()
            .stdout(stdout.clone())
            .stderr(stderr.clone())
            .allow_tcp(false)
            .allow_udp(false)
            .max_random_size(limits.random)
            .build();
        Self::around(wasi, stdout, stderr, limits, clock)
    }

    /// A world with what was granted.
    pub(super) fn granted(call: &Call, clock: Arc<Clock>) -> Self {
        let Call { grants, limits, workspace, gate, plans, commands, progress, notebook, delegation, credentials, .. } = call;
        let stdout = Capture::new(limits.log);
        let stderr = Capture::new(limits.log);
        let mut wasi = WasiCtx::builder();
        wasi.stdout(stdout.clone()).stderr(stderr.clone()).allow_tcp(false).allow_udp(false).max_random_size(limits.random);
        let mut state = Self::around(wasi.build(), stdout, stderr, limits, clock);
        state.files = Files::granted(workspace, grants.files);
        state.workspace = (grants.files != FileGrant::None).then(|| Arc::clone(workspace));
        if !grants.fetch.is_empty() {
            // A pattern that is none covers nothing; such a plugin was refused when it was loaded.
            let granted = grants.fetch.iter().filter_map(|pattern| RequestPattern::parse(pattern).ok()).collect();
            state.http = Http::open(granted, Arc::clone(gate), Arc::clone(&state.clock), Arc::clone(credentials));
        }
        state.commands = grants.commands.then(|| Lent::new(workspace, gate, commands));
        state.plans = grants.plans.then(|| Arc::clone(plans));
        state.agents = grants.agents.then(|| Agents::new(Arc::clone(delegation)));
        state.notebook = grants.state.then(|| notebook.clone());
        state.progress = Some((Arc::clone(progress), Throttle::default()));
        state
    }

    fn around(wasi: WasiCtx, stdout: Capture, stderr: Capture, limits: &Limits, clock: Arc<Clock>) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        Self {
            wasi,
            table,
            meter: Meter::new(limits),
            clock,
            stdout,
            stderr,
            workspace: None,
            files: Files::default(),
            walks: Walks::default(),
            commands: None,
            plans: None,
            agents: None,
            notebook: None,
            progress: None,
            http: Http::closed(),
        }
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

// The interface has types and no functions.
impl wit::Host for State {}

impl From<Denial> for wit::Denial {
    fn from(denial: Denial) -> Self {
        Self { code: denial.code.name().to_owned(), reason: denial.reason, remedy: denial.remedy }
    }
}

/// For an interface whose capability the tool does not hold.
pub(super) fn not_granted(what: &str, capability: &str) -> Denial {
    Denial::new(
        Code::NotGranted,
        format!("this tool may not {what}."),
        format!("It would have to ask for the capability `{capability}`, and be granted it."),
    )
}
