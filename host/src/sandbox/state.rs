//! What the host keeps for one call: the guest's whole world.

use std::sync::Arc;

use wasmtime::component::ResourceTable;
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxView, WasiView};

use super::bindings::cofferdam::plugin::types as wit;
use super::capture::Capture;
use super::clock::Clock;
use super::gate::{Gate, ProgressSink};
use super::http::{Credential, Http};
use super::limits::{Limits, Meter};
use super::progress::Throttle;
use super::walk::Walks;
use super::workspace::Workspace;
use crate::policy::{Code, Denial, FileGrant, Grants, HostPattern};

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
    pub(super) walks: Walks,
    /// `None` without a grant to run commands.
    pub(super) commands: Option<(Arc<Workspace>, Gate)>,
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
    pub(super) fn granted(
        limits: &Limits,
        clock: Arc<Clock>,
        grants: &Grants,
        workspace: &Arc<Workspace>,
        gate: Gate,
        progress: ProgressSink,
        credentials: Arc<[Credential]>,
    ) -> wasmtime::Result<Self> {
        let stdout = Capture::new(limits.log);
        let stderr = Capture::new(limits.log);
        let mut wasi = WasiCtx::builder();
        wasi.stdout(stdout.clone())
            .stderr(stderr.clone())
            .allow_tcp(false)
            .allow_udp(false)
            .max_random_size(limits.random)
            // A call has a thread of its own. Without this each file operation would hop to another one, which made a
            // search over many files 3 to 5 times slower. It counts only for preopens that come after it.
            .allow_blocking_current_thread(true);
        match grants.files {
            FileGrant::None => {}
            FileGrant::Read => drop(wasi.preopened_dir(workspace.root(), "/", FsPerms::ReadOnly)?),
            FileGrant::ReadWrite => drop(wasi.preopened_dir(workspace.root(), "/", FsPerms::ReadWrite)?),
        }
        let mut state = Self::around(wasi.build(), stdout, stderr, limits, clock);
        state.workspace = (grants.files != FileGrant::None).then(|| Arc::clone(workspace));
        if !grants.fetch.is_empty() {
            // A pattern that is none covers nothing; such a plugin was refused when it was loaded.
            let hosts = grants.fetch.iter().filter_map(|host| HostPattern::parse(host).ok()).collect();
            state.http = Http::open(hosts, Arc::clone(&gate), Arc::clone(&state.clock), credentials);
        }
        state.commands = grants.commands.then(|| (Arc::clone(workspace), gate));
        state.progress = Some((progress, Throttle::default()));
        Ok(state)
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
            walks: Walks::default(),
            commands: None,
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
