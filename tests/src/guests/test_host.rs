//! A host with guests in it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use cofferdam::agent::events::{AgentEvent, Observer};
use cofferdam::agent::ports::{RunOutcome, ToolRunner as _};
use cofferdam::agent::{ParallelLimit, ReorderPolicy};
use cofferdam::conversation::{
    CallId, ModelResponse, OpenTurn, ResponseBlock, ResultContent, ResultStatus, ToolCall,
};
use cofferdam::policy::{
    ApprovalMode, CommandNetwork, CommandRules, Policy, PolicyLayer, PolicyLevel, ProtectedPaths,
    Tier,
};
use cofferdam::sandbox::{
    CallLimits, CommandSandbox, CompilerKind, HostCredential, InstanceAllocation, SandboxOptions,
    UndoHistory, WasmSandbox, Workspace,
};
use cofferdam::tools::{
    Approver, Dispatcher, DispatcherSettings, PluginProvenance, SessionApprovals, SubAgentRunner,
    ToolCatalog, UserRuleFile,
};
use cofferdam_cli::host_environment;
use tokio_util::sync::CancellationToken;

use super::test_guest::TestGuest;
use crate::prerequisites;

/// The settings of a [`TestHost`].
pub struct TestHostBuilder {
    guests: Vec<(PluginProvenance, Arc<[u8]>)>,
    sandbox: Option<Arc<WasmSandbox>>,
    allocation: InstanceAllocation,
    limits: CallLimits,
    mode: ApprovalMode,
    approver: Option<Arc<dyn Approver>>,
    parallel: usize,
    reorder: ReorderPolicy,
    output_limit: usize,
    commands: Option<Arc<CommandSandbox>>,
    protected: ProtectedPaths,
    sub_agents: SubAgentRunner,
    credentials: Vec<HostCredential>,
    rule_file: Option<UserRuleFile>,
}

/// A host with plugins, a workspace of its own, and one that is known to be good.
pub struct TestHost {
    catalog: Arc<ToolCatalog>,
    dispatcher: Dispatcher,
    runtime: Option<tokio::runtime::Runtime>,
    workspace_dir: tempfile::TempDir,
    workspace: Arc<Workspace>,
    history: Arc<UndoHistory>,
    state_dir: tempfile::TempDir,
}

/// What came of a call.
#[derive(Clone, Debug)]
pub struct CallOutcome {
    /// How it ended.
    pub status: ResultStatus,
    /// All text of the result.
    pub text: String,
    /// The result.
    pub content: Vec<ResultContent>,
}

/// What came of a turn.
#[derive(Debug)]
pub struct TurnReport {
    /// In the order of the calls.
    pub outcomes: Vec<CallOutcome>,
    /// How it ended.
    pub outcome: RunOutcome,
    /// What happened, in order: `start ID`, `finish ID`, `progress ID MESSAGE`.
    pub events: Vec<String>,
    /// How long it took.
    pub duration: Duration,
    /// How long it took after it was cancelled, if it was.
    pub after_cancel: Option<Duration>,
}

/// One engine for all test hosts of a process, as in the program: what one guest breaks, the others
/// would notice.
pub fn shared_sandbox(allocation: InstanceAllocation) -> Arc<WasmSandbox> {
    static ON_DEMAND: OnceLock<Arc<WasmSandbox>> = OnceLock::new();
    static POOLED: OnceLock<Arc<WasmSandbox>> = OnceLock::new();
    let shared = match allocation {
        InstanceAllocation::OnDemand => &ON_DEMAND,
        InstanceAllocation::Pooled => &POOLED,
    };
    let make = || {
        let options = SandboxOptions { allocation, compiler: CompilerKind::InProcess, cache: None };
        Arc::new(WasmSandbox::new(options).expect("the engine can be made"))
    };
    Arc::clone(shared.get_or_init(make))
}

/// How commands run in the program, with the best sandbox of this machine.
pub fn shared_commands() -> Arc<CommandSandbox> {
    static COMMANDS: OnceLock<Arc<CommandSandbox>> = OnceLock::new();
    Arc::clone(COMMANDS.get_or_init(|| Arc::new(commands(CommandRules::default()))))
}

/// How commands run in the program under these rules.
pub fn commands(rules: CommandRules) -> CommandSandbox {
    prerequisites::require();
    // Beside the folder of the test programs; cargo builds it before them.
    let tests = std::env::current_exe().expect("it has a path");
    let folder = tests.parent().and_then(Path::parent).expect("it is in a folder");
    let program = folder.join("cofferdam-under-test");
    assert!(program.exists(), "{} is not built", program.display());
    let environment = host_environment();
    let set_aside = environment.temp_dir.join("cofferdam-tests-set-aside");
    let layers = environment.temp_dir.join("cofferdam-tests-layers");
    CommandSandbox::new(program, rules, set_aside, environment).with_layers(Some(layers))
}

impl Default for TestHostBuilder {
    fn default() -> Self {
        Self {
            guests: Vec::new(),
            sandbox: None,
            allocation: InstanceAllocation::OnDemand,
            limits: CallLimits {
                time: Duration::from_secs(10),
                memory: 64 << 20,
                ..CallLimits::default()
            },
            mode: ApprovalMode::Auto,
            approver: None,
            parallel: 4,
            reorder: ReorderPolicy::Safe,
            output_limit: 60_000,
            commands: None,
            protected: ProtectedPaths::default(),
            sub_agents: SubAgentRunner::NoModel,
            credentials: Vec::new(),
            rule_file: None,
        }
    }
}

impl TestHostBuilder {
    /// With a guest.
    pub fn with_guest(self, guest: &TestGuest) -> Self {
        let origin = PluginProvenance::File(PathBuf::from(format!("{}.wasm", guest.name())));
        self.with_component(origin, guest.component())
    }

    /// With a component.
    pub fn with_component(mut self, origin: PluginProvenance, bytes: impl Into<Arc<[u8]>>) -> Self {
        self.guests.push((origin, bytes.into()));
        self
    }

    /// In an engine of its own.
    pub fn with_sandbox(self, sandbox: Arc<WasmSandbox>) -> Self {
        Self { sandbox: Some(sandbox), ..self }
    }

    /// With memory from there.
    pub fn with_allocation(self, allocation: InstanceAllocation) -> Self {
        Self { allocation, ..self }
    }

    /// With other limits.
    pub fn with_limits(mut self, change: impl FnOnce(&mut CallLimits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// With a limit on time in milliseconds.
    pub fn with_timeout_millis(self, millis: u64) -> Self {
        self.with_limits(|limits| limits.time = Duration::from_millis(millis))
    }

    /// In a mode other than `auto`.
    pub fn with_mode(self, mode: ApprovalMode) -> Self {
        Self { mode, ..self }
    }

    /// With somebody who is asked, about everything.
    pub fn with_approver(self, approver: &Arc<impl Approver + 'static>) -> Self {
        let approver: Arc<dyn Approver> = approver.clone();
        Self { approver: Some(approver), mode: ApprovalMode::Ask, ..self }
    }

    /// With so many calls at the same time.
    pub fn with_parallel(self, parallel: usize) -> Self {
        Self { parallel, ..self }
    }

    /// With reads moved ahead of writes like this.
    pub fn with_reorder(self, reorder: ReorderPolicy) -> Self {
        Self { reorder, ..self }
    }

    /// With commands that run like this.
    pub fn with_commands(self, commands: Arc<CommandSandbox>) -> Self {
        Self { commands: Some(commands), ..self }
    }

    /// With other paths protected in the workspace.
    pub fn with_protected_paths(self, protected: ProtectedPaths) -> Self {
        Self { protected, ..self }
    }

    /// With a policy file to which the answer *always* adds rules.
    pub fn with_rule_file(self, file: UserRuleFile) -> Self {
        Self { rule_file: Some(file), ..self }
    }

    /// With so many bytes of each result for the model.
    pub fn with_output_limit(self, output_cap: usize) -> Self {
        Self { output_limit: output_cap, ..self }
    }

    /// With somebody who works on tasks.
    pub fn with_sub_agents(self, sub_agents: SubAgentRunner) -> Self {
        Self { sub_agents, ..self }
    }

    /// With a secret of the host.
    pub fn with_credential(mut self, credential: HostCredential) -> Self {
        self.credentials.push(credential);
        self
    }

    /// Loads all plugins. Not from within a task: loading blocks.
    pub fn build(self) -> TestHost {
        let folder = tempfile::tempdir().expect("a folder");
        let sandbox = self.sandbox.unwrap_or_else(|| shared_sandbox(self.allocation));
        let mut catalog = ToolCatalog::default();
        let good = TestGuest::from_file("good").component();
        for (origin, bytes) in
            self.guests.into_iter().chain([(PluginProvenance::BuiltIn("good"), good.into())])
        {
            catalog.add(&sandbox, origin, bytes, &|| {});
        }
        let catalog = Arc::new(catalog);
        let workspace = Arc::new(
            Workspace::open(folder.path(), &host_environment())
                .expect("it opens")
                .with_protected_paths(self.protected),
        );
        let settings = DispatcherSettings {
            call_slots: ParallelLimit::new(self.parallel).expect("a limit").into(),
            reorder: self.reorder,
            output_limit: self.output_limit,
            output_files: None,
            limits: self.limits,
            commands: self.commands.unwrap_or_else(shared_commands),
            max_rejections: 3,
            credentials: self.credentials.into(),
            detect_repetition: true,
            instruction_record: None,
        };
        let mut policy = match self.mode {
            ApprovalMode::Auto => policy_allowing_hosts(&catalog),
            ApprovalMode::Ask | ApprovalMode::Plan | ApprovalMode::AutoEdit => Policy::default(),
        };
        if let CommandNetwork::Listed(rules) = &settings.commands.rules().network {
            policy.add_layer(rules.to_layer());
        }
        let approvals =
            SessionApprovals::new(self.mode, self.approver).with_policy(Arc::new(policy));
        let approvals = Arc::new(match self.rule_file {
            Some(file) => approvals.with_rule_file(file),
            None => approvals,
        });
        let state = tempfile::tempdir().expect("a folder");
        let history = Arc::new(UndoHistory::for_workspace(state.path(), &workspace));
        let dispatcher = Dispatcher::new(
            sandbox,
            Arc::clone(&catalog),
            Arc::clone(&workspace),
            approvals,
            settings,
        )
        .with_sub_agents(self.sub_agents)
        .with_history(Arc::clone(&history));
        // One thread for everything that is not in a call: a call that held it up would be noticed.
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        TestHost {
            catalog,
            dispatcher,
            runtime: Some(runtime),
            workspace_dir: folder,
            workspace,
            history,
            state_dir: state,
        }
    }
}

/// A user in mode `auto` who allows requests to the hosts that the tools ask for, as that mode does
/// not.
fn policy_allowing_hosts(catalog: &ToolCatalog) -> Policy {
    let patterns = catalog.tools().iter().flat_map(|tool| &tool.grants.fetch);
    let hosts: Vec<&str> =
        patterns.map(|pattern| pattern.rsplit(' ').next().unwrap_or(pattern)).collect();
    let mut policy = Policy::default();
    if !hosts.is_empty() {
        let text = format!("[fetch]\nallow = {hosts:?}\n");
        policy.add_layer(
            PolicyLayer::parse(PolicyLevel::User, "policy.toml", &text)
                .expect("the hosts are patterns"),
        );
    }
    policy
}

impl TestHost {
    /// With one guest and nothing special.
    pub fn with_guest(guest: &TestGuest) -> Self {
        TestHostBuilder::default().with_guest(guest).build()
    }

    /// The workspace.
    pub fn workspace_dir(&self) -> &Path {
        self.workspace_dir.path()
    }

    /// The workspace, opened.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// What was there before each change.
    pub fn history(&self) -> &UndoHistory {
        &self.history
    }

    /// Where that is kept.
    pub fn state_dir(&self) -> &Path {
        self.state_dir.path()
    }

    /// Puts a file into the workspace.
    pub fn write_file(&self, path: &str, content: &str) {
        let path = self.workspace_dir().join(path);
        std::fs::create_dir_all(path.parent().expect("it is below the workspace"))
            .expect("a folder");
        std::fs::write(path, content).expect("it can be written");
    }

    /// The tools.
    pub fn catalog(&self) -> &ToolCatalog {
        &self.catalog
    }

    /// Why a plugin was not let in: all of them that were not.
    pub fn refusal_reasons(&self) -> Vec<&str> {
        self.catalog.refused_plugins().iter().map(|refused| refused.reason.as_str()).collect()
    }

    /// Why the only plugin that was not let in was not.
    pub fn refusal_reason(&self) -> &str {
        let [reason] = self.refusal_reasons()[..] else {
            panic!("not one refusal: {:?}", self.refusal_reasons())
        };
        reason
    }

    /// One call.
    pub fn call(&self, tool: &str, arguments: &str) -> CallOutcome {
        self.run_turn(&[(tool, arguments)]).outcomes.remove(0)
    }

    /// One call that ends in an error, whose text is returned.
    pub fn call_error(&self, tool: &str, arguments: &str) -> String {
        let answered = self.call(tool, arguments);
        assert_eq!(answered.status, ResultStatus::Error, "{}", shorten_text(&answered.text));
        answered.text
    }

    /// One call that goes well, whose text is returned.
    pub fn call_ok(&self, tool: &str, arguments: &str) -> String {
        let answered = self.call(tool, arguments);
        assert_eq!(answered.status, ResultStatus::Ok, "{}", shorten_text(&answered.text));
        answered.text
    }

    /// The calls of one turn, named `0`, `1`, ….
    pub fn run_turn(&self, calls: &[(&str, &str)]) -> TurnReport {
        self.run_turn_cancelled(calls, None)
    }

    /// The same, cancelled after a while.
    pub fn run_turn_cancelled(
        &self,
        calls: &[(&str, &str)],
        cancel_after: Option<Duration>,
    ) -> TurnReport {
        let runtime = self.runtime.as_ref().expect("it is there until the end");
        runtime.block_on(async {
            let blocks = calls.iter().enumerate().map(|(n, (name, arguments))| {
                let id = CallId::new(n.to_string());
                ResponseBlock::Call(ToolCall {
                    id,
                    name: (*name).to_owned(),
                    arguments: (*arguments).to_owned(),
                })
            });
            let response = ModelResponse { blocks: blocks.collect(), ..ModelResponse::default() };
            let mut turn = OpenTurn::new(response).expect("it has calls");
            let log = EventLog::default();
            let cancel = CancellationToken::new();
            let started = Instant::now();
            let mut cancelled = None;
            let ran = {
                let running = self.dispatcher.run(&mut turn, &log, &cancel);
                tokio::pin!(running);
                match cancel_after {
                    None => running.await,
                    Some(after) => {
                        tokio::select! {
                            ran = &mut running => ran,
                            () = tokio::time::sleep(after) => {
                                cancelled = Some(Instant::now());
                                cancel.cancel();
                                running.await
                            }
                        }
                    }
                }
            };
            let took = started.elapsed();
            let after_cancel = cancelled.map(|cancelled| cancelled.elapsed());
            let turn = turn.close("the turn was over");
            let answers = turn.calls().map(|answered| CallOutcome {
                status: answered.result.status,
                text: answered.result.text(),
                content: answered.result.content.clone(),
            });
            let answers = answers.collect();
            TurnReport {
                outcomes: answers,
                outcome: ran,
                events: log.0.into_inner().unwrap_or_else(PoisonError::into_inner),
                duration: took,
                after_cancel,
            }
        })
    }

    /// The tier of a tool.
    pub fn tier(&self, tool: &str) -> Tier {
        self.catalog
            .find(tool)
            .unwrap_or_else(|| panic!("{tool}: {:?}", self.refusal_reasons()))
            .tier
    }

    /// The host works: a tool that is known to be good answers as it should.
    #[track_caller]
    pub fn assert_healthy(&self) {
        let answered = self.call("good", r#"{"text":"still here"}"#);
        assert_eq!((answered.status, answered.text.as_str()), (ResultStatus::Ok, "still here"));
    }
}

impl Drop for TestHost {
    fn drop(&mut self) {
        // Without waiting for calls that were left behind.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn shorten_text(text: &str) -> String {
    text.chars().take(500).collect()
}

/// Writes down what happens.
#[derive(Default)]
struct EventLog(Mutex<Vec<String>>);

impl Observer for EventLog {
    fn observe(&self, event: &AgentEvent<'_>) {
        let line = match event {
            AgentEvent::CallStarted { call, .. } => format!("start {}", call.id),
            AgentEvent::CallFinished { call, .. } => format!("finish {}", call.id),
            AgentEvent::CallProgress { call, message } => format!("progress {} {message}", call.id),
            _ => return,
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}
