//! The client of the official Rust SDK.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cofferdam_tests::program::TestHome;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, Implementation, ProtocolVersion,
};
use rmcp::service::{RequestContext, RoleClient, RunningService};
use rmcp::{ClientHandler, ErrorData, ServiceExt as _};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::client::new_home;

/// A client whose user approves everything once.
#[derive(Clone)]
struct ApprovingClient {
    version: ProtocolVersion,
    questions: Arc<AtomicUsize>,
}

impl ClientHandler for ApprovingClient {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::new("rust-sdk", "1"))
            .with_protocol_version(self.version.clone())
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.questions.fetch_add(1, Ordering::SeqCst);
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        assert!(message.contains("write_file wants to"), "{message}");
        let content = json!({"decision": "once"});
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }
}

async fn begin(
    home: &TestHome,
    version: ProtocolVersion,
) -> (Child, RunningService<RoleClient, ApprovingClient>) {
    let mut command = Command::from(home.command(&["mcp", "serve", "-C", "."]));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("the program starts");
    let pipes = (child.stdout.take().expect("a pipe"), child.stdin.take().expect("a pipe"));
    let client = ApprovingClient { version, questions: Arc::default() };
    (child, client.serve(pipes).await.expect("a session"))
}

fn arguments(value: Value) -> serde_json::Map<String, Value> {
    value.as_object().expect("an object").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_sdk_lists_calls_and_approves() {
    for version in [ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25] {
        let home = new_home().with_file("a.txt", "one\n");
        let (mut child, client) = begin(&home, version).await;
        let tools = client.list_all_tools().await.expect("a list");
        assert!(tools.iter().any(|tool| tool.name == "read_file"), "{tools:?}");
        let call = |name: &'static str, values: Value| {
            client.call_tool(CallToolRequestParams::new(name).with_arguments(arguments(values)))
        };
        let read = call("read_file", json!({"path": "a.txt"})).await.expect("a result");
        assert_eq!(read.is_error, Some(false));
        let text = read.content[0].as_text().expect("a text").text.clone();
        assert!(text.contains("one"), "{text}");
        let change = json!({"path": "b.txt", "content": "two\n"});
        let written = call("write_file", change).await.expect("a result");
        assert_eq!(written.is_error, Some(false), "{written:?}");
        assert!(home.has_file("b.txt"));
        assert_eq!(client.service().questions.load(Ordering::SeqCst), 1);
        let files = client.list_all_resources().await.expect("a list");
        assert_eq!(files.len(), 2, "{files:?}");
        client.cancel().await.expect("it ends");
        let ended = tokio::time::timeout(std::time::Duration::from_secs(10), child.wait()).await;
        assert!(ended.expect("in time").expect("a child").success());
    }
}
