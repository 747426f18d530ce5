//! The list of the tools of a server, within limits.

use std::collections::HashSet;

use cofferdam::plugins::{AcceptedServerTool, MAX_SERVER_TOOLS};
use rmcp::model::{
    ClientRequest, ListToolsRequest, ListToolsResult, PaginatedRequestParams, ServerResult, Tool,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient};

use super::shown;

/// The number of pages of a list.
const MAX_PAGES: usize = 64;
/// The bytes of all names, descriptions and schemas together. The lock file contains them.
const MAX_LIST_LEN: usize = 384 << 10;

/// Lists all tools of a server.
///
/// # Errors
///
/// The list is not valid or exceeds a limit. The error is a sentence about the server.
pub(super) async fn list_tools(peer: &Peer<RoleClient>) -> Result<Vec<AcceptedServerTool>, String> {
    let mut tools: Vec<AcceptedServerTool> = Vec::new();
    let (mut names, mut length, mut cursor) = (HashSet::new(), 0, None);
    for _ in 0..MAX_PAGES {
        let page = list_page(peer, cursor.take()).await?;
        for tool in page.tools {
            if tools.len() >= MAX_SERVER_TOOLS {
                return Err(format!("it lists more than {MAX_SERVER_TOOLS} tools"));
            }
            let tool = to_accepted(&tool);
            if !names.insert(tool.name.to_ascii_lowercase()) {
                return Err(format!("it lists the tool `{}` twice", shown(&tool.name)));
            }
            length += text_len(&tool);
            if length > MAX_LIST_LEN {
                return Err(format!(
                    "the descriptions and schemas of its tools have more than {} KiB",
                    MAX_LIST_LEN >> 10
                ));
            }
            tools.push(tool);
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(tools);
        }
    }
    Err(format!("its list of tools has more than {MAX_PAGES} pages"))
}

/// Requests one page. The cache of the SDK is not used: the list is compared with the accepted one.
async fn list_page(
    peer: &Peer<RoleClient>,
    cursor: Option<String>,
) -> Result<ListToolsResult, String> {
    let request = ListToolsRequest {
        method: Default::default(),
        params: cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor))),
        extensions: Default::default(),
    };
    let failed = |error: rmcp::ServiceError| {
        format!("it does not list its tools: {}", shown(&error.to_string()))
    };
    let request = ClientRequest::ListToolsRequest(request);
    let handle = peer.send_request_with_option(request, PeerRequestOptions::no_options());
    match handle.await.map_err(failed)?.await_response().await.map_err(failed)? {
        ServerResult::ListToolsResult(page) => Ok(page),
        _ => Err("its answer to `tools/list` is not a list of tools".to_owned()),
    }
}

fn text_len(tool: &AcceptedServerTool) -> usize {
    let optional = [&tool.title, &tool.output_schema, &tool.annotations];
    let optional: usize = optional.into_iter().flatten().map(String::len).sum();
    tool.name.len() + tool.description.len() + tool.input_schema.len() + optional
}

/// Converts a tool to its pinned form. Everything that a model or a user sees is in it.
fn to_accepted(tool: &Tool) -> AcceptedServerTool {
    let mut accepted = AcceptedServerTool::new(tool.name.as_ref(), json(&tool.input_schema));
    let annotated = tool.annotations.as_ref().and_then(|hints| hints.title.clone());
    accepted.title = tool.title.clone().or(annotated);
    accepted.description = tool.description.as_deref().unwrap_or_default().to_owned();
    accepted.output_schema = tool.output_schema.as_ref().map(json);
    accepted.annotations = tool.annotations.as_ref().map(json);
    accepted
}

/// Returns the JSON text of a part of a definition, which came as JSON.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
