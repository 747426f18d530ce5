//! Tools that a program answers itself, as sources of tools.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam::conversation::ResultStatus;
use cofferdam::policy::{ApprovalMode, FileGrant, Tier};
use cofferdam::sandbox::{CallFailure, ComponentDigest, SourceContent, SourceOutput};
use cofferdam::tools::{ApprovalAnswer, SourceCall, SourceDescription, SourceTool, ToolSource};
use cofferdam_tests::guests::ScriptedApprover;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::TestProject;

/// A source whose tools do what they are named after.
struct ScriptedSource(SourceDescription);

impl ScriptedSource {
    fn new(name: &str, tools: &[&str]) -> Self {
        let tools = tools.iter().map(|tool| SourceTool {
            name: (*tool).to_owned(),
            description: format!("The tool {tool}."),
            input_schema: r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#.to_owned(),
            ..SourceTool::default()
        });
        let digest = ComponentDigest::compute(name.as_bytes());
        Self(SourceDescription::new(name, digest, tools.collect()).expect("a valid name"))
    }
}

impl ToolSource for ScriptedSource {
    fn description(&self) -> &SourceDescription {
        &self.0
    }

    fn call<'a>(
        &'a self,
        call: SourceCall,
    ) -> Pin<Box<dyn Future<Output = Result<SourceOutput, CallFailure>> + Send + 'a>> {
        Box::pin(async move {
            let text = match call.tool.as_str() {
                "panic" => panic!("simulated panic"),
                "hang" => std::future::pending().await,
                "large" => "x".repeat(64 << 20),
                "fail" => return Err(CallFailure::ToolFailed("no luck".to_owned())),
                _ => call.arguments.to_string(),
            };
            Ok(SourceOutput { content: vec![SourceContent::Text(text)], structured: None })
        })
    }
}

#[tokio::test]
async fn a_program_answers_tools_itself() {
    let project = TestProject::new();
    let source = ScriptedSource::new("own", &["echo", "panic", "large", "fail"]);
    let host = project.builder().tool_source(Arc::new(source)).build().expect("a host");
    let call = async |tool: &str, arguments| {
        let result = host.call_tool(tool, &arguments).await.expect("a result");
        (result.status(), result.text())
    };
    // By the name for people, and by the name for the model.
    let expected = (ResultStatus::Ok, r#"{"n":1}"#.to_owned());
    assert_eq!(call("own/echo", json!({"n": 1})).await, expected);
    assert_eq!(call("own__echo", json!({"n": 1})).await, expected);
    let (status, problem) = call("own/echo", json!({"n": "x"})).await;
    assert!(status == ResultStatus::Error && problem.contains("schema"), "{problem}");
    for (tool, expected) in
        [("panic", "panicked during the call"), ("large", "the limit is"), ("fail", "no luck")]
    {
        let (status, problem) = call(&format!("own/{tool}"), json!({})).await;
        assert!(status == ResultStatus::Error && problem.contains(expected), "{problem}");
    }
    let names: Vec<&str> = host
        .catalog()
        .definitions()
        .iter()
        .map(|definition| definition.name.as_str())
        .filter(|name| name.starts_with("own"))
        .collect();
    assert_eq!(names, ["own__echo", "own__panic", "own__large", "own__fail"]);
}

#[tokio::test]
async fn a_call_of_a_source_ends_with_its_cancellation() {
    let project = TestProject::new();
    let source = ScriptedSource::new("own", &["hang"]);
    let host = project.builder().tool_source(Arc::new(source)).build().expect("a host");
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        stop.cancel();
    });
    let started = Instant::now();
    let observer = super::IgnoreEvents;
    let called = host.call_tool_until("own/hang", "{}".to_owned(), &observer, &cancel).await;
    assert_eq!(called.expect("a result").status(), ResultStatus::Interrupted);
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}

#[tokio::test]
async fn the_permissions_of_a_source_decide_on_its_tier_and_approval() {
    let project = TestProject::new();
    let harmless = ScriptedSource::new("harmless", &["echo"]);
    let writing = ScriptedSource::new("writing", &["echo"]);
    let writing = ScriptedSource(writing.0.with_permissions(FileGrant::ReadWrite, Vec::new()));
    let approver =
        Arc::new(ScriptedApprover::with_answers([ApprovalAnswer::No { guidance: None }]));
    let host = project
        .builder()
        .mode(ApprovalMode::Ask)
        .approver(approver)
        .tool_source(Arc::new(harmless))
        .tool_source(Arc::new(writing))
        .build()
        .expect("a host");
    let tier = |name: &str| host.catalog().find(name).expect("it is there").tier;
    assert_eq!((tier("harmless/echo"), tier("writing/echo")), (Tier::ReadOnly, Tier::Write));
    let result = host.call_tool("harmless/echo", &json!({})).await.expect("a result");
    assert_eq!(result.status(), ResultStatus::Ok);
    let result = host.call_tool("writing/echo", &json!({})).await.expect("a result");
    assert_eq!(result.status(), ResultStatus::Rejected);
}

#[tokio::test]
async fn no_tool_of_a_source_takes_the_name_of_another_tool() {
    let project = TestProject::new();
    let first = ScriptedSource::new("a", &["b_c", "b.c"]);
    let second = ScriptedSource::new("A", &["b_c", "other"]);
    let host = project
        .builder()
        .tool_source(Arc::new(first))
        .tool_source(Arc::new(second))
        .build()
        .expect("a host");
    let refused: Vec<&str> =
        host.catalog().refused_plugins().iter().map(|refused| refused.reason.as_str()).collect();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused.iter().all(|reason| reason.contains("is already used by the tool a/b_c")));
    assert!(host.catalog().find("A/other").is_some());
}
