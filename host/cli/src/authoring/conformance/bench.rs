//! Conformance checks: each call runs in a workspace of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::case::{ConformanceCase, FileContent};
use super::check::{CheckResult, ConformanceCheck};
use super::failures::{
    CheckFailure, cancellation_failure, case_failure, crash_failure, missing_refusal, state_failure,
};
use cofferdam::policy::{
    ApprovalMode, Authorization, Authorizer, CommandChangeVerdict, CommandRules, ConnectionVerdict,
    Denial, DenialCode, Effect, Grants, SandboxLevel, ToolId,
};
use cofferdam::sandbox::{
    CallFailure, CallLimits, CallReport, CommandSandbox, ConnectionDecision, DeclaredTool,
    DelegationOutcome, Gate, GateRuling, HostEnvironment, LoadedPlugin, PluginCall, Staged,
    StateChange, ToolState, WasmSandbox, Workspace,
};
use cofferdam::tools::StructuredResultChecker;

type CaseFiles = BTreeMap<String, FileContent>;
type CaseInput = Map<String, Value>;

const LARGE_INPUT_BYTES: usize = 256 << 10;
const LARGE_FILE_BYTES: usize = 8 << 20;
const UNICODE_TEXT: &str = "ünïcode 漢字 עברית 🦀 e\u{301} \u{200d}\u{feff}\u{1} end";
const UNICODE_FILE_NAME: &str = "ünï 漢字/ファイル 🦀.txt";

/// Checks all tools of a component. `found` receives each result as soon as it is known.
pub(crate) async fn check_conformance(
    sandbox: &Arc<WasmSandbox>,
    plugin: &Arc<LoadedPlugin>,
    environment: &HostEnvironment,
    cases: &[ConformanceCase],
    found: &mut dyn FnMut(CheckResult),
) {
    let bench = ConformanceBench { sandbox, plugin, environment };
    for case in cases {
        let (problem, printed) = bench.check_case(case).await;
        found(CheckResult {
            tool: case.tool.clone(),
            check: ConformanceCheck::Case(case.name.clone()),
            error: problem,
            output: printed,
        });
    }
    for tool in &plugin.declaration().tools {
        // A case that succeeds is the template for the general checks.
        let works = cases.iter().find(|case| case.tool == tool.name && case.error.is_none());
        for (check, problem) in bench.check_tool(tool, works).await {
            found(CheckResult {
                tool: tool.name.clone(),
                check,
                error: problem,
                output: String::new(),
            });
        }
    }
}

struct ConformanceBench<'a> {
    sandbox: &'a Arc<WasmSandbox>,
    plugin: &'a Arc<LoadedPlugin>,
    environment: &'a HostEnvironment,
}

impl ConformanceBench<'_> {
    /// Runs a case. Returns the failure, if any, and the tool's log output.
    async fn check_case(&self, case: &ConformanceCase) -> (CheckFailure, String) {
        let Some(tool) = self.plugin.declaration().tools.iter().find(|tool| tool.name == case.tool)
        else {
            return (Some(format!("the component has no tool `{}`", case.tool)), String::new());
        };
        let workspace = match create_workspace(&case.files) {
            Ok(workspace) => workspace,
            Err(error) => return (Some(error), String::new()),
        };
        let state = ToolState::default();
        state.restore(&initial_state(case));
        let call = TestCall { state: state.clone(), ..TestCall::new(tool, &case.input) };
        let report = self.call(call, workspace.path()).await;
        let changed_state = || state_failure(case, state.take_changes());
        let problem = case_failure(case, &report).or_else(changed_state).or_else(|| {
            let mismatch = |(path, content): (&String, &FileContent)| {
                let actual = fs::read(workspace.path().join(path)).ok();
                (actual != content.bytes().ok()).then(|| match actual {
                    Some(actual) => {
                        format!(
                            "after the call, {path} contains {:?}",
                            String::from_utf8_lossy(&actual)
                        )
                    }
                    None => format!("after the call, {path} does not exist"),
                })
            };
            case.files_after.iter().find_map(mismatch)
        });
        (problem, report.log)
    }

    async fn check_tool(
        &self,
        tool: &DeclaredTool,
        works: Option<&ConformanceCase>,
    ) -> Vec<(ConformanceCheck, CheckFailure)> {
        let mut found = vec![(ConformanceCheck::Declaration, self.check_declaration(tool).await)];
        let (files, input) =
            works.map(|case| (case.files.clone(), case.input.clone())).unwrap_or_default();
        if !tool.asks.is_empty() {
            let problem =
                match self.call_in_workspace(tool, &files, &input, Grants::default()).await {
                    Ok(report) if report.result.is_ok() => Some("the call succeeded".to_owned()),
                    other => crash_failure(other),
                };
            found.push((ConformanceCheck::WithoutGrants, problem));
        }
        for text in text_properties(tool, false) {
            found.push((
                ConformanceCheck::UnicodeText,
                crash_failure(
                    self.call_with_value(tool, &files, &input, &text, UNICODE_TEXT).await,
                ),
            ));
            found.push((
                ConformanceCheck::LargeInput,
                crash_failure(
                    self.call_with_value(
                        tool,
                        &files,
                        &input,
                        &text,
                        &"a b\n".repeat(LARGE_INPUT_BYTES / 4),
                    )
                    .await,
                ),
            ));
        }
        for path in text_properties(tool, true) {
            found.extend(self.check_paths(tool, works, &path).await);
        }
        found.push((
            ConformanceCheck::Cancelled,
            self.check_cancellation(tool, &files, &input).await,
        ));
        found
    }

    async fn check_declaration(&self, tool: &DeclaredTool) -> CheckFailure {
        let (plugin, sandbox) = (Arc::clone(self.plugin), Arc::clone(self.sandbox));
        match tokio::task::spawn_blocking(move || plugin.reload_declaration(&sandbox)).await {
            Ok(Ok(reloaded)) if reloaded == *self.plugin.declaration() => {}
            Ok(Ok(_)) => return Some("its second declaration differs from the first".into()),
            Ok(Err(error)) => return Some(error.to_string()),
            Err(error) => return Some(error.to_string()),
        }
        let mut stranger = tool.clone();
        stranger.name = format!("not_{}", tool.name);
        match self
            .call_in_workspace(&stranger, &CaseFiles::new(), &CaseInput::new(), Grants::default())
            .await
        {
            Ok(report) if report.result.is_ok() => {
                Some(format!("the plugin accepts calls to the undeclared tool `{}`", stranger.name))
            }
            other => crash_failure(other),
        }
    }

    async fn check_paths(
        &self,
        tool: &DeclaredTool,
        works: Option<&ConformanceCase>,
        property: &str,
    ) -> Vec<(ConformanceCheck, CheckFailure)> {
        let mut found = Vec::new();
        let (files, input) =
            works.map(|case| (case.files.clone(), case.input.clone())).unwrap_or_default();
        let named = input.get(property).and_then(Value::as_str).unwrap_or_default();
        // Only for a path that must exist for the tool to work, not for one that it creates.
        if let (Some(works), Some(content)) = (works, files.get(named)) {
            let renamed = ConformanceCase {
                files: CaseFiles::from([(UNICODE_FILE_NAME.to_owned(), content.clone())]),
                input: with_property(&input, property, UNICODE_FILE_NAME),
                files_after: BTreeMap::new(),
                ..works.clone()
            };
            found.push((ConformanceCheck::UnicodePath, self.check_case(&renamed).await.0));
            let big = CaseFiles::from([(
                named.to_owned(),
                FileContent::Text("one line\n".repeat(LARGE_FILE_BYTES / 9)),
            )]);
            found.push((
                ConformanceCheck::LargeFile,
                crash_failure(self.call_with_value(tool, &big, &input, property, named).await),
            ));
            found.push((
                ConformanceCheck::MissingPath,
                missing_refusal(
                    self.call_with_value(tool, &CaseFiles::new(), &input, property, "missing/file")
                        .await,
                ),
            ));
            let directory =
                CaseFiles::from([("directory/file".to_owned(), FileContent::Text("text".into()))]);
            found.push((
                ConformanceCheck::DirectoryPath,
                crash_failure(
                    self.call_with_value(tool, &directory, &input, property, "directory").await,
                ),
            ));
        }
        found.push((
            ConformanceCheck::OutsidePath,
            self.check_outside_path(tool, &files, &input, property).await,
        ));
        found
    }

    /// Passes a symbolic link to a path outside the workspace to the tool. The host normally
    /// rejects such a path before the call.
    async fn check_outside_path(
        &self,
        tool: &DeclaredTool,
        files: &CaseFiles,
        input: &CaseInput,
        property: &str,
    ) -> CheckFailure {
        let secret = match tempfile::tempdir() {
            Ok(directory) => directory,
            Err(error) => return Some(error.to_string()),
        };
        let workspace = match create_workspace(files) {
            Ok(workspace) => workspace,
            Err(error) => return Some(error),
        };
        let target = secret.path().join("secret");
        let link = workspace.path().join("link");
        if let Err(error) =
            fs::write(&target, "outside").and_then(|()| std::os::unix::fs::symlink(&target, link))
        {
            return Some(error.to_string());
        }
        let input = with_property(input, property, "link");
        let report = self.call(TestCall::new(tool, &input), workspace.path()).await;
        missing_refusal(Ok(report)).or_else(|| {
            (fs::read(&target).ok()? != b"outside")
                .then(|| "it wrote outside the workspace".to_owned())
        })
    }

    async fn check_cancellation(
        &self,
        tool: &DeclaredTool,
        files: &CaseFiles,
        input: &CaseInput,
    ) -> CheckFailure {
        let workspace = match create_workspace(files) {
            Ok(workspace) => workspace,
            Err(error) => return Some(error),
        };
        let cancel = CancellationToken::new();
        cancel.cancel();
        cancellation_failure(
            self.call(TestCall { cancel, ..TestCall::new(tool, input) }, workspace.path())
                .await
                .result,
        )
    }

    async fn call_with_value(
        &self,
        tool: &DeclaredTool,
        files: &CaseFiles,
        input: &CaseInput,
        property: &str,
        value: &str,
    ) -> Result<CallReport, String> {
        self.call_in_workspace(
            tool,
            files,
            &with_property(input, property, value),
            requested_grants(tool),
        )
        .await
    }

    async fn call_in_workspace(
        &self,
        tool: &DeclaredTool,
        files: &CaseFiles,
        input: &CaseInput,
        grants: Grants,
    ) -> Result<CallReport, String> {
        let workspace = create_workspace(files)?;
        Ok(self.call(TestCall { grants, ..TestCall::new(tool, input) }, workspace.path()).await)
    }

    async fn call(&self, call: TestCall<'_>, root: &Path) -> CallReport {
        let TestCall { tool, input, grants, state, cancel } = call;
        let workspace = match Workspace::open(root, self.environment) {
            Ok(workspace) => Arc::new(workspace),
            Err(error) => {
                return CallReport::not_started(CallFailure::Host(error.to_string()));
            }
        };
        let call = PluginCall {
            tool: tool.name.clone(),
            input: Value::Object(input.clone()).to_string(),
            grants,
            limits: CallLimits::default(),
            workspace,
            gate: denying_gate(),
            change_judge: Arc::new(|_| CommandChangeVerdict::Accept),
            denial_recorder: Arc::new(|_, _| {}),
            mode: Arc::new(|| ApprovalMode::Ask),
            connection_judge: Arc::new(|_| ConnectionDecision {
                verdict: ConnectionVerdict::Ask,
                names_address: false,
            }),
            history: None,
            plan_gate: Arc::new(|_| Box::pin(async { Err(no_effects_denial()) })),
            commands: commands_stub(self.environment),
            jobs: None,
            job_recorder: Arc::new(|_, _| {}),
            tool_state: state,
            delegation: Arc::new(|_| {
                Box::pin(async { DelegationOutcome::Denied(no_effects_denial()) })
            }),
            credentials: Vec::new().into(),
            progress: Arc::new(|_| {}),
            cancellation: cancel,
        };
        let mut report = self.plugin.call(self.sandbox, call).await;
        StructuredResultChecker::new(tool).check(&mut report);
        if let Some(staged) = report.staged.take()
            && let Err(problem) = commit_changes(staged, &tool.name)
        {
            report.result = Err(CallFailure::Host(problem));
        }
        report
    }
}

/// A call of a tool in a workspace of its own.
struct TestCall<'a> {
    tool: &'a DeclaredTool,
    input: &'a CaseInput,
    grants: Grants,
    state: ToolState,
    cancel: CancellationToken,
}

impl<'a> TestCall<'a> {
    /// A call with all requested permissions and empty state.
    fn new(tool: &'a DeclaredTool, input: &'a CaseInput) -> Self {
        Self {
            tool,
            input,
            grants: requested_grants(tool),
            state: ToolState::default(),
            cancel: CancellationToken::new(),
        }
    }
}

/// Commits the staged changes of a tool to the temporary workspace of its test.
fn commit_changes(staged: Staged, tool: &str) -> Result<(), String> {
    let effect = Effect::Write { changes: staged.changes().clone(), confirm: false };
    match Authorizer::new(ApprovalMode::Auto, false).authorize(ToolId::new(tool, ""), "{}", effect)
    {
        Authorization::Allow(permit, _) => {
            staged.commit(permit, tool, None).map(drop).map_err(|error| error.to_string())
        }
        Authorization::Ask(_) => Err("a test cannot ask for approval".into()),
        Authorization::Deny(denial) => Err(denial.to_string()),
    }
}

/// A command sandbox for tests, in which no command runs. Creating it does not probe the machine.
fn commands_stub(environment: &HostEnvironment) -> Arc<CommandSandbox> {
    let rules = CommandRules {
        minimum: SandboxLevel::None,
        maximum: SandboxLevel::None,
        ..CommandRules::default()
    };
    Arc::new(CommandSandbox::new(PathBuf::new(), rules, PathBuf::new(), environment.clone()))
}

/// A gate that denies every effect: whether a command may run depends on the user, not on the tool.
fn denying_gate() -> Gate {
    Arc::new(|_| Box::pin(async { GateRuling::Denied(no_effects_denial()) }))
}

fn no_effects_denial() -> Denial {
    Denial::without_remedy(DenialCode::NobodyToAsk, "a conformance test allows no effects.")
}

/// Returns the state of a tool before the call of a case.
fn initial_state(case: &ConformanceCase) -> Vec<StateChange> {
    let value = |content: &FileContent| content.bytes().ok();
    case.state.iter().map(|(key, content)| (key.clone(), value(content))).collect()
}

fn requested_grants(tool: &DeclaredTool) -> Grants {
    Grants::from_requested(&tool.asks)
}

/// Creates a temporary workspace that contains these files.
fn create_workspace(files: &CaseFiles) -> Result<tempfile::TempDir, String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    for (name, content) in files {
        let path = directory.path().join(name);
        let created = path.parent().map_or(Ok(()), fs::create_dir_all);
        created
            .and_then(|()| fs::write(&path, content.bytes().unwrap_or_default()))
            .map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(directory)
}

/// Returns the text properties of a tool's input: its workspace paths, or all others.
fn text_properties(tool: &DeclaredTool, paths: bool) -> Vec<String> {
    let properties =
        tool.input_schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let is_text = |schema: &Value| {
        schema.get("type").and_then(Value::as_str) == Some("string") && schema.get("enum").is_none()
    };
    let is_path =
        |schema: &Value| schema.get("format").and_then(Value::as_str) == Some("workspace-path");
    properties
        .filter(|(_, schema)| is_text(schema) && is_path(schema) == paths)
        .map(|(name, _)| name.clone())
        .collect()
}

fn with_property(input: &CaseInput, property: &str, value: &str) -> CaseInput {
    let mut input = input.clone();
    input.insert(property.to_owned(), Value::String(value.to_owned()));
    input
}
