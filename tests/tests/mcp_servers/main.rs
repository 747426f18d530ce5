//! MCP servers as tools: the real program with scripted servers, well-behaved and hostile.

#![expect(clippy::expect_used, reason = "what a test cannot set up, it cannot test")]

mod acceptance;
mod changes;
#[path = "../mcp/client.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod client;
mod enclosure;
mod hostile_calls;
mod hostile_lists;
#[path = "../mcp/http_client.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod http_client;
mod http_hostile;
mod http_script;
mod http_tls;
mod http_tools;
mod login;
mod login_server;
mod scripted;
mod tools;
