//! The MCP server: the real program with clients of all kinds, well-behaved and hostile.

#![expect(clippy::expect_used, reason = "what a test cannot set up, it cannot test")]

mod approval;
mod calls;
mod client;
mod endings;
mod hostile;
mod http;
mod http_auth;
mod http_client;
mod http_hostile;
mod http_load;
mod install;
mod prepared_sandboxes;
mod resources;
mod sdk;
mod versions;
mod workspace;
