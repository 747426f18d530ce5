//! HTTP servers that the user named, such as MCP servers, and what they refer to.
//!
//! An [`HttpReach`] belongs to one configured server. It connects to the origin of that server, and
//! to the origins that the server names, such as the one where the user logs in. Each connection
//! passes the checks of `wasi:http`: the policy may deny the host, the name is resolved once, every
//! address has to be public or permitted, and the checked addresses are the ones that are dialled.
//! An [`OriginClient`] sends requests to its origin alone. It follows no redirects, uses no proxy,
//! and has a limit on everything that it waits for.

mod client;
mod reach;

pub use client::{OriginBody, OriginClient, OriginError, OriginRequest, OriginResponse};
pub(crate) use reach::HostPermitSource;
pub use reach::{HttpReach, ReachError};
