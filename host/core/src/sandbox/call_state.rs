//! The host's state for one call.

use std::sync::Arc;

use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use super::agents::AgentsHost;
use super::bindings::cofferdam::plugin::types as wit;
use super::call::PluginCall;
use super::capture::TailCapture;
use super::clock::CallClock;
use super::commands::CommandsHost;
use super::files::CallFiles;
use super::gate::{PlanApprovalGate, ProgressSink};
use super::http::WasiHttpHost;
use super::limits::{CallLimits, ResourceMeter};
use super::progress::ProgressThrottle;
use super::tool_state::ToolState;
use super::walk::CallWalks;
use super::workspace::Workspace;
use crate::policy::{Denial, DenialCode, FileGrant, RequestPattern};

/// The data of a Wasmtime store. It is created for one call and dropped with it.
pub(super) struct CallState {
    pub(super) wasi: WasiCtx,
    pub(super) table: ResourceTable,
    pub(super) meter: ResourceMeter,
    pub(super) clock: Arc<CallClock>,
    pub(super) stdout: TailCapture,
    pub(super) stderr: TailCapture,
    /// `None` without the permission to read files.
    pub(super) workspace: Option<Arc<Workspace>>,
    pub(super) files: CallFiles,
    pub(super) walks: CallWalks,
    /// `None` without the permission to run commands.
    pub(super) commands: Option<CommandsHost>,
    /// `None` without the permission to present plans.
    pub(super) plan_gate: Option<PlanApprovalGate>,
    /// `None` without the permission to delegate.
    pub(super) agents: Option<AgentsHost>,
    /// `None` without the permission to keep state.
    pub(super) tool_state: Option<ToolState>,
    pub(super) progress: Option<(ProgressSink, ProgressThrottle)>,
    pub(super) http: WasiHttpHost,
}

impl CallState {
    /// Creates a state without any permission, for `list-tools`.
    pub(super) fn empty(limits: &CallLimits, clock: Arc<CallClock>) -> Self {
        let stdout = TailCapture::new(limits.log);
        let stderr = TailCapture::new(limits.log);
        let wasi = WasiCtx::builder()
            .stdout(stdout.clone())
            .stderr(stderr.clone())
            .allow_tcp(false)
            .allow_udp(false)
            .max_random_size(limits.random)
            .build();
        Self::with_wasi(wasi, stdout, stderr, limits, clock)
    }

    /// Creates a state with the permissions of the call.
    pub(super) fn for_call(call: &PluginCall, clock: Arc<CallClock>) -> Self {
        let PluginCall {
            grants,
            limits,
            workspace,
            gate,
            plan_gate: plans,
            commands,
            progress,
            tool_state,
            delegation,
            credentials,
            ..
        } = call;
        let stdout = TailCapture::new(limits.log);
        let stderr = TailCapture::new(limits.log);
        let mut wasi = WasiCtx::builder();
        wasi.stdout(stdout.clone())
            .stderr(stderr.clone())
            .allow_tcp(false)
            .allow_udp(false)
            .max_random_size(limits.random);
        let mut state = Self::with_wasi(wasi.build(), stdout, stderr, limits, clock);
        state.files = CallFiles::with_grant(workspace, grants.files);
        state.workspace = (grants.files != FileGrant::None).then(|| Arc::clone(workspace));
        if !grants.fetch.is_empty() {
            // An invalid pattern would match nothing; plugins with one are refused when they are
            // loaded.
            let granted = grants
                .fetch
                .iter()
                .filter_map(|pattern| RequestPattern::parse(pattern).ok())
                .collect();
            state.http = WasiHttpHost::with_grants(
                granted,
                Arc::clone(gate),
                Arc::clone(&state.clock),
                Arc::clone(credentials),
            );
        }
        state.commands =
            grants.commands.then(|| CommandsHost::new(workspace, gate, commands, limits.output));
        state.plan_gate = grants.plans.then(|| Arc::clone(plans));
        state.agents = grants.agents.then(|| AgentsHost::new(Arc::clone(delegation)));
        state.tool_state = grants.state.then(|| tool_state.clone());
        state.progress = Some((Arc::clone(progress), ProgressThrottle::default()));
        state
    }

    fn with_wasi(
        wasi: WasiCtx,
        stdout: TailCapture,
        stderr: TailCapture,
        limits: &CallLimits,
        clock: Arc<CallClock>,
    ) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        Self {
            wasi,
            table,
            meter: ResourceMeter::new(limits),
            clock,
            stdout,
            stderr,
            workspace: None,
            files: CallFiles::default(),
            walks: CallWalks::default(),
            commands: None,
            plan_gate: None,
            agents: None,
            tool_state: None,
            progress: None,
            http: WasiHttpHost::disabled(),
        }
    }
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

// The interface has only types and no functions.
impl wit::Host for CallState {}

impl From<Denial> for wit::Denial {
    fn from(denial: Denial) -> Self {
        Self { code: denial.code.name().to_owned(), reason: denial.reason, remedy: denial.remedy }
    }
}

/// Returns the denial for an interface that the tool has no permission for.
pub(super) fn not_granted(what: &str, capability: &str) -> Denial {
    Denial::new(
        DenialCode::NotGranted,
        format!("this tool has no permission to {what}."),
        format!(
            "The plugin must request the capability `{capability}`, and the policy must allow \
            it."
        ),
    )
}
