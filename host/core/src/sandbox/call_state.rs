//! The host's state for one call.

use std::sync::Arc;

use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use super::agents::AgentsHost;
use super::call::PluginCall;
use super::capture::TailCapture;
use super::clock::CallClock;
use super::command_changes::CommandChangeContext;
use super::commands::{CommandAccess, CommandsHost};
use super::files::CallFiles;
use super::http::WasiHttpHost;
use super::jobs::{JobAccess, JobsHost};
use super::limits::{CallLimits, ResourceMeter};
use super::plans::PlansHost;
use super::progress::ProgressHost;
use super::tool_state::ToolStateHost;
use super::workspace::CallWalks;
use crate::policy::{ComponentDigest, Denial, DenialCode, FileGrant, RequestPattern};

/// The data of a Wasmtime store. It is created for one call and dropped with it.
pub(super) struct CallState {
    pub(super) wasi: WasiCtx,
    pub(super) table: ResourceTable,
    pub(super) meter: ResourceMeter,
    pub(super) clock: Arc<CallClock>,
    pub(super) stdout: TailCapture,
    pub(super) stderr: TailCapture,
    pub(super) files: CallFiles,
    pub(super) walks: CallWalks,
    pub(super) commands: CommandsHost,
    pub(super) jobs: JobsHost,
    pub(super) plans: PlansHost,
    pub(super) agents: AgentsHost,
    pub(super) tool_state: ToolStateHost,
    pub(super) progress: ProgressHost,
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
    pub(super) fn for_call(
        call: &PluginCall,
        component: &ComponentDigest,
        clock: Arc<CallClock>,
    ) -> Self {
        let PluginCall {
            tool,
            change_judge,
            denial_recorder,
            mode,
            connection_judge,
            history,
            grants,
            limits,
            workspace,
            gate,
            plan_gate: plans,
            commands,
            jobs,
            job_recorder,
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
        let has_files = grants.files != FileGrant::None;
        state.walks = CallWalks::new(has_files.then(|| Arc::clone(workspace)));
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
        let access = || {
            let changes = CommandChangeContext {
                workspace: Arc::clone(workspace),
                gate: Arc::clone(gate),
                judge: Arc::clone(change_judge),
                denials: Arc::clone(denial_recorder),
                mode: Arc::clone(mode),
                review_changes: commands.rules().review_changes,
                history: history.clone(),
                tool: tool.clone(),
            };
            CommandAccess::new(changes, commands, connection_judge, limits.output)
        };
        state.commands = CommandsHost::new(grants.commands.then(access), &state.clock);
        let job_access = || JobAccess {
            commands: access(),
            table: jobs.clone(),
            recorder: Arc::clone(job_recorder),
            owner: component.clone(),
        };
        state.jobs = JobsHost::new(grants.commands.then(job_access), &state.clock);
        state.plans = PlansHost::new(grants.plans.then(|| Arc::clone(plans)), &state.clock);
        let delegation = grants.agents.then(|| Arc::clone(delegation));
        state.agents = AgentsHost::new(delegation, &state.clock);
        state.tool_state = ToolStateHost(grants.state.then(|| tool_state.clone()));
        state.progress = ProgressHost::new(Arc::clone(progress));
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
            stdout,
            stderr,
            files: CallFiles::default(),
            walks: CallWalks::new(None),
            commands: CommandsHost::new(None, &clock),
            jobs: JobsHost::new(None, &clock),
            plans: PlansHost::new(None, &clock),
            agents: AgentsHost::new(None, &clock),
            tool_state: ToolStateHost(None),
            progress: ProgressHost::default(),
            clock,
            http: WasiHttpHost::disabled(),
        }
    }
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
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
