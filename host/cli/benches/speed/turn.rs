//! Benchmarks of the host's own cost of a turn, with a replayed model that answers at once.

use std::sync::Arc;
use std::time::Instant;

use cofferdam::agent::events::{AgentEvent, Observer};
use cofferdam::agent::ports::LanguageModel as _;
use cofferdam::agent::{
    Agent, InterventionSettings, ParallelLimit, ReorderPolicy, RequestId, RequestOutcome, TurnLimit,
};
use cofferdam::conversation::Transcript;
use cofferdam::model::ReplayModel;
use cofferdam::policy::ApprovalMode;
use cofferdam::sandbox::{CallLimits, InstanceAllocation, Workspace};
use cofferdam::session::{SessionRecorder, SessionStore};
use cofferdam::tools::{
    Dispatcher, DispatcherSettings, PluginProvenance, SessionApprovals, ToolCatalog,
    builtin_components,
};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::folders;
use crate::measure::{Line, shown};

struct Nobody;

impl Observer for Nobody {
    fn observe(&self, _: &AgentEvent<'_>) {}
}

pub(crate) fn run(runtime: &Runtime) {
    let directory = tempfile::tempdir().expect("a folder");
    std::fs::write(directory.path().join("file.txt"), "a line of text\n").expect("it is written");
    let sandbox = Arc::new(folders::sandbox(InstanceAllocation::Pooled));
    let mut catalog = ToolCatalog::default();
    for (name, component) in builtin_components() {
        catalog.add(&sandbox, PluginProvenance::BuiltIn(name), component, &|| ());
    }
    let settings = DispatcherSettings {
        call_slots: ParallelLimit::detect().into(),
        reorder: ReorderPolicy::Safe,
        output_limit: 100 << 10,
        output_files: None,
        limits: CallLimits::default(),
        commands: folders::commands(cofferdam::policy::SandboxLevel::None),
        max_rejections: 3,
        credentials: Vec::new().into(),
        instruction_record: None,
        detect_repetition: true,
    };
    let workspace = Arc::new(
        Workspace::open(directory.path(), &cofferdam_cli::host_environment()).expect("it opens"),
    );
    let approvals = Arc::new(SessionApprovals::new(ApprovalMode::Auto, None));
    let dispatcher = Dispatcher::new(sandbox, Arc::new(catalog), workspace, approvals, settings);
    for turns in [10_u32, 100, 1000] {
        let script = script(turns);
        let request = |observer: &dyn Observer| {
            let model = ReplayModel::parse(&script).expect("it is a recording");
            let agent = Agent {
                model: &model,
                tools: &dispatcher,
                observer,
                system: String::new(),
                turn_limit: TurnLimit::new(turns + 1).expect("it is a limit"),
                time_limit: None,
                interventions: InterventionSettings::default(),
            };
            let started = Instant::now();
            let outcome = runtime.block_on(async {
                agent
                    .run_request(
                        &RequestId::new(0),
                        &mut Transcript::new(),
                        "go",
                        &CancellationToken::new(),
                    )
                    .await
            });
            assert!(matches!(outcome, RequestOutcome::Answered { .. }), "{outcome:?}");
            started.elapsed() / turns
        };
        let name = format!("one of {turns} turns in a request");
        shown(
            &Line { name: &name, target: "does not grow" },
            (0..5).map(|_| request(&Nobody)).collect(),
        );
        // As in the program: each turn is on the disk before the next one begins.
        let name = format!("one of {turns} turns, with a session on the disk");
        let model = ReplayModel::parse(&script).expect("it is a recording");
        let recorded = |_| {
            let state_dir = tempfile::tempdir().expect("a folder");
            let session = SessionStore::new(state_dir.path().join("sessions"))
                .create_session(directory.path(), Box::new(str::to_owned))
                .expect("it is made");
            request(&SessionRecorder::new(session.journal, model.info(), &Nobody))
        };
        shown(&Line { name: &name, target: "does not grow" }, (0..3).map(recorded).collect());
    }
}

fn script(turns: u32) -> String {
    use std::fmt::Write as _;
    let mut script = String::from("{\"cofferdam_recording\": 1}\n");
    for turn in 0..turns {
        let _ = writeln!(
            script,
            concat!(
                r#"{{"blocks": [{{"call": {{"id": "c{turn}", "name": "read_file", "#,
                r#""arguments": {{"path": "file.txt"}}}}}}]}}"#
            ),
            turn = turn
        );
    }
    script.push_str(r#"{"blocks": [{"text": "done"}]}"#);
    script
}
