//! The library as a program uses it: everything through `Host`.

#![expect(clippy::expect_used, reason = "what a test cannot set up, it cannot test")]

mod sources;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use cofferdam::agent::RequestOutcome;
use cofferdam::agent::events::{AgentEvent, Observer};
use cofferdam::agent::ports::LanguageModel;
use cofferdam::audit::{AuditStore, inspect_logs};
use cofferdam::config::UserDirectories;
use cofferdam::conversation::ResultStatus;
use cofferdam::host::{AuditOptions, SessionRecord};
use cofferdam::model::ReplayModel;
use cofferdam::policy::{
    ApprovalMode, CommandNetwork, CommandRules, Policy, PolicyLayer, PolicyLevel, SandboxLevel,
};
use cofferdam::session::{SessionScope, SessionStore};
use cofferdam::tools::ApprovalAnswer;
use cofferdam::{Host, HostBuilder, HostError};
use cofferdam_tests::guests::{ScriptedApprover, TestGuest};
use cofferdam_tests::program::TestHome;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

/// A workspace and the directories of a user, with a cache that all tests share.
struct TestProject {
    home: TestHome,
}

impl TestProject {
    fn new() -> Self {
        Self { home: TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR")) }
    }

    fn workspace(&self) -> PathBuf {
        self.home.workspace()
    }

    fn directories(&self) -> UserDirectories {
        let below = |name| self.home.path().join(name);
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled-tools");
        UserDirectories::from_base_dirs([below("config"), cache, below("state")])
            .expect("absolute directories")
    }

    /// A host with directories.
    fn builder(&self) -> HostBuilder {
        self.bare_builder().directories(self.directories())
    }

    /// A host without directories.
    fn bare_builder(&self) -> HostBuilder {
        Host::builder(self.workspace())
    }

    /// Writes the component of a guest and returns its path.
    fn plugin(&self, guest: &TestGuest) -> PathBuf {
        let path = self.home.path().join(format!("{}.wasm", guest.name()));
        std::fs::write(&path, guest.component()).expect("a plugin file");
        path
    }
}

/// A model that plays these responses.
fn replay(responses: &[Value]) -> Arc<dyn LanguageModel> {
    let mut lines = vec![json!({"cofferdam_recording": 1, "model": "recorded"}).to_string()];
    lines.extend(responses.iter().map(|blocks| json!({"blocks": blocks}).to_string()));
    Arc::new(ReplayModel::parse(&lines.join("\n")).expect("a recording"))
}

fn call(id: &str, tool: &str, arguments: &Value) -> Value {
    json!({"call": {"id": id, "name": tool, "arguments": arguments.to_string()}})
}

fn write_hello() -> Value {
    json!({"path": "hello.txt", "content": "hello\n"})
}

fn exists(project: &TestProject, name: &str) -> bool {
    project.workspace().join(name).exists()
}

#[tokio::test]
async fn a_tool_is_called_without_a_model() {
    let project = TestProject::new();
    std::fs::write(project.workspace().join("a.txt"), "one\ntwo\n").expect("a file");
    let host = project.builder().build().expect("a host");
    let result = host.call_tool("read_file", &json!({"path": "a.txt"})).await.expect("a result");
    assert_eq!(result.status(), ResultStatus::Ok);
    assert!(result.text().contains("two"), "{result:?}");
}

#[tokio::test]
async fn a_plugin_is_added_by_its_path() {
    let project = TestProject::new();
    let plugin = project.plugin(&TestGuest::from_file("good"));
    let host = project.builder().without_built_in_tools().plugin(plugin).build().expect("a host");
    let names: Vec<_> = host.catalog().tools().iter().map(|tool| &tool.declaration.name).collect();
    assert_eq!(names, ["good"]);
    let result = host.call_tool("good", &json!({"path": "x"})).await.expect("a result");
    assert_eq!(result.text(), "x");
}

#[tokio::test]
async fn a_broken_plugin_is_an_error_that_names_it() {
    let project = TestProject::new();
    let path = project.home.path().join("broken.wasm");
    std::fs::write(&path, "not WebAssembly").expect("a file");
    let Err(error) = project.builder().plugin(&path).build() else { panic!("it loads") };
    assert!(matches!(error, HostError::Plugin { .. }), "{error}");
    assert!(error.to_string().contains("broken.wasm"), "{error}");
}

#[tokio::test]
async fn an_unknown_tool_and_invalid_arguments_are_results() {
    let project = TestProject::new();
    let host = project.builder().build().expect("a host");
    for (tool, arguments) in [("no_such_tool", json!({})), ("read_file", json!({"path": 1}))] {
        let result = host.call_tool(tool, &arguments).await.expect("a result");
        assert_eq!(result.status(), ResultStatus::Error, "{result:?}");
    }
}

#[tokio::test]
async fn without_an_approver_what_needs_approval_is_denied() {
    let project = TestProject::new();
    let host = project.builder().build().expect("a host");
    let result = host.call_tool("write_file", &write_hello()).await.expect("a result");
    assert!(result.text().contains("denied (nobody-to-ask)"), "{result:?}");
    assert!(!exists(&project, "hello.txt"));
}

#[tokio::test]
async fn an_approved_change_can_be_undone() {
    let project = TestProject::new();
    let approver = Arc::new(ScriptedApprover::with_answers([ApprovalAnswer::Yes]));
    let host = project.builder().approver(approver.clone()).build().expect("a host");
    let result = host.call_tool("write_file", &write_hello()).await.expect("a result");
    assert_eq!(result.status(), ResultStatus::Ok, "{result:?}");
    assert!(exists(&project, "hello.txt"));
    assert_eq!(approver.questions().len(), 1);
    let history = host.undo_history().expect("a history");
    history.undo(host.workspace(), false).expect("it is undone");
    assert!(!exists(&project, "hello.txt"));
}

#[tokio::test]
async fn a_host_without_directories_stores_nothing() {
    let project = TestProject::new();
    let host = project.bare_builder().mode(ApprovalMode::Auto).build().expect("a host");
    host.call_tool("write_file", &write_hello()).await.expect("a result");
    assert!(exists(&project, "hello.txt") && host.undo_history().is_none());
    assert!(!project.home.path().join("state/cofferdam/undo").exists());
}

#[tokio::test]
async fn commands_are_denied_without_helper_processes() {
    let project = TestProject::new();
    let host = project.builder().mode(ApprovalMode::Auto).build().expect("a host");
    let result = host.call_tool("bash", &json!({"command": "true"})).await.expect("a result");
    assert!(result.text().contains("denied (no-sandbox)"), "{result:?}");
}

#[tokio::test]
async fn a_session_calls_tools_and_remembers_the_conversation() {
    let project = TestProject::new();
    let host = project.builder().mode(ApprovalMode::Auto).build().expect("a host");
    let model = replay(&[
        json!([call("c1", "write_file", &write_hello())]),
        json!([{"text": "Written."}]),
        json!([{"text": "Nothing else to do."}]),
    ]);
    let mut session = host.session(model);
    let outcome = session.request("Write it.").await.expect("it starts");
    assert_eq!(outcome.text(), Some("Written."));
    assert!(exists(&project, "hello.txt"));
    session.request("And now?").await.expect("it starts");
    assert_eq!(session.transcript().exchanges().len(), 2);
    assert!(session.id().is_none(), "it is not recorded");
}

#[tokio::test]
async fn a_recorded_session_is_resumed_by_another_host() {
    let project = TestProject::new();
    let host = || project.builder().build().expect("a host");
    let mut session =
        host().session(replay(&[json!([{"text": "First."}])])).with_record(SessionRecord::Pending);
    session.request("One?").await.expect("it starts");
    let id = session.id().expect("it is recorded").clone();
    drop(session);
    let host = host();
    let stored = SessionStore::new(project.directories().sessions())
        .find(SessionScope::Project(host.workspace().root()), id.as_str())
        .expect("it is found");
    let open =
        stored.resume(host.workspace().root(), host.prepared().redactor()).expect("it is resumed");
    let mut session = host.session(replay(&[json!([{"text": "Second."}])]));
    session.resume(open);
    session.request("Two?").await.expect("it starts");
    let texts: Vec<String> = session
        .transcript()
        .exchanges()
        .iter()
        .flat_map(|exchange| exchange.turns().iter().map(|turn| turn.text()))
        .collect();
    assert_eq!((texts, session.id()), (vec!["First.".into(), "Second.".into()], Some(&id)));
}

#[tokio::test]
async fn a_dropped_request_leaves_the_session_usable() {
    let project = TestProject::new();
    let host = project.builder().build().expect("a host");
    let slow = ReplayModel::parse(
        "{\"cofferdam_recording\": 1, \"model\": \"m\"}\n\
         {\"blocks\": [{\"text\": \"Slow text.\"}]}",
    )
    .expect("a recording")
    .with_pace(std::time::Duration::from_secs(3600));
    let mut session =
        host.session(Arc::new(slow) as Arc<dyn LanguageModel>).with_record(SessionRecord::Pending);
    let request = session.prepare(&IgnoreEvents).expect("it starts");
    let cancel = CancellationToken::new();
    let timeout = std::time::Duration::from_millis(100);
    let cut = tokio::time::timeout(timeout, request.run("Hello?", &cancel)).await;
    assert!(cut.is_err(), "{cut:?}");
    session.set_model(replay(&[json!([{"text": "Here."}])]));
    let outcome = session.request("Still there?").await.expect("it starts");
    assert_eq!(outcome, RequestOutcome::Answered { text: "Here.".into() });
    let id = session.id().expect("it is still recorded").clone();
    drop(session);
    let stored = SessionStore::new(project.directories().sessions())
        .find(SessionScope::Project(host.workspace().root()), id.as_str())
        .expect("it is found");
    let open =
        stored.resume(host.workspace().root(), host.prepared().redactor()).expect("it is resumed");
    assert_eq!(open.transcript.exchanges().len(), 2);
}

#[tokio::test]
async fn an_audit_log_is_begun_once_for_all_calls() {
    let project = TestProject::new();
    let store = AuditStore::new(project.directories().audit());
    let audit = AuditOptions { store: Some(store.clone()), required: true };
    let host = project.builder().audit(audit).build().expect("a host");
    for _ in 0..3 {
        host.call_tool("list_dir", &json!({})).await.expect("a result");
    }
    drop(host);
    let logs = inspect_logs(&store).expect("the logs can be read").logs;
    assert_eq!(logs.len(), 1);
    assert!(logs.iter().all(|log| log.is_intact()));
}

#[tokio::test]
async fn without_a_required_audit_log_nothing_runs() {
    let project = TestProject::new();
    let audit = AuditOptions { store: None, required: true };
    let host = project.builder().mode(ApprovalMode::Auto).audit(audit).build().expect("a host");
    let error = host.call_tool("write_file", &write_hello()).await.expect_err("it is denied");
    assert!(matches!(error, HostError::NoAuditDirectory), "{error}");
    let error = host.session(replay(&[])).request("Hello?").await.expect_err("it is denied");
    assert!(matches!(error, HostError::NoAuditDirectory), "{error}");
    assert!(!exists(&project, "hello.txt"));
}

#[tokio::test]
async fn a_directory_of_the_program_itself_is_no_workspace() {
    let project = TestProject::new();
    let directories = project.directories();
    let inside = project.home.path().join("state/cofferdam/sessions");
    std::fs::create_dir_all(&inside).expect("a directory");
    let Err(error) = Host::builder(&inside).directories(directories).build() else {
        panic!("it is accepted")
    };
    assert!(matches!(error, HostError::OwnDirectory { .. }), "{error}");
    let Err(error) = Host::builder(Path::new("/no/such/directory")).build() else {
        panic!("it is accepted")
    };
    assert!(matches!(error, HostError::Workspace(_)), "{error}");
}

/// A policy of the user with this text.
fn policy(text: &str) -> Policy {
    let layer = PolicyLayer::parse(PolicyLevel::User, "policy.toml", text).expect("a policy");
    let mut policy = Policy::default();
    policy.add_layer(layer);
    policy
}

#[test]
fn a_policy_bounds_what_the_program_sets() {
    let project = TestProject::new();
    let build = |text: &str, builder: HostBuilder| builder.policy(policy(text)).build();
    let Err(error) = build("modes = [\"ask\"]", project.builder().mode(ApprovalMode::Auto)) else {
        panic!("the mode is accepted")
    };
    assert!(matches!(error, HostError::ModeDenied { .. }), "{error}");
    let open = CommandRules {
        minimum: SandboxLevel::None,
        network: CommandNetwork::All,
        write: vec!["/srv".into()],
        ..CommandRules::default()
    };
    let text = "[commands]\nminimum = \"full\"\nnetwork = false\nwrite = []";
    let host = build(text, project.builder().command_rules(open)).expect("a host");
    let rules = host.prepared().commands().rules();
    assert_eq!((rules.minimum, rules.network.clone()), (SandboxLevel::Full, CommandNetwork::None));
    assert!(rules.write.is_empty(), "{rules:?}");
}

#[tokio::test]
async fn a_policy_bounds_models_records_and_the_audit_log() {
    let project = TestProject::new();
    let host = |text: &str| project.builder().policy(policy(text)).build().expect("a host");
    let hello = || replay(&[json!([{"text": "Hello."}])]);
    let mut session = host("[models]\nproviders = [\"anthropic\"]").session(hello());
    let error = session.request("Hello?").await.expect_err("the model is denied");
    assert!(matches!(error, HostError::ModelDenied(_)), "{error}");
    let mut session =
        host("[sessions]\nkeep = false").session(hello()).with_record(SessionRecord::Pending);
    session.request("Hello?").await.expect("it starts");
    assert!(session.id().is_none(), "it is not recorded");
    let host = host("[audit]\nrequired = true");
    host.call_tool("list_dir", &json!({})).await.expect("a result");
    let store = AuditStore::new(project.directories().audit());
    assert_eq!(inspect_logs(&store).expect("the logs can be read").logs.len(), 1);
    let mut session = host.session(hello());
    session.approvals().set_mode(ApprovalMode::Auto);
    session.request("Hello?").await.expect("the policy allows each mode");
}

#[test]
fn a_dropped_call_ends() {
    let project = TestProject::new();
    let plugin = project.plugin(&TestGuest::from_file("loop-in-call"));
    let host = project.builder().plugin(plugin).build().expect("a host");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let arguments = json!({});
        let looping = host.call_tool("loop_in_call", &arguments);
        let cut = tokio::time::timeout(Duration::from_millis(500), looping).await;
        assert!(cut.is_err(), "{cut:?}");
        let calls = json!([call("c1", "loop_in_call", &json!({}))]);
        let mut session = host.session(replay(&[calls]));
        let request = session.request("Loop.");
        let cut = tokio::time::timeout(Duration::from_millis(500), request).await;
        assert!(cut.is_err(), "{cut:?}");
    });
    // A runtime waits for its threads. The time limit of a call is a minute.
    let started = Instant::now();
    drop(runtime);
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}

#[tokio::test]
async fn an_observer_sees_the_events_of_requests() {
    #[derive(Default)]
    struct Events(std::sync::Mutex<Vec<String>>);
    impl Observer for Events {
        fn observe(&self, event: &AgentEvent<'_>) {
            if let AgentEvent::CallStarted { call, .. } = event {
                self.0.lock().expect("no panic").push(call.name.clone());
            }
        }
    }
    let project = TestProject::new();
    let events = Arc::new(Events::default());
    let host = project.builder().observer(events.clone()).build().expect("a host");
    let model = replay(&[json!([call("c1", "list_dir", &json!({}))]), json!([{"text": "Empty."}])]);
    host.session(model).request("What is here?").await.expect("it starts");
    assert_eq!(*events.0.lock().expect("no panic"), ["list_dir"]);
}

struct IgnoreEvents;

impl Observer for IgnoreEvents {
    fn observe(&self, _: &AgentEvent<'_>) {}
}
