//! A host with guests in it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use cofferdam::agent::events::{Event, Observer, Tier};
use cofferdam::agent::ports::{Ran, Tools as _};
use cofferdam::conversation::{Call, CallId, Content, OpenTurn, Response, ResponseBlock, ResultStatus};
use cofferdam::policy::{CommandRules, Layer, Level, Mode, Policy, ProtectedPaths};
use cofferdam::sandbox::{Allocation, Commands, Compiler, Credential, History, Limits, Sandbox, SandboxOptions, Workspace};
use cofferdam::tools::{Approvals, Approver, Catalog, Dispatcher, DispatcherSettings, Origin, ParallelLimit, Reorder, SubAgents};
use tokio_util::sync::CancellationToken;

use super::component::Guest;
use crate::needs;

/// What a house is to be like.
pub struct Plan {
    guests: Vec<(Origin, Arc<[u8]>)>,
    sandbox: Option<Arc<Sandbox>>,
    allocation: Allocation,
    limits: Limits,
    mode: Mode,
    approver: Option<Arc<dyn Approver>>,
    parallel: usize,
    reorder: Reorder,
    output_cap: usize,
    commands: Option<Arc<Commands>>,
    protected: ProtectedPaths,
    sub_agents: SubAgents,
    credentials: Vec<Credential>,
}

/// A host with plugins, a workspace of its own, and one that is known to be good.
pub struct House {
    catalog: Arc<Catalog>,
    dispatcher: Dispatcher,
    runtime: Option<tokio::runtime::Runtime>,
    folder: tempfile::TempDir,
    workspace: Arc<Workspace>,
    history: Arc<History>,
    state: tempfile::TempDir,
}

/// What came of a call.
#[derive(Clone, Debug)]
pub struct Answered {
    /// How it ended.
    pub status: ResultStatus,
    /// All text of the result.
    pub text: String,
    /// The result.
    pub content: Vec<Content>,
}

/// What came of a turn.
#[derive(Debug)]
pub struct TurnReport {
    /// In the order of the calls.
    pub answers: Vec<Answered>,
    /// How it ended.
    pub ran: Ran,
    /// What happened, in order: `start ID`, `finish ID`, `progress ID MESSAGE`.
    pub log: Vec<String>,
    /// How long it took.
    pub took: Duration,
    /// How long it took after it was cancelled, if it was.
    pub after_cancel: Option<Duration>,
}

/// One engine for all houses of a process, as in the program: what one guest breaks, the others would notice.
pub fn shared_sandbox(allocation: Allocation) -> Arc<Sandbox> {
    static ON_DEMAND: OnceLock<Arc<Sandbox>> = OnceLock::new();
    static POOLED: OnceLock<Arc<Sandbox>> = OnceLock::new();
    let shared = match allocation {
        Allocation::OnDemand => &ON_DEMAND,
        Allocation::Pooled => &POOLED,
    };
    let make = || {
        let options = SandboxOptions { allocation, compiler: Compiler::InProcess, cache: None };
        Arc::new(Sandbox::new(options).expect("the engine can be made"))
    };
    Arc::clone(shared.get_or_init(make))
}

/// How commands run in the program, with the best sandbox of this machine.
pub fn shared_commands() -> Arc<Commands> {
    static COMMANDS: OnceLock<Arc<Commands>> = OnceLock::new();
    Arc::clone(COMMANDS.get_or_init(|| Arc::new(commands(CommandRules::default()))))
}

/// How commands run in the program under these rules.
pub fn commands(rules: CommandRules) -> Commands {
    needs::require();
    // Beside the folder of the test programs; cargo builds it before them.
    let tests = std::env::current_exe().expect("it has a path");
    let folder = tests.parent().and_then(Path::parent).expect("it is in a folder");
    let program = folder.join("cofferdam-under-test");
    assert!(program.exists(), "{} is not built", program.display());
    Commands::new(program, rules, std::env::temp_dir().join("cofferdam-tests-set-aside"))
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            guests: Vec::new(),
            sandbox: None,
            allocation: Allocation::OnDemand,
            limits: Limits { time: Duration::from_secs(10), memory: 64 << 20, ..Limits::default() },
            mode: Mode::Auto,
            approver: None,
            parallel: 4,
            reorder: Reorder::Safe,
            output_cap: 60_000,
            commands: None,
            protected: ProtectedPaths::default(),
            sub_agents: SubAgents::NoModel,
            credentials: Vec::new(),
        }
    }
}

impl Plan {
    /// With a guest.
    pub fn guest(self, guest: &Guest) -> Self {
        let origin = Origin::File(PathBuf::from(format!("{}.wasm", guest.name())));
        self.component(origin, guest.component())
    }

    /// With a component.
    pub fn component(mut self, origin: Origin, bytes: impl Into<Arc<[u8]>>) -> Self {
        self.guests.push((origin, bytes.into()));
        self
    }

    /// In an engine of its own.
    pub fn sandbox(self, sandbox: Arc<Sandbox>) -> Self {
        Self { sandbox: Some(sandbox), ..self }
    }

    /// With memory from there.
    pub fn allocation(self, allocation: Allocation) -> Self {
        Self { allocation, ..self }
    }

    /// With other limits.
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// With a limit on time in milliseconds.
    pub fn millis(self, millis: u64) -> Self {
        self.limits(|limits| limits.time = Duration::from_millis(millis))
    }

    /// In a mode other than `auto`.
    pub fn mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// With somebody who is asked, about everything.
    pub fn asking(self, approver: &Arc<impl Approver + 'static>) -> Self {
        let approver: Arc<dyn Approver> = approver.clone();
        Self { approver: Some(approver), mode: Mode::Ask, ..self }
    }

    /// With so many calls at the same time.
    pub fn parallel(self, parallel: usize) -> Self {
        Self { parallel, ..self }
    }

    /// With reads moved ahead of writes like this.
    pub fn reorder(self, reorder: Reorder) -> Self {
        Self { reorder, ..self }
    }

    /// With commands that run like this.
    pub fn commands(self, commands: Arc<Commands>) -> Self {
        Self { commands: Some(commands), ..self }
    }

    /// With other paths protected in the workspace.
    pub fn protecting(self, protected: ProtectedPaths) -> Self {
        Self { protected, ..self }
    }

    /// With so many bytes of each result for the model.
    pub fn output_cap(self, output_cap: usize) -> Self {
        Self { output_cap, ..self }
    }

    /// With somebody who works on tasks.
    pub fn sub_agents(self, sub_agents: SubAgents) -> Self {
        Self { sub_agents, ..self }
    }

    /// With a secret of the host.
    pub fn credential(mut self, credential: Credential) -> Self {
        self.credentials.push(credential);
        self
    }

    /// Loads all plugins. Not from within a task: loading blocks.
    pub fn build(self) -> House {
        let folder = tempfile::tempdir().expect("a folder");
        let sandbox = self.sandbox.unwrap_or_else(|| shared_sandbox(self.allocation));
        let mut catalog = Catalog::default();
        let good = Guest::named("good").component();
        for (origin, bytes) in self.guests.into_iter().chain([(Origin::BuiltIn("good"), good.into())]) {
            catalog.add(&sandbox, origin, bytes, &|| {});
        }
        let catalog = Arc::new(catalog);
        let workspace = Arc::new(Workspace::open(folder.path()).expect("it opens").protecting(self.protected));
        let settings = DispatcherSettings {
            parallel: ParallelLimit::new(self.parallel).expect("a limit").into(),
            reorder: self.reorder,
            output_cap: self.output_cap,
            outputs: None,
            limits: self.limits,
            commands: self.commands.unwrap_or_else(shared_commands),
            rejections: 3,
            credentials: self.credentials.into(),
            repetition: true,
            instructions: None,
        };
        let approvals = Approvals::new(self.mode, self.approver);
        let approvals = Arc::new(if self.mode == Mode::Auto { approvals.under(Arc::new(allowing_hosts(&catalog))) } else { approvals });
        let state = tempfile::tempdir().expect("a folder");
        let history = Arc::new(History::of(state.path(), &workspace));
        let dispatcher = Dispatcher::new(sandbox, Arc::clone(&catalog), Arc::clone(&workspace), approvals, settings)
            .with_sub_agents(self.sub_agents)
            .keeping(Arc::clone(&history));
        // One thread for everything that is not in a call: a call that held it up would be noticed.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        House { catalog, dispatcher, runtime: Some(runtime), folder, workspace, history, state }
    }
}

/// A user in mode `auto` who allows requests to the hosts that the tools ask for, as that mode does not.
fn allowing_hosts(catalog: &Catalog) -> Policy {
    let patterns = catalog.tools().iter().flat_map(|tool| &tool.grants.fetch);
    let hosts: Vec<&str> = patterns.map(|pattern| pattern.rsplit(' ').next().unwrap_or(pattern)).collect();
    let mut policy = Policy::default();
    if !hosts.is_empty() {
        let text = format!("[fetch]\nallow = {hosts:?}\n");
        policy.add(Layer::parse(Level::User, "policy.toml", &text).expect("the hosts are patterns"));
    }
    policy
}

impl House {
    /// With one guest and nothing special.
    pub fn with(guest: &Guest) -> Self {
        Plan::default().guest(guest).build()
    }

    /// The workspace.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The workspace, opened.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// What was there before each change.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Where that is kept.
    pub fn state(&self) -> &Path {
        self.state.path()
    }

    /// Puts a file into the workspace.
    pub fn write(&self, path: &str, content: &str) {
        let path = self.folder().join(path);
        std::fs::create_dir_all(path.parent().expect("it is below the workspace")).expect("a folder");
        std::fs::write(path, content).expect("it can be written");
    }

    /// The tools.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Why a plugin was not let in: all of them that were not.
    pub fn refusals(&self) -> Vec<&str> {
        self.catalog.refused().iter().map(|refused| refused.reason.as_str()).collect()
    }

    /// Why the only plugin that was not let in was not.
    pub fn refusal(&self) -> &str {
        let [reason] = self.refusals()[..] else { panic!("not one refusal: {:?}", self.refusals()) };
        reason
    }

    /// One call.
    pub fn call(&self, tool: &str, arguments: &str) -> Answered {
        self.turn(&[(tool, arguments)]).answers.remove(0)
    }

    /// One call that ends in an error, whose text is returned.
    pub fn fails(&self, tool: &str, arguments: &str) -> String {
        let answered = self.call(tool, arguments);
        assert_eq!(answered.status, ResultStatus::Error, "{}", shorten(&answered.text));
        answered.text
    }

    /// One call that goes well, whose text is returned.
    pub fn answers(&self, tool: &str, arguments: &str) -> String {
        let answered = self.call(tool, arguments);
        assert_eq!(answered.status, ResultStatus::Ok, "{}", shorten(&answered.text));
        answered.text
    }

    /// The calls of one turn, named `0`, `1`, ….
    pub fn turn(&self, calls: &[(&str, &str)]) -> TurnReport {
        self.turn_cancelled(calls, None)
    }

    /// The same, cancelled after a while.
    pub fn turn_cancelled(&self, calls: &[(&str, &str)], cancel_after: Option<Duration>) -> TurnReport {
        let runtime = self.runtime.as_ref().expect("it is there until the end");
        runtime.block_on(async {
            let blocks = calls.iter().enumerate().map(|(n, (name, arguments))| {
                let id = CallId::new(n.to_string());
                ResponseBlock::Call(Call { id, name: (*name).to_owned(), arguments: (*arguments).to_owned() })
            });
            let response = Response { blocks: blocks.collect(), ..Response::default() };
            let mut turn = OpenTurn::new(response).expect("it has calls");
            let log = Log::default();
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
            let answers = turn.calls().map(|answered| Answered {
                status: answered.result.status,
                text: answered.result.text(),
                content: answered.result.content.clone(),
            });
            let answers = answers.collect();
            TurnReport { answers, ran, log: log.0.into_inner().unwrap_or_else(PoisonError::into_inner), took, after_cancel }
        })
    }

    /// The tier of a tool.
    pub fn tier(&self, tool: &str) -> Tier {
        self.catalog.find(tool).unwrap_or_else(|| panic!("{tool}: {:?}", self.refusals())).tier
    }

    /// The host works: a tool that is known to be good answers as it should.
    #[track_caller]
    pub fn assert_is_fine(&self) {
        let answered = self.call("good", r#"{"text":"still here"}"#);
        assert_eq!((answered.status, answered.text.as_str()), (ResultStatus::Ok, "still here"));
    }
}

impl Drop for House {
    fn drop(&mut self) {
        // Without waiting for calls that were left behind.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(500).collect()
}

/// Writes down what happens.
#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Observer for Log {
    fn observe(&self, event: &Event<'_>) {
        let line = match event {
            Event::CallStarted { call, .. } => format!("start {}", call.id),
            Event::CallFinished { call, .. } => format!("finish {}", call.id),
            Event::CallProgress { call, message } => format!("progress {} {message}", call.id),
            _ => return,
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}
